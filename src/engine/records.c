/*
 * Records: the name of a file is the fact, its content a hint. So creating one is one openat() and an
 * fsync() of the folder, and a torn content costs nothing: the engine's list tells the id again.
 */
#include "engine/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/write_all.h"

#define ID_FILE "installation-id"

uint64_t records_now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_BOOTTIME, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void records_random_hex(char ret[RECORD_TAG_LEN + 1]) {
        uint8_t b[RECORD_TAG_LEN / 2];

        /* Up to 256 bytes getrandom() never returns less once the kernel's pool is ready. */
        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                abort();
        for (size_t i = 0; i < sizeof(b); i++)
                sprintf(ret + 2 * i, "%02x", b[i]);
}

const char *record_tag(const struct record *rec) {
        return rec->name + sizeof(RECORD_PREFIX) - 1;
}

bool record_tag_valid(const char *tag) {
        return engine_is_hex(tag, RECORD_TAG_LEN);
}

static bool name_valid(const char *name) {
        size_t n = sizeof(RECORD_PREFIX) - 1;

        return strncmp(name, RECORD_PREFIX, n) == 0 && record_tag_valid(name + n);
}

/* Reads a line of exactly @digits hex digits. -EINVAL if that is not what stands there. */
static int read_hex(int dir_fd, const char *name, size_t digits, char *ret) {
        _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        char buf[128];
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, buf, sizeof(buf) - 1);
        if (n < 0)
                return -errno;
        while (n > 0 && buf[n - 1] == '\n')
                n--;
        buf[n] = '\0';
        if (!engine_is_hex(buf, digits))
                return -EINVAL;
        memcpy(ret, buf, digits + 1);
        return 0;
}

/* Made under another name and linked into place when it is whole, so that no start ever reads half of it
 * and two at once agree. */
static int make_installation(int state_fd) {
        char hex[RECORD_TAG_LEN + 1], line[RECORD_TAG_LEN + 2], tmp[64];
        int r, fd;

        records_random_hex(hex);
        snprintf(line, sizeof(line), "%s\n", hex);
        snprintf(tmp, sizeof(tmp), ".%s.%s", ID_FILE, hex);
        fd = openat(state_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, line, strlen(line));
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        close(fd);
        if (r == 0 && linkat(state_fd, tmp, state_fd, ID_FILE, 0) < 0 && errno != EEXIST)
                r = -errno;
        unlinkat(state_fd, tmp, 0);
        if (r == 0 && fsync(state_fd) < 0)
                r = -errno;
        return r;
}

static int load_installation(struct records *r, int state_fd, const char *state_dir, struct errmsg *e) {
        int err = read_hex(state_fd, ID_FILE, ENGINE_INSTALLATION_LEN, r->installation);

        if (err == -ENOENT) {
                err = make_installation(state_fd);
                if (err == 0)
                        err = read_hex(state_fd, ID_FILE, ENGINE_INSTALLATION_LEN, r->installation);
        }
        if (err == -EINVAL)
                return errmsg_set(e, err, "%s/%s: expected %d hex digits; remove the file for a new one",
                                  state_dir, ID_FILE, ENGINE_INSTALLATION_LEN);
        if (err < 0)
                return errmsg_set(e, err, "%s/%s: %s", state_dir, ID_FILE, strerror(-err));
        return 0;
}

static struct record *record_new(struct records *r, const char *name) {
        struct record *rec = calloc(1, sizeof(*rec));

        if (!rec)
                return NULL;
        memcpy(rec->name, name, RECORD_NAME_LEN + 1);
        rec->since_ms = records_now_ms();
        rec->next = r->first;
        rec->prev = &r->first;
        if (r->first)
                r->first->prev = &rec->next;
        r->first = rec;
        return rec;
}

static int load_records(struct records *r) {
        int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
        struct dirent *d;
        DIR *dir;

        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                err = -errno;
                close(fd);
                return err;
        }
        while (err == 0 && (errno = 0, d = readdir(dir))) {
                struct record *rec;

                if (!name_valid(d->d_name))
                        continue;
                rec = record_new(r, d->d_name);
                if (!rec)
                        err = -ENOMEM;
                else if (read_hex(r->dir_fd, rec->name, ENGINE_ID_LEN, rec->id) < 0) {
                        rec->id[0] = '\0';
                        rec->unsure = true;
                }
        }
        if (err == 0)
                err = -errno;
        closedir(dir);
        return err;
}

int records_init(struct records *r, const char *state_dir, struct errmsg *e) {
        _cleanup_fd_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int err;

        *r = (struct records){ .dir_fd = -1 };
        if (state_fd < 0)
                return errmsg_set(e, -errno, "state folder %s: %s", state_dir, strerror(errno));
        err = load_installation(r, state_fd, state_dir, e);
        if (err < 0)
                return err;
        if (mkdirat(state_fd, "containers", 0700) < 0 && errno != EEXIST)
                return errmsg_set(e, -errno, "%s/containers: %s", state_dir, strerror(errno));
        r->dir_fd = openat(state_fd, "containers", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        err = r->dir_fd < 0 ? -errno : load_records(r);
        if (err < 0)
                return errmsg_set(e, err, "%s/containers: %s", state_dir, strerror(-err));
        return 0;
}

static void unlink_record(struct record *rec) {
        *rec->prev = rec->next;
        if (rec->next)
                rec->next->prev = rec->prev;
        free(rec);
}

void records_done(struct records *r) {
        while (r->first)
                unlink_record(r->first);
        r->dir_fd = close_fd(r->dir_fd);
}

int records_add(struct records *r, struct record **ret) {
        char name[RECORD_NAME_LEN + 1], tag[RECORD_TAG_LEN + 1];
        _cleanup_fd_ int fd = -1;
        struct record *rec;
        int err = 0;

        records_random_hex(tag);
        snprintf(name, sizeof(name), "%s%s", RECORD_PREFIX, tag);
        fd = openat(r->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (fsync(r->dir_fd) < 0)
                err = -errno;
        rec = err < 0 ? NULL : record_new(r, name);
        if (!rec) {
                unlinkat(r->dir_fd, name, 0);
                return err < 0 ? err : -ENOMEM;
        }
        *ret = rec;
        return 0;
}

int records_set_id(struct records *r, struct record *rec, const char *id) {
        char line[ENGINE_ID_LEN + 2];
        _cleanup_fd_ int fd = -1;

        memcpy(rec->id, id, ENGINE_ID_LEN + 1);
        fd = openat(r->dir_fd, rec->name, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        snprintf(line, sizeof(line), "%s\n", id);
        return write_all(fd, line, strlen(line));
}

void records_drop(struct records *r, struct record *rec) {
        unlinkat(r->dir_fd, rec->name, 0);
        unlink_record(rec);
}

struct record *records_by_id(const struct records *r, const char *id) {
        for (struct record *rec = r->first; rec; rec = rec->next)
                if (rec->id[0] && strcmp(rec->id, id) == 0)
                        return rec;
        return NULL;
}

struct record *records_by_name(const struct records *r, const char *name) {
        for (struct record *rec = r->first; rec; rec = rec->next)
                if (strcmp(rec->name, name) == 0)
                        return rec;
        return NULL;
}
