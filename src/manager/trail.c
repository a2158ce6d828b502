/*
 * One open file, its size, and the end of the chain (number and hash of the last line).
 *
 * A line is one write() and there is no fsync: a crash of the manager loses nothing, a crash of the
 * machine may lose or tear the last lines. That shows: the kernel trail holds the number and hash of
 * each line, and a torn line is kept as it is, closed by a newline and followed by a TORN line.
 *
 * There is one writer (the manager's state file is locked), so the size is known and a line that was
 * written in part can be taken back.
 */
#include "manager/trail.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "common/cleanup.h"
#include "common/escape.h"
#include "manager/audit_command.h"
#include "manager/rotate.h"

#define TAIL_MAX 65536

struct trail {
        struct rotate file;
        uint64_t seq;
        char prev[TRAIL_HASH + 1];
        uint64_t lines;
        uint64_t lost; /* lines that could not be written since the last one that could */
};

static void hash_line(const void *line, size_t len, char ret[TRAIL_HASH + 1]) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx ctx;

        sha256_init(&ctx);
        sha256_update(&ctx, len, line);
        sha256_digest(&ctx, sizeof(digest), digest);
        audit_hex(digest, ret);
}

/* The number in a line of ours that ends with " seq=N prev=HEX"; 0 for any other line. */
static uint64_t line_seq(const char *line, size_t len) {
        static const char mark[] = " prev=";
        const size_t tail = sizeof(mark) - 1 + TRAIL_HASH;
        uint64_t seq = 0, unit = 1;
        size_t i, end;

        if (len < tail || memcmp(line + len - tail, mark, sizeof(mark) - 1) != 0)
                return 0;
        end = len - tail;
        for (i = end; i > 0 && end - i < 19 && line[i - 1] >= '0' && line[i - 1] <= '9'; i--, unit *= 10)
                seq += (uint64_t)(line[i - 1] - '0') * unit;
        if (i == end || i < 5 || memcmp(line + i - 5, " seq=", 5) != 0)
                return 0;
        return seq;
}

/* Where the line begins that @end (a newline, or the end of @buf) closes. */
static const char *line_start(const char *buf, const char *end) {
        const char *nl = memrchr(buf, '\n', (size_t)(end - buf));

        return nl ? nl + 1 : buf;
}

/* The number of the last line of ours in @buf … @end, which closes a line; 0: none. */
static uint64_t last_seq(const char *buf, const char *end) {
        for (;;) {
                const char *start = line_start(buf, end);
                uint64_t seq = line_seq(start, (size_t)(end - start));

                if (seq > 0 || start == buf)
                        return seq;
                end = start - 1;
        }
}

/* Takes up the chain at the end of an open file of @size (> 0) bytes. Returns the bytes of a torn line
 * at its end, or -errno. A torn line is the one before the next, so it is what is hashed. */
static ssize_t read_tip(struct trail *t, int fd, uint64_t size) {
        _cleanup_free_ char *buf = malloc(TAIL_MAX);
        size_t len = size < TAIL_MAX ? (size_t)size : TAIL_MAX;
        const char *last, *end;
        ssize_t n;

        if (!buf)
                return -ENOMEM;
        n = pread(fd, buf, len, (off_t)(size - len));
        if (n < 0)
                return -errno;
        if ((size_t)n != len)
                return -EIO;
        end = memrchr(buf, '\n', len);
        if (!end && size > len)
                return -EBADMSG;
        if (end) {
                last = line_start(buf, end);
                hash_line(last, (size_t)(end - last), t->prev);
                t->seq = last_seq(buf, end);
        }
        last = end ? end + 1 : buf;
        if (last == buf + len)
                return 0;
        hash_line(last, (size_t)(buf + len - last), t->prev);
        return buf + len - last;
}

