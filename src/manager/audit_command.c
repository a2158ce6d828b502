/* The text is produced piece by piece into a sink that keeps its start; hashing begins only when the
 * start is full, so that an ordinary command costs no hash. */
#include "manager/audit_command.h"

#include <string.h>

#include "common/wire.h"

/* As its process is called in the sandbox (FILES_NAME in agent/files.h). */
#define FILE_TOOL "hermes-files "

static void put(struct audit_command *c, const void *p, size_t len) {
        size_t room = sizeof(c->head) - c->len;
        size_t n = len < room ? len : room;

        if (n > 0)
                memcpy(c->head + c->len, p, n);
        c->len += n;
        if (len > n) {
                if (c->total <= sizeof(c->head)) {
                        sha256_init(&c->ctx);
                        sha256_update(&c->ctx, sizeof(c->head), c->head);
                }
                sha256_update(&c->ctx, len - n, (const uint8_t *)p + n);
        }
        c->total += len;
}

static void put_quoted(struct audit_command *c, const char *s) {
        static const char plain[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
        size_t len = strlen(s);

        if (len > 0 && strspn(s, plain) == len) {
                put(c, s, len);
                return;
        }
        put(c, "'", 1);
        while (*s) {
                size_t n = strcspn(s, "'");

                put(c, s, n);
                s += n;
                if (*s) {
                        put(c, "'\\''", 4);
                        s++;
                }
        }
        put(c, "'", 1);
}

void audit_hex(const uint8_t digest[SHA256_DIGEST_SIZE], char ret[2 * SHA256_DIGEST_SIZE + 1]) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
                ret[2 * i] = digits[digest[i] >> 4];
                ret[2 * i + 1] = digits[digest[i] & 15];
        }
        ret[2 * SHA256_DIGEST_SIZE] = 0;
}

void audit_command_read(struct audit_command *c, const uint8_t *wire, size_t len, uint32_t n_args,
                        bool shell, bool files) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct wire_in in;

        c->total = 0;
        c->len = 0;
        c->sha256[0] = 0;
        if (files)
                put(c, FILE_TOOL, strlen(FILE_TOOL));
        wire_in_init(&in, wire, len);
        for (uint32_t i = 0; i < n_args; i++) {
                const char *s = wire_get_str(&in, UINT32_MAX - 1);

                if (!s)
                        break;
                if (i > 0)
                        put(c, " ", 1);
                if (shell)
                        put(c, s, strlen(s));
                else
                        put_quoted(c, s);
        }
        if (c->total > sizeof(c->head)) {
                sha256_digest(&c->ctx, sizeof(digest), digest);
                audit_hex(digest, c->sha256);
        }
}
