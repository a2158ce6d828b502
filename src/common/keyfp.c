#include "common/keyfp.h"

#include <string.h>

bool keyfp_valid(const char *s) {
        static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t front = strlen(KEYFP_PREFIX);

        return strlen(s) == KEYFP_LEN && strncmp(s, KEYFP_PREFIX, front) == 0 &&
               strspn(s + front, base64) == KEYFP_LEN - front;
}