/* After a rotation and before the first line, the end of the chain stands in path.1. */
static int read_backup_tip(struct trail *t) {
        _cleanup_fd_ int fd = -1;
        char path[PATH_MAX];
        uint64_t size;
        ssize_t n;

        if (snprintf(path, sizeof(path), "%s.1", t->file.path) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        fd = rotate_open_read(path, &size);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        n = size > 0 ? read_tip(t, fd, size) : 0;
        return n < 0 ? (int)n : 0;
}

static void put_time(struct text *x) {
        char when[sizeof("2026-06-08T05:02:59Z")];
        time_t now = time(NULL);
        struct tm tm;

        gmtime_r(&now, &tm);
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
        text_addf(x, "%s", when);
}

/* @torn: the file ends in a torn line; it is closed with the same write(). */
static int write_line(struct trail *t, const char *body, bool torn) {
        char buf[TRAIL_LINE_MAX], hash[TRAIL_HASH + 1];
        struct text x;
        int r;

        text_init(&x, buf, sizeof(buf));
        text_add(&x, "\n", torn ? 1 : 0);
        put_time(&x);
        text_addf(&x, " %s seq=%" PRIu64 " prev=%s", body, t->seq + 1, t->prev);
        hash_line(x.p + torn, x.len - torn, hash);
        text_add(&x, "\n", 1);
        if (x.bad)
                return -EMSGSIZE;
        if (!torn && rotate_due(&t->file, x.len))
                rotate_now(&t->file);
        r = rotate_append(&t->file, x.p, x.len);
        if (r < 0)
                return r;
        t->seq++;
        t->lines++;
        memcpy(t->prev, hash, sizeof(hash));
        return 0;
}

/* Finds the end of the chain in the current file (or behind it) and mends a torn end. */
static int take_up(struct trail *t) {
        uint64_t seq = t->seq;
        char body[64];
        ssize_t torn;

        if (t->file.size == 0)
                return read_backup_tip(t);
        torn = read_tip(t, t->file.fd, t->file.size);
        if (torn < 0)
                return (int)torn;
        if (t->seq < seq)
                t->seq = seq;
        if (torn == 0)
                return 0;
        snprintf(body, sizeof(body), "TORN bytes=%zd", torn);
        return write_line(t, body, true);
}

int trail_open(const char *path, uint32_t backups, uint64_t max_bytes, struct trail **ret,
               struct errmsg *e) {
        struct trail *t;
        int r;

        t = calloc(1, sizeof(*t));
        if (!t)
                return errmsg_set(e, -ENOMEM, "audit trail %s: out of memory", path);
        t->file.fd = -1;
        memset(t->prev, '0', TRAIL_HASH);
        r = rotate_init(&t->file, path, backups, max_bytes);
        if (r == 0)
                r = rotate_open(&t->file);
        if (r == 0)
                r = take_up(t);
        if (r < 0) {
                trail_free(t);
                if (r == -ENAMETOOLONG)
                        return errmsg_set(e, r, "audit trail %s: the path is too long", path);
                if (r == -ENOTSUP || r == -ELOOP)
                        return errmsg_set(e, r, "audit trail %s: not a regular file; move it away",
                                          path);
                if (r == -EBADMSG)
                        return errmsg_set(e, r, "audit trail %s: not a text file of lines; move it away",
                                          path);
                return errmsg_set(e, r, "audit trail %s: %s", path, strerror(-r));
        }
        *ret = t;
        return 0;
}

void trail_free(struct trail *t) {
        if (!t)
                return;
        rotate_done(&t->file);
        free(t);
}

int trail_ready(struct trail *t) {
        char body[64];
        int r;

        if (t->lost == 0)
                return 0;
        if (t->file.cut) {
                r = take_up(t);
                if (r < 0)
                        return r;
                t->file.cut = false;
        }
        snprintf(body, sizeof(body), "LOST lines=%" PRIu64, t->lost);
        r = write_line(t, body, false);
        if (r == 0)
                t->lost = 0;
        return r;
}

int trail_write(struct trail *t, const char *body, struct trail_stamp *ret_stamp) {
        int r = trail_ready(t);

        if (r == 0)
                r = write_line(t, body, false);
        if (r < 0) {
                t->lost++;
                *ret_stamp = (struct trail_stamp){ 0 };
                return r;
        }
        trail_tip(t, ret_stamp);
        return 0;
}

void trail_tip(const struct trail *t, struct trail_stamp *ret) {
        ret->seq = t->seq;
        memcpy(ret->hash, t->prev, sizeof(ret->hash));
}

uint64_t trail_lines(const struct trail *t) {
        return t->lines;
}
