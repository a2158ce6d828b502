/* HALT: all processes end and all files stay, whatever the processes are and do. */
#include <dirent.h>

#include "agentrun.h"

static struct rig rig;

static int begin_with(void **state, struct rig how) {
        *state = &rig;
        rig = how;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int begin(void **state) {
        return begin_with(state, (struct rig){ 0 });
}

static int begin_root(void **state) {
        return begin_with(state, (struct rig){ .sealed = true, .root = true });
}

static int begin_same(void **state) {
        return begin_with(state, (struct rig){ .as = 12345 });
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static const struct exec_order session = { .exec_id = "00000000000000aa" },
                               detached = { .detached = true, .exec_id = "00000000000000dd" };

static void halt(struct rig *r, uint32_t grace_ms) {
        uint8_t buf[4];
        struct wire_out out;

        wire_out_init(&out, buf, sizeof(buf));
        wire_put_u32(&out, grace_ms);
        rig_send(r, FRAME_HALT, 0, 0, buf, sizeof(buf));
}

static uint32_t count_of(const struct frame *f) {
        struct wire_in in;
        uint32_t n;

        assert_int_equal(f->channel, 0);
        wire_in_init(&in, f->payload, f->len);
        n = wire_get_u32(&in);
        assert_true(wire_in_done(&in));
        return n;
}

/* Collects for @runs until HALTED, before which all of them have ended. */
static uint32_t halted(struct rig *r, struct run *runs, size_t n) {
        struct frame f;

        for (;;) {
                rig_next(r, &f);
                if (f.type == FRAME_HALTED)
                        break;
                rig_take(r, &f, runs, n);
        }
        for (size_t i = 0; i < n; i++)
                assert_true(runs[i].ended);
        return count_of(&f);
}

static struct run run_in(struct rig *r, uint32_t channel, const char *script) {
        struct run x = { .channel = channel };

        rig_sh(r, channel, session, script);
        rig_collect(r, &x, 1);
        return x;
}

/* The agent and who looks: nobody else. A spare may be there. */
static void alone(struct rig *r) {
        struct run x = run_in(r, 99, "ps -eo args= | grep -vc '/[a]gent \\|^ps \\|^grep \\|^sh '");

        run_equals(&x, 1, "0\n", "");
}

/* --- who ends, and how ----------------------------------------------------------------------------- */

static void nothing_runs_there(void **state) {
        struct rig *r = *state;
        struct run x;

        for (uint32_t i = 0; i < 3; i++) {
                uint64_t begun = now_ms();

                halt(r, 10000);
                assert_int_equal(halted(r, NULL, 0), 0);
                assert_true(now_ms() - begun < 5000);
                x = run_in(r, i, "echo on");
                run_equals(&x, 0, "on\n", "");
        }
}

/* Those that heed TERM end by it, at once, with what they have to say. */
static void heeds_term(void **state) {
        struct rig *r = *state;
        struct run runs[] = { { .channel = 1 }, { .channel = 2 } };
        uint64_t begun = now_ms();

        start_ready(
                r, 1, session,
                "trap 'echo bye; exit 7' TERM; echo ready; exec 2>/dev/null; while :; do sleep 0.01; done");
        start_ready(r, 2, session, "echo kept >/tmp/f; echo ready; exec sleep 300");
        halt(r, 20000);
        assert_true(halted(r, runs, 2) >= 2);
        assert_true(now_ms() - begun < 10000);
        assert_int_equal(runs[1].end.cause, CAUSE_SIGNALED);
        assert_int_equal(runs[1].end.code, SIGTERM);
        run_equals(&runs[0], 7, "bye\n", "");
        run_done(&runs[1]);
        alone(r);
        runs[0] = run_in(r, 3, "cat /tmp/f");
        run_equals(&runs[0], 0, "kept\n", "");
}

/* Sessions of their own, what an ended command left, a stopped one, one on a terminal: after the grace time, all. */
static void the_stubborn(void **state) {
        struct rig *r = *state;
        struct run x, runs[] = { { .channel = 2 }, { .channel = 3 } };
        uint64_t begun;

        x = run_in(r, 1,
                   "trap '' TERM; setsid sleep 400 >/dev/null 2>&1 & trap '' TERM;"
                   "(sleep 401 & kill -STOP $!) >/dev/null 2>&1");
        run_done(&x);
        start_ready(r, 2, session,
                    "trap '' TERM; (setsid sleep 300 &); echo ready; sleep 301; sleep 302; :");
        start_ready(r, 3,
                    (struct exec_order){ .tty = true,
                                         .use_stdin = true,
                                         .rows = 9,
                                         .cols = 8,
                                         .exec_id = "00000000000000ab" },
                    "trap '' TERM HUP; echo ready; sleep 303; sleep 304; :");
        begun = now_ms();
        halt(r, 300);
        /* Two that were left, and sh with its sleeps: those that have begun. */
        assert_in_range(halted(r, runs, 2), 4, 8);
        assert_in_range(now_ms() - begun, 300, 10000);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(runs[i].end.cause, CAUSE_SIGNALED);
                assert_int_equal(runs[i].end.code, SIGKILL);
                assert_int_equal(runs[i].end.background_left, 0);
                run_done(&runs[i]);
        }
        alone(r);
}

/* Their ends and what they wrote stay for whoever asks. */
static void of_detached_ones(void **state) {
        struct rig *r = *state;
        struct attach_order o = { .target = 5, .output = true };
        struct run runs[] = { { .channel = 5 } }, reader = { .channel = 6 };
        uint8_t buf[64];
        struct frame f;

        rig_sh(r, 5, detached,
               "trap 'echo bye; exit 9' TERM; exec 2>/dev/null; touch /tmp/ready; while :; do sleep 0.01; done");
        reader = run_in(r, 7, "until [ -e /tmp/ready ]; do sleep 0.01; done");
        run_done(&reader);
        halt(r, 20000);
        assert_true(halted(r, runs, 1) >= 1);
        assert_int_equal(runs[0].end.code, 9);
        reader.channel = 6;
        rig_send(r, FRAME_ATTACH, 0, 6, buf, (size_t)attach_order_encode(&o, buf, sizeof(buf)));
        rig_next(r, &f);
        assert_int_equal(f.type, FRAME_ATTACHED);
        rig_collect(r, &reader, 1);
        run_equals(&reader, 9, "bye\n", "");
        close(r->fd);
        rig_accept(r);
        assert_int_equal(r->n_held, 1);
        assert_true(r->held[0].ended);
        assert_int_equal(wait_exited(r, 5).code, 9);
}

static void without_grace(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };
        uint64_t begun;

        start_ready(r, 1, session,
                    "trap 'exit 3' TERM; kill -STOP 0 & echo ready; while :; do sleep 1; done");
        begun = now_ms();
        halt(r, 0);
        assert_true(halted(r, &x, 1) >= 1);
        assert_true(now_ms() - begun < 5000);
        run_done(&x);
        alone(r);
}

