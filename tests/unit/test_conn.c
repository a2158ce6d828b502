/* The manager's connection over a real socket and a real event loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/frame.h"
#include "manager/conn.h"

static sd_event *event;
static struct conn conn;
static int peer;        /* our end, as a client */
static char seen[4096]; /* type and channel of each frame */
static size_t seen_bytes;
static int ended, end_reason, refuse_type, pause_at_type;
/* Where STDIN frames are passed on to, under channel 77; a SIGNAL sends a CANCEL there, a RESIZE closes it. */
static struct conn beyond;
static int far_peer = -1;

static void pass_on(const struct frame *f) {
        if (f->type == FRAME_STDIN)
                conn_pass(&beyond, f, 77);
        else if (f->type == FRAME_SIGNAL)
                conn_send(&beyond, FRAME_CANCEL, 0, 5, NULL, 0);
        else if (f->type == FRAME_RESIZE)
                conn_done(&beyond);
}

static int on_frame(void *userdata, const struct frame *f) {
        struct conn *c = userdata;

        assert_ptr_equal(c, &conn);
        seen_bytes += f->len;
        if (strlen(seen) < sizeof(seen) - 8)
                sprintf(seen + strlen(seen), "%u/%u ", f->type, f->channel);
        if (f->type == pause_at_type)
                conn_pause(c, true);
        if (far_peer >= 0)
                pass_on(f);
        return f->type == refuse_type ? -EPROTO : 0;
}

static void on_end(void *userdata, int r) {
        ended++;
        end_reason = r;
        conn_done(userdata);
}

static int begin(void **state) {
        int p[2];

        (void)state;
        seen[0] = '\0';
        seen_bytes = 0;
        ended = end_reason = 0;
        refuse_type = pause_at_type = -1;
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), 0);
        peer = p[1];
        assert_int_equal(conn_init(&conn, event, p[0], FRAME_FROM_CLIENT, on_frame, on_end, &conn), 0);
        return 0;
}

static int end(void **state) {
        (void)state;
        if (!ended)
                conn_done(&conn);
        close(peer);
        sd_event_unref(event);
        return 0;
}

/* Lets the loop run until nothing is left to do. */
static void settle(void) {
        while (sd_event_run(event, 20000) > 0)
                ;
}

static size_t make(uint8_t *p, uint8_t type, uint32_t channel, const void *payload, uint32_t len) {
        frame_put_header(p, type, 0, channel, len);
        if (len > 0)
                memcpy(p + FRAME_HEADER, payload, len);
        return FRAME_HEADER + len;
}

static void put(uint8_t type, uint32_t channel, const void *payload, uint32_t len) {
        uint8_t buf[FRAME_MAX];
        size_t n = make(buf, type, channel, payload, len);

        assert_int_equal(write(peer, buf, n), n);
}

/* The next frame that comes out at @fd; its payload stands in @buf. */
static struct frame get_at(int fd, uint8_t *buf) {
        struct frame f;
        size_t used;

        for (size_t n = 0; n < FRAME_HEADER;) {
                ssize_t got = recv(fd, buf + n, FRAME_HEADER - n, 0);

                n += got > 0 ? (size_t)got : 0;
                if (got < 0)
                        settle();
        }
        for (size_t n = 0;; n++) {
                int r = frame_parse(buf, FRAME_HEADER + n, FRAME_FROM_MANAGER, &f, &used);

                assert_true(r >= 0);
                if (r)
                        return f;
                while (recv(fd, buf + FRAME_HEADER + n, 1, 0) != 1)
                        settle();
        }
}

static struct frame get(uint8_t *buf) {
        return get_at(peer, buf);
}

static void byte_by_byte(void **state) {
        uint8_t buf[64];
        size_t n = make(buf, FRAME_STDIN, 7, "hello", 5);

        (void)state;
        n += make(buf + n, FRAME_SIGNAL, 8, "x", 1);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(write(peer, buf + i, 1), 1);
                settle();
        }
        assert_string_equal(seen, "3/7 7/8 ");
        assert_null(conn.in); /* nothing is kept of what has come whole */
        assert_int_equal(ended, 0);
}

static void many_in_one_read(void **state) {
        static uint8_t big[FRAME_PAYLOAD_MAX];
        uint8_t buf[6 * 13];
        size_t n = 0;

        (void)state;
        for (uint32_t i = 0; i < 6; i++)
                n += make(buf + n, FRAME_SIGNAL, i, "x", 1);
        assert_int_equal(write(peer, buf, n), n);
        settle();
        assert_string_equal(seen, "7/0 7/1 7/2 7/3 7/4 7/5 ");
        for (int i = 0; i < 2; i++) {
                put(FRAME_STDIN, 1, big, sizeof(big));
                settle();
        }
        assert_int_equal(seen_bytes, 6 + 2 * sizeof(big));
        put(FRAME_SIGNAL, 9, "x", 1);
        assert_int_equal(conn_poke(&conn), 0);
        assert_non_null(strstr(seen, "7/9 "));
}

