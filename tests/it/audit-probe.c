/*
 * Writes one of each event into both trails, as an account that has CAP_AUDIT_WRITE alone, for a test or
 * a person who then asks ausearch.
 *
 *     audit-probe DIR events    one of each event; prints the ids, one a line
 *     audit-probe DIR crash     starts an exec and dies by SIGKILL; run "recover" after it
 *     audit-probe DIR recover   closes what is open
 *     audit-probe DIR time N    N pairs of start and end; prints microseconds a pair
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/wire.h"
#include "manager/audit.h"

#define LONG 20000
#define CONTAINER "89a93f85b75289a93f85b75289a93f85b75289a93f85b75289a93f85b75289a9"

static uint8_t wire[LONG + 64];

static void command(struct audit_exec *x, bool shell, uint32_t n, const char *const *args) {
        struct wire_out out;

        wire_out_init(&out, wire, sizeof(wire));
        for (uint32_t i = 0; i < n; i++)
                wire_put_str(&out, args[i]);
        x->args_wire = wire;
        x->args_len = out.len;
        x->n_args = n;
        x->shell = shell;
}

static void check(int r, const char *what) {
        if (r == 0)
                return;
        fprintf(stderr, "audit-probe: %s: %s\n", what, strerror(-r));
        exit(1);
}

static void run(struct audit *a, struct audit_exec *x, enum cause cause, int code) {
        struct audit_end end = { .cause = cause, .code = code, .wall_us = 123456, .lines = 2 };
        char id[PROTO_EXEC_ID + 1];

        audit_exec_id(id);
        x->exec_id = id;
        check(audit_exec_start(a, x), "start");
        check(audit_exec_end(a, x, &end), "end");
        puts(id);
}

static void scrubs(struct audit *a) {
        static const struct scrubbed said[] = {
                { .check = SCRUB_CLEAN, .us = 412, .place = "" },
                { .check = SCRUB_FILES, .emptied = true, .us = 21873, .place = "/tmp" },
                { .check = SCRUB_FILES, .us = 9, .place = "/a b\" ok=true" },
        };

        for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
                check(audit_scrubbed(a, CONTAINER, "da1bf14f6a578b52", &said[i]), "scrubbed");
}

static void events(struct audit *a, struct audit_exec *x) {
        static const char forged[] =
                "true\n2026-06-08T05:02:59Z POOL HIT=true rc=0 cmd=\"x\"' uid=0 \033[2J"
                "\302\205\342\200\250res=success";
        static char huge[LONG + 1];

        check(audit_pool(a, true, 3), "pool start");
        command(x, true, 1, (const char *const[]){ "true" });
        run(a, x, CAUSE_EXITED, 0);
        command(x, false, 3, (const char *const[]){ "ls", "-l", "a b's" });
        x->pool_hit = false;
        run(a, x, CAUSE_EXITED, 2);
        x->pool_hit = true;
        command(x, true, 1, (const char *const[]){ forged });
        run(a, x, CAUSE_TIMEOUT, 124);
        memset(huge, 'x', LONG);
        command(x, true, 1, (const char *const[]){ huge });
        run(a, x, CAUSE_OOM, 137);
        x->container_id = NULL;
        check(audit_rejected(a, x, "too_long", LONG), "rejected");
        command(x, true, 1, (const char *const[]){ "id" });
        check(audit_rejected(a, x, "not_allowed", 0), "rejected");
        scrubs(a);
        check(audit_suppressed(a, x->caller.uid, 512, 2750), "suppressed");
        check(audit_pool(a, false, 3), "pool stop");
}

static void measure(struct audit *a, struct audit_exec *x, unsigned n) {
        struct audit_end end = { .cause = CAUSE_EXITED, .wall_us = 1000, .lines = 1 };
        struct timespec t0, t1;

        command(x, true, 1, (const char *const[]){ "grep -rn 'something' /usr/include | head -5" });
        clock_gettime(CLOCK_MONOTONIC, &t0);
        for (unsigned i = 0; i < n; i++) {
                char id[PROTO_EXEC_ID + 1];

                audit_exec_id(id);
                x->exec_id = id;
                check(audit_exec_start(a, x), "start");
                check(audit_exec_end(a, x, &end), "end");
        }
        clock_gettime(CLOCK_MONOTONIC, &t1);
        printf("%.1f us a pair\n",
               ((double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec)) / 1e3 / n);
}

int main(int argc, char **argv) {
        struct audit_exec x = {
                .exec_id = "0123456789abcdef",
                .container_id = CONTAINER,
                .profile = "default",
                .caller = { .uid = 1000, .pid = 4321, .loginuid = UINT32_MAX },
                .pool_hit = true,
        };
        char file[4096], state[4096];
        struct config c = { .log_backup_count = 3,
                            .log_max_bytes = 5u << 20,
                            .audit_required = TRI_TRUE };
        struct errmsg e;
        struct audit *a;

        if (argc < 3)
                return 64;
        snprintf(file, sizeof(file), "%s/sandbox-audit.log", argv[1]);
        snprintf(state, sizeof(state), "%s/open-execs", argv[1]);
        c.audit_file = file;
        if (getenv("AUDIT_PROBE_AUTO"))
                c.audit_required = TRI_AUTO;
        if (audit_new(&c, true, state, &a, &e) < 0) {
                fprintf(stderr, "audit-probe: %s\n", e.text);
                return 1;
        }
        if (strcmp(argv[2], "events") == 0) {
                events(a, &x);
        } else if (strcmp(argv[2], "crash") == 0) {
                command(&x, true, 1, (const char *const[]){ "sleep 1000" });
                check(audit_exec_start(a, &x), "start");
                kill(getpid(), SIGKILL);
        } else if (strcmp(argv[2], "recover") == 0) {
                check(audit_recover(a, NULL, NULL), "recover");
        } else if (strcmp(argv[2], "time") == 0 && argc == 4) {
                measure(a, &x, (unsigned)atoi(argv[3]));
        } else {
                return 64;
        }
        fprintf(stderr, "%s\n", audit_kernel_state(a, NULL));
        audit_free(a);
        return 0;
}
