/* Commands under the agent of agentrig.h. */
#pragma once

#include <time.h>

#include "agentrig.h"

struct run {
        uint32_t channel;
        char *out[2]; /* NUL-terminated */
        size_t len[2];
        bool ended;
        struct exited end;
};

static inline void run_done(struct run *x) {
        free(x->out[0]);
        free(x->out[1]);
        *x = (struct run){ .channel = x->channel };
}

/* Takes one frame for one of these commands, and grants what it took. */
static inline void rig_take(struct rig *r, const struct frame *f, struct run *runs, size_t n) {
        struct run *x = NULL;
        int i = f->type == FRAME_STDERR;

        for (size_t k = 0; k < n; k++)
                if (runs[k].channel == f->channel && !runs[k].ended)
                        x = &runs[k];
        assert_non_null(x);
        switch (f->type) {
        case FRAME_STDOUT:
        case FRAME_STDERR:
                x->out[i] = realloc(x->out[i], x->len[i] + f->len + 1);
                assert_non_null(x->out[i]);
                memcpy(x->out[i] + x->len[i], f->payload, f->len);
                x->len[i] += f->len;
                x->out[i][x->len[i]] = '\0';
                rig_grant(r, f->channel, (uint8_t)(STREAM_STDOUT + i), f->len);
                break;
        case FRAME_EXITED:
                assert_int_equal(exited_decode(f->payload, f->len, &x->end), 0);
                x->ended = true;
                break;
        default:
                assert_int_equal(f->type, FRAME_WINDOW);
        }
}

/* Until all of them have ended. */
static inline void rig_collect(struct rig *r, struct run *runs, size_t n) {
        size_t left = 0;
        struct frame f;

        for (size_t k = 0; k < n; k++)
                left += !runs[k].ended;
        while (left > 0) {
                rig_next(r, &f);
                rig_take(r, &f, runs, n);
                left -= f.type == FRAME_EXITED;
        }
}

static inline struct run rig_run(struct rig *r, uint32_t channel, const char *script) {
        struct run x = { .channel = channel };

        rig_sh(r, channel, (struct exec_order){ .one_shot = true }, script);
        rig_collect(r, &x, 1);
        return x;
}

static inline void run_equals(struct run *x, int code, const char *out, const char *err) {
        assert_int_equal(x->end.cause, CAUSE_EXITED);
        assert_int_equal(x->end.code, code);
        assert_string_equal(x->out[0] ? x->out[0] : "", out);
        assert_string_equal(x->out[1] ? x->out[1] : "", err);
        run_done(x);
}

static inline uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Starts @script and returns once it has said "ready" (6 bytes with the newline). */
static inline void start_ready(struct rig *r, uint32_t channel, struct exec_order o,
                               const char *script) {
        struct frame f;
        size_t n = 0;

        rig_sh(r, channel, o, script);
        while (n < 6) {
                rig_next(r, &f);
                assert_int_equal(f.channel, channel);
                assert_int_equal(f.type, FRAME_STDOUT);
                n += f.len;
        }
}

static inline struct exited wait_exited(struct rig *r, uint32_t channel) {
        struct run x = { .channel = channel };
        struct exited e;

        rig_collect(r, &x, 1);
        e = x.end;
        run_done(&x);
        return e;
}

/* No process of a command is in the sandbox, but those that look. */
static inline void nothing_runs(struct rig *r) {
        struct run x = rig_run(r, 77,
                               "ps -eo uid=,sid= | awk -v self=$$ '$1 == 10000 && $2 != self' | wc -l");

        run_equals(&x, 0, "0\n", "");
}

/* The agent closes the connection, ends what ran, and comes again. */
static inline void comes_again(struct rig *r) {
        struct frame f;
        struct run x;

        while (rig_try_next(r, &f))
                ;
        close(r->fd);
        rig_accept(r);
        nothing_runs(r);
        x = rig_run(r, 1, "echo again"); /* a channel that was in use before */
        run_equals(&x, 0, "again\n", "");
}

/* All that the agent has to say before it answers: nothing. */
static inline void says_nothing(struct rig *r) {
        struct frame f;

        rig_send(r, FRAME_PING, 0, 0, "12345678", 8);
        rig_next(r, &f);
        assert_int_equal(f.type, FRAME_PONG);
        assert_memory_equal(f.payload, "12345678", 8);
}