static void ends(void **state) {
        (void)state;
        put(FRAME_SIGNAL, 1, "x", 1);
        shutdown(peer, SHUT_WR);
        settle();
        assert_string_equal(seen, "7/1 ");
        assert_int_equal(ended, 1);
        assert_int_equal(end_reason, -ECONNRESET);
}

static void protocol_error(void **state) {
        (void)state;
        put(FRAME_SIGNAL, 1, "x", 1);
        put(FRAME_EXITED, 1, NULL, 0); /* which no client may send */
        put(FRAME_SIGNAL, 2, "x", 1);
        settle();
        assert_string_equal(seen, "7/1 ");
        assert_int_equal(end_reason, -EPROTO);
        assert_int_equal(ended, 1);
}

static void refused_by_handler(void **state) {
        (void)state;
        refuse_type = FRAME_STATUS;
        put(FRAME_STATUS, 0, "x", 1);
        put(FRAME_SIGNAL, 2, "x", 1);
        settle();
        assert_string_equal(seen, "16/0 ");
        assert_int_equal(end_reason, -EPROTO);
}

static void pause_keeps(void **state) {
        (void)state;
        pause_at_type = FRAME_EXEC;
        put(FRAME_SIGNAL, 1, "x", 1);
        put(FRAME_EXEC, 2, "x", 1);
        put(FRAME_STDIN, 3, "abc", 3);
        put(FRAME_SIGNAL, 4, "x", 1);
        settle();
        assert_string_equal(seen, "7/1 2/2 ");
        put(FRAME_SIGNAL, 5, "x", 1);
        settle();
        assert_string_equal(seen, "7/1 2/2 ");
        pause_at_type = FRAME_STDIN; /* and once more from within */
        conn_pause(&conn, false);
        settle();
        assert_string_equal(seen, "7/1 2/2 3/3 ");
        pause_at_type = -1;
        conn_pause(&conn, false);
        settle();
        assert_string_equal(seen, "7/1 2/2 3/3 7/4 7/5 ");
        assert_int_equal(ended, 0);
        /* What was kept may be wrong: it shows at the resume. */
        pause_at_type = FRAME_EXEC;
        put(FRAME_EXEC, 2, "x", 1);
        put(FRAME_BYE, 0, NULL, 0);
        settle();
        assert_int_equal(ended, 0);
        conn_pause(&conn, false);
        assert_int_equal(end_reason, -EPROTO);
}

/* Not read, but its end is seen. */
static void hangup_while_paused(void **state) {
        (void)state;
        conn_pause(&conn, true);
        put(FRAME_SIGNAL, 1, "x", 1);
        settle();
        assert_int_equal(ended, 0);
        shutdown(peer, SHUT_RDWR);
        settle();
        assert_string_equal(seen, "");
        assert_int_equal(end_reason, -ECONNRESET);
}

static void order_of_queue_and_send(void **state) {
        static uint8_t buf[FRAME_MAX];
        struct frame f;

        (void)state;
        conn_queue(&conn, FRAME_HELLO, 0, 0, "a", 1);
        conn_queue(&conn, FRAME_STARTED, 0, 1, "bc", 2);
        assert_int_equal(recv(peer, buf, 1, 0), -1); /* waits for the next */
        conn_send(&conn, FRAME_STDOUT, 0, 2, "def", 3);
        f = get(buf);
        assert_true(f.type == FRAME_HELLO && f.len == 1);
        f = get(buf);
        assert_true(f.type == FRAME_STARTED && f.channel == 1 && f.len == 2);
        f = get(buf);
        assert_true(f.type == FRAME_STDOUT && f.channel == 2);
        assert_memory_equal(f.payload, "def", 3);
        assert_int_equal(conn.out_len, 0);
        conn_queue(&conn, FRAME_CANCEL, 0, 9, NULL, 0);
        conn_flush(&conn);
        f = get(buf);
        assert_int_equal(f.type, FRAME_CANCEL);
}

/* Fills the socket, so that all that follows is queued. Returns the bytes that are on their way. */
static size_t fill(void) {
        static uint8_t big[FRAME_PAYLOAD_MAX];
        size_t n = 0;

        while (conn.out_len == 0) {
                conn_send(&conn, FRAME_STDERR, 0, 1, big, sizeof(big));
                n += sizeof(big);
        }
        return n;
}

