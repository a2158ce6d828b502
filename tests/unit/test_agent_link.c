/* A real agent and its manager: violations of the protocol, a manager that goes and comes, BYE. */
#include "agentrun.h"

static struct rig rig;

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

static void violations(void **state) {
        static const uint8_t unknown[FRAME_HEADER] = { [8] = 200 },
                             foreign[FRAME_HEADER] = { [8] = FRAME_EXITED },
                             large[FRAME_HEADER] = { 1, 0, 1, 0, [8] = FRAME_STDIN },
                             reserved[FRAME_HEADER] = { [8] = FRAME_CANCEL, [10] = 1 };
        static const uint8_t *const bad[] = { unknown, foreign, large, reserved };
        struct rig *r = *state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                rig_sh(r, 1, (struct exec_order){ .one_shot = true }, "trap '' TERM HUP; sleep 400; :");
                rig_write(r, bad[i], FRAME_HEADER);
                comes_again(r);
        }
        rig_send(r, FRAME_EXEC, 0, 1, "nonsense", 8);
        comes_again(r);
        rig_send(r, FRAME_EXEC, FRAME_MORE, 1, "x", 1); /* two orders at once */
        rig_send(r, FRAME_EXEC, FRAME_MORE, 2, "x", 1);
        comes_again(r);
        rig_sh(r, 1, (struct exec_order){ .one_shot = true }, "sleep 401; :"); /* one channel for two */
        rig_sh(r, 1, (struct exec_order){ .one_shot = true }, "sleep 402; :");
        comes_again(r);
        rig_sh(r, 1, (struct exec_order){ .one_shot = true, .use_stdin = true }, "sleep 403; :");
        rig_send(r, FRAME_STDIN, FRAME_EOF, 1, NULL, 0); /* bytes behind the end */
        rig_send(r, FRAME_STDIN, 0, 1, "x", 1);
        comes_again(r);
        rig_grant(r, 1, STREAM_STDIN, 1);
        comes_again(r);
        rig_send(r, FRAME_SIGNAL, 0, 1, "\x41", 1);
        comes_again(r);
}

/* Stdin beyond the credit, for a command that does not read. */
static void stdin_overrun(void **state) {
        static uint8_t data[60000];
        struct rig *r = *state;

        rig_sh(r, 1, (struct exec_order){ .one_shot = true, .use_stdin = true }, "sleep 404; :");
        for (int i = 0; i < 9; i++) {
                uint8_t head[FRAME_HEADER];

                frame_put_header(head, FRAME_STDIN, 0, 1, sizeof(data));
                if (send(r->fd, head, sizeof(head), MSG_NOSIGNAL) < 0 ||
                    send(r->fd, data, sizeof(data), MSG_NOSIGNAL) < 0)
                        break;
        }
        comes_again(r);
}

/* A command may read the pipe that its output goes into. What it takes is missing, and no frame is torn. */
static void takes_from_itself(void **state) {
        struct rig *r = *state;
        struct run x = rig_run(
                r, 1,
                "{ head -c 20000000 /dev/zero & dd if=/proc/self/fd/1 of=/dev/null bs=10000 "
                "count=150 2>/dev/null; wait; }; echo end >&2");

        assert_int_equal(x.end.code, 0);
        assert_string_equal(x.out[1], "end\n");
        assert_true(x.len[0] > 0 && x.len[0] < 20000000);
        for (size_t i = 0; i < x.len[0]; i++)
                assert_int_equal(x.out[0][i], 0);
        run_done(&x);
        x = rig_run(r, 2, "echo next");
        run_equals(&x, 0, "next\n", "");
}

/* Floods in pieces of every size beside one that is none. Of packets (man 2 pipe, O_DIRECT) a reader may lose the
 * end; no frame is torn by them. */
