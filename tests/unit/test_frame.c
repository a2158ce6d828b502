/* Frames: who may send which, how large, in how many pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"

#define C (1u << FRAME_FROM_CLIENT)
#define M (1u << FRAME_FROM_MANAGER)
#define A (1u << FRAME_FROM_AGENT)

/* Written down a second time, from frame.h's words. */
static const struct {
        uint8_t type;
        unsigned by;
        uint8_t flags;
        uint32_t max;
} rules[] = {
        { FRAME_HELLO, C | M | A, 0, 4096 },
        { FRAME_EXEC, C | M, FRAME_MORE, 65536 },
        { FRAME_STDIN, C | M, FRAME_EOF, 65536 },
        { FRAME_STDOUT, M | A, 0, 65536 },
        { FRAME_STDERR, M | A, 0, 65536 },
        { FRAME_WINDOW, C | M | A, 0, 5 },
        { FRAME_SIGNAL, C | M, 0, 1 },
        { FRAME_RESIZE, C | M, 0, 4 },
        { FRAME_STARTED, M, 0, 512 },
        { FRAME_EXITED, A, 0, 256 },
        { FRAME_RESULT, M, 0, 2048 },
        { FRAME_REJECT, M, 0, 2048 },
        { FRAME_CANCEL, M, 0, 0 },
        { FRAME_PING, M, 0, 8 },
        { FRAME_PONG, A, 0, 8 },
        { FRAME_STATUS, C | M, FRAME_MORE, 65536 },
        { FRAME_BYE, M, 0, 0 },
        { FRAME_SCRUBBED, A, 0, 128 },
        { FRAME_ASK, C, 0, 16384 },
        { FRAME_ANSWER, M, FRAME_MORE, 65536 },
        { FRAME_ATTACH, C | M, 0, 64 },
        { FRAME_ATTACHED, M | A, 0, 16 },
        { FRAME_HELD, A, 0, 8192 },
        { FRAME_FORGET, M, 0, 0 },
        { FRAME_OPEN, C, 0, FRAME_PAYLOAD_MAX },
        { FRAME_HALT, M, 0, 4 },
        { FRAME_HALTED, A, 0, 4 },
};

static uint8_t buf[FRAME_MAX + 1];

static int parse(uint8_t type, uint8_t flags, uint32_t len, enum frame_from from) {
        struct frame f;
        size_t used;

        frame_put_header(buf, type, flags, 3, len);
        return frame_parse(buf, sizeof(buf), from, &f, &used);
}

static void every_type_and_sender(void **state) {
        (void)state;
        for (unsigned type = 0; type < 256; type++) {
                unsigned by = 0;

                for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
                        if (rules[i].type == type)
                                by = rules[i].by;
                for (int from = FRAME_FROM_CLIENT; from <= FRAME_FROM_AGENT; from++)
                        assert_int_equal(parse((uint8_t)type, 0, 0, from),
                                         by & 1u << from ? 1 : -EPROTO);
        }
}

static enum frame_from a_sender(unsigned by) {
        return by & M ? FRAME_FROM_MANAGER : by & C ? FRAME_FROM_CLIENT : FRAME_FROM_AGENT;
}

static void sizes_and_flags(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                enum frame_from from = a_sender(rules[i].by);

                assert_int_equal(parse(rules[i].type, rules[i].flags, rules[i].max, from), 1);
                assert_int_equal(parse(rules[i].type, 0, rules[i].max + 1, from), -EPROTO);
                assert_int_equal(parse(rules[i].type, 0, UINT32_MAX, from), -EPROTO);
                for (unsigned flag = 1; flag < 256; flag <<= 1)
                        assert_int_equal(parse(rules[i].type, (uint8_t)flag, 0, from),
                                         rules[i].flags & flag ? 1 : -EPROTO);
        }
}

static void reserved_field(void **state) {
        struct frame f;
        size_t used;

        (void)state;
        for (int i = 10; i < 12; i++) {
                frame_put_header(buf, FRAME_BYE, 0, 0, 0);
                buf[i] = 1;
                assert_int_equal(frame_parse(buf, FRAME_HEADER, FRAME_FROM_MANAGER, &f, &used), -EPROTO);
        }
}

/* At every length less than the whole it waits, in a buffer of just that size; a bad header need not be
 * followed by its payload to be refused. */
static void in_pieces(void **state) {
        struct frame f = { .len = 99 };
        size_t used = 99;

        (void)state;
        frame_put_header(buf, FRAME_STDIN, FRAME_EOF, 0x01020304, 5);
        memcpy(buf + FRAME_HEADER, "hello", 5);
        for (size_t n = 0; n < FRAME_HEADER + 5; n++) {
                uint8_t *p = malloc(n > 0 ? n : 1);

                assert_non_null(p);
                memcpy(p, buf, n);
                assert_int_equal(frame_parse(p, n, FRAME_FROM_CLIENT, &f, &used), 0);
                free(p);
        }
        assert_int_equal(f.len, 99);
        assert_int_equal(used, 99);
        assert_int_equal(frame_parse(buf, FRAME_HEADER + 6, FRAME_FROM_CLIENT, &f, &used), 1);
        assert_int_equal(used, FRAME_HEADER + 5);
        assert_int_equal(f.type, FRAME_STDIN);
        assert_int_equal(f.flags, FRAME_EOF);
        assert_int_equal(f.channel, 0x01020304);
        assert_int_equal(f.len, 5);
        assert_ptr_equal(f.payload, buf + FRAME_HEADER);
        assert_int_equal(frame_parse(buf, FRAME_HEADER, FRAME_FROM_AGENT, &f, &used), -EPROTO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_type_and_sender),
                cmocka_unit_test(sizes_and_flags),
                cmocka_unit_test(reserved_field),
                cmocka_unit_test(in_pieces),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
