/* An agent that is nobody special: no root, no capability, and every command has its uid. */
#include <dirent.h>

#include "agentrun.h"

#define UID 12345

static struct rig rig;

static int begin(void **state) {
        *state = &rig;
        rig.as = UID;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static struct run session_run(struct rig *r, uint32_t channel, const char *id, const char *script) {
        struct run x = { .channel = channel };

        rig_sh(r, channel, (struct exec_order){ .exec_id = id }, script);
        rig_collect(r, &x, 1);
        return x;
}

static void identity(void **state) {
        struct run x;

        assert_non_null(strstr(rig.hello, "scrub=no: commands run as the agent itself\n"));
        for (uint32_t i = 0; i < 3; i++) {
                x = session_run(
                        *state, i, "00000000000000aa",
                        "id -u; id -g; id -G; echo $HERMES_SANDBOX_EXEC; grep -E '^(CapEff|NoNewPrivs):' "
                        "/proc/self/status | tr -d '\t'; cat /proc/self/oom_score_adj");
                run_equals(
                        &x, 0,
                        "12345\n12345\n12345\n00000000000000aa\nCapEff:0000000000000000\nNoNewPrivs:1\n1000\n",
                        "");
        }
        /* Nobody else names it. */
        rig_order(*state, 9, (struct exec_order){ .exec_id = "00000000000000bb" },
                  (const char *const[]){ "sh", "-c", "echo $HERMES_SANDBOX_EXEC", NULL },
                  (const char *const[]){ "HERMES_SANDBOX_EXEC=00000000000000aa", NULL });
        x = (struct run){ .channel = 9 };
        rig_collect(*state, &x, 1);
        run_equals(&x, 0, "00000000000000bb\n", "");
}

/* Commands of its own uid: they read nothing of it, trace nothing, and no signal reaches it. */
static void agent_is_out_of_reach(void **state) {
        struct run x = session_run(
                *state, 1, "00000000000000aa",
                "cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c; ls /proc/1/fd 2>/dev/null | wc -l;"
                "echo 1000 2>/dev/null >/proc/1/oom_score_adj;"
                "for s in $(seq 64); do kill -$s 1 2>/dev/null; done;"
                "python3 -c 'import ctypes\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "for request in 16, 0x4206: print(libc.ptrace(request, 1, 0, 0), ctypes.get_errno())'");

        run_equals(&x, 0, "0\n0\n-1 1\n-1 1\n", "");
        says_nothing(*state);
}

/* Sessions of their own, double forks, an environment that was wiped, and a stubborn one: gone, and nobody else. */
static void kills_its_tree_alone(void **state) {
        struct rig *r = *state;
        struct exited e;
        struct run x;

        start_ready(r, 1, (struct exec_order){ .exec_id = "00000000000000aa" },
                    "echo ready; sleep 400; :");
        x = session_run(r, 2, "00000000000000ab",
                        "sleep 401 & setsid sleep 402 & env -i sleep 403 & exit 3");
        assert_int_equal(x.end.background_left, 3);
        run_done(&x);
        start_ready(
                r, 3, (struct exec_order){ .exec_id = "00000000000000ac" },
                "trap '' TERM HUP INT; (setsid sleep 300 &); env -i setsid sh -c 'sleep 301; :' & "
                "(env -i sleep 302 &); env -i setsid env -i sleep 303 & sleep 0.2; echo ready; sleep 304; :");
        rig_send(r, FRAME_CANCEL, 0, 3, NULL, 0);
        e = wait_exited(r, 3);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        x = session_run(r, 4, "00000000000000ad", "ps -eo args= | grep '^sleep' | sort | tr '\n' ' '");
        run_equals(&x, 0, "sleep 400 sleep 401 sleep 402 sleep 403 ", "");
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0);
        wait_exited(r, 1);
        x = session_run(r, 4, "00000000000000ad", "ps -eo args= | grep '^sleep' | sort | tr '\n' ' '");
        run_equals(&x, 0, "sleep 401 sleep 402 sleep 403 ", "");
}

static void times_out(void **state) {
        struct exited e;

        rig_sh(*state, 1, (struct exec_order){ .timeout_ms = 150, .grace_ms = 100 },
               "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 300; :' &); sleep 301; sleep 302; :");
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_TIMEOUT);
        assert_int_equal(e.code, SIGKILL);
        struct run x = session_run(*state, 2, "00000000000000ad", "ps -eo args= | grep -c '^sleep'");
        run_equals(&x, 1, "0\n", "");
}

