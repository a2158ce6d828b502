/*
 * A stack of open folders; one file at a time. unpack_place.c has what touches the file system by name.
 */
#include "common/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/unpack_place.h"

/* --- lines -------------------------------------------------------------------------------------- */

static void say(struct unpack *u, const char *what, const char *why) {
        u->failed = true;
        u->rules.say(u->rules.userdata, what, u->path.text, why);
}

static int stop(struct unpack *u, int r) {
        u->stopped = r;
        return r;
}

/* A file or folder that could not be written. A full disk is the end: what follows would only be read to be lost. */
static void cannot_write(struct unpack *u, int r) {
        static const struct {
                int r;
                const char *why;
        } own[] = { { -EEXIST, "it came twice" },
                    { -EISDIR, "it is a folder" },
                    { -ENOTDIR, "it is there and no folder" },
                    { -ENOBUFS, "more files came than can be told apart: a new folder takes them" } };
        const char *why = strerror(-r);

        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
                if (own[i].r == r)
                        why = own[i].why;
        say(u, "cannot write", why);
        if (r == -ENOSPC || r == -EDQUOT || r == -ENOBUFS)
                stop(u, r);
}

static bool charge(struct unpack *u, uint64_t n) {
        char why[128];

        if (u->rules.budget == 0 || n <= u->rules.budget - u->spent) {
                u->spent += n;
                return true;
        }
        snprintf(why, sizeof(why), "more than %" PRIu64 " bytes came: --max-size takes more",
                 u->rules.budget);
        say(u, "stopped at", why);
        stop(u, -E2BIG);
        return false;
}

/* --- entries ------------------------------------------------------------------------------------ */

static struct unpack_level *level(struct unpack *u) {
        return &u->levels[u->depth];
}

/* The name under which the entry is written, NULL when it is not to be; "": it is the target itself. */
static const char *name_of(struct unpack *u, const struct archive_entry *e, bool folder) {
        if (u->depth > 0)
                return e->name;
        if (u->rules.expected && !u->rules.expected(u->rules.userdata, e->name)) {
                filepath_push(&u->path, e->name);
                say(u, "stopped at", "it was not asked for");
                stop(u, -EPROTO);
                return NULL;
        }
        if (u->target->name[0] == '\0')
                return e->name;
        if (u->target->folder && !folder) {
                filepath_push(&u->path, u->target->name);
                say(u, "cannot write", strerror(ENOTDIR));
                return NULL;
        }
        return u->target->name;
}

static void push(struct unpack *u, const struct unpack_level *l) {
        u->levels[++u->depth] = *l;
}

static void on_dir(struct unpack *u, const struct archive_entry *e) {
        size_t before = u->path.len;
        struct unpack_level l = { .fd = -1,
                                  .mode = e->mode & u->rules.mode_bits,
                                  .mtime_s = e->mtime_s,
                                  .mtime_ns = e->mtime_ns,
                                  .path_len = before };
        const char *name;
        int r;

        if (u->skipped > 0) {
                u->skipped++;
                return;
        }
        name = name_of(u, e, true);
        if (name) {
                filepath_push(&u->path, name);
                r = place_folder(u, level(u), name, &l);
                if (r == 0) {
                        push(u, &l);
                        return;
                }
                cannot_write(u, r);
        }
        filepath_pop(&u->path, before);
        u->skipped = 1;
}

static void leave(struct unpack *u) {
        struct unpack_level *l = level(u);
        int r = l->made ? place_attributes(l->fd, l->mode, l->mtime_s, l->mtime_ns) : 0;

        if (r < 0)
                say(u, "cannot set mode and time of", strerror(-r));
        close(l->fd);
        filepath_pop(&u->path, l->path_len);
        u->depth--;
}

static void on_up(struct unpack *u) {
        if (u->skipped > 0)
                u->skipped--;
        else
                leave(u);
}

static void on_file(struct unpack *u, const struct archive_entry *e) {
        size_t before = u->path.len;
        const char *name;
        int r;

        if (u->skipped > 0)
                return;
        name = name_of(u, e, false);
        if (name) {
                filepath_push(&u->path, name);
                strcpy(u->name, name);
                u->at = 0;
                u->mode = e->mode & u->rules.mode_bits;
                u->mtime_s = e->mtime_s;
                u->mtime_ns = e->mtime_ns;
                u->file_path_len = before;
                r = place_begin(u, level(u));
                if (r == 0) {
                        u->has_file = true;
                        if (u->rules.progress)
                                u->rules.progress(u->rules.userdata, u->path.text, u->bytes);
                        return;
                }
                cannot_write(u, r);
        }
        filepath_pop(&u->path, before);
}

