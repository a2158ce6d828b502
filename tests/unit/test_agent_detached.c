/* Detached commands under a real agent: what they write is kept, read, and jumped over; their ends; a manager that
 * goes and comes. */
#include "agentrun.h"

#define END UINT64_MAX

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

static void detach(struct rig *r, uint32_t channel, const char *script) {
        char id[PROTO_EXEC_ID + 1];

        snprintf(id, sizeof(id), "%016x", channel);
        rig_sh(r, channel, (struct exec_order){ .detached = true, .exec_id = id, .grace_ms = 100 },
               script);
}

static void attach(struct rig *r, uint32_t channel, struct attach_order o) {
        uint8_t buf[64];

        rig_send(r, FRAME_ATTACH, 0, channel, buf, (size_t)attach_order_encode(&o, buf, sizeof(buf)));
}

static struct attached next_attached(struct rig *r, uint32_t channel) {
        struct attached at;
        struct frame f;

        rig_next(r, &f);
        assert_int_equal(f.type, FRAME_ATTACHED);
        assert_int_equal(f.channel, channel);
        assert_int_equal(attached_decode(f.payload, f.len, &at), 0);
        return at;
}

/* All that a reader from these offsets gets, to the command's end. */
static struct run read_all(struct rig *r, uint32_t channel, uint32_t target, uint64_t out, uint64_t err,
                           uint64_t want_out, uint64_t want_err) {
        struct run x = { .channel = channel };
        struct attached at;

        attach(r, channel, (struct attach_order){ target, true, { out, err } });
        at = next_attached(r, channel);
        assert_int_equal(at.from[0], want_out);
        assert_int_equal(at.from[1], want_err);
        rig_collect(r, &x, 1);
        return x;
}

static void forget_exec(struct rig *r, uint32_t channel) {
        rig_send(r, FRAME_FORGET, 0, channel, NULL, 0);
}

static void is_unknown(struct rig *r, uint32_t channel, uint32_t target) {
        struct exited e;

        attach(r, channel, (struct attach_order){ target, true, { 0, 0 } });
        e = wait_exited(r, channel);
        assert_int_equal(e.cause, CAUSE_NOT_FOUND);
        assert_int_equal(e.code, START_PLUMBING);
        assert_int_equal(e.error, ENOENT);
}

static void kept_until_forgotten(void **state) {
        struct rig *r = *state;
        struct exited e;
        struct run x;

        detach(r, 1, "echo one; echo two >&2; echo three; exit 5");
        e = wait_exited(r, 1); /* unasked, and without a byte of the output */
        assert_int_equal(e.cause, CAUSE_EXITED);
        assert_int_equal(e.code, 5);
        assert_false(e.truncated);
        assert_int_equal(e.dropped_bytes[0], 10);
        assert_int_equal(e.dropped_lines[0], 2);
        assert_int_equal(e.dropped_bytes[1], 4);
        for (int i = 0; i < 2; i++) {
                x = read_all(r, 2, 1, 0, 0, 0, 0);
                run_equals(&x, 5, "one\nthree\n", "two\n");
        }
        x = read_all(r, 3, 1, 4, END, 4, 4);
        run_equals(&x, 5, "three\n", "");
        x = read_all(r, 3, 1, 1000, 1000, 10, 4);
        run_equals(&x, 5, "", "");
        attach(r, 3, (struct attach_order){ .target = 1 }); /* only the end */
        e = wait_exited(r, 3);
        assert_int_equal(e.code, 5);
        forget_exec(r, 1);
        is_unknown(r, 4, 1);
        forget_exec(r, 1);
        says_nothing(r);
        is_unknown(r, 4, 99);
        rig_sh(r, 5, (struct exec_order){ 0 }, "sleep 0.2");
        is_unknown(r, 6, 5); /* attached itself */
        wait_exited(r, 5);
        nothing_runs(r);
}

static void what_cannot_start(void **state) {
        const char *const none[] = { "/no/such", NULL };
        struct exited e;

        rig_order(*state, 1, (struct exec_order){ .detached = true }, none, NULL);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_NOT_FOUND);
        attach(*state, 2, (struct attach_order){ .target = 1 });
        e = wait_exited(*state, 2);
        assert_int_equal(e.error, ENOENT);
}

