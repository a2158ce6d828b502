/*
 * The readable trail against itself (numbers and hashes) and against the kernel's.
 *
 * The oldest line at hand is the anchor: what rotation dropped before it is no finding. Each thing that
 * is wrong is one finding, also where several lines show it.
 */
#pragma once

#include <stdint.h>

#include "cli/audit/review_files.h"
#include "cli/audit/review_stamps.h"

struct review_finding {
        const char *kind; /* "missing", "changed", "reordered", "inserted", "torn", "tail", "rotation",
                             "gone", "anew", "unrecorded"; "note": of interest, and not wrong */
        const char *file; /* NULL: none */
        uint64_t line;    /* in it; 0: none */
        uint64_t seq;     /* 0: none */
        char text[256];
};

struct review_verdict {
        uint64_t lines, first, last; /* ours, and the numbers of the oldest and newest */
        uint64_t older_lines;        /* of other origin, before our first */
        uint64_t agreed;             /* lines whose hash the kernel's trail has */
        uint64_t agreed_first;       /* the first of them */
        uint64_t findings;
};

struct review_verify {
        const struct review_files *files;
        const struct review_stamps *stamps; /* NULL: consistency only */
        const char *missing;                /* path of the current file where it is not there, or NULL */
        int64_t now_ms;                     /* when the kernel's trail was opened, which was first */
        void (*found)(void *userdata, const struct review_finding *f);
        void *userdata;
};

/* 0 and *ret, whatever was found; -errno with a line in *e where a file cannot be read. */
int review_verify_run(const struct review_verify *v, struct review_verdict *ret, struct errmsg *e);
