/*
 * What one sandbox shall have less of than its profile gives: bounded numbers, which travel from a caller through the
 * manager to the broker. Each of the two lays them over the profile by itself (config/narrow.h), and nothing in them
 * can make a sandbox more than its profile is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"

#define NARROW_TMPFS_MAX 16
#define NARROW_PATH_MAX 256
/* Bytes on the wire, at most. */
#define NARROW_LEN_MAX \
        (8 + 8 + 4 + 8 + 1 + 1 + 4 + 4 + 1 + NARROW_TMPFS_MAX * (4 + NARROW_PATH_MAX + 1 + 8))

struct narrow {
        uint64_t memory_bytes; /* 0 here and below: as the profile has it */
        uint64_t cpu_nano;
        uint32_t pids_limit;
        uint64_t shm_bytes;
        bool no_network;
        bool user; /* commands run as uid:gid, which the profile must list, or which are the caller's own */
        uint32_t uid, gid;
        uint8_t n_tmpfs;
        struct {
                const char *path; /* absolute; one that the profile has */
                uint64_t bytes;
        } tmpfs[NARROW_TMPFS_MAX];
};

void narrow_put(struct wire_out *out, const struct narrow *n);
/* The paths live in the payload. What is out of its bounds makes @in bad. */
void narrow_get(struct wire_in *in, struct narrow *ret);
/* Does it ask for nothing at all? */
bool narrow_is_empty(const struct narrow *n);

/* Makes *ret a copy of @n that outlives its payload: its paths are in @paths, which has to stay where it is. */
void narrow_copy(const struct narrow *n, struct narrow *ret,
                 char paths[NARROW_TMPFS_MAX][NARROW_PATH_MAX + 1]);