/* Several at once see all of it as it comes; the command's own channel has nothing but the end. */
static void readers(void **state) {
        enum { N = 32 };
        static struct run runs[N + 2];
        struct rig *r = *state;
        struct exited e;
        struct run y;

        detach(r, 100, "until [ -e /tmp/go ]; do sleep 0.01; done; seq 20000; echo end >&2");
        for (uint32_t i = 0; i < N; i++) {
                runs[i] = (struct run){ .channel = i };
                attach(r, i, (struct attach_order){ 100, true, { 0, i % 2 ? END : 0 } });
        }
        for (uint32_t i = 0; i < N; i++)
                next_attached(r, i);
        runs[N] = (struct run){ .channel = 100 };
        attach(r, N, (struct attach_order){ 100, true, { 0, 0 } });
        e = wait_exited(r, N);
        assert_int_equal(e.cause, CAUSE_PIDS_LIMIT);
        assert_int_equal(e.error, EAGAIN);
        rig_sh(r, 101, (struct exec_order){ 0 }, "touch /tmp/go");
        runs[N + 1] = (struct run){ .channel = 101 };
        rig_collect(r, runs, N + 2);
        for (uint32_t i = 0; i < N; i++) {
                assert_int_equal(runs[i].len[0], 108894);
                assert_string_equal(runs[i].out[0] + 108894 - 12, "19999\n20000\n");
                assert_string_equal(runs[i].out[1], "end\n");
                run_done(&runs[i]);
        }
        assert_int_equal(runs[N].len[0] + runs[N].len[1], 0);
        run_done(&runs[N]);
        y = read_all(r, 1, 100, 108894 - 6, 0, 108894 - 6, 0);
        run_equals(&y, 0, "20000\n", "end\n");
}

/* CANCEL on a reader's channel ends the reader, and on the command's the command: its output stays. */
static void cancels(void **state) {
        struct rig *r = *state;
        struct frame f;
        struct exited e;
        struct run x;

        detach(r, 1,
               "trap '' TERM HUP; (setsid sleep 300 &); sleep 301 &"
               "until [ $(ps -eo args= | grep -c '^sleep 30') = 2 ]; do sleep 0.01; done; echo begun; wait; :");
        attach(r, 2, (struct attach_order){ 1, true, { 0, 0 } });
        next_attached(r, 2);
        rig_next(r, &f);
        assert_memory_equal(f.payload, "begun\n", 6);
        rig_send(r, FRAME_CANCEL, 0, 2, NULL, 0);
        rig_send(r, FRAME_CANCEL, 0, 3, NULL, 0); /* nobody's */
        x = (struct run){ .channel = 4 };
        rig_sh(r, 4, (struct exec_order){ 0 }, "ps -eo args= | grep -c '^sleep 30'");
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "2\n", "");
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(r, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        assert_int_equal(e.code, SIGKILL);
        x = read_all(r, 5, 1, 0, 0, 0, 0);
        assert_string_equal(x.out[0], "begun\n");
        assert_int_equal(x.end.cause, CAUSE_CANCELLED);
        run_done(&x);
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0); /* it has ended: nothing happens */
        says_nothing(r);
        nothing_runs(r);
}

/* Byte @i of the stream that `seq -f %07.0f 0 …` writes. */
static char expected(uint64_t i) {
        char line[16];

        snprintf(line, sizeof(line), "%07u\n", (unsigned)(i / 8));
        return line[i % 8];
}

/* The last 256 KiB stand, wherever the ring has its seam, and the command was not held up. */
static void ring_keeps_the_last(void **state) {
        static const unsigned lines[] = { 32767, 32768, 32769, 65536, 100003 };
        struct rig *r = *state;

        for (uint32_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                uint64_t total = lines[i] * 8, from = total > FRAME_CREDIT ? total - FRAME_CREDIT : 0;
                char script[64];
                struct exited e;
                struct run x;

                snprintf(script, sizeof(script), "seq -f %%07.0f 0 %u", lines[i] - 1);
                detach(r, i * 2, script);
                e = wait_exited(r, i * 2);
                assert_int_equal(e.dropped_bytes[0], total);
                assert_int_equal(e.dropped_lines[0], lines[i]);
                x = read_all(r, i * 2 + 1, i * 2, 0, 0, from, 0);
                assert_int_equal(x.len[0], total - from);
                for (uint64_t k = 0; k < x.len[0]; k++)
                        assert_int_equal(x.out[0][k], expected(from + k));
                run_done(&x);
        }
}

/* A reader that gives credit slower than the command writes is told what it missed, and gets every byte that
 * it is not told of. */
static void slow_reader_is_told(void **state) {
        struct rig *r = *state;
        uint64_t at = 0, left = 0, jumps = 0, lost = 0;
        struct attached to;
        struct frame f;

        detach(r, 1, "until [ -e /tmp/go ]; do sleep 0.01; done; seq -f %07.0f 0 299999");
        attach(r, 2, (struct attach_order){ 1, true, { 0, 0 } });
        to = next_attached(r, 2);
        assert_int_equal(to.from[0], 0);
        rig_sh(r, 3, (struct exec_order){ 0 }, "touch /tmp/go");
        for (;;) {
                rig_next(r, &f);
                if (f.channel == 2 && f.type == FRAME_EXITED)
                        break;
                if (f.channel != 2)
                        continue;
                if (f.type == FRAME_ATTACHED) {
                        assert_int_equal(attached_decode(f.payload, f.len, &to), 0);
                        assert_true(to.from[0] > at);
                        assert_int_equal(to.from[1], 0);
                        lost += to.from[0] - at;
                        at = to.from[0];
                        jumps++;
                        continue;
                }
                assert_int_equal(f.type, FRAME_STDOUT);
                for (uint64_t i = 0; i < f.len; i++)
                        assert_int_equal(f.payload[i], expected(at + i));
                at += f.len;
                left += f.len;
                /* All of the credit is gone: the command runs away meanwhile. */
                if (left == FRAME_CREDIT) {
                        poll(NULL, 0, 100);
                        rig_grant(r, 2, STREAM_STDOUT, FRAME_CREDIT);
                        left = 0;
                }
        }
        assert_int_equal(at, 2400000);
        assert_true(jumps >= 1 && jumps < 50 && lost > 0);
}

