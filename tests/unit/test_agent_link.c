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

static void manager_goes(void **state) {
        struct rig *r = *state;
        struct run x;

        start_ready(r, 2, (struct exec_order){ 0 },
                    "echo ready; while sleep 0.01; do :; done; echo kept");
        start_ready(r, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM HUP; echo ready; setsid sleep 405 & yes");
        close(r->fd);
        rig_accept(r);
        x = rig_run(r, 1,
                    "ps -eo args= | grep -cE '^(yes|sleep 405)'; ps -eo args= | grep -q '[e]cho kept'");
        run_equals(&x, 0, "0\n", ""); /* a session's command goes on */
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
                CASE(violations),   CASE(stdin_overrun), CASE(order_too_large),
                CASE(manager_goes), CASE(bye),           cmocka_unit_test(nobody_listens),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
