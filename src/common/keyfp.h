/* The fingerprint of an ssh key, by which the ssh gateway tells the manager who asks. */
#pragma once

#include <stdbool.h>

#define KEYFP_PREFIX "SHA256:"
#define KEYFP_LEN 50 /* with the prefix: 43 characters of base64, without padding, are 32 bytes */

/* Is it the prefix and 43 of A-Z a-z 0-9 + /, as ssh-keygen(1) -l prints it? */
bool keyfp_valid(const char *s);
