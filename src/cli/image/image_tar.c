/*
 * One header at a time. A pax header ('x') is kept until the member that it is for; of its records count the long names,
 * the size and the file capability. A global one ('g') is passed over, as GNU tar's says nothing of members.
 */
#include "cli/image/image_tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* POSIX.1-2001, "ustar Interchange Format". */
struct header {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
        char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == IMAGE_TAR_BLOCK, "a header is a block");

void image_tar_in_init(struct image_tar_in *in) {
        memset(in, 0, sizeof(*in));
}

size_t image_tar_padding(uint64_t size) {
        return (size_t)(-size % IMAGE_TAR_BLOCK);
}

static int wrong(struct image_tar_in *in, const char *why) {
        in->why = why;
        return -EPROTO;
}

/* Octal digits up to a blank or NUL. Numbers in base 256 are for what no package has. */
static bool octal(const char *s, size_t len, uint64_t *ret) {
        uint64_t v = 0;
        size_t i = 0;

        while (i < len && s[i] == ' ')
                i++;
        for (; i < len && s[i] >= '0' && s[i] <= '7'; i++)
                v = v * 8 + (uint64_t)(s[i] - '0');
        if (i < len && s[i] != ' ' && s[i] != '\0')
                return false;
        *ret = v;
        return true;
}

static unsigned checksum(const struct header *h) {
        const uint8_t *p = (const uint8_t *)h;
        unsigned sum = 8 * ' ';

        for (size_t i = 0; i < sizeof(*h); i++)
                if (i < offsetof(struct header, checksum) || i >= offsetof(struct header, type))
                        sum += p[i];
        return sum;
}

static void copy_field(char *to, const char *from, size_t len) {
        len = strnlen(from, len);
        memcpy(to, from, len);
        to[len] = '\0';
}

/* "./a//b/" is no form of its own: only what GNU tar adds at both ends is taken off. False: not relative, or "..". */
static bool tidy(char *name) {
        size_t len;

        if (strcmp(name, ".") == 0)
                name[0] = '\0';
        while (strncmp(name, "./", 2) == 0)
                memmove(name, name + 2, strlen(name + 2) + 1);
        for (len = strlen(name); len > 0 && name[len - 1] == '/'; len--)
                name[len - 1] = '\0';
        if (name[0] == '/')
                return false;
        for (const char *s = name; *s; s += strcspn(s, "/"), s += *s == '/')
                if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || s[2] == '\0'))
                        return false;
        return true;
}

static bool decimal(const char *s, size_t len, uint64_t *ret) {
        uint64_t v = 0;

        if (len == 0 || len > 18)
                return false;
        for (size_t i = 0; i < len; i++) {
                if (s[i] < '0' || s[i] > '9')
                        return false;
                v = v * 10 + (uint64_t)(s[i] - '0');
        }
        *ret = v;
        return true;
}

/* One record of a pax header into the entry. */
static bool take_record(struct image_tar_entry *e, const char *key, size_t key_len, const char *value,
                        size_t len) {
        static const char capability[] = "SCHILY.xattr.security.capability";
        char *path = NULL;
        uint64_t v;

#define IS(name) (key_len == sizeof(name) - 1 && memcmp(key, name, key_len) == 0)
        if (IS("path"))
                path = e->name;
        else if (IS("linkpath"))
                path = e->link;
        if (path) {
                if (len >= IMAGE_TAR_PATH || memchr(value, '\0', len))
                        return false;
                memcpy(path, value, len);
                path[len] = '\0';
        } else if (IS("size")) {
                return decimal(value, len, &e->size);
        } else if (IS("uid") || IS("gid")) {
                if (!decimal(value, len, &v) || v > UINT32_MAX)
                        return false;
                *(IS("uid") ? &e->uid : &e->gid) = (uint32_t)v;
        } else if (IS("mtime")) {
                size_t whole = 0;

                while (whole < len && value[whole] != '.')
                        whole++;
                if (!decimal(value, whole, &v))
                        return false;
                e->mtime = (int64_t)v;
        } else if (key_len == sizeof(capability) - 1 && memcmp(key, capability, key_len) == 0) {
                if (len > sizeof(e->capability))
                        return false;
                memcpy(e->capability, value, len);
                e->capability_len = len;
        }
#undef IS
        return true;
}

/* "LENGTH KEY=VALUE\n", the length being that of all of it. */
static bool take_pax(struct image_tar_entry *e, const char *p, size_t len) {
        while (len > 0) {
                const char *blank = memchr(p, ' ', len), *equals;
                uint64_t n;

                if (!blank || !decimal(p, (size_t)(blank - p), &n) || n > len ||
                    n < (size_t)(blank - p) + 3 || p[n - 1] != '\n')
                        return false;
                equals = memchr(blank + 1, '=', n - (size_t)(blank + 1 - p));
                if (!equals || !take_record(e, blank + 1, (size_t)(equals - blank - 1), equals + 1,
                                            n - (size_t)(equals + 1 - p) - 1))
                        return false;
                p += n;
                len -= n;
        }
        return true;
}