/* Forks for as long as it lives, in new sessions. */
static void breeder(void **state) {
        struct exited e;

        start_ready(*state, 1, (struct exec_order){ 0 },
                    "exec python3 -c 'import os, time\n"
                    "print(\"ready\", flush=True)\n"
                    "while True:\n"
                    " if os.fork() > 0: time.sleep(0.01); os._exit(0)\n"
                    " os.setsid()'");
        e = wait_exited(*state, 1);
        assert_int_equal(e.code, 0);
        assert_true(e.background_left >= 1); /* each that the scan met */
        start_ready(*state, 2, (struct exec_order){ 0 },
                    "python3 -c 'import os, time\n"
                    "print(\"ready\", flush=True)\n"
                    "while True:\n"
                    " if os.fork() > 0: time.sleep(0.001); os._exit(0)\n"
                    " os.setsid()' & sleep 300; :");
        rig_send(*state, FRAME_CANCEL, 0, 2, NULL, 0);
        wait_exited(*state, 2);
        struct run x = session_run(*state, 3, "00000000000000ad",
                                   "ps -eo args= | grep -c 'sleep([0].001)'");
        run_equals(&x, 1, "0\n", "");
}

static void terminal_and_detached(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };

        rig_sh(r, 1, (struct exec_order){ .tty = true, .use_stdin = true, .rows = 9, .cols = 8 },
               "stat -c %u $(tty); stty size; ps -o tpgid= -p $$ | grep -c $$");
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "12345\r\n9 8\r\n1\r\n", "");
        rig_sh(r, 2, (struct exec_order){ .detached = true, .exec_id = "00000000000000ab" },
               "exec sleep 300");
        rig_sh(r, 3, (struct exec_order){ .exec_id = "00000000000000ac" }, "sleep 301; :");
        close(r->fd);
        rig_accept(r);
        assert_int_equal(r->n_held, 1);
        x = session_run(r, 4, "00000000000000ad", "ps -eo args= | grep '^sleep'");
        run_equals(&x, 0, "sleep 300\n", "");
        rig_order(r, 5, (struct exec_order){ .files = true }, (const char *const[]){ "?", NULL }, NULL);
        assert_int_equal(wait_exited(r, 5).code, 64);
}

/* What a scrub needs is not there: who orders one breaks the protocol. */
static void no_scrub(void **state) {
        struct rig *r = *state;
        struct frame f;

        rig_sh(r, 1, (struct exec_order){ .one_shot = true, .scrub = true }, ":");
        while (rig_try_next(r, &f))
                ;
        close(r->fd);
        rig_accept(r);
}

/* Arguments that give it what it cannot have, or commands what they must not. */
static void arguments(void **state) {
        static const char *const bad[][4] = { { "12345", "12345", "1", "5" },
                                              { "12346", "12345", "0", "0" },
                                              { "12345", "12346", "0", "0" },
                                              { "0", "12345", "0", "0" } };
        char agent[256];

        (void)state;
        rig_agent_path(agent, sizeof(agent));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                int status = 0;
                pid_t pid = fork();

                if (pid == 0) {
                        rig_need(unshare(CLONE_NEWPID) == 0, "unshare");
                        pid = fork();
                        if (pid == 0) {
                                rig_become(UID);
                                execl(agent, agent, bad[i][0], bad[i][1], bad[i][2], bad[i][3], "100",
                                      "0000000000000000", NULL);
                                _exit(99);
                        }
                        waitpid(pid, &status, 0);
                        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
                }
                waitpid(pid, &status, 0);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 64);
        }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(identity),
                CASE(agent_is_out_of_reach),
                CASE(kills_its_tree_alone),
                CASE(times_out),
                CASE(breeder),
                CASE(terminal_and_detached),
                CASE(no_scrub),
                cmocka_unit_test(arguments),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
