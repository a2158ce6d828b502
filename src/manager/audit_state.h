/*
 * Which execs are open: a file of fixed-size slots, mapped, so that a start and an end cost no system call.
 * After a SIGKILL the next life reads from it which ends are missing in the trails.
 *
 * The file outlives the manager's death. Nothing forces it to the disk: of a machine's death, which ends all
 * sandboxes too, it may lose the last moments. A disk that fails under it ends the manager (SIGBUS).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errmsg.h"
#include "common/proto.h"
#include "manager/audit.h"

#define AUDIT_STATE_COMMAND 200 /* bytes of the command's text, for the line */
#define AUDIT_STATE_CID 12
#define AUDIT_STATE_SLOTS 65536

struct audit_state;

/* What a slot holds. The strings are NUL-terminated. */
struct audit_open_exec {
        char exec_id[PROTO_EXEC_ID + 1];
        char container_id[AUDIT_STATE_CID + 1];
        char profile[PROTO_NAME_MAX + 1];
        char session[PROTO_NAME_MAX + 1];
        struct audit_caller caller;
        bool pool_hit;
        bool detached;          /* it may be alive when this process has gone */
        uint64_t begun_us;      /* CLOCK_MONOTONIC, which a crash of the machine ends */
        uint64_t command_total; /* bytes of its whole text */
        uint16_t command_len;   /* bytes of it in command */
        uint8_t command[AUDIT_STATE_COMMAND];
};

/* Opens @path, makes it (0600) where it is missing, and locks it for this process. -errno and one line
 * in *e; -EBUSY: another process has it. *ret is audit_state_free()d; the slots stay in the file. */
int audit_state_open(const char *path, struct audit_state **ret, struct errmsg *e);
void audit_state_free(struct audit_state *s);

/* Takes a slot. -ENOSPC: no slot, or no room in the file system. */
int audit_state_add(struct audit_state *s, const struct audit_open_exec *x);

/* Frees the slot of that exec; -ENOENT: there is none. */
int audit_state_remove(struct audit_state *s, const char *exec_id);

/* The first open slot at or behind @*i: fills *ret and sets *i to its number; false: none is left. A slot
 * that cannot be read (torn by a crash of the machine) has the exec id "?". */
bool audit_state_next(struct audit_state *s, size_t *i, struct audit_open_exec *ret);

/* Frees slot @i, an open one. */
void audit_state_clear(struct audit_state *s, size_t i);
