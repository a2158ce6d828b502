#include "manager/gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/exitcode.h"
#include "manager/exec.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool gateway_name_is_kept(const struct peer *p, const char *name) {
        static const char front[] = "ssh-";
        const char *digest = name + strlen(front), *own = p->fp + strlen(KEYFP_PREFIX);

        if (strncmp(name, front, strlen(front)) != 0 ||
            strlen(digest) != KEYFP_LEN - strlen(KEYFP_PREFIX) ||
            digest[strspn(digest, DIGITS LETTERS "-_")] != '\0')
                return false;
        if (!p->fp[0])
                return true;
        for (; *digest; digest++, own++)
                if (*digest != (*own == '+' ? '-' : *own == '/' ? '_' : *own))
                        return true;
        return false;
}

/* The next word, of @allowed characters alone; what follows is *@text. */
static bool word(const char **text, const char *allowed, char *ret, size_t cap) {
        size_t n = strspn(*text, allowed);

        if (n == 0 || n >= cap)
                return false;
        memcpy(ret, *text, n);
        ret[n] = '\0';
        *text += n;
        return true;
}

static bool blank(const char **text) {
        return *(*text)++ == ' ';
}

int gateway_parse(const char *text, struct gateway_login *ret) {
        struct gateway_login l = { 0 };
        unsigned long n;
        char port[6];

        /* As sshd says it: with a scope behind a link-local address, and "UNKNOWN" where there is none. */
        if (!word(&text, DIGITS LETTERS ":+/", l.fp, sizeof(l.fp)) || !keyfp_valid(l.fp) ||
            !blank(&text) || !word(&text, DIGITS LETTERS ".:%_-", l.address, sizeof(l.address)) ||
            !blank(&text) || !word(&text, DIGITS, port, sizeof(port)) || !blank(&text) ||
            !word(&text, DIGITS LETTERS "._-", l.connection, sizeof(l.connection)) || *text)
                return -EPROTO;
        n = strtoul(port, NULL, 10);
        if (n > UINT16_MAX)
                return -EPROTO;
        l.port = (uint16_t)n;
        *ret = l;
        return 0;
}

static bool is_same(const struct gateway_login *a, const struct gateway_login *b) {
        return a->port == b->port && strcmp(a->fp, b->fp) == 0 && strcmp(a->address, b->address) == 0 &&
               strcmp(a->connection, b->connection) == 0;
}

/* One record for each connection of the gateway, as far back as they are remembered. */
static int record(struct client *c, const struct gateway_login *l) {
        struct manager *m = c->m;
        struct audit_caller who = peer_caller(&c->peer);
        int r;

        if (!m->logins)
                m->logins = calloc(GATEWAY_REMEMBERED, sizeof(*m->logins));
        if (!m->logins)
                abort();
        for (unsigned i = 0; i < GATEWAY_REMEMBERED; i++)
                if (is_same(&m->logins[i], l))
                        return 0;
        r = audit_ssh_login(m->audit, &who, l->address, l->port);
        if (r == 0)
                m->logins[m->n_logins++ % GATEWAY_REMEMBERED] = *l;
        return r;
}

int gateway_hello(struct client *c, uint8_t role, const char *text) {
        const struct peer_policy *policy = &c->m->policy;
        bool is_gateway = policy->have_gateway && c->peer.uid == policy->gateway;
        struct gateway_login l;

        if (role == HELLO_CLIENT && !is_gateway)
                return 0;
        if (role == HELLO_CLIENT) {
                request_not_allowed(
                        c, "ssh gateway", "", "",
                        "uid %u is the ssh gateway's account: it has to say for whose key it asks",
                        (unsigned)c->peer.uid);
                return 0;
        }
        if (role != HELLO_GATEWAY || gateway_parse(text, &l) < 0)
                return -EPROTO;
        if (!is_gateway) {
                request_not_allowed(
                        c, "ssh gateway", "", "",
                        "uid %u is not the ssh gateway's account: see hermes-sandboxd --help",
                        (unsigned)c->peer.uid);
                return 0;
        }
        memcpy(c->peer.fp, l.fp, sizeof(c->peer.fp));
        if (record(c, &l) < 0)
                client_refuse(
                        c, EXIT_SANDBOX, "audit",
                        "rejected: ssh gateway: the login could not be recorded: see journalctl -u "
                        "hermes-sandbox-pool, auditctl -s");
        return 0;
}