static void floods(void **state) {
        struct rig *r = *state;
        struct run runs[] = { { .channel = 1 }, { .channel = 2 }, { .channel = 3 }, { .channel = 4 } };

        rig_sh(r, 1, (struct exec_order){ 0 }, "seq 1000000");
        rig_sh(r, 2, (struct exec_order){ 0 },
               "python3 -c 'import os\n"
               "for i in range(30000): os.write(1, bytes([i % 251]) * (i % 300 + 1))'");
        rig_sh(r, 3, (struct exec_order){ 0 }, "for i in 1 2 3 4 5; do echo $i; sleep 0.01; done");
        rig_sh(r, 4, (struct exec_order){ 0 },
               "python3 -c 'import fcntl, os\n"
               "fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT)\n"
               "for i in range(2000): os.write(1, bytes(4096)); os.write(1, bytes(i % 64 + 1))'");
        rig_collect(r, runs, 4);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(runs[i].end.code, 0);
        assert_int_equal(runs[0].len[0], 6888896);
        assert_string_equal(runs[0].out[0] + 6888896 - 15, "999999\n1000000\n");
        for (size_t i = 0, at = 0; i < 30000; i++)
                for (size_t k = 0; k <= i % 300; k++)
                        assert_int_equal((uint8_t)runs[1].out[0][at++], i % 251);
        assert_string_equal(runs[2].out[0], "1\n2\n3\n4\n5\n");
        assert_true(runs[3].len[0] > 0);
        for (size_t i = 0; i < 4; i++)
                run_done(&runs[i]);
}

static void order_too_large(void **state) {
        static uint8_t data[FRAME_PAYLOAD_MAX];
        struct rig *r = *state;

        for (unsigned i = 0; i <= PROTO_EXEC_MAX / sizeof(data); i++) {
                uint8_t head[FRAME_HEADER];

                frame_put_header(head, FRAME_EXEC, FRAME_MORE, 1, sizeof(data));
                if (send(r->fd, head, sizeof(head), MSG_NOSIGNAL) < 0 ||
                    send(r->fd, data, sizeof(data), MSG_NOSIGNAL) < 0)
                        break;
        }
        comes_again(r);
}

/* Whoever was attached goes; background jobs of commands that have ended, and detached commands, stay. */
static void manager_goes(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 5 };

        rig_sh(r, 5, (struct exec_order){ 0 }, "sleep 409 & exit 0");
        rig_collect(r, &x, 1);
        run_done(&x);
        start_ready(r, 2, (struct exec_order){ 0 },
                    "trap '' TERM HUP; echo ready; setsid sleep 407 & sleep 408; :");
        start_ready(r, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM HUP; echo ready; setsid sleep 405 & yes");
        rig_sh(r, 3, (struct exec_order){ .detached = true }, "sleep 410; :");
        close(r->fd);
        rig_accept(r);
        assert_int_equal(r->n_held, 1);
        assert_int_equal(r->held[0].channel, 3);
        assert_false(r->held[0].ended);
        x = rig_run(r, 1, "ps -eo args= | grep -E '^(yes|sleep)' | sort");
        run_equals(&x, 0, "sleep 409\nsleep 410\n", "");
}

static void bye(void **state) {
        struct rig *r = *state;

        start_ready(r, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM; echo ready; sleep 406; :");
        rig_send(r, FRAME_BYE, 0, 0, NULL, 0);
        assert_int_equal(rig_status(r), 0);
}

static void nobody_listens(void **state) {
        struct rig *r = &rig;

        (void)state;
        r->cgroup = NULL;
        /* Several times: the end may come with the HELLO, before it, or behind it. */
        for (int i = 0; i < 8; i++) {
                rig_start(r, "100");
                rig_accept(r);
                r->listen_fd = close_fd(r->listen_fd);
                r->fd = close_fd(r->fd);
                assert_int_equal(rig_status(r), 0);
                rig_stop(r);
        }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(takes_from_itself),
                CASE(floods),
                CASE(violations),
                CASE(stdin_overrun),
                CASE(order_too_large),
                CASE(manager_goes),
                CASE(bye),
                cmocka_unit_test(nobody_listens),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
