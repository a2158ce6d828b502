/*
 * hermes-sandbox doctor: what on this machine keeps the sandbox from working or from protecting, and the command that
 * mends it. It changes nothing but one record in the audit trail, which it writes to find it again.
 *
 * A check is a row in a table (doctor.c): its name and a function that says one line or more. It looks at three things:
 * files below struct doctor's root, what was asked once beforehand (config, manager, engine: doctor_look.c), and the
 * probes, which are all that reaches the running system. Tests fill in their own probes and a tree of their own.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>

#include "common/errmsg.h"
#include "config/config.h"

#define DOCTOR_GROUP "hermes-sandbox"
#define DOCTOR_MANAGER "_hermes-sandbox" /* the account of hermes-sandboxd */
#define DOCTOR_BROKER "_hermes-engine"   /* and that of hermes-engined */
#define DOCTOR_AS_ROOT "sudo hermes-sandbox doctor"

/* What is warned of leaves the exit status alone. What could not be looked at is a warning: unknown is never ok. */
enum doctor_result { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILURE };

/* What the kernel says of its audit trail. */
struct doctor_audit {
        bool enabled;
        uint32_t pid;      /* of auditd, 0: none runs */
        unsigned n_helper; /* rules with the keys of the package's rules */
        unsigned n_socket;
        unsigned n_config;
};

/* What reaches the running system. Each waits until @end_ms (doctor_now_ms()) at most, where it can wait at all.
 * Unless another is said: 0, or -errno and a line in *e. */
struct doctor_probes {
        /* GET @path over the engine's Unix socket. *ret_http is the status of the reply, *ret its body, to be
         * json_decref()ed, NULL where that is no JSON. */
        int (*engine)(const char *socket, const char *path, int64_t end_ms, long *ret_http, json_t **ret,
                      struct errmsg *e);
        /* The manager's status as JSON, to be json_decref()ed. A refusal of it is -EACCES. */
        int (*manager)(const char *socket, int64_t end_ms, json_t **ret, struct errmsg *e);
        int (*audit_state)(int64_t end_ms, struct doctor_audit *ret, struct errmsg *e);
        /* Writes a record of type TRUSTED_APP with these fields. */
        int (*audit_write)(const char *fields, struct errmsg *e);
        /* As lstat(2) and statvfs(3), but for -errno. No line. */
        int (*stat)(const char *path, struct stat *ret);
        int (*disk)(const char *path, struct statvfs *ret);
        /* Is the clock kept by NTP, and what does it say. No line. */
        int (*clock)(bool *ret_synchronized, time_t *ret_now);
        /* The caller's groups, as getgroups(2). */
        int (*groups)(int n, gid_t *ret);
};

extern const struct doctor_probes doctor_system;

struct doctor_line {
        const char *check;
        enum doctor_result result;
        char *text, *mend; /* mend may be NULL */
};

struct doctor {
        const char *root;   /* "" or another tree's folder, put in front of every path */
        const char *socket; /* the manager's, NULL: the system's */
        uid_t uid;          /* who asks */
        int build_year;     /* of this version: the clock cannot say an earlier one */
        int64_t end_ms;     /* nothing waits longer */
        const struct doctor_probes *probes;

        /* What doctor_look() found; NULL where it could not be had, which the line beside it explains. */
        struct config *config;
        json_t *status, *version, *info;
        struct errmsg config_error, status_error, engine_error;
        int status_errno;

        const char *check; /* the name of the check that runs */
        struct doctor_line *lines;
        size_t n_lines;
};

/* Asks config, manager and, as root, the engine. What it finds is for the checks. */
void doctor_look(struct doctor *d);
/* Frees what doctor_look() and the checks have put in. */
void doctor_done(struct doctor *d);

/* Milliseconds of CLOCK_MONOTONIC; what a wait of @ms may last to, but never beyond d->end_ms. */
int64_t doctor_now_ms(void);
int64_t doctor_until(const struct doctor *d, int64_t ms);

/* @path below the root, into @buf, which it returns. */
const char *doctor_path(const struct doctor *d, const char *path, char buf[PATH_MAX]);
/* Opens it for reading; NULL and errno. */
FILE *doctor_open(const struct doctor *d, const char *path);
/* The engine's socket, without the root. */
const char *doctor_engine_socket(const struct doctor *d);
/* The string at that key, "" where there is none. @o may be NULL. */
const char *doctor_json_str(const json_t *o, const char *key);

/* Adds a line of the running check. @mend is the command that mends it, or NULL. */
__attribute__((format(printf, 4, 5))) void doctor_say(struct doctor *d, enum doctor_result result,
                                                      const char *mend, const char *fmt, ...);
/* The same for what this caller may not look at. */
void doctor_say_needs_root(struct doctor *d, const char *what);
/* The lines as text, in colour or not, or as a JSON array. Everything is escaped. 0, or -errno of a failed write. */
int doctor_print(const struct doctor *d, bool color, FILE *out);
int doctor_print_json(const struct doctor *d, FILE *out);

/* The checks. Each says what it found by doctor_say(). */
void check_manager(struct doctor *d);
void check_engine(struct doctor *d);
void check_escapes(struct doctor *d);
void check_accounts(struct doctor *d);
void check_docker_group(struct doctor *d);
void check_sockets(struct doctor *d);
void check_helper(struct doctor *d);
void check_config(struct doctor *d);
void check_layers(struct doctor *d);
void check_images(struct doctor *d);
void check_auditd(struct doctor *d);
void check_audit_rules(struct doctor *d);
void check_audit_log(struct doctor *d);
void check_audit_record(struct doctor *d);
void check_uid(struct doctor *d);
void check_disk(struct doctor *d);
void check_clock(struct doctor *d);

/* Runs every check of the table; doctor_look() was called. */
void doctor_run(struct doctor *d);
/* The whole program. @preset has root, socket, uid, build_year and probes; options override the first two. Returns the
 * exit status: 0, 1 (a failure was found), EXIT_USAGE or EXIT_OS. */
int doctor_command(const struct doctor *preset, int argc, char **argv, FILE *out, FILE *err);