/* It is over, one way or another. */
static void end_file(struct unpack *u) {
        u->has_file = false;
        filepath_pop(&u->path, u->file_path_len);
}

static void give_up_file(struct unpack *u, int r) {
        place_drop(u, level(u));
        cannot_write(u, r);
        end_file(u);
}

static void on_data(struct unpack *u, const uint8_t *p, size_t len) {
        if (!charge(u, len))
                return;
        u->bytes += len;
        while (u->has_file && len > 0) {
                ssize_t n = pwrite(u->file_fd, p, len, (off_t)u->at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        give_up_file(u, -errno);
                        return;
                }
                p += n;
                len -= (size_t)n;
                u->at += (uint64_t)n;
        }
        if (u->has_file && u->rules.progress)
                u->rules.progress(u->rules.userdata, u->path.text, u->bytes);
}

static void on_close(struct unpack *u, bool whole) {
        int r;

        if (!u->has_file)
                return;
        if (!whole) {
                /* Why, the sender has said. */
                place_drop(u, level(u));
                u->failed = true;
                end_file(u);
                return;
        }
        r = place_end(u, level(u));
        if (r < 0)
                cannot_write(u, r);
        end_file(u);
}

static void on_link(struct unpack *u, const struct archive_entry *e) {
        size_t before = u->path.len;
        const char *name;
        int r;

        if (u->skipped > 0)
                return;
        name = name_of(u, e, false);
        if (name) {
                filepath_push(&u->path, name);
                if (!u->rules.links)
                        say(u, "left out", "it is a symbolic link");
                else {
                        r = place_link(u, level(u), name, e);
                        if (r < 0)
                                cannot_write(u, r);
                }
        }
        filepath_pop(&u->path, before);
}

/* --- the stream --------------------------------------------------------------------------------- */

void unpack_init(struct unpack *u, const struct unpack_target *target, const char *shown,
                 const struct unpack_rules *rules) {
        archive_in_init(&u->in, ARCHIVE_OF_FILES);
        u->rules = *rules;
        u->target = target;
        u->failed = u->has_file = false;
        u->stopped = 0;
        u->bytes = u->spent = 0;
        u->skipped = u->depth = 0;
        u->file_fd = -1;
        filepath_init(&u->path, shown);
        /* A target with a name of its own ends with it already. */
        if (target->name[0] != '\0') {
                size_t len = u->path.len, name = strlen(target->name);

                while (len > 0 && u->path.text[len - 1] == '/')
                        len--;
                filepath_pop(&u->path, len > name ? len - name : 0);
        }
        u->levels[0] = (struct unpack_level){ .fd = target->dir };
}

static void take(struct unpack *u, const struct archive_step *s) {
        switch (s->type) {
        case ARCHIVE_DIR:
                if (charge(u, UNPACK_ENTRY_COST))
                        on_dir(u, &s->entry);
                return;
        case ARCHIVE_FILE:
                if (charge(u, UNPACK_ENTRY_COST))
                        on_file(u, &s->entry);
                return;
        case ARCHIVE_LINK:
                if (charge(u, UNPACK_ENTRY_COST))
                        on_link(u, &s->entry);
                return;
        case ARCHIVE_UP:
                on_up(u);
                return;
        case ARCHIVE_DATA:
                on_data(u, s->data, s->len);
                return;
        case ARCHIVE_HOLE:
                u->at += s->bytes;
                return;
        case ARCHIVE_CLOSE:
                on_close(u, s->whole);
                return;
        default:
                return;
        }
}

int unpack_feed(struct unpack *u, const void *bytes, size_t len) {
        const uint8_t *p = bytes;
        struct archive_step s;
        char why[128];
        int r;

        while (u->stopped == 0) {
                r = archive_next(&u->in, &p, &len, &s);
                if (r == 0)
                        break;
                if (r < 0) {
                        snprintf(why, sizeof(why), "the stream makes no sense: %s", u->in.why);
                        say(u, "stopped at", why);
                        stop(u, r);
                        break;
                }
                take(u, &s);
        }
        return u->stopped;
}

int unpack_done(struct unpack *u) {
        if (u->stopped == 0 && !archive_ended(&u->in)) {
                say(u, "stopped at", "the stream ended before its end");
                stop(u, -EPIPE);
        }
        if (u->has_file) {
                place_drop(u, level(u));
                end_file(u);
        }
        while (u->depth > 0)
                leave(u);
        return u->stopped ? u->stopped : u->failed;
}