/* Chains and trees of forks that nobody outruns. */
static void fork_bombs(void **state) {
        static const char *const bombs[] = {
                "exec python3 -c 'import os\n"
                "print(\"ready\", flush=True)\n"
                "while True:\n"
                " if os.fork() > 0: os._exit(0)\n"
                " os.setsid()'",
                "ulimit -u 200 2>/dev/null; exec python3 -c 'import os, signal\n"
                "signal.signal(15, signal.SIG_IGN)\n"
                "print(\"ready\", flush=True)\n"
                "for i in range(7): os.fork()\n"
                "while True:\n"
                " try:\n"
                "  p = os.fork()\n"
                "  if p == 0: os._exit(0)\n"
                "  os.waitpid(p, 0)\n"
                " except OSError: pass'",
        };
        struct rig *r = *state;

        for (uint32_t i = 0; i < 2; i++) {
                struct frame f;
                uint64_t begun;

                start_ready(r, i, session, bombs[i]);
                begun = now_ms();
                halt(r, 100);
                /* The first one's main process may have ended before. */
                do
                        rig_next(r, &f);
                while (f.type != FRAME_HALTED);
                assert_true(count_of(&f) >= 1);
                assert_true(now_ms() - begun < 10000);
                alone(r);
        }
}

/* --- the order of things --------------------------------------------------------------------------- */