/* With a detached command that writes all the time, and nobody there. */
static void survives_its_manager(void **state) {
        struct rig *r = *state;
        struct frame f;
        struct run x;

        detach(r, 7,
               "until [ -e /tmp/go ]; do sleep 0.01; done; head -c 5000000 /dev/zero; echo over; exit 4");
        detach(r, 8, "echo ready; exec sleep 300");
        detach(r, 9, "exit 9");
        wait_exited(r, 9);
        attach(r, 10, (struct attach_order){ 8, true, { 0, 0 } });
        next_attached(r, 10);
        rig_next(r, &f);
        assert_int_equal(f.channel, 10);
        rig_sh(r, 11, (struct exec_order){ 0 }, "sleep 0.3; touch /tmp/go");
        wait_exited(r, 11);
        close(r->fd);
        rig_accept(r);
        /* It may have ended or not: who has not is told about later. */
        assert_int_equal(r->n_held, 3);
        for (unsigned i = 0; i < 3; i++) {
                uint32_t channel = r->held[i].channel;

                assert_in_range(channel, 7, 9);
                assert_int_equal(strtoul(r->held[i].exec_id, NULL, 16), channel);
                assert_true(channel == 7 || r->held[i].ended == (channel == 9));
        }
        struct run ends[] = { { .channel = 7 }, { .channel = 9 } };
        rig_collect(r, ends, 2);
        assert_int_equal(ends[0].end.code, 4);
        assert_int_equal(ends[0].end.dropped_bytes[0], 5000005);
        assert_int_equal(ends[1].end.code, 9);
        x = read_all(r, 20, 7, 5000000, 0, 5000000, 0);
        run_equals(&x, 4, "over\n", "");
        /* And once more: told again, but for what was forgotten. */
        forget_exec(r, 9);
        says_nothing(r);
        close(r->fd);
        rig_accept(r);
        assert_int_equal(r->n_held, 2);
        wait_exited(r, 7);
        rig_send(r, FRAME_CANCEL, 0, 8, NULL, 0);
        wait_exited(r, 8);
        nothing_runs(r);
}

/* An end that comes while nobody is there follows the next HELD. */
static void ends_while_alone(void **state) {
        struct rig *r = *state;
        struct exited e;

        detach(r, 1, "until [ -e /tmp/gone ]; do sleep 0.01; done; echo seen; exit 6");
        rig_sh(r, 2, (struct exec_order){ 0 },
               "setsid sh -c 'sleep 0.3; touch /tmp/gone; sleep 0.3' & :");
        wait_exited(r, 2);
        rig_listen(r, false);
        close(r->fd);
        poll(NULL, 0, 1000); /* the time in which it ends, and the agent finds nobody */
        rig_listen(r, true);
        rig_accept(r);
        assert_int_equal(r->n_held, 1);
        assert_true(r->held[0].ended);
        e = wait_exited(r, 1);
        assert_int_equal(e.code, 6);
        assert_int_equal(e.dropped_bytes[0], 5);
        assert_true(e.wall_us < 900000);
}

/* The one that ended first makes room for the next; not one that is read. */
static void oldest_makes_room(void **state) {
        struct rig *r = *state;
        struct run x;
        struct frame f;

        for (uint32_t i = 0; i < PROTO_HELD_MAX; i++) {
                detach(r, i, i == 0 ? "head -c 262145 /dev/zero" : "exit 3");
                wait_exited(r, i);
        }
        /* No credit for the last byte: the reader stays. */
        attach(r, 1000, (struct attach_order){ 0, true, { 1, 0 } });
        next_attached(r, 1000);
        for (size_t n = 0; n < FRAME_CREDIT; n += f.len)
                rig_next(r, &f);
        wait_exited(r, 1000);
        attach(r, 1000, (struct attach_order){ .target = 50, .output = true });
        next_attached(r, 1000);
        wait_exited(r, 1000);
        detach(r, 500, "exit 7");
        wait_exited(r, 500);
        is_unknown(r, 1001, 0);
        x = read_all(r, 1002, 1, 0, 0, 0, 0);
        run_equals(&x, 3, "", "");
        x = rig_run(r, 1003, "echo fine");
        run_equals(&x, 0, "fine\n", "");
        is_unknown(r, 1001, 1);
        close(r->fd);
        rig_accept(r);
        assert_in_range(r->n_held, 190, 192);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(kept_until_forgotten),
                CASE(what_cannot_start),
                CASE(readers),
                CASE(cancels),
                CASE(ring_keeps_the_last),
                CASE(slow_reader_is_told),
                CASE(survives_its_manager),
                CASE(ends_while_alone),
                CASE(oldest_makes_room),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
