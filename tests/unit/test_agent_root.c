/* A sandbox in which commands are root with a few capabilities, beside others that are not: what they have, what they
 * can do to the agent and to its children before these are commands, and that no right comes of it. */
#include <dirent.h>

#include "agentrun.h"

static struct rig rig;

static int begin(void **state) {
        *state = &rig;
        rig = (struct rig){ .sealed = true, .root = true };
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int begin_several(void **state) {
        *state = &rig;
        rig = (struct rig){ .sealed = true, .several = true };
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static const struct exec_order as_root = { 0 }, as_other = { .uid = 20000, .gid = 20001 },
                               as_third = { .uid = 10000, .gid = 10001 };

static struct run run_as(struct rig *r, uint32_t channel, struct exec_order o, const char *script) {
        struct run x = { .channel = channel };

        rig_sh(r, channel, o, script);
        rig_collect(r, &x, 1);
        return x;
}

/* --- who they are --------------------------------------------------------------------------------- */

#define SELF                                                         \
        "id -u; id -g; id -G | wc -w; cat /proc/self/oom_score_adj;" \
        "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):' /proc/self/status | tr -d '\\t'"
#define CAPS(n) \
        "CapInh:0000000000000000\nCapPrm:" n "\nCapEff:" n "\nCapAmb:0000000000000000\nNoNewPrivs:1\n"
#define NO_CAPS CAPS("0000000000000000")

/* On both ways: prepared, and beside something that runs. */
static void identity(void **state) {
        struct rig *r = *state;
        struct run x;

        assert_non_null(strstr(r->hello, "scrub=no: commands run as root\n"));
        for (uint32_t i = 0; i < 3; i++) {
                if (i == 2)
                        start_ready(r, 90, as_root, "echo ready; sleep 300; :");
                says_nothing(r);
                x = run_as(r, 1, as_root, SELF);
                run_equals(&x, 0, "0\n0\n2\n1000\n" CAPS(RIG_CAPS), "");
                says_nothing(r);
                x = run_as(r, 2, as_other, SELF);
                run_equals(&x, 0, "20000\n20001\n2\n1000\n" NO_CAPS, "");
                x = run_as(r, 3, as_third, SELF);
                run_equals(&x, 0, "10000\n10001\n2\n1000\n" NO_CAPS, "");
        }
        rig_send(r, FRAME_CANCEL, 0, 90, NULL, 0);
        wait_exited(r, 90);
}

static void refused(struct rig *r, uid_t uid, gid_t gid) {
        struct frame f;

        rig_sh(r, 1, (struct exec_order){ .uid = uid, .gid = gid }, ":");
        while (rig_try_next(r, &f))
                assert_int_not_equal(f.type, FRAME_EXITED);
        close(r->fd);
        rig_accept(r);
}

static void nobody_else(void **state) {
        struct rig *r = *state;
        struct run x;

        refused(r, 20000, 10001); /* half of each */
        refused(r, 0, 20001);
        refused(r, 20000, 0);
        refused(r, 65534, 65534);
        x = run_as(r, 1, as_other, "id -u");
        run_equals(&x, 0, "20000\n", "");
}

/* Of the first pair alone, and never beside another's command. */
static void several_users(void **state) {
        struct rig *r = *state;
        struct frame f;
        struct run x;

        assert_non_null(strstr(r->hello, "scrub=no: commands run as several users\n"));
        for (int i = 0; i < 3; i++) {
                says_nothing(r);
                x = run_as(r, 1, as_other, "id -u; ps -eo uid=,args= | grep -c '^ *10000 .*/[a]gent '");
                run_equals(&x, 1, "20000\n0\n", "");
                x = run_as(r, 2, as_third, "id -u; touch /tmp/mine; stat -L -c %u /proc/self/fd/1");
                run_equals(&x, 0, "10000\n10000\n", "");
                x = run_as(r, 3, as_other,
                           "stat -L -c %u /proc/self/fd/1; rm -f /tmp/mine 2>&1 || echo no");
                assert_non_null(strstr(x.out[0], "20000\n"));
                assert_non_null(strstr(x.out[0], "no\n"));
                run_done(&x);
        }
        x.channel = 4;
        rig_sh(r, 4,
               (struct exec_order){ .uid = 20000,
                                    .gid = 20001,
                                    .tty = true,
                                    .use_stdin = true,
                                    .rows = 9,
                                    .cols = 8 },
               "stat -c %u $(tty); id -u");
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "20000\r\n20000\r\n", "");
        rig_sh(r, 5, (struct exec_order){ .one_shot = true, .scrub = true }, ":");
        while (rig_try_next(r, &f))
                ;
        close(r->fd);
        rig_accept(r);
}

/* --- what root has, and what it has not ----------------------------------------------------------- */

static void what_it_may(void **state) {
        struct rig *r = *state;
        struct run x = run_as(r, 1, as_other,
                              "umask 077; echo secret >/tmp/f; mkdir /tmp/d; touch /tmp/d/f");

        run_done(&x);
        x = run_as(
                r, 2, as_root,
                "cat /tmp/f; chown 10000:10001 /tmp/f && stat -c %u:%g /tmp/f; chmod 644 /tmp/f && rm -r /tmp/d;"
                "ls -A /tmp");
        run_equals(&x, 0, "secret\n10000:10001\nf\n", "");
        x.channel = 3;
        rig_sh(r, 3, (struct exec_order){ .tty = true, .use_stdin = true, .rows = 9, .cols = 8 },
               "stat -c %u $(tty); id -u");
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "0\r\n0\r\n", "");
        rig_order(r, 4, (struct exec_order){ .files = true },
                  (const char *const[]){ "cat", "/tmp/f", NULL }, NULL);
        x = (struct run){ .channel = 4 };
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "secret\n", "");
}