/* Bytes of one each cost one each, not a header each; streams and other frames stay apart and in order. */
/* Neither the loop nor a pause sends what only waits for the next frame. */
static void queued_stays_queued(void **state) {
        static uint8_t buf[FRAME_MAX];

        (void)state;
        conn_queue(&conn, FRAME_HELLO, 0, 0, "a", 1);
        conn_pause(&conn, true);
        put(FRAME_STDIN, 1, "x", 1);
        settle();
        conn_pause(&conn, false);
        settle();
        put(FRAME_STDIN, 1, "y", 1);
        settle();
        assert_int_equal(seen_bytes, 2);
        assert_int_equal(recv(peer, buf, 1, 0), -1);
        conn_flush(&conn);
        assert_int_equal(get(buf).type, FRAME_HELLO);
}

static void unread_output_joins(void **state) {
        static uint8_t buf[FRAME_MAX];
        size_t filled = fill(), before = conn.out_len, n = 0;
        struct frame f;

        (void)state;
        for (int i = 0; i < 100000; i++)
                conn_send(&conn, FRAME_STDOUT, 0, 1, "y", 1);
        assert_true(conn.out_len - before <= 100000 + 3 * FRAME_HEADER);
        conn_send(&conn, FRAME_STDOUT, 0, 2, "other", 5);
        conn_send(&conn, FRAME_WINDOW, 0, 2, "12345", 5);
        conn_send(&conn, FRAME_STDOUT, 0, 2, "again", 5);
        conn_send(&conn, FRAME_RESULT, 0, 2, "r", 1);
        while (filled > 0) {
                f = get(buf);
                assert_int_equal(f.type, FRAME_STDERR);
                filled -= f.len;
        }
        for (; n < 100000; n += f.len) {
                f = get(buf);
                assert_true(f.type == FRAME_STDOUT && f.channel == 1 && f.payload[f.len - 1] == 'y');
        }
        assert_int_equal(n, 100000);
        f = get(buf);
        assert_true(f.type == FRAME_STDOUT && f.len == 5 && memcmp(f.payload, "other", 5) == 0);
        f = get(buf);
        assert_int_equal(f.type, FRAME_WINDOW);
        f = get(buf);
        assert_true(f.type == FRAME_STDOUT && memcmp(f.payload, "again", 5) == 0);
        f = get(buf);
        assert_int_equal(f.type, FRAME_RESULT);
        settle();
        assert_int_equal(conn.out_len, 0);
        assert_null(conn.out); /* an idle connection holds no memory */
        assert_int_equal(ended, 0);
}

/* A peer that never reads is ended at the bound, by the loop and not from within a send. */
static void overrun(void **state) {
        static uint8_t big[FRAME_PAYLOAD_MAX];

        (void)state;
        fill();
        for (int i = 0; i < 1000; i++)
                conn_send(&conn, FRAME_STDERR, 0, 1, big, sizeof(big));
        assert_true(conn.overrun);
        assert_true(conn.out_len < 9u << 20);
        assert_int_equal(ended, 0);
        settle();
        assert_int_equal(ended, 1);
        assert_int_equal(end_reason, -ENOBUFS);
}

static void peer_gone_while_sending(void **state) {
        (void)state;
        close(peer);
        for (int i = 0; i < 3; i++)
                conn_send(&conn, FRAME_STDOUT, 0, 1, "x", 1);
        assert_int_equal(ended, 0);
        settle();
        assert_int_equal(ended, 1);
        peer = open("/dev/null", O_RDONLY | O_CLOEXEC);
        conn_send(&conn, FRAME_STDOUT, 0, 1, "x", 1); /* nobody any more: no effect */
        conn_queue(&conn, FRAME_STDOUT, 0, 1, "x", 1);
        conn_flush(&conn);
        assert_int_equal(conn.out_len, 0);
}

static void ended_beyond(void *userdata, int r) {
        (void)r;
        conn_done(userdata);
}

static int begin_passing(void **state) {
        int p[2];

        begin(state);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), 0);
        far_peer = p[1];
        assert_int_equal(
                conn_init(&beyond, event, p[0], FRAME_FROM_AGENT, on_frame, ended_beyond, &beyond), 0);
        return 0;
}

static int end_passing(void **state) {
        conn_done(&beyond);
        close(far_peer);
        far_peer = -1;
        return end(state);
}

