/*
 * Records in the kernel's audit trail, through libaudit. A record counts only when the kernel has
 * acknowledged it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "manager/escape.h"

/* The kernel cuts the text of a user record at 8560 bytes (AUDIT_MESSAGE_TEXT_MAX); what libaudit adds
 * (exe=, hostname=, addr=, terminal=, res=) takes up to 4 KiB of path. */
#define AUDIT_RECORD_MAX 6144

enum audit_res { AUDIT_RES_FAILED = 0, AUDIT_RES_SUCCESS = 1, AUDIT_RES_UNKNOWN = 2 };

struct audit_kernel {
        int fd; /* -1: no socket */
        const char *state;
        char why[160];
};

/* Opens the socket, once. Without one @k is usable all the same: each record fails. */
void audit_kernel_init(struct audit_kernel *k);
void audit_kernel_done(struct audit_kernel *k);

/*
 * Sends one record of @type (AUDIT_USER_CMD, AUDIT_TRUSTED_APP) with @fields, "name=value …". 0: the
 * kernel acknowledged it. -errno otherwise, -EPERM where libaudit gives no reason (it turns EPERM and
 * ECONNREFUSED into 0); -ENOTCONN without a socket. k->state and k->why follow.
 */
int audit_kernel_send(struct audit_kernel *k, int type, const char *fields, enum audit_res res);

/* Appends " @name=VALUE" with @value[0..len) encoded as auditd's own fields are: quoted, or as hex
 * digits where it has blanks, control characters, quotes or bytes above 0x7e. */
void audit_kernel_encode(struct text *t, const char *name, const void *value, size_t len);