/* Each line says what worked: none. */
static void what_it_may_not(void **state) {
        struct run x = run_as(
                *state, 1, as_root,
                "try() { \"$@\" >/dev/null 2>&1 && echo \"$*\"; }\n"
                "cp /usr/bin/id /tmp/id; chmod 6755 /tmp/id; chown 20000:20001 /tmp/id; chmod 6755 /tmp/id\n"
                "[ $(/tmp/id -u) = 0 ] || echo became another\n"
                "cp /bin/sh /tmp/sh; chmod 6755 /tmp/sh\n"
                "try setpriv --reuid=20000 true; try setpriv --regid=20001 true\n"
                "try setpriv --clear-groups true; try setpriv --inh-caps=+setuid --ambient-caps=+setuid true\n"
                "try su -s /bin/sh nobody -c true; try sg users true\n"
                "try unshare -U true; try unshare -m true; try unshare -p true; try chroot / true\n"
                "try mount -t tmpfs none /tmp; try mount -o remount,rw /usr; try umount /tmp\n"
                "try mknod /tmp/null c 1 3; try setcap cap_setuid+ep /tmp/id; try nice -n -1 true\n"
                "try renice -n -1 -p 1; try date -s 2030-01-01; try hostname other\n"
                "try touch /usr/x; try touch /.hermes-sandbox/x; try touch /.hermes-sandbox/stream/x\n"
                "echo end");

        /* nice(1) runs its program all the same. */
        run_equals(&x, 0, "nice -n -1 true\nend\n", "");
        x = run_as(*state, 2, as_third, "/tmp/sh -p -c 'id -u; grep CapEff /proc/self/status'");
        run_equals(&x, 0, "10000\nCapEff:\t0000000000000000\n", "");
}

static void agent_is_out_of_reach(void **state) {
        struct run x = run_as(
                *state, 1, as_root,
                "cat /proc/1/environ /proc/1/maps /proc/1/auxv /proc/1/fd/* 2>/dev/null | wc -c\n"
                "readlink /proc/1/fd/3 /proc/1/exe /proc/1/cwd\n"
                "for s in $(seq 64); do kill -$s 1 2>/dev/null; kill -$s 1 2>/dev/null; done\n"
                "python3 -c 'import ctypes, os, resource, signal\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "for request in 16, 0x4206: print(libc.ptrace(request, 1, 0, 0), ctypes.get_errno())\n"
                "try: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)); print(\"limited\")\n"
                "except PermissionError: pass\n"
                "try: open(\"/proc/1/mem\", \"r+b\").close(); print(\"memory\")\n"
                "except PermissionError: pass\n"
                "for i in range(10000): os.kill(1, signal.SIGCHLD)'");

        run_equals(&x, 0, "0\n-1 1\n-1 1\n", "");
        says_nothing(*state);
        x = run_as(*state, 2, as_third, "echo on");
        run_equals(&x, 0, "on\n", "");
}

/* --- before its exec a child is root, and who is root may signal it -------------------------------- */

