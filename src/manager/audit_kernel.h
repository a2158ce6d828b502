/*
 * Records in the kernel's audit trail. A record counts only when the kernel has acknowledged it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/escape.h"

/* Bytes of the fields, and of the exe= that is added to them: with hostname=, addr=, terminal= and res= it is
 * less than where the kernel cuts the text of a user record (AUDIT_MESSAGE_TEXT_MAX in linux/audit.h). */
#define AUDIT_RECORD_MAX 6144
#define AUDIT_EXE_MAX 2048

enum audit_res { AUDIT_RES_FAILED = 0, AUDIT_RES_SUCCESS = 1, AUDIT_RES_UNKNOWN = 2 };

struct audit_kernel {
        int fd;                  /* -1: no socket */
        uint32_t seq;            /* of the last message */
        char exe[AUDIT_EXE_MAX]; /* " exe=" and the program's own path; "" where that is longer */
        const char *state;
        char why[160];
        bool single_user; /* a single user's pair: that it has no CAP_AUDIT_WRITE is how it is made */
};

/* Opens the socket, once. Without one @k is usable all the same: each record fails. */
void audit_kernel_init(struct audit_kernel *k);
void audit_kernel_done(struct audit_kernel *k);
/* The state of a process without CAP_AUDIT_WRITE, until the next record. */
void audit_kernel_no_capability(struct audit_kernel *k);

/*
 * Sends one record of @type (AUDIT_USER_CMD, AUDIT_TRUSTED_APP) with @fields, "name=value …", and with @address, a word,
 * or NULL where there is none, in the field addr= that every record has. 0: the
 * kernel acknowledged it. -errno otherwise: the kernel's answer, or why there is none (-ETIMEDOUT after a second);
 * -ENOTCONN without a socket. k->state and k->why follow.
 */
int audit_kernel_send(struct audit_kernel *k, int type, const char *fields, enum audit_res res,
                      const char *address);

/* Appends " @name=VALUE" with @value[0..len) encoded as auditd's own fields are: quoted, or as hex
 * digits where it has blanks, control characters, quotes or bytes above 0x7e. */
void audit_kernel_encode(struct text *t, const char *name, const void *value, size_t len);
