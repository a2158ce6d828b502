/*
 * The ssh gateway: one account speaks for the holders of many keys, and says with each connection for which. By the word of
 * that account alone; a key's fingerprint is then part of who its caller is (peer_is()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "manager/manager.h"

/* Connections whose holder's login is in the trails already. */
#define GATEWAY_REMEMBERED 256
#define GATEWAY_ADDRESS_MAX 64

struct gateway_login {
        char fp[KEYFP_LEN + 1];
        char address[GATEWAY_ADDRESS_MAX + 1];
        uint16_t port;
        char connection[PROTO_CONNECTION_MAX + 1]; /* which sshd gives no other one */
};

/* Is @name such as the sessions of keys have ("ssh-" and the fingerprint, cli_sshkey.h), and not that of @p's own key?
 * Nobody else may have one: he would keep the key's holder out. */
bool gateway_name_is_kept(const struct peer *p, const char *name);
/* Reads the text of a gateway's HELLO, "FINGERPRINT ADDRESS PORT CONNECTION": 0 or -EPROTO. */
int gateway_parse(const char *text, struct gateway_login *ret);
/*
 * @c has said who it is: HELLO_CLIENT, or HELLO_GATEWAY with @text. The gateway's account has to say the one, everybody
 * else the other; who does not is refused, and so is a login that could not be recorded as it must. 0, or -EPROTO.
 */
int gateway_hello(struct client *c, uint8_t role, const char *text);
