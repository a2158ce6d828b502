/*
 * cp, cat, ls and rm: a command in a session like any other, but that the program is the agent's own file tool
 * (agent/files.h). What it sends is taken as what any process of the sandbox could have sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli_run.h"
#include "common/errmsg.h"
#include "common/proto.h"

/* --- files_words.c: operands ----------------------------------------------------------------------- */

/* True when @word is SESSION:PATH: it has a ':' that is not its first byte, and no '/' stands before that. */
bool files_is_place(const char *word);

/* The words after the verb, for the tool, each at most once; and the one session that they name. */
struct files_words {
        char session[PROTO_NAME_MAX + 1];
        const char *args[PROTO_ARGS_MAX];
        uint32_t n;
};

/* Adds one for the tool as it stands. Returns 0, or -EINVAL and a line that begins with @what: there are too many. */
int files_add(struct files_words *w, const char *what, const char *arg, struct errmsg *e);
/* Adds the path of a SESSION:PATH. The same; also when it is none, or another session's. */
int files_add_place(struct files_words *w, const char *what, const char *word, struct errmsg *e);

/* --- files_run.c: one run of the tool --------------------------------------------------------------- */

struct files_run {
        struct cli_sink sink; /* first: the run is the sink */
        const char *verb;     /* of the command line: lines begin with it */
        const struct files_words *words;
        bool use_stdin;
        uint64_t timeout_ms; /* 0: none */
        /* Takes the tool's stdout. 0, or the exit status with which to end at once, its line said. NULL: to our own. */
        int (*take)(struct files_run *r, const void *p, size_t len);
        void (*before_line)(struct files_run *r); /* a line comes on stderr; NULL: nothing to do */
        struct cli_conn *conn;                    /* after files_connect() */
        struct cli_outcome outcome;               /* after files_go() */
        size_t len;                               /* in line: what the tool has said, so far */
        bool cut;
        char line[4096];
};

/* Connects. Returns 0, or the exit status after a line. */
int files_connect(struct files_run *r, const struct cli *c);
/* Runs the tool, to its end, and says what there is to say. Returns the exit status; r->outcome has the rest. */
int files_go(struct files_run *r);
/* A line on a file, of this side: filepath_say_fn, @run is the struct files_run. */
void files_local_say(void *run, const char *what, const char *path, const char *why);
/* The answer to bad usage: the line, and EXIT_USAGE. */
int files_bad_usage(const struct errmsg *e);

/* --- files_progress.c ------------------------------------------------------------------------------ */

/* One line on a terminal, from the first second on. */
struct files_progress {
        bool on, drawn;
        uint64_t begin_ms, next_ms;
};

/* Begins; on if stderr is a terminal. */
void files_progress_init(struct files_progress *p);
/* So many bytes, and this is the file now. Costs nothing but a look at the clock, most of the time. */
void files_progress_show(struct files_progress *p, const char *path, uint64_t bytes);
/* Takes the line away. */
void files_progress_clear(struct files_progress *p);

/* --- files_get.c, files_put.c: the two directions of cp ---------------------------------------------- */

struct files_copy {
        struct files_run run; /* first */
        struct files_words words;
        char **sources; /* as they were given */
        int n_sources;
        const char *target;
        uint64_t max_bytes; /* of what comes out; 0: half of what is free where it goes */
        struct files_progress progress;
};

/* Both return the exit status. */
int files_put(struct files_copy *copy, const struct cli *c);
int files_get(struct files_copy *copy, const struct cli *c);
