/* hermes-sandbox-audit, which `hermes-sandbox audit` executes: the audit trails, read back. */
#pragma once

#include <stdio.h>

/* Where things are on this system; a test has them elsewhere. */
struct review_paths {
        const char *auditd_conf; /* may be unreadable or missing */
        const char *audit_log;   /* then this is auditd's log */
        const char *trail;       /* the readable trail */
        const char *manager;     /* what exe= names in the manager's records */
        const char *helper;      /* and in the helper's */
        const char *account;     /* name of the manager's account */
};

/*
 * Runs the program with main()'s arguments; results go to @out, complaints to @err. Returns the exit
 * code: 0; 1: --verify found something; EXIT_USAGE; EXIT_NO_MANAGER (69): no log, trail or account;
 * EXIT_NOT_ALLOWED: no right to read one of them; EXIT_OS (71): a read or write failed.
 */
int review_command(const struct review_paths *p, int argc, char **argv, FILE *out, FILE *err);
