/*
 * What this installation has created: its random id and one file a container under the state folder,
 * written before the engine is asked to create anything, so that a crash leaves nothing unknown.
 *
 *     <state>/installation-id          32 hex digits, 0600, made once
 *     <state>/containers/<name>        the container's id, or empty: not known yet
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/engine_msg.h"
#include "common/errmsg.h"

#define RECORD_PREFIX "hermes-sandbox-"
#define RECORD_TAG_LEN 32 /* hex digits; also the name of the sandbox's folder */
#define RECORD_NAME_LEN (sizeof(RECORD_PREFIX) - 1 + RECORD_TAG_LEN)

struct record {
        struct record *next, **prev;
        char name[RECORD_NAME_LEN + 1];
        char id[ENGINE_ID_LEN + 1]; /* "": not known */
        uint64_t since_ms;          /* CLOCK_BOOTTIME, when this process first knew of it */
        bool unsure;                /* the answer to its create was not seen: it may appear yet */
        bool busy;                  /* being created right now, by this process */
        bool unwanted;              /* its removal failed: it is removed at the next comparison */
        bool oom;                   /* the engine spoke of an OOM kill in it */
        bool died;                  /* its end was seen */
        uint32_t exit_code;         /* where died */
};

struct records {
        int dir_fd;
        char installation[ENGINE_INSTALLATION_LEN + 1];
        struct record *first;
};

/* Opens (and on first use makes) the state folder's parts; @state_dir itself must be there. Files whose
 * names are not ours are left alone. Returns 0 or -errno with a line in *e; records_done() in any
 * case. */
int records_init(struct records *r, const char *state_dir, struct errmsg *e);
void records_done(struct records *r);

/* A new record with a random name, on disk when this returns 0. *ret belongs to @r. */
int records_add(struct records *r, struct record **ret);
/* The id goes to memory and, as a hint for the next start, to disk. */
int records_set_id(struct records *r, struct record *rec, const char *id);
/* Removes it from disk and frees it. */
void records_drop(struct records *r, struct record *rec);

struct record *records_by_id(const struct records *r, const char *id);
struct record *records_by_name(const struct records *r, const char *name);
/* The random part of its name. */
const char *record_tag(const struct record *rec);
bool record_tag_valid(const char *tag);

uint64_t records_now_ms(void);
/* 128 random bits as hex digits. */
void records_random_hex(char ret[RECORD_TAG_LEN + 1]);
