/*
 * Every member is judged by its name and written anew, so that neither the time of the build, nor the machine that it
 * ran on, nor that machine's tar shows in the layer's hash.
 */
#include "cli/image/image_layer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS "var/lib/dpkg/status"

enum rule_kind {
        EXACTLY, /* this name */
        BELOW,   /* all that is in the folder */
        FILES    /* all that is in the folder, and in those in it, but folders */
};

static const struct {
        enum rule_kind kind;
        const char *name;
} rules[] = {
        /* The engine's own in every container. */
        { BELOW, "dev" },
        { BELOW, "proc" },
        { BELOW, "sys" },
        { EXACTLY, "etc/hostname" },
        { EXACTLY, "etc/hosts" },
        { EXACTLY, "etc/resolv.conf" },
        /* Where this build got its packages from. */
        { EXACTLY, "etc/apt/sources.list" },
        { FILES, "etc/apt/sources.list.d" },
        { EXACTLY, "etc/apt/apt.conf.d/99mmdebstrap" },
        { FILES, "var/cache/apt" },
        { FILES, "var/lib/apt/lists" },
        /* When it ran. */
        { FILES, "var/log" },
        { BELOW, "run" },
        { BELOW, "tmp" },
        { BELOW, "var/tmp" },
        { EXACTLY, "var/cache/ldconfig/aux-cache" },
        { FILES, "var/cache/man" },
        { FILES, "var/cache/fontconfig" },
        { EXACTLY, "var/lib/dbus/machine-id" },
        { EXACTLY, "var/lib/systemd/random-seed" },
        { EXACTLY, "etc/.pwd.lock" },
        /* Nobody reads in a sandbox. */
        { BELOW, "usr/share/info" },
        { BELOW, "usr/share/lintian" },
        { BELOW, "usr/share/man" },
};

/* What is behind "FOLDER/" in @name, or NULL. */
static const char *below(const char *name, const char *folder) {
        size_t len = strlen(folder);

        return strncmp(name, folder, len) == 0 && name[len] == '/' ? name + len + 1 : NULL;
}

static bool ends(const char *name, const char *with) {
        size_t len = strlen(name), n = strlen(with);

        return len > n && strcmp(name + len - n, with) == 0;
}

/* A package's licence stays, and so do the folder and the link in whose place its folder may be. */
static bool is_manual(const char *name, enum image_tar_type type) {
        const char *doc = below(name, "usr/share/doc"), *in, *locale = below(name, "usr/share/locale");

        if (locale)
                return strcmp(locale, "locale.alias") != 0;
        if (!doc)
                return false;
        in = strchr(doc, '/');
        if (!in)
                return type != IMAGE_TAR_FOLDER && type != IMAGE_TAR_SYMLINK;
        return strcmp(in, "/copyright") != 0;
}

/* The state before the last change, which only says in which order things were done. */
static bool is_copy(const char *name) {
        return (below(name, "var/lib/dpkg") && ends(name, "-old")) ||
               (below(name, "var/cache/debconf") && ends(name, "-old")) ||
               (below(name, "etc") && !strchr(name + strlen("etc/"), '/') && ends(name, "-"));
}

bool image_layer_leaves_out(const char *name, enum image_tar_type type) {
        const char *ssh = below(name, "etc/ssh");

        /* The top itself: the engine makes it. */
        if (name[0] == '\0' || type == IMAGE_TAR_CHAR || type == IMAGE_TAR_BLOCK_DEVICE)
                return true;
        if (ssh && strncmp(ssh, "ssh_host_", 9) == 0)
                return true;
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                if (rules[i].kind == EXACTLY ? strcmp(name, rules[i].name) == 0
                                             : below(name, rules[i].name) && (rules[i].kind == BELOW ||
                                                                              type != IMAGE_TAR_FOLDER))
                        return true;
        }
        return is_manual(name, type) || is_copy(name);
}

/* --- writing ------------------------------------------------------------------------------------ */

