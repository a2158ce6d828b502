/*
 * The flags of run and create, all that docker has from 20.10 to 28: what becomes of each. hermes-sandbox-docker(1)
 * prints the table, and a test compares the two.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli_mount.h"
#include "cli/docker/docker_words.h"
#include "common/errmsg.h"
#include "common/narrow.h"
#include "common/proto_open.h"

enum flag_decision {
        FLAG_TAKEN, /* it does what it does in docker, as far as the profile goes */
        FLAG_POLICY, /* the profile, or the sandbox's make, decides: silently, but for =false of what is always so */
        FLAG_WARNED,  /* the same, and a WARNING says so: it asks for what is not given */
        FLAG_REFUSED, /* exit status 125 and one line */
        FLAG_AUDITED, /* the same, and the manager records it */
};

struct run_words;

struct run_flag {
        struct docker_flag f;
        uint8_t decision; /* enum flag_decision: where there is a take, of what that does not refuse */
        /* 0, -EINVAL: it makes no sense, -EPERM: refused, -EACCES: refused, and the manager records it; with a line in
         * *e. NULL: the decision is all. */
        int (*take)(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
        const char *text; /* one line: what it does, or which key of the profile decides */
};

/* Ends with a row without a name. */
extern const struct run_flag run_flags[];

/* As the manual has it: "taken", "policy", "refused". */
const char *run_flag_decision(const struct run_flag *f);

#define RUN_WARNINGS_MAX 64
/* --volume of files, which are copied. */
#define RUN_FILES_MAX 16
#define RUN_FILE_BYTES_MAX (16u << 20)
/* What --memory -1 and its like ask for. */
#define RUN_UNLIMITED UINT64_MAX

struct run_file {
        const struct run_flag *flag;
        const char *src, *dst;
        const char *at; /* where it is copied to: dst, or what a link at dst leads to */
        int fd;         /* what was read of it, by run_files_read(); else -1 */
};

/* What the words of a run say. All strings are the words' own, or literals. */
struct run_words {
        bool detach, input, tty, remove;
        bool storage;             /* --storage-opt was there */
        bool read_only, writable; /* --read-only, --read-only=false */
        bool make_workdir;        /* workdir may not be there: run_judge() says it */
        const char *name, *workdir, *network;
        uint64_t memory_bytes, cpu_nano, pids, shm_bytes; /* 0: not asked for */
        struct {
                const char *path;
                int path_len;
                uint64_t bytes; /* 0: no size was asked for */
                char other[64]; /* what else was asked for and no tmpfs here is, with commas; cut */
        } tmpfs[NARROW_TMPFS_MAX];
        int n_tmpfs;
        bool user;
        uint32_t uid, gid;     /* gid UINT32_MAX: none was named */
        uint64_t capabilities; /* added ones: bits CAP_X */
        uint64_t dropped;      /* likewise */
        bool agents_own;       /* SETUID or SETGID was among them */
        struct cli_mounts mounts;
        struct run_file files[RUN_FILES_MAX];
        int n_files;
        uint32_t n_labels, n_env;
        const char *labels[PROTO_LABELS_MAX];
        const char *env[PROTO_OPEN_ENV_MAX];
        struct {
                const struct run_flag *flag;
                const char *value; /* NULL: it takes none */
        } warnings[RUN_WARNINGS_MAX];
        int n_warnings;

        const char *image;
        char **command; /* n_command words */
        int n_command;

        const struct run_flag *refused; /* what keeps it from running, with FLAG_AUDITED */
};

/* argv[0] is run or create. 0; DOCKER_WORDS_HELP; DOCKER_WORDS_BAD: docker itself would say so; -EINVAL, -EPERM or
 * -EACCES as run_flag.take. Of all but the first two *e has a line. */
int run_words_parse(struct run_words *r, int argc, char **argv, struct errmsg *e);

/* The name of that capability without "CAP_", such as CHOWN, of those that --cap-add can take; "?" of others. */
const char *run_capability_name(unsigned number);

/* The takes of the table (docker_take.c; folders and tmpfs: docker_take_files.c). Each is a run_flag.take. */
int take_detach(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_input(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_tty(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_remove(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_name(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_label(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_run_env(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_workdir(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_user(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_volume(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_mount(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_tmpfs(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_memory(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_shm(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_cpus(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_pids(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_network(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_cap_add(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_cap_drop(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_read_only(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_security(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_entrypoint(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_storage(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
/* --ipc, --pid, --uts, --cgroupns, --userns: the host's own is refused and recorded. */
int take_namespace(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
/* --restart no, --pull missing: what is so anyway needs no warning. */
int take_restart(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
int take_pull(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e);