static void kills_all(void **state) {
        struct rig *r = *state;
        struct exited e;
        struct run x;

        for (int i = 0; i < 3; i++) {
                struct run runs[] = { { .channel = 1 }, { .channel = 2 } };

                start_ready(r, 2, as_root, "echo ready; sleep 300; :");
                start_ready(r, 3, as_third, "echo ready; exec sleep 300");
                rig_sh(r, 1, as_root, "kill -9 -1; echo alive");
                rig_collect(r, runs, 2);
                run_equals(&runs[0], 0, "alive\n", "");
                assert_int_equal(runs[1].end.code, SIGKILL);
                x = run_as(r, 4, as_third, "until ps -eo args= | grep '^sleep'; do :; done");
                run_equals(&x, 0, "sleep 300\n", ""); /* another's */
                rig_send(r, FRAME_CANCEL, 0, 3, NULL, 0);
                e = wait_exited(r, 3);
                assert_int_equal(e.cause, CAUSE_CANCELLED);
                x = run_as(r, 5, as_root, "echo next");
                run_equals(&x, 0, "next\n", "");
        }
}

/* The one child of the agent's that is stopped, if there is one. */
static bool is_one_stopped(const struct rig *r) {
        char path[64], list[256], state;
        FILE *f;
        bool yes = false;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)r->agent, (int)r->agent);
        f = fopen(path, "re");
        assert_non_null(f);
        assert_non_null(fgets(list, sizeof(list), f));
        fclose(f);
        for (char *save, *pid = strtok_r(list, " ", &save); pid; pid = strtok_r(NULL, " ", &save)) {
                snprintf(path, sizeof(path), "/proc/%s/stat", pid);
                f = fopen(path, "re");
                yes |= f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'T';
                if (f)
                        fclose(f);
        }
        return yes;
}

/* Whether the agent says something in time. */
static bool says(const struct rig *r, int wait_ms) {
        struct pollfd p = { .fd = r->fd, .events = POLLIN };

        return r->in_len > r->in_used || poll(&p, 1, wait_ms) == 1;
}

/* A start beside @attack, which does its worst to each process of root's: what is said of a command that never was is no
 * end of its own, and the agent goes on. A signal that the kernel allowed a moment before the child was another's may
 * reach the command: who is stopped by one stands, and can be ended. */
static void beside(struct rig *r, const char *attack) {
        char script[512];

        snprintf(script, sizeof(script),
                 "exec python3 -c 'import os\nprint(\"ready\", flush=True)\nwhile True:\n %s'", attack);
        start_ready(r, 1, as_root, script);
        for (uint32_t i = 0; i < 8; i++) {
                struct run x = { .channel = 10 + i };

                rig_sh(r, 10 + i, as_third, "echo $((6 * 7)); exit 5");
                if (!says(r, 12000)) {
                        assert_true(is_one_stopped(r));
                        rig_send(r, FRAME_CANCEL, 0, 10 + i, NULL, 0);
                        assert_int_equal(wait_exited(r, 10 + i).cause, CAUSE_CANCELLED);
                        continue;
                }
                rig_collect(r, &x, 1);
                if (x.end.error) {
                        assert_int_equal(x.end.cause, CAUSE_NOT_EXECUTABLE);
                        assert_int_equal(x.end.code, START_PLUMBING);
                        assert_int_equal(x.len[0], 0);
                        run_done(&x);
                } else if (x.end.cause == CAUSE_SIGNALED) {
                        assert_int_equal(x.end.code, SIGKILL);
                        run_done(&x);
                } else
                        run_equals(&x, 5, "42\n", "");
        }
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0);
        assert_int_equal(wait_exited(r, 1).cause, CAUSE_CANCELLED);
        struct run x = run_as(r, 2, as_root, "echo over");
        run_equals(&x, 0, "over\n", "");
}

static void stops_children(void **state) {
        beside(*state, "try: os.kill(-1, 19)\n except ProcessLookupError: pass");
}

static void kills_children(void **state) {
        beside(*state, "try: os.kill(-1, 9)\n except ProcessLookupError: pass");
}

static void meddles_with_children(void **state) {
        beside(*state, "for p in os.listdir(\"/proc\"):\n"
                       "  if p.isdigit() and p != str(os.getpid()):\n"
                       "   try: os.kill(int(p), 19)\n"
                       "   except OSError: pass\n"
                       "   try: open(f\"/proc/{p}/oom_score_adj\", \"w\").write(\"1000\")\n"
                       "   except OSError: pass\n"
                       "   try: os.sched_setaffinity(int(p), [0])\n"
                       "   except OSError: pass");
}