/* The grace time of the second counts where it is shorter, and each has an answer. */
static void a_second_one(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };

        for (int i = 0; i < 2; i++) {
                uint64_t begun;

                x = (struct run){ .channel = 1 };
                start_ready(r, 1, session, "trap '' TERM; echo ready; sleep 300; sleep 301; :");
                begun = now_ms();
                halt(r, i ? 200 : 60000);
                halt(r, i ? 60000 : 200);
                assert_true(halted(r, &x, 1) >= 1);
                assert_in_range(now_ms() - begun, 200, 10000);
                halted(r, &x, 1);
                run_done(&x);
                says_nothing(r);
        }
}

/* Whose caller takes nothing holds up nobody for long, and has its output and its end when it does. */
static void deaf_caller(void **state) {
        struct rig *r = *state;
        uint64_t begun, bytes = 0;
        struct frame f;
        bool over = false;

        rig_sh(r, 1, session, "exec yes");
        while (bytes < FRAME_CREDIT) {
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_STDOUT);
                bytes += f.len;
        }
        begun = now_ms();
        halt(r, 5000);
        rig_next(r, &f);
        assert_int_equal(f.type, FRAME_HALTED);
        assert_int_equal(count_of(&f), 1);
        assert_true(now_ms() - begun < 5000);
        rig_grant(r, 1, STREAM_STDOUT, FRAME_CREDIT);
        while (!over) {
                rig_next(r, &f);
                over = f.type == FRAME_EXITED;
        }
}

/* The second has crossed with the first's answer, and a command follows: all of it in one piece. */
static void crossed(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };
        struct frame f;

        for (int i = 0; i < 3; i++) {
                halt(r, 1000);
                halt(r, 0);
                rig_sh(r, 1, session, "exit 6");
                for (int k = 0; k < 2; k++) {
                        rig_next(r, &f);
                        assert_int_equal(f.type, FRAME_HALTED);
                        assert_int_equal(count_of(&f), 0);
                }
                rig_collect(r, &x, 1);
                run_equals(&x, 6, "", "");
        }
}

static void breaks_off(struct rig *r) {
        struct frame f;

        while (rig_try_next(r, &f))
                assert_int_not_equal(f.type, FRAME_HALTED);
        close(r->fd);
        rig_accept(r);
}

/* A command that comes before HALTED, one with a wrong channel or length, and one between a command and its scrub. */
static void against_the_rules(void **state) {
        struct rig *r = *state;

        start_ready(r, 1, session, "trap '' TERM; echo ready; sleep 300; sleep 301; :");
        halt(r, 60000);
        rig_sh(r, 2, session, ":");
        breaks_off(r);
        alone(r); /* without further grace */
        rig_send(r, FRAME_HALT, 0, 1, "\0\0\0\0", 4);
        breaks_off(r);
        rig_send(r, FRAME_HALT, 0, 0, "\0\0\0", 3);
        breaks_off(r);
}

static void manager_goes(void **state) {
        struct rig *r = *state;
        struct run x;

        rig_sh(r, 2, detached, "trap '' TERM; touch /tmp/ready; sleep 302; sleep 303; :");
        x = run_in(r, 3, "until [ -e /tmp/ready ]; do sleep 0.01; done");
        run_done(&x);
        start_ready(r, 1, session, "trap '' TERM; echo ready; sleep 300; sleep 301; :");
        halt(r, 60000);
        close(r->fd);
        rig_accept(r);
        assert_int_equal(r->n_held, 1);
        assert_int_equal(wait_exited(r, 2).code, SIGKILL);
        alone(r);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define ROOT(f) \
        { #f " as root", f, begin_root, end, NULL }
#define SAME(f) \
        { #f " as the agent", f, begin_same, end, NULL }

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(nothing_runs_there), CASE(heeds_term),    CASE(the_stubborn),
                CASE(of_detached_ones),   CASE(without_grace), CASE(fork_bombs),
                CASE(a_second_one),       CASE(crossed),       CASE(deaf_caller),
                CASE(against_the_rules),  CASE(manager_goes),  ROOT(the_stubborn),
                ROOT(fork_bombs),         ROOT(heeds_term),    SAME(the_stubborn),
                SAME(fork_bombs),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
