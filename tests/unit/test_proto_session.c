/* Payloads of terminals, questions and what nobody is attached to: as in test_proto.c. */
#include "protocheck.h"

#include "common/proto_session.h"

static void resize(void **state) {
        struct resize r = { 24, 80 }, g;

        (void)state;
        resize_encode(&r, buf);
        refuses_other_lengths(resize_decode, RESIZE_SIZE, &g);
        assert_int_equal(resize_decode(buf, RESIZE_SIZE, &g), 0);
        assert_true(g.rows == 24 && g.cols == 80);
}

static void ask(void **state) {
        struct ask a = { .op = ASK_SESSION_STOP,
                         .form = ANSWER_RECORDS,
                         .name = "work",
                         .profile = "dev",
                         .grace_ms = 60000,
                         .n_labels = 2,
                         .labels = { "task=1", "empty=" } },
                   g;
        ssize_t n = ask_encode(&a, buf, sizeof(buf));

        (void)state;
        needs_room(ask_encode, &a, n);
        refuses_other_lengths(ask_decode, n, &g);
        assert_int_equal(ask_decode(buf, (size_t)n, &g), 0);
        assert_true(g.op == ASK_SESSION_STOP && g.form == ANSWER_RECORDS && !g.all && g.signal == 0);
        assert_string_equal(g.name, "work");
        assert_string_equal(g.profile, "dev");
        assert_int_equal(g.grace_ms, 60000);
        assert_int_equal(g.n_labels, 2);
        assert_string_equal(g.labels[0], "task=1");
        assert_string_equal(g.labels[1], "empty=");
        a.labels[1] = "=no name";
        n = ask_encode(&a, buf, sizeof(buf));
        assert_int_equal(ask_decode(buf, (size_t)n, &g), -EPROTO);
        a.n_labels = 0;
        a.signal = 65;
        n = ask_encode(&a, buf, sizeof(buf));
        assert_int_equal(ask_decode(buf, (size_t)n, &g), -EPROTO);
        a.signal = 0;
        a.form = ANSWER_FORMS;
        n = ask_encode(&a, buf, sizeof(buf));
        assert_int_equal(ask_decode(buf, (size_t)n, &g), -EPROTO);
}

static void attach(void **state) {
        struct attach a = { "0123456789abcdef", true, { 5, ATTACH_END } }, g;
        struct attach_order o = { 7, false, { 1, 2 } }, p;
        struct attached d = { { 3, 4 } }, e;
        ssize_t n = attach_encode(&a, buf, sizeof(buf));

        (void)state;
        needs_room(attach_encode, &a, n);
        refuses_other_lengths(attach_decode, n, &g);
        assert_int_equal(attach_decode(buf, (size_t)n, &g), 0);
        assert_string_equal(g.exec_id, a.exec_id);
        assert_true(g.output && g.offset[0] == 5 && g.offset[1] == ATTACH_END);
        n = attach_order_encode(&o, buf, sizeof(buf));
        needs_room(attach_order_encode, &o, n);
        refuses_other_lengths(attach_order_decode, n, &p);
        assert_int_equal(attach_order_decode(buf, (size_t)n, &p), 0);
        assert_true(p.target == 7 && !p.output && p.offset[0] == 1 && p.offset[1] == 2);
        attached_encode(&d, buf);
        refuses_other_lengths(attached_decode, ATTACHED_SIZE, &e);
        assert_int_equal(attached_decode(buf, ATTACHED_SIZE, &e), 0);
        assert_true(e.from[0] == 3 && e.from[1] == 4);
}

static void held(void **state) {
        static struct held h, g;
        ssize_t n;

        (void)state;
        h.n = PROTO_HELD_MAX;
        for (unsigned i = 0; i < PROTO_HELD_MAX; i++) {
                h.of[i].exec_id = "0123456789abcdef";
                h.of[i].channel = i;
                h.of[i].ended = i % 2;
        }
        n = held_encode(&h, buf, sizeof(buf));
        assert_in_range(n, 1, 8192); /* its bound as a frame */
        needs_room(held_encode, &h, n);
        refuses_other_lengths(held_decode, n, &g);
        assert_int_equal(held_decode(buf, (size_t)n, &g), 0);
        assert_int_equal(g.n, PROTO_HELD_MAX);
        assert_true(g.of[3].channel == 3 && g.of[3].ended && !g.of[4].ended);
        h.n = PROTO_HELD_MAX + 1;
        buf[0]++;
        assert_int_equal(held_decode(buf, (size_t)n, &g), -EPROTO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(resize),
                cmocka_unit_test(ask),
                cmocka_unit_test(attach),
                cmocka_unit_test(held),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
