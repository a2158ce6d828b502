/* A real agent between two commands: EXITED, then the scrub, then SCRUBBED; exactly one of each, and nothing
 * in between. What the scrub removes stands in test_scrub.c. */
#include "agentrun.h"

static struct rig rig = { .sealed = true };

static const struct exec_order scrubbing = { .one_shot = true, .scrub = true };

static int begin(void **state) {
        *state = &rig;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

/* The very next frame. */
static struct scrubbed next_scrubbed(struct rig *r, uint32_t channel) {
        struct scrubbed s;
        struct frame f;

        rig_next(r, &f);
        assert_int_equal(f.type, FRAME_SCRUBBED);
        assert_int_equal(f.channel, channel);
        assert_int_equal(scrubbed_decode(f.payload, f.len, &s), 0);
        assert_int_equal(s.check, SCRUB_CLEAN);
        assert_string_equal(s.place, "");
        return s;
}

static bool run_scrubbed(struct rig *r, uint32_t channel, const char *script, int code,
                         const char *out) {
        struct run x = { .channel = channel };

        rig_sh(r, channel, scrubbing, script);
        rig_collect(r, &x, 1);
        run_equals(&x, code, out, "");
        return next_scrubbed(r, channel).emptied;
}

static void clean(void **state) {
        struct rig *r = *state;

        assert_non_null(strstr(r->hello, "\nscrub=yes\n"));
        for (uint32_t i = 0; i < 20; i++)
                assert_false(run_scrubbed(r, i, "echo hi; exit 3", 3, "hi\n"));
        says_nothing(r);
}

static void something_left(void **state) {
        struct rig *r = *state;

        for (uint32_t i = 0; i < 5; i++) {
                assert_true(run_scrubbed(r, i,
                                         "echo x >/tmp/canary; mkdir /dev/shm/d; ls -A /tmp /dev/shm", 0,
                                         "/dev/shm:\nd\n\n/tmp:\ncanary\n"));
                assert_false(run_scrubbed(r, i, "ls -A /tmp /dev/shm", 0, "/dev/shm:\n\n/tmp:\n"));
        }
        assert_true(run_scrubbed(r, 9, "(setsid sleep 300 &) ; echo y >/tmp/f; sleep 301 & echo bye", 0,
                                 "bye\n"));
        assert_false(run_scrubbed(r, 9, "ps -eo args= | grep -c '^[s]leep'", 1, "0\n"));
        says_nothing(r);
}

/* The commands that never ran, were ended, or ran into a limit. */
static void other_ends(void **state) {
        const char *const none[] = { "/no/such", NULL };
        struct exec_order o = scrubbing;
        struct rig *r = *state;
        struct exited e;

        rig_order(r, 1, o, none, NULL);
        e = wait_exited(r, 1);
        assert_int_equal(e.cause, CAUSE_NOT_FOUND);
        assert_false(next_scrubbed(r, 1).emptied);
        start_ready(r, 2, o, "trap '' TERM; echo x >/tmp/x; echo ready; sleep 300 & sleep 301; :");
        rig_send(r, FRAME_CANCEL, 0, 2, NULL, 0);
        e = wait_exited(r, 2);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        assert_true(next_scrubbed(r, 2).emptied);
        o.timeout_ms = 100;
        rig_sh(r, 3, o, "sleep 300 & sleep 301; :");
        e = wait_exited(r, 3);
        assert_int_equal(e.cause, CAUSE_TIMEOUT);
        next_scrubbed(r, 3);
        o.timeout_ms = 0;
        o.output_bytes = 10;
        rig_sh(r, 4, o, "head -c 1000000 /dev/zero");
        e = wait_exited(r, 4);
        assert_true(e.truncated);
        next_scrubbed(r, 4);
        says_nothing(r);
}

/* Output that waits for credit holds EXITED, and so the scrub. */
static void output_waits(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };
        struct frame f;

        rig_sh(r, 1, scrubbing, "head -c 300000 /dev/zero");
        for (size_t n = 0; n < FRAME_CREDIT; n += f.len) {
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_STDOUT);
        }
        says_nothing(r);
        rig_grant(r, 1, STREAM_STDOUT, 100000);
        rig_collect(r, &x, 1);
        assert_int_equal(x.len[0], 300000 - FRAME_CREDIT);
        run_done(&x);
        next_scrubbed(r, 1);
        says_nothing(r);
}

/* Sessions are not scrubbed; what they leave is what a later scrub removes. */
static void sessions(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };

        rig_sh(r, 1, (struct exec_order){ 0 }, "echo x >/tmp/kept; sleep 300 >/dev/null 2>&1 & echo hi");
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "hi\n", "");
        says_nothing(r);
        x = (struct run){ .channel = 2 };
        rig_sh(r, 2, (struct exec_order){ 0 }, "cat /tmp/kept; until pgrep -c sleep; do :; done");
        rig_collect(r, &x, 1);
        assert_int_equal(x.end.code, 0);
        assert_non_null(x.out[0]);
        assert_memory_equal(x.out[0], "x\n",
                            2); /* then noughts, until the shell in the background has exec'd */
        run_done(&x);
        assert_true(run_scrubbed(r, 3, "cat /tmp/kept", 0, "x\n"));
        assert_false(run_scrubbed(r, 3, "ls /tmp", 0, ""));
        says_nothing(r);
}

static void closed_and_again(struct rig *r) {
        struct frame f;

        while (rig_try_next(r, &f))
                assert_int_not_equal(f.type, FRAME_SCRUBBED);
        close(r->fd);
        rig_accept(r);
        says_nothing(r);
}

/* Whoever is scrubbed is alone, from the order to SCRUBBED. */
static void violations(void **state) {
        struct rig *r = *state;

        start_ready(r, 1, (struct exec_order){ .one_shot = true }, "echo ready; sleep 400; :");
        rig_sh(r, 2, scrubbing, ":");
        closed_and_again(r);
        start_ready(r, 1, scrubbing, "echo ready; sleep 401; :");
        rig_sh(r, 2, (struct exec_order){ 0 }, ":");
        closed_and_again(r);
        start_ready(r, 1, scrubbing, "echo ready; sleep 402; :");
        rig_sh(r, 2, scrubbing, ":");
        closed_and_again(r);
        nothing_runs(r);
        run_scrubbed(r, 1, "echo fine", 0, "fine\n");
}

/* Its command is ended; to the next manager nothing is said of it. */
static void manager_goes(void **state) {
        struct rig *r = *state;

        start_ready(r, 1, scrubbing, "trap '' HUP TERM; echo x >/tmp/left; echo ready; sleep 403; :");
        close(r->fd);
        rig_accept(r);
        says_nothing(r);
        nothing_runs(r);
        assert_true(run_scrubbed(r, 1, "cat /tmp/left", 0, "x\n"));
        says_nothing(r);
}

/* What said that it can never be proved clean is not asked for it. */
static void not_here(void **state) {
        static struct rig open;

        *state = &open;
        rig_start(&open, "10000");
        rig_accept(&open);
        assert_non_null(strstr(open.hello, "\nscrub=no: "));
        rig_sh(&open, 1, scrubbing, ":");
        closed_and_again(&open);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(clean),        CASE(something_left),
                CASE(other_ends),   CASE(output_waits),
                CASE(sessions),     CASE(violations),
                CASE(manager_goes), cmocka_unit_test_teardown(not_here, end),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
