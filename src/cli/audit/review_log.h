/*
 * The kernel's audit trail, read back: one struct for each record of ours, in the log's order.
 *
 * The log holds records of everybody who may write some, and what stands between msg='…' is the writer's
 * word, exe= too. What counts has the record type, the program in exe= and, in the header, which the
 * kernel wrote, the uid: that of the manager's account, or 0 for the helper.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/audit/review_files.h"
#include "common/errmsg.h"

enum review_op {
        REVIEW_OTHER, /* an op that this program does not know: ->op_word says which */
        REVIEW_TRAIL_OPEN,
        REVIEW_POOL_START,
        REVIEW_POOL_STOP,
        REVIEW_EXEC_START,
        REVIEW_EXEC_END,
        REVIEW_EXEC_REJECTED,
        REVIEW_SCRUB_FAILED,
        REVIEW_EXEC_SUPPRESSED,
        REVIEW_SESSION_OPEN,
        REVIEW_SESSION_STOP,
        REVIEW_SESSION_START,
        REVIEW_SESSION_CLOSE,
        REVIEW_SSH_LOGIN,
        REVIEW_HELPER /* any record of hermes-docker-enable */
};

#define REVIEW_NO_ID UINT32_MAX /* of uid and loginuid: none, or unset */
#define REVIEW_WORD 32
#define REVIEW_ADDRESS 72
#define REVIEW_HASH 64

/* Decoded text of somebody else's: any bytes. */
struct review_bytes {
        const uint8_t *p; /* NULL: the record has no such field */
        size_t len;
};

struct review_record {
        int64_t time_ms;
        enum review_op op;
        char op_word[REVIEW_WORD];
        char res[REVIEW_WORD]; /* "success", "failed", "unknown" */

        char exec[17], cid[13];      /* "": the record has none; "?": none yet */
        uint32_t uid, loginuid, pid; /* of the caller */
        char user[REVIEW_WORD];      /* the name that auditd wrote behind the record, or "" */
        struct review_bytes profile, session, command, place, account, group;
        struct review_bytes fp;       /* of the ssh key whose holder it is of */
        char address[REVIEW_ADDRESS]; /* where an ssh login came from; "?" elsewhere */
        char pool[REVIEW_WORD], cause[REVIEW_WORD], reason[REVIEW_WORD], check[REVIEW_WORD];
        char by[REVIEW_WORD]; /* the uid that closed, stopped or started a session; "?": nobody asked for it */
        int rc;               /* -1: none, or not known */
        uint64_t command_len; /* of the whole command; 0: ->command is all of it */
        char sha256[REVIEW_HASH + 1];
        uint64_t bytes, requests, ms, containers, processes;
        uint32_t port;

        bool stamped; /* it has seq= and hash= */
        uint64_t seq; /* 0: no line could be written, or (trail-open) there is none yet */
        char hash[REVIEW_HASH + 1];
};

struct review_source {
        const char *manager; /* what exe= names */
        const char *helper;
        uint32_t account; /* uid of the manager's */
};

struct review_log;

/* Over @f, which must stay as it is, as must @s; review_log_free()d. 0, or -errno with a line in *e. */
int review_log_new(const struct review_files *f, const struct review_source *s, struct review_log **ret,
                   struct errmsg *e);
void review_log_free(struct review_log *l);

/* 1 and the next record, 0 at the end, or -errno with a line in *e. What *ret points to is the log's, up
 * to the next call. */
int review_log_next(struct review_log *l, struct review_record *ret, struct errmsg *e);

struct review_log_counts {
        uint64_t records; /* that were handed out */
        uint64_t foreign; /* of another account, with one of our programs in exe= */
        uint64_t broken;  /* ours, but not in the form that we write */
};
void review_log_counts(const struct review_log *l, struct review_log_counts *ret);