static bool take_numbers(struct image_tar_entry *e, const struct header *h) {
        uint64_t mode, uid, gid, mtime;

        if (!octal(h->mode, sizeof(h->mode), &mode) || !octal(h->uid, sizeof(h->uid), &uid) ||
            !octal(h->gid, sizeof(h->gid), &gid) || !octal(h->size, sizeof(h->size), &e->size) ||
            !octal(h->mtime, sizeof(h->mtime), &mtime))
                return false;
        e->mode = (uint32_t)mode & 07777;
        e->uid = (uint32_t)uid;
        e->gid = (uint32_t)gid;
        e->mtime = (int64_t)mtime;
        return true;
}

static int member(struct image_tar_in *in, const struct header *h) {
        struct image_tar_entry *e = &in->entry;
        size_t len = 0;

        *e = (struct image_tar_entry){ .type = h->type == '\0' ? IMAGE_TAR_FILE : h->type };
        if (e->type < IMAGE_TAR_FILE || e->type > IMAGE_TAR_FIFO)
                return wrong(in, "a member of an unknown type");
        if (!take_numbers(e, h))
                return wrong(in, "a header whose numbers are none");
        if (h->prefix[0]) {
                copy_field(e->name, h->prefix, sizeof(h->prefix));
                len = strlen(e->name);
                e->name[len++] = '/';
        }
        copy_field(e->name + len, h->name, sizeof(h->name));
        copy_field(e->link, h->link, sizeof(h->link));
        if (!take_pax(e, in->pax, in->pax_len))
                return wrong(in, "a pax header that cannot be read");
        in->pax_len = 0;
        if (!tidy(e->name) || (e->type == IMAGE_TAR_HARD_LINK && !tidy(e->link)))
                return wrong(in, "a name that is not below the top");
        if (e->type != IMAGE_TAR_FILE)
                e->size = 0;
        in->left = e->size;
        in->padding = image_tar_padding(e->size);
        in->state = IMAGE_TAR_IN_DATA;
        return 1;
}

/* A whole block. 1: a member begins. */
static int header(struct image_tar_in *in) {
        const struct header *h = (const struct header *)in->block;
        uint64_t sum, size;

        if (!h->name[0] && memcmp(in->block, in->block + 1, IMAGE_TAR_BLOCK - 1) == 0) {
                in->state = IMAGE_TAR_ENDED;
                return 0;
        }
        if (memcmp(h->magic, "ustar", 5) != 0 || !octal(h->checksum, sizeof(h->checksum), &sum) ||
            sum != checksum(h))
                return wrong(in, "a block that is no header");
        if (h->type != 'x' && h->type != 'g')
                return member(in, h);
        if (!octal(h->size, sizeof(h->size), &size) || size > sizeof(in->pax))
                return wrong(in, "a pax header that is too long");
        in->global = h->type == 'g';
        in->left = size;
        in->padding = image_tar_padding(size);
        in->len = 0;
        in->state = IMAGE_TAR_IN_PAX;
        return 0;
}

static size_t take(const uint8_t **p, size_t *len, uint64_t most) {
        size_t n = *len < most ? *len : (size_t)most;

        *p += n;
        *len -= n;
        return n;
}

static int in_header(struct image_tar_in *in, const uint8_t **p, size_t *len) {
        const uint8_t *from = *p;
        size_t n = take(p, len, IMAGE_TAR_BLOCK - in->len);

        memcpy(in->block + in->len, from, n);
        in->len += n;
        if (in->len < IMAGE_TAR_BLOCK)
                return 0;
        in->len = 0;
        return header(in);
}

static void in_pax(struct image_tar_in *in, const uint8_t **p, size_t *len) {
        const uint8_t *from = *p;
        size_t n = take(p, len, in->left);

        memcpy(in->pax + in->len, from, n);
        in->len += n;
        in->left -= n;
        if (in->left > 0)
                return;
        in->pax_len = in->global ? 0 : in->len;
        in->len = 0;
        in->state = IMAGE_TAR_IN_PADDING;
}

static void in_padding(struct image_tar_in *in, const uint8_t **p, size_t *len) {
        in->padding -= take(p, len, in->padding);
        if (in->padding == 0)
                in->state = IMAGE_TAR_AT_HEADER;
}

