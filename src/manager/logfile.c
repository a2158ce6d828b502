/*
 * A line is one write(), as in the trail, and there is no fsync. Somebody may move the file away or remove it at any
 * time (logrotate, an administrator): before each line it is looked whether the open file is still the one of that
 * name. Lines of the manager are few, and none stands on the way of a command.
 */
#include "manager/logfile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/escape.h"
#include "common/log.h"

#define LINE_MAX_BYTES 2300 /* log.c's own lines, and what stands before them */

static const char *level_name(enum log_priority level) {
        switch (level) {
        case LOG_P_ERROR:
                return "ERROR";
        case LOG_P_WARNING:
                return "WARNING";
        case LOG_P_INFO:
                return "INFO";
        default:
                return "DEBUG";
        }
}

static void put_head(struct text *t, enum log_priority level) {
        char when[sizeof("2026-06-08T05:02:59Z")];
        time_t now = time(NULL);
        struct tm tm;

        gmtime_r(&now, &tm);
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
        text_addf(t, "%s %s ", when, level_name(level));
}

/* The file of that name is open, also where the one that was has gone. */
static int open_current(struct rotate *file) {
        struct stat named, open;

        if (file->fd >= 0 && stat(file->path, &named) == 0 && fstat(file->fd, &open) == 0 &&
            named.st_dev == open.st_dev && named.st_ino == open.st_ino)
                return 0;
        return rotate_open(file);
}

/* The lines that are missing, if any, and then this one. */
static int write_line(struct logfile *f, enum log_priority level, const char *line, size_t len) {
        char buf[LINE_MAX_BYTES];
        struct text t;
        int r;

        text_init(&t, buf, sizeof(buf));
        if (f->file.cut)
                text_add(&t, "\n", 1);
        if (f->lost > 0) {
                put_head(&t, LOG_P_WARNING);
                text_addf(&t, "%" PRIu64 " lines before this one could not be written\n", f->lost);
        }
        put_head(&t, level);
        text_add(&t, line, len);
        text_add(&t, "\n", 1);
        if (rotate_due(&f->file, t.len))
                rotate_now(&f->file);
        r = rotate_append(&f->file, t.p, t.len);
        if (r == 0)
                f->file.cut = false;
        return r;
}

static void on_line(void *userdata, enum log_priority level, const char *line, size_t len) {
        struct logfile *f = userdata;
        int r;

        if (f->busy)
                return;
        f->busy = true;
        r = open_current(&f->file);
        if (r == 0)
                r = write_line(f, level, line, len);
        if (r == 0)
                f->lost = 0;
        else if (f->lost++ == 0)
                log_line(LOG_P_WARNING,
                         "log file %s: %s: its lines are here alone until it can be written",
                         f->file.path, strerror(-r));
        f->busy = false;
}

static void set_level(const struct config *c) {
        static const enum log_priority levels[] = {
                [LOG_LEVEL_DEBUG] = LOG_P_DEBUG,
                [LOG_LEVEL_INFO] = LOG_P_INFO,
                [LOG_LEVEL_WARNING] = LOG_P_WARNING,
                [LOG_LEVEL_ERROR] = LOG_P_ERROR,
        };

        log_set_level(levels[c->log_level]);
}

void logfile_set(struct logfile *f, const char *dir, const struct config *c) {
        char path[PATH_MAX];
        int r, len;

        set_level(c);
        if (!c->log_file[0]) {
                logfile_done(f);
                return;
        }
        len = snprintf(path, sizeof(path), "%s/%s", dir, c->log_file);
        if (f->file.path && strcmp(path, f->file.path) == 0) {
                f->file.backups = c->log_backup_count;
                f->file.max_bytes = c->log_max_bytes;
                return;
        }
        logfile_done(f);
        if (strcmp(path, c->audit_file) == 0) {
                log_line(LOG_P_WARNING, "log file %s: it is audit.file: name another one", path);
                return;
        }
        r = len < (int)sizeof(path) ? rotate_init(&f->file, path, c->log_backup_count, c->log_max_bytes)
                                    : -ENAMETOOLONG;
        if (r == 0)
                log_also(on_line, f);
        else
                log_line(LOG_P_WARNING, "log file %s/%s: %s", dir, c->log_file, strerror(-r));
}

void logfile_done(struct logfile *f) {
        if (!f->file.path)
                return;
        log_also(NULL, NULL);
        rotate_done(&f->file);
        f->lost = 0;
}
