#include "cli/cli_sshkey.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_opts.h"
#include "common/cleanup.h"

#define LETTERS_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static bool blank(char c) {
        return c == ' ' || c == '\t';
}

bool sshkey_same(struct sshkey_span a, struct sshkey_span b) {
        return a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
}

bool sshkey_next_line(const char *text, size_t len, size_t *pos, struct sshkey_span *ret) {
        const char *start = text + *pos, *end;

        if (*pos >= len)
                return false;
        end = memchr(start, '\n', len - *pos);
        ret->p = start;
        ret->len = end ? (size_t)(end - start) : len - *pos;
        *pos += ret->len + 1;
        return true;
}

/* The next word of @s, which is shortened by it. With @quotes a blank between double quotes is part of it. */
static struct sshkey_span word(struct sshkey_span *s, bool quotes) {
        struct sshkey_span w;
        bool quoted = false;

        while (s->len > 0 && blank(*s->p)) {
                s->p++;
                s->len--;
        }
        w = (struct sshkey_span){ s->p, 0 };
        while (w.len < s->len && (quoted || !blank(s->p[w.len]))) {
                if (quotes && s->p[w.len] == '\\' && w.len + 1 < s->len && s->p[w.len + 1] == '"')
                        w.len++;
                else if (quotes && s->p[w.len] == '"')
                        quoted = !quoted;
                w.len++;
        }
        s->p += w.len;
        s->len -= w.len;
        return w;
}

static bool is_type(struct sshkey_span w) {
        static const char *const fronts[] = { "ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-" };

        for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++)
                if (w.len > strlen(fronts[i]) && memcmp(w.p, fronts[i], strlen(fronts[i])) == 0)
                        return true;
        return false;
}

static bool all_of(struct sshkey_span w, const char *chars) {
        for (size_t i = 0; i < w.len; i++)
                if (w.p[i] == '\0' || !strchr(chars, w.p[i]))
                        return false;
        return true;
}

bool sshkey_line_parse(const char *line, size_t len, struct sshkey_line *ret) {
        struct sshkey_span rest = { line, len }, before;
        struct sshkey_line l = { 0 };

        while (rest.len > 0 && (rest.p[rest.len - 1] == '\r' || blank(rest.p[rest.len - 1])))
                rest.len--;
        before = rest;
        l.type = word(&rest, false);
        if (l.type.len == 0 || l.type.p[0] == '#')
                return false;
        if (!is_type(l.type)) {
                rest = before;
                l.options = word(&rest, true);
                l.type = word(&rest, false);
        }
        l.blob = word(&rest, false);
        if (!is_type(l.type) || l.blob.len < 16 || l.blob.len > SSHKEY_BLOB_MAX ||
            !all_of(l.blob, LETTERS_DIGITS "+/="))
                return false;
        while (rest.len > 0 && blank(*rest.p)) {
                rest.p++;
                rest.len--;
        }
        l.notes = rest;
        *ret = l;
        return true;
}

bool sshkey_name_valid(const char *s) {
        size_t len = strlen(s);

        return len > 0 && len <= SSHKEY_NAME_MAX && s[0] != '-' && s[0] != '.' &&
               strspn(s, LETTERS_DIGITS "_.@-") == len;
}

void sshkey_session(const char *fp, char *ret) {
        char *p = stpcpy(ret, "ssh-");

        for (fp += strlen(KEYFP_PREFIX); *fp; fp++)
                *p++ = *fp == '+' ? '-' : *fp == '/' ? '_' : *fp;
        *p = '\0';
}

/* The value of a word "KEY=VALUE" into @to; false where the word is of another key, or does not fit. */
static bool take(struct sshkey_span w, const char *key, char *to, size_t cap) {
        size_t n = strlen(key);

        if (w.len <= n || memcmp(w.p, key, n) != 0 || w.len - n >= cap || memchr(w.p, '\0', w.len))
                return false;
        memcpy(to, w.p + n, w.len - n);
        to[w.len - n] = '\0';
        return true;
}

int sshkey_notes_parse(struct sshkey_span notes, struct sshkey_notes *ret, struct errmsg *e) {
        struct sshkey_notes n = { 0 };
        struct sshkey_span w;

        while ((w = word(&notes, false)).len > 0)
                if (!take(w, "fp=", n.fp, sizeof(n.fp)) &&
                    !take(w, "profile=", n.profile, sizeof(n.profile)) &&
                    !take(w, "ttl=", n.ttl, sizeof(n.ttl)) &&
                    (n.name[0] != '\0' || !take(w, "", n.name, sizeof(n.name)) ||
                     !sshkey_name_valid(n.name)))
                        return errmsg_set(
                                e, -EINVAL,
                                "the key's line has '%.*s': expected fp=, profile=, ttl= and a name",
                                (int)(w.len < 80 ? w.len : 80), w.p);
        if (!keyfp_valid(n.fp))
                return errmsg_set(e, -EINVAL, "the key's line has no fp=SHA256:…, its fingerprint");
        if (n.ttl[0] != '\0' && cli_parse_duration(n.ttl, &n.ttl_ms) < 0)
                return errmsg_set(e, -EINVAL,
                                  "the key's line has ttl=%s: expected such as 90s, 30m, 8h or 1d",
                                  n.ttl);
        *ret = n;
        return 0;
}

ssize_t sshkey_file_read(const char *path, uid_t owner, char *buf, struct errmsg *e) {
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;
        size_t len = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return errmsg_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode) || st.st_uid != owner || (st.st_mode & 022) != 0)
                return errmsg_set(
                        e, -EPERM,
                        "%s: found something else than a regular file of uid %u that nobody else "
                        "can write: chown %u it, and chmod 0644",
                        path, (unsigned)owner, (unsigned)owner);
        if (st.st_size > SSHKEY_FILE_MAX)
                return errmsg_set(e, -EFBIG, "%s is larger than %u bytes", path, SSHKEY_FILE_MAX);
        while (len < SSHKEY_FILE_MAX) {
                ssize_t n = read(fd, buf + len, SSHKEY_FILE_MAX - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errmsg_set(e, -errno, "cannot read %s: %s", path, strerror(errno));
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        return (ssize_t)len;
}