int image_tar_next(struct image_tar_in *in, const uint8_t **p, size_t *len, enum image_tar_step *ret,
                   const uint8_t **ret_data, size_t *ret_len) {
        int r;

        if (in->why)
                return -EPROTO;
        for (;;) {
                if (in->state == IMAGE_TAR_IN_DATA && in->left == 0) {
                        in->state = IMAGE_TAR_IN_PADDING;
                        *ret = IMAGE_TAR_CLOSE;
                        return 1;
                }
                if (in->state == IMAGE_TAR_IN_PADDING && in->padding == 0)
                        in->state = IMAGE_TAR_AT_HEADER;
                if (*len == 0)
                        return 0;
                switch (in->state) {
                case IMAGE_TAR_AT_HEADER:
                        r = in_header(in, p, len);
                        *ret = IMAGE_TAR_ENTRY;
                        if (r != 0)
                                return r;
                        break;
                case IMAGE_TAR_IN_PAX:
                        in_pax(in, p, len);
                        break;
                case IMAGE_TAR_IN_DATA:
                        *ret_data = *p;
                        *ret_len = take(p, len, in->left);
                        in->left -= *ret_len;
                        *ret = IMAGE_TAR_DATA;
                        return 1;
                case IMAGE_TAR_IN_PADDING:
                        in_padding(in, p, len);
                        break;
                case IMAGE_TAR_ENDED: /* more zeros */
                        take(p, len, *len);
                        break;
                }
        }
}

/* --- writing ------------------------------------------------------------------------------------ */

static void put_octal(char *field, size_t len, uint64_t v) {
        field[--len] = '\0';
        while (len > 0) {
                field[--len] = (char)('0' + v % 8);
                v /= 8;
        }
}

static void put_header(uint8_t *to, const struct image_tar_entry *e, char type, uint64_t size) {
        struct header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
        size_t len = strnlen(e->name, sizeof(h.name)), link = strnlen(e->link, sizeof(h.link));

        memcpy(h.name, e->name, len);
        if (type == IMAGE_TAR_FOLDER && len < sizeof(h.name))
                h.name[len] = '/';
        if (type == IMAGE_TAR_HARD_LINK || type == IMAGE_TAR_SYMLINK)
                memcpy(h.link, e->link, link);
        put_octal(h.mode, sizeof(h.mode), e->mode);
        put_octal(h.uid, sizeof(h.uid), e->uid);
        put_octal(h.gid, sizeof(h.gid), e->gid);
        put_octal(h.size, sizeof(h.size), size);
        put_octal(h.mtime, sizeof(h.mtime), e->mtime > 0 ? (uint64_t)e->mtime : 0);
        put_octal(h.checksum, sizeof(h.checksum) - 1, checksum(&h));
        h.checksum[sizeof(h.checksum) - 1] = ' ';
        memcpy(to, &h, sizeof(h));
}

/* Appends a record; its length counts its own digits. */
static size_t put_record(char *at, const char *key, const void *value, size_t len) {
        size_t rest = 1 + strlen(key) + 1 + len + 1, n = rest + 1;
        int head;

        while (n != rest + (size_t)snprintf(NULL, 0, "%zu", n))
                n++;
        head = sprintf(at, "%zu %s=", n, key);
        memcpy(at + head, value, len);
        at[n - 1] = '\n';
        return n;
}

int image_tar_put_header(const struct image_tar_entry *e, uint8_t buf[IMAGE_TAR_HEADER_MAX]) {
        static const struct image_tar_entry pax = { .name = "pax", .mode = 0644 };
        char *records = (char *)buf + IMAGE_TAR_BLOCK;
        size_t len = 0;
        bool link = e->type == IMAGE_TAR_HARD_LINK || e->type == IMAGE_TAR_SYMLINK;

        if (e->size > IMAGE_TAR_SIZE_MAX || e->mtime >= INT64_C(1) << 33 || e->uid >= 1 << 21 ||
            e->gid >= 1 << 21)
                return -EFBIG;
        /* One byte for the slash of a folder. */
        if (strlen(e->name) > 99)
                len += put_record(records + len, "path", e->name, strlen(e->name));
        if (link && strlen(e->link) > 100)
                len += put_record(records + len, "linkpath", e->link, strlen(e->link));
        if (e->capability_len > 0)
                len += put_record(records + len, "SCHILY.xattr.security.capability", e->capability,
                                  e->capability_len);
        if (len > 0) {
                size_t padding = image_tar_padding(len);

                put_header(buf, &pax, 'x', len);
                memset(records + len, 0, padding);
                len += IMAGE_TAR_BLOCK + padding;
        }
        put_header(buf + len, e, (char)e->type, e->type == IMAGE_TAR_FILE ? e->size : 0);
        return (int)(len + IMAGE_TAR_BLOCK);
}
