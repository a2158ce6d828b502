/* How commands end under a real agent: time-outs, cancellation, signals, what outlives its main process. */
#include <dirent.h>

#include "agentrun.h"

static struct rig rig;

static int begin(void **state) {
        *state = &rig;
        rig.cgroup = NULL;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static void timeout_term(void **state) {
        struct run x = { .channel = 1 };
        uint64_t begun = now_ms();

        rig_sh(*state, 1, (struct exec_order){ .one_shot = true, .timeout_ms = 100, .grace_ms = 20000 },
               "trap 'echo bye; exit 3' TERM; sleep 100 & wait");
        rig_collect(*state, &x, 1);
        assert_true(now_ms() - begun >= 100 && now_ms() - begun < 15000);
        assert_int_equal(x.end.cause, CAUSE_TIMEOUT);
        assert_int_equal(x.end.code, 3);
        assert_string_equal(x.out[0], "bye\n");
        run_done(&x);
        nothing_runs(*state);
}

/* Cases 1, 2 and 16: children, grandchildren, setsid, double fork, all deaf for TERM. */
static void timeout_kill(void **state) {
        static const char script[] =
                "trap '' TERM; (setsid sh -c 'sleep 300; :' & sleep 301; :) & "
                "sh -c '(sh -c \"sleep 302; :\" &) ; sleep 303; :' & sleep 304; sleep 305; :";

        for (int one_shot = 0; one_shot < 2; one_shot++) {
                struct exited e;

                rig_sh(*state, 1,
                       (struct exec_order){ .one_shot = one_shot, .timeout_ms = 150, .grace_ms = 100 },
                       script);
                e = wait_exited(*state, 1);
                assert_int_equal(e.cause, CAUSE_TIMEOUT);
                assert_true(e.signaled);
                assert_int_equal(e.code, SIGKILL);
                nothing_runs(*state);
        }
}

/* No time-out, one without grace, and an end right before it. */
static void timeout_others(void **state) {
        struct exited e;
        struct run x;

        rig_sh(*state, 1, (struct exec_order){ .timeout_ms = 1, .one_shot = true }, "sleep 100; :");
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_TIMEOUT);
        assert_int_equal(e.code, SIGKILL);
        x = (struct run){ .channel = 2 };
        rig_sh(*state, 2, (struct exec_order){ .timeout_ms = UINT64_MAX / 2000, .one_shot = true },
               "exit 6");
        rig_collect(*state, &x, 1);
        run_equals(&x, 6, "", "");
}

static void signals(void **state) {
        struct exited e;

        start_ready(*state, 1, (struct exec_order){ .one_shot = true },
                    "trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done");
        rig_send(*state, FRAME_SIGNAL, 0, 1, "\x0a", 1);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_EXITED);
        assert_int_equal(e.code, 5);
        /* No shell: dash has a moment in which it loses a SIGINT. */
        rig_order(*state, 2, (struct exec_order){ .one_shot = true },
                  (const char *const[]){ "sleep", "100", NULL }, NULL);
        rig_send(*state, FRAME_SIGNAL, 0, 2, "\x02", 1);
        e = wait_exited(*state, 2);
        assert_int_equal(e.cause, CAUSE_SIGNALED);
        assert_int_equal(e.code, SIGINT);
        rig_sh(*state, 3, (struct exec_order){ .one_shot = true }, "kill -9 $$");
        e = wait_exited(*state, 3);
        assert_int_equal(e.cause, CAUSE_SIGNALED);
        assert_int_equal(e.code, SIGKILL);
}