static int flush(struct image_layer *l, struct errmsg *e) {
        size_t at = 0;

        sha256_update(&l->sha256, l->len, l->buf);
        l->size += l->len;
        while (at < l->len) {
                ssize_t n = write(l->fd, l->buf + at, l->len - at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errmsg_set(e, -errno, "%s", strerror(errno));
                at += (size_t)n;
        }
        l->len = 0;
        return 0;
}

static int put(struct image_layer *l, const void *p, size_t len, struct errmsg *e) {
        const uint8_t *from = p;

        while (len > 0) {
                size_t n = sizeof(l->buf) - l->len;
                int r;

                if (n > len)
                        n = len;
                memcpy(l->buf + l->len, from, n);
                l->len += n;
                from += n;
                len -= n;
                if (l->len < sizeof(l->buf))
                        continue;
                r = flush(l, e);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int begin_member(struct image_layer *l, struct errmsg *e) {
        uint8_t header[IMAGE_TAR_HEADER_MAX];
        struct image_tar_entry *m = &l->in.entry;
        int n;

        l->keep = !image_layer_leaves_out(m->name, m->type);
        l->is_status = m->type == IMAGE_TAR_FILE && strcmp(m->name, STATUS) == 0;
        if (!l->keep)
                return 0;
        if (m->type == IMAGE_TAR_HARD_LINK && image_layer_leaves_out(m->link, IMAGE_TAR_FILE))
                return errmsg_set(e, -EPROTO, "%s is a hard link to %s, which is left out", m->name,
                                  m->link);
        if (m->mtime > l->epoch)
                m->mtime = l->epoch;
        n = image_tar_put_header(m, header);
        if (n < 0)
                return errmsg_set(e, n, "%s is too large, or has an owner beyond 2097151", m->name);
        return put(l, header, (size_t)n, e);
}

static int add_status(struct image_layer *l, const uint8_t *p, size_t len, struct errmsg *e) {
        if (l->status_len + len > IMAGE_STATUS_MAX)
                return errmsg_set(e, -EPROTO, STATUS " is too long");
        if (l->status_len + len > l->status_cap) {
                size_t cap = 2 * (l->status_len + len);
                char *s = realloc(l->status, cap);

                if (!s)
                        return errmsg_set(e, -ENOMEM, "out of memory");
                l->status = s;
                l->status_cap = cap;
        }
        memcpy(l->status + l->status_len, p, len);
        l->status_len += len;
        return 0;
}

static int data(struct image_layer *l, const uint8_t *p, size_t len, struct errmsg *e) {
        int r = l->is_status ? add_status(l, p, len, e) : 0;

        return r < 0 || !l->keep ? r : put(l, p, len, e);
}

static int end_member(struct image_layer *l, struct errmsg *e) {
        static const uint8_t zeros[IMAGE_TAR_BLOCK];

        return l->keep ? put(l, zeros, image_tar_padding(l->in.entry.size), e) : 0;
}

void image_layer_init(struct image_layer *l, int fd, int64_t epoch) {
        memset(l, 0, offsetof(struct image_layer, buf));
        l->fd = fd;
        l->epoch = epoch;
        sha256_init(&l->sha256);
        image_tar_in_init(&l->in);
}

void image_layer_done(struct image_layer *l) {
        free(l->status);
        l->status = NULL;
}

int image_layer_put(struct image_layer *l, const uint8_t *p, size_t len, struct errmsg *e) {
        enum image_tar_step step;
        const uint8_t *part;
        size_t n;
        int r;

        while ((r = image_tar_next(&l->in, &p, &len, &step, &part, &n)) == 1) {
                r = step == IMAGE_TAR_ENTRY  ? begin_member(l, e)
                    : step == IMAGE_TAR_DATA ? data(l, part, n, e)
                                             : end_member(l, e);
                if (r < 0)
                        return r;
        }
        return r < 0 ? errmsg_set(e, r, "it is no tar that can be read: %s", l->in.why) : 0;
}

int image_layer_end(struct image_layer *l, uint8_t ret_sha256[SHA256_DIGEST_SIZE], struct errmsg *e) {
        static const uint8_t zeros[IMAGE_TAR_END];
        int r;

        if (l->in.state != IMAGE_TAR_ENDED)
                return errmsg_set(e, -EPROTO, "it is no tar that can be read: it ends in the middle");
        if (l->status_len == 0)
                return errmsg_set(e, -EPROTO, "there is no " STATUS " in it");
        r = put(l, zeros, sizeof(zeros), e);
        if (r == 0)
                r = flush(l, e);
        if (r == 0)
                sha256_digest(&l->sha256, SHA256_DIGEST_SIZE, ret_sha256);
        return r;
}