/* By its gid, which root without SETGID cannot shed, either. */
static void trees(void **state) {
        struct rig *r = *state;
        struct run x;

        start_ready(r, 1, as_root, "echo ready; sleep 400; :");
        start_ready(
                r, 2, as_root,
                "trap '' TERM HUP; (setsid env -i sleep 300 &); python3 -c 'import os\n"
                "try: os.setgroups([])\n"
                "except PermissionError: os.execvp(\"sleep\", [\"sleep\", \"301\"])' & sleep 0.3; echo ready; sleep 302; :");
        rig_send(r, FRAME_CANCEL, 0, 2, NULL, 0);
        assert_int_equal(wait_exited(r, 2).cause, CAUSE_CANCELLED);
        x = run_as(r, 3, as_root, "ps -eo args= | grep '^sleep' | sort | tr '\n' ' '");
        run_equals(&x, 0, "sleep 400 ", "");
        start_ready(r, 4, as_root,
                    "python3 -c 'import os, time\n"
                    "print(\"ready\", flush=True)\n"
                    "while True:\n"
                    " if os.fork() > 0: time.sleep(0.001); os._exit(0)\n"
                    " os.setsid()' & sleep 300; :");
        rig_send(r, FRAME_CANCEL, 0, 4, NULL, 0);
        wait_exited(r, 4);
        x = run_as(r, 5, as_root, "ps -eo args= | grep -c 'sleep([0].001)'");
        run_equals(&x, 1, "0\n", "");
}

/* As many as may run. */
static void many(void **state) {
        struct run runs[96];

        for (uint32_t i = 0; i < 96; i++) {
                runs[i] = (struct run){ .channel = i };
                rig_sh(*state, i, i % 3 ? as_root : as_third, "id -u; exit 4");
        }
        rig_collect(*state, runs, 96);
        for (uint32_t i = 0; i < 96; i++)
                run_equals(&runs[i], 4, i % 3 ? "0\n" : "10000\n", "");
}

/* --- arguments ------------------------------------------------------------------------------------ */

static int status_of(char *const args[]) {
        char agent[256];
        pid_t pid = fork();
        int status = 0;

        rig_agent_path(agent, sizeof(agent));
        if (pid == 0) {
                rig_need(unshare(CLONE_NEWPID) == 0, "unshare");
                pid = fork();
                if (pid == 0) {
                        execv(agent, args);
                        _exit(99);
                }
                waitpid(pid, &status, 0);
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
        }
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void arguments(void **state) {
        static const char *const bad[][12] = {
                { "0", "0", "1900000000", "9", "1" },
                { "0", "0", "0", "0", "1", "0000000000000000" },
                { "0", "0", "1900000000", "9", "1", "000000000000000B" },
                { "0", "0", "1900000000", "9", "1", "b" },
                { "0", "0", "1900000000", "9", "1", "00000000000000c0" }, /* SETGID, SETUID */
                { "0", "0", "1900000000", "9", "1", "0000000000000020" }, /* KILL */
                { "0", "0", "1900000000", "9", "1", "0000000000200000" }, /* SYS_ADMIN */
                { "0", "0", "1900000000", "9", "1", "000000000000000b", "1" },
                { "0", "0", "1900000000", "9", "1", "000000000000000b", "1:" },
                { "0", "0", "1900000000", "9", "1", "000000000000000b", ":1" },
                { "0", "0", "1900000000", "9", "1", "000000000000000b", "1:2:3" },
                { "0", "0", "1900000000", "9", "1", "000000000000000b", "1:2 " },
                { "0", "0", "1900000000", "9", "1", "000000000000000b", "1:4294967296" },
                { "0", "0", "1900000000", "9", "1", "000000000000000b", "-1:2" },
        };
        char *nine[17] = { (char *)"agent",           (char *)"0", (char *)"0",
                           (char *)"1900000000",      (char *)"9", (char *)"1",
                           (char *)"000000000000000b" };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                char *args[14] = { (char *)"agent" };

                for (size_t k = 0; k < 12; k++)
                        args[k + 1] = (char *)bad[i][k];
                assert_int_equal(status_of(args), 64);
        }
        for (size_t k = 7; k < 16; k++)
                nine[k] = (char *)"1:2";
        assert_int_equal(status_of(nine), 64);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(identity),
                CASE(nobody_else),
                cmocka_unit_test_setup_teardown(several_users, begin_several, end),
                CASE(what_it_may),
                CASE(what_it_may_not),
                CASE(agent_is_out_of_reach),
                CASE(kills_all),
                CASE(stops_children),
                CASE(kills_children),
                CASE(meddles_with_children),
                CASE(trees),
                CASE(many),
                cmocka_unit_test(arguments),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