static void cancel(void **state) {
        struct exited e;

        start_ready(*state, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM HUP INT; setsid sleep 300 & echo ready; sleep 301; :");
        rig_send(*state, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        nothing_runs(*state);
        /* Beside another command: only its own tree goes, one-shot or not. */
        for (int one_shot = 0; one_shot < 2; one_shot++) {
                start_ready(*state, 2, (struct exec_order){ .one_shot = one_shot },
                            "echo ready; while :; do sleep 0.01; [ -e /tmp/go ] && exit 8; done");
                start_ready(*state, 3, (struct exec_order){ .one_shot = one_shot },
                            "echo ready; (setsid sleep 302 &); sleep 303; :");
                rig_send(*state, FRAME_CANCEL, 0, 3, NULL, 0);
                e = wait_exited(*state, 3);
                assert_int_equal(e.cause, CAUSE_CANCELLED);
                rig_sh(*state, 4, (struct exec_order){ .one_shot = one_shot },
                       "ps -eo args= | grep -c '^sleep 30'; touch /tmp/go; :");
                struct run x[2] = { { .channel = 2 }, { .channel = 4 } };
                rig_collect(*state, x, 2);
                assert_string_equal(x[1].out[0], "0\n");
                assert_int_equal(x[0].end.code, 8);
                run_done(&x[0]);
                run_done(&x[1]);
                x[0] = rig_run(*state, 5, "rm /tmp/go");
                run_done(&x[0]);
        }
}

/* The caller went away without having read: no credit will come, and none is waited for. */
static void cancel_without_credit(void **state) {
        struct exited e;
        struct frame f;
        size_t n = 0;

        rig_sh(*state, 1, (struct exec_order){ .one_shot = true }, "yes; :");
        while (n < FRAME_CREDIT) {
                rig_next(*state, &f);
                n += f.len;
        }
        rig_send(*state, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        /* The same once it has ended by itself, and only its output waits. */
        rig_sh(*state, 2, (struct exec_order){ .one_shot = true }, "head -c 300000 /dev/zero; exit 2");
        for (n = 0; n < FRAME_CREDIT; n += f.len)
                rig_next(*state, &f);
        poll(NULL, 0, 100);
        rig_send(*state, FRAME_CANCEL, 0, 2, NULL, 0);
        wait_exited(*state, 2);
}

/* Case 3. A one-shot's background goes; a session's stays, and holds nobody. */
static void background(void **state) {
        uint64_t begun = now_ms();
        struct run x = rig_run(*state, 1, "sleep 100 & setsid sleep 101 & echo hi");

        assert_int_equal(x.end.background_left, 2);
        run_equals(&x, 0, "hi\n", "");
        nothing_runs(*state);
        x = (struct run){ .channel = 2 };
        rig_sh(*state, 2, (struct exec_order){ 0 },
               "(while :; do echo more; sleep 0.001; done) & head -c 100000 /dev/zero; echo last; exit 3");
        rig_collect(*state, &x, 1);
        assert_in_range(x.end.background_left, 1, 2); /* the loop, and its sleep */
        assert_int_equal(x.end.code, 3);
        assert_true(x.len[0] >= 100005);
        assert_true(now_ms() - begun < 20000);
        run_done(&x);
        x = (struct run){ .channel = 3 };
        rig_sh(*state, 3, (struct exec_order){ 0 }, "ps -eo args= | grep -c 'echo more'");
        rig_collect(*state, &x, 1);
        assert_string_equal(x.out[0], "2\n"); /* the loop, and grep itself */
        run_done(&x);
}

/* Case 7: orphans are reaped, and their ends are nobody's status. */
static void double_forks(void **state) {
        struct run x = { .channel = 1 }, y;

        rig_sh(*state, 1, (struct exec_order){ 0 },
               "i=0; while [ $i -lt 1000 ]; do (true &) ; i=$((i+1)); done; exit 42");
        rig_collect(*state, &x, 1);
        run_equals(&x, 42, "", "");
        y = rig_run(*state, 2, "ps -eo stat= | grep -c Z");
        run_equals(&y, 1, "0\n", "");
}

static size_t agent_fds(const struct rig *r) {
        char path[64];
        size_t n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)r->agent);
        d = opendir(path);
        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* Between two commands, with everything ready for the next. */
static size_t idle_fds(struct rig *r) {
        says_nothing(r);
        says_nothing(r);
        return agent_fds(r);
}

static void no_descriptor_leaks(void **state) {
        const char *const none[] = { "/no/such", NULL };
        size_t before = 0;

        for (uint32_t i = 0; i < 200; i++) {
                struct run x = { .channel = i };

                if (i == 10)
                        before = idle_fds(*state);
                if (i % 3 == 0)
                        rig_order(*state, i, (struct exec_order){ .use_stdin = true, .one_shot = true },
                                  none, NULL);
                else if (i % 3 == 1)
                        rig_sh(*state, i, (struct exec_order){ .use_stdin = true, .one_shot = true },
                               "kill -9 $$");
                else
                        rig_sh(*state, i, (struct exec_order){ .use_stdin = true }, "exit 0");
                rig_collect(*state, &x, 1);
                run_done(&x);
        }
        assert_true(idle_fds(*state) <= before);
}

static void is_refused(struct rig *r, uint32_t channel) {
        struct exited e;
        struct frame f;

        do
                rig_next(r, &f);
        while (f.type == FRAME_STDOUT);
        assert_int_equal(f.type, FRAME_EXITED);
        assert_int_equal(f.channel, channel);
        assert_int_equal(exited_decode(f.payload, f.len, &e), 0);
        assert_int_equal(e.cause, CAUSE_PIDS_LIMIT);
        assert_int_equal(e.code, START_PLUMBING);
        assert_int_equal(e.error, EAGAIN);
}

static void more_than_slots(void **state) {
        for (uint32_t i = 0; i < 97; i++)
                rig_sh(*state, i, (struct exec_order){ .one_shot = true }, "sleep 100; :");
        is_refused(*state, 96);
}

/* The answer waits for room, as everything does. */
static void more_than_slots_and_no_room(void **state) {
        struct rig *r = *state;

        for (uint32_t i = 0; i < 96; i++)
                rig_sh(r, i, (struct exec_order){ 0 }, i < 8 ? "yes; :" : "sleep 100; :");
        poll(NULL, 0, 200); /* time in which the link fills up */
        for (uint32_t i = 0; i < 100; i++)
                rig_sh(r, 96 + i, (struct exec_order){ 0 }, "exit 1");
        for (uint32_t i = 0; i < 100; i++)
                is_refused(r, 96 + i);
        for (uint32_t i = 0; i < 96; i++)
                rig_send(r, FRAME_CANCEL, 0, i, NULL, 0);
        for (unsigned left = 96; left > 0;) {
                struct frame f;

                rig_next(r, &f);
                left -= f.type == FRAME_EXITED;
        }
        nothing_runs(r);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(timeout_term),
                CASE(timeout_kill),
                CASE(timeout_others),
                CASE(signals),
                CASE(cancel),
                CASE(cancel_without_credit),
                CASE(background),
                CASE(double_forks),
                CASE(no_descriptor_leaks),
                CASE(more_than_slots),
                CASE(more_than_slots_and_no_room),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
