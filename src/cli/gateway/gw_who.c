/*
 * Which key it was sshd tells in a file (ExposeAuthInfo in sshd_config(5)): one line a method, "publickey TYPE BLOB". That
 * file is made under this account's own name, as the file's reader is; so whoever has the account could write another.
 * He could as well speak to the manager without us: the account is the boundary, and a login never gets further into it
 * than this program. The fingerprint then comes from root's file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/gateway/gateway.h"
#include "common/exitcode.h"

#define METHOD "publickey "
#define ALNUM "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

const char *gw_env_get(char **env, const char *name) {
        size_t n = strlen(name);

        for (; *env; env++)
                if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
                        return *env + n + 1;
        return NULL;
}

/* The one key in what sshd wrote. */
static bool find_method(const char *text, size_t len, struct sshkey_line *ret) {
        struct sshkey_span line;
        size_t front = strlen(METHOD), n = 0;

        for (size_t pos = 0; sshkey_next_line(text, len, &pos, &line);)
                if (line.len > front && memcmp(line.p, METHOD, front) == 0) {
                        n++;
                        if (!sshkey_line_parse(line.p + front, line.len - front, ret))
                                return false;
                }
        return n == 1;
}

static int find_key(const char *text, size_t len, const struct sshkey_line *key, const char *path,
                    struct sshkey_notes *ret, struct errmsg *e) {
        struct sshkey_span line;
        struct sshkey_line l;
        struct errmsg why;

        for (size_t pos = 0; sshkey_next_line(text, len, &pos, &line);) {
                if (!sshkey_line_parse(line.p, line.len, &l) || !sshkey_same(l.type, key->type) ||
                    !sshkey_same(l.blob, key->blob))
                        continue;
                if (sshkey_notes_parse(l.notes, ret, &why) < 0)
                        return errmsg_set(e, EXIT_CONFIG,
                                          "%s: %s: add it with hermes-sandbox ssh add-key", path,
                                          why.text);
                return 0;
        }
        return errmsg_set(e, EXIT_NOT_ALLOWED,
                          "%s has no such key any more: hermes-sandbox ssh add-key adds it", path);
}

/* The client's address and port stand first in SSH_CONNECTION (ssh(1)). */
static int find_origin(const char *connection, const char *auth, struct gw_who *who, struct errmsg *e) {
        const char *name = strrchr(auth, '/') + 1;
        size_t address = connection ? strspn(connection, "0123456789abcdefABCDEF:.") : 0, scope = 0,
               port;

        /* An address of one link has the name of that link behind it (RFC 4007, 11.2). */
        if (address > 0 && connection[address] == '%')
                scope = strcspn(connection + address, " ");
        port = address > 0 && connection[address + scope] == ' '
                       ? strspn(connection + address + scope + 1, "0123456789")
                       : 0;
        if (address == 0 || address > 45 || port == 0 || port > 5)
                return errmsg_set(
                        e, EXIT_USAGE,
                        "SSH_CONNECTION does not say who asks: this program is sshd's to run, see "
                        "hermes-sandbox-ssh-gateway(8)");
        /* sshd makes that file for each connection, with a name at random. */
        if (name[strspn(name, ALNUM "._-")] || !name[0] || strlen(name) > PROTO_CONNECTION_MAX)
                name = "-";
        snprintf(who->hello, sizeof(who->hello), "%s %.*s %.*s %s", who->key.fp, (int)address,
                 connection, (int)port, connection + address + scope + 1, name);
        return 0;
}

int gw_who_find(const struct gateway *g, char **env, struct gw_who *ret, struct errmsg *e) {
        static char auth[SSHKEY_FILE_MAX], keys[SSHKEY_FILE_MAX];
        const char *path = gw_env_get(env, "SSH_USER_AUTH");
        struct gw_who who = { 0 };
        struct sshkey_line key;
        ssize_t len;
        int r;

        if (!path || path[0] != '/')
                return errmsg_set(
                        e, EXIT_USAGE,
                        "SSH_USER_AUTH is not set: this program is sshd's to run, with ExposeAuthInfo, "
                        "see hermes-sandbox-ssh-gateway(8)");
        len = sshkey_file_read(path, geteuid(), auth, e);
        if (len < 0)
                return EXIT_NOT_ALLOWED;
        if (!find_method(auth, (size_t)len, &key))
                return errmsg_set(e, EXIT_NOT_ALLOWED,
                                  "%s names no key, or more than one: sshd_config has to have "
                                  "AuthenticationMethods publickey",
                                  path);
        len = sshkey_file_read(g->keys, g->owner, keys, e);
        if (len < 0)
                return EXIT_CONFIG;
        r = find_key(keys, (size_t)len, &key, g->keys, &who.key, e);
        if (r == 0)
                r = find_origin(gw_env_get(env, "SSH_CONNECTION"), path, &who, e);
        if (r != 0)
                return r;
        sshkey_session(who.key.fp, who.session);
        *ret = who;
        return 0;
}