/* Neighbours and single frames, behind what was queued before, and in order with what is sent between. */
static void passes_on(void **state) {
        static uint8_t buf[FRAME_MAX];
        uint8_t in[256];
        size_t n = 0;
        struct frame f;

        (void)state;
        conn_queue(&beyond, FRAME_STARTED, 0, 1, "s", 1);
        n += make(in + n, FRAME_STDIN, 1, "one", 3);
        n += make(in + n, FRAME_STDIN, 2, "two", 3);
        n += make(in + n, FRAME_WINDOW, 1, "12345", 5); /* goes nowhere */
        n += make(in + n, FRAME_STDIN, 1, "three", 5);
        n += make(in + n, FRAME_SIGNAL, 1, "x", 1);
        n += make(in + n, FRAME_STDIN, 1, "", 0);
        assert_int_equal(write(peer, in, n), n);
        settle();
        assert_int_equal(get_at(far_peer, buf).type, FRAME_STARTED);
        f = get_at(far_peer, buf);
        assert_true(f.type == FRAME_STDIN && f.channel == 77 && memcmp(f.payload, "one", 3) == 0);
        f = get_at(far_peer, buf);
        assert_true(f.type == FRAME_STDIN && f.channel == 77 && memcmp(f.payload, "two", 3) == 0);
        f = get_at(far_peer, buf);
        assert_true(f.channel == 77 && f.len == 5 && memcmp(f.payload, "three", 5) == 0);
        assert_int_equal(get_at(far_peer, buf).type, FRAME_CANCEL);
        f = get_at(far_peer, buf);
        assert_true(f.type == FRAME_STDIN && f.channel == 77 && f.len == 0);
        assert_int_equal(recv(far_peer, buf, 1, 0), -1);
        assert_string_equal(seen, "3/1 3/2 6/1 3/1 7/1 3/1 ");
}

/* Each frame has a number, and whoever reads late gets them all. */
static void passes_to_a_slow_peer(void **state) {
        static uint8_t buf[FRAME_MAX], payload[30000];

        (void)state;
        for (uint32_t i = 0; i < 64; i++) {
                memcpy(payload, &i, sizeof(i));
                put(FRAME_STDIN, 1, payload, sizeof(payload));
                settle();
        }
        assert_true(beyond.out_len > 0);
        for (uint32_t i = 0; i < 64; i++) {
                struct frame f = get_at(far_peer, buf);

                assert_true(f.type == FRAME_STDIN && f.channel == 77 && f.len == sizeof(payload));
                assert_memory_equal(f.payload, &i, sizeof(i));
        }
        settle();
        assert_int_equal(beyond.out_len, 0);
        assert_null(beyond.out);
}

/* Whoever has gone in the middle of it gets nothing more, and one that refuses keeps what came before. */
static void passes_to_nobody(void **state) {
        static uint8_t buf[FRAME_MAX];
        uint8_t in[128];
        size_t n = 0;

        (void)state;
        n += make(in + n, FRAME_STDIN, 1, "last", 4);
        n += make(in + n, FRAME_STATUS, 1, "x", 1);
        n += make(in + n, FRAME_STDIN, 1, "never", 5);
        refuse_type = FRAME_STATUS;
        assert_int_equal(write(peer, in, n), n);
        settle();
        assert_int_equal(end_reason, -EPROTO);
        assert_int_equal(get_at(far_peer, buf).len, 4);
        assert_int_equal(recv(far_peer, buf, 1, 0), -1);
}

static void passes_to_one_that_goes(void **state) {
        static uint8_t buf[FRAME_MAX];
        uint8_t in[128];
        size_t n = 0;

        (void)state;
        n += make(in + n, FRAME_STDIN, 1, "late", 4);
        n += make(in + n, FRAME_RESIZE, 1, "1234", 4);
        n += make(in + n, FRAME_STDIN, 1, "later", 5);
        assert_int_equal(write(peer, in, n), n);
        settle();
        assert_int_equal(recv(far_peer, buf, 1, 0), 0);
        assert_int_equal(ended, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define PASSING(f) cmocka_unit_test_setup_teardown(f, begin_passing, end_passing)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(byte_by_byte),
                CASE(many_in_one_read),
                CASE(ends),
                CASE(protocol_error),
                CASE(refused_by_handler),
                CASE(pause_keeps),
                CASE(hangup_while_paused),
                CASE(order_of_queue_and_send),
                CASE(queued_stays_queued),
                CASE(unread_output_joins),
                CASE(overrun),
                CASE(peer_gone_while_sending),
                PASSING(passes_on),
                PASSING(passes_to_a_slow_peer),
                PASSING(passes_to_nobody),
                PASSING(passes_to_one_that_goes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
