/*
 * Detached commands and their readers in the agent, against a model: what a reader gets is what the command wrote, from
 * where ATTACHED said, within its credit, to the end. The input is a list of steps of four bytes each; no process is
 * started, a command is a pipe that the target writes into.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "fuzz/decoders.h"

#define COMMANDS 8 /* channels 0 … 7 */
#define READERS 48 /* channels 100 … 147: more than there may be */
#define FIRST_READER 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* These stand beside the agent's main(), which is not linked. */
void forget(void *p, size_t n) {
        memset(p, 0, n);
}

uint64_t now_us(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static struct agent agent;

static struct command {
        bool held;  /* the agent must know it */
        bool ended; /* and its EXITED must come once, */
        bool told;  /* or has come */
        bool forgotten;
        int pipe[2];
        uint64_t written[2];
} commands[COMMANDS];

static struct listener {
        bool used;
        bool output, attached;
        uint8_t target;
        uint64_t at[2], credit[2];
} listeners[READERS];

static int theirs;     /* the manager's end of the link */
static unsigned halts; /* that will have an answer each */
static uint8_t in[2 * FRAME_MAX];
static size_t in_len;

/* Byte @k of a stream. */
static uint8_t pattern(unsigned command, int i, uint64_t k) {
        return (uint8_t)((k ^ k >> 8 ^ k >> 16) * 167 + command * 31 + (unsigned)i);
}

/* --- what the agent says ------------------------------------------------------------------------------- */

static void hear_command(const struct frame *f) {
        struct command *c = &commands[f->channel];
        struct exited e;

        check(f->type == FRAME_EXITED && c->ended && !c->told);
        check(exited_decode(f->payload, f->len, &e) == 0);
        check(e.dropped_bytes[0] == c->written[0] && e.dropped_bytes[1] == c->written[1]);
        c->told = true;
        c->held = !c->forgotten;
}

static void hear_output(struct listener *l, const struct frame *f) {
        int i = f->type == FRAME_STDERR;

        check(l->attached && f->len > 0 && f->len <= l->credit[i]);
        for (uint32_t k = 0; k < f->len; k++)
                check(f->payload[k] == pattern(l->target, i, l->at[i] + k));
        l->at[i] += f->len;
        l->credit[i] -= f->len;
        check(l->at[i] <= commands[l->target].written[i]);
}

static void hear_attached(struct listener *l, const struct frame *f) {
        struct attached a;

        check(l->output && attached_decode(f->payload, f->len, &a) == 0);
        for (int i = 0; i < 2; i++) {
                check(a.from[i] <= commands[l->target].written[i]);
                check(!l->attached || a.from[i] >= l->at[i]);
                l->at[i] = a.from[i];
        }
        l->attached = true;
}

static void hear_end(struct listener *l, const struct frame *f) {
        const struct command *c = &commands[l->target];
        struct exited e;

        check(exited_decode(f->payload, f->len, &e) == 0);
        if (e.error == EAGAIN || (e.error == ENOENT && e.cause == CAUSE_NOT_FOUND)) {
                check(!l->attached && e.code == START_PLUMBING);
        } else {
                check(c->ended && l->attached == l->output);
                check(!l->output || (l->at[0] == c->written[0] && l->at[1] == c->written[1]));
        }
        l->used = false;
}

/* No process runs: there is nothing to end, and nobody to be signalled. */
static void hear_halted(const struct frame *f) {
        check(f->channel == 0 && f->len == 4 && memcmp(f->payload, "\0\0\0", 4) == 0 && halts > 0);
        halts--;
}

static void hear(const struct frame *f) {
        struct listener *l;

        if (f->type == FRAME_HALTED) {
                hear_halted(f);
                return;
        }
        if (f->channel < COMMANDS) {
                hear_command(f);
                return;
        }
        check(f->channel >= FIRST_READER && f->channel < FIRST_READER + READERS);
        l = &listeners[f->channel - FIRST_READER];
        check(l->used);
        if (f->type == FRAME_ATTACHED)
                hear_attached(l, f);
        else if (f->type == FRAME_EXITED)
                hear_end(l, f);
        else
                hear_output(l, f);
}

static bool listen_once(void) {
        ssize_t n = recv(theirs, in + in_len, sizeof(in) - in_len, MSG_DONTWAIT);
        size_t used, done = 0;
        struct frame f;

        if (n <= 0)
                return false;
        in_len += (size_t)n;
        while (frame_parse(in + done, in_len - done, FRAME_FROM_AGENT, &f, &used) == 1) {
                hear(&f);
                done += used;
        }
        in_len -= done;
        memmove(in, in + done, in_len);
        return true;
}

/* Until neither has anything to say. */
static void settle(void) {
        bool more;

        do {
                more = exec_advance(&agent);
                check(link_flush(&agent.link) == 0);
                more |= listen_once();
        } while (more);
}

/* --- what is done --------------------------------------------------------------------------------------- */

static void run(unsigned i) {
        struct command *c = &commands[i];
        struct exec_order o = { .detached = true, .exec_id = "0123456789abcdef" };
        struct exec *x;

        if (c->held || exec_find(&agent, i))
                return;
        settle(); /* nothing is on its way about one that had its channel */
        x = exec_take(&agent, i, &o, &agent.ids.user);
        check(x);
        *c = (struct command){ .held = true };
        for (int k = 0; k < 2; k++) {
                int p[2];

                check(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
                x->out[k].fd = p[0];
                c->pipe[k] = p[1];
        }
}

static void write_some(unsigned i, int k, size_t n) {
        static uint8_t bytes[65536];
        struct command *c = &commands[i];
        struct exec *x = exec_find(&agent, i);

        if (!c->held || c->ended || !x)
                return;
        for (size_t b = 0; b < n; b++)
                bytes[b] = pattern(i, k, c->written[k] + b);
        if (n > 0 && write(c->pipe[k], bytes, n) != (ssize_t)n)
                return;
        c->written[k] += n;
        x->out[k].ready = true;
        /* Into the ring, so that it never waits in the pipe. */
        exec_advance(&agent);
}

static void finish(unsigned i) {
        struct command *c = &commands[i];

        if (!c->held || c->ended)
                return;
        exec_advance(&agent);
        c->ended = true;
        exec_failed(&agent, exec_find(&agent, i), CAUSE_EXITED, 0, 0);
        close(c->pipe[0]);
        close(c->pipe[1]);
}

static void attach(unsigned r, unsigned target, uint8_t how) {
        static const uint64_t offsets[] = { 0, 1, 262143, 262144, 262145, 400000, UINT64_MAX };
        struct listener *l = &listeners[r];
        struct attach_order o = { target, how & 1, { offsets[how / 2 % 7], offsets[how / 16 % 7] } };
        uint8_t buf[64];
        struct frame f = { .type = FRAME_ATTACH, .channel = FIRST_READER + r, .payload = buf };
        int x;

        if (l->used)
                return;
        f.len = (uint32_t)attach_order_encode(&o, buf, sizeof(buf));
        *l = (struct listener){ .used = true,
                                .output = o.output,
                                .target = (uint8_t)(target % COMMANDS),
                                .credit = { FRAME_CREDIT, FRAME_CREDIT } };
        x = attach_frame(&agent, &f);
        check(x == 0 || x == LINK_LATER);
        if (x == LINK_LATER)
                l->used = false;
}

static void grant(unsigned r, int k, uint32_t bytes) {
        struct listener *l = &listeners[r];
        uint8_t buf[WINDOW_SIZE];
        struct frame f = { FRAME_WINDOW, 0, FIRST_READER + r, sizeof(buf), buf };

        bytes = bytes < FRAME_CREDIT - l->credit[k] ? bytes : (uint32_t)(FRAME_CREDIT - l->credit[k]);
        if (!l->used || bytes == 0)
                return;
        window_encode(&(struct window){ (uint8_t)(STREAM_STDOUT + k), bytes }, buf);
        l->credit[k] += bytes;
        check(stream_window_frame(&agent, &f) == 0);
}

/* What is on its way to it comes first. */
static void drop(unsigned r) {
        struct reader *reader;

        settle();
        reader = attach_find(&agent, FIRST_READER + r);
        check(!reader == !listeners[r].used);
        if (reader)
                attach_drop(&agent, reader);
        listeners[r].used = false;
}

static void forget_command(unsigned i) {
        struct frame f = { .type = FRAME_FORGET, .channel = i };
        struct command *c = &commands[i];

        c->forgotten |= c->held;
        if (c->told)
                c->held = false;
        check(keep_forget_frame(&agent, &f) == 0);
}

/* One with a wrong channel or length breaks the protocol, and is none. */
static void halt(uint8_t how, uint32_t grace_ms) {
        uint8_t buf[5] = { (uint8_t)grace_ms, (uint8_t)(grace_ms >> 8) };
        struct frame f = { .type = FRAME_HALT, .channel = how % 8 == 1, .payload = buf };
        bool good = how % 8 > 2;

        f.len = how % 8 == 2 ? 3 : how % 8 == 0 ? 5 : 4;
        check(halt_frame(&agent, &f) == (good ? 0 : -EPROTO));
        halts += good;
        if (how % 16 > 8)
                settle();
}

static void step(const uint8_t *p) {
        unsigned command = p[1] % COMMANDS, r = p[1] % READERS;
        int k = p[2] & 1;

        switch (p[0] % 10) {
        case 0:
                run(command);
                break;
        case 1:
                write_some(command, k, p[3] * 257u);
                break;
        case 2:
                write_some(command, k, p[3]);
                break;
        case 3:
                finish(command);
                break;
        case 4:
                attach(r, p[2] % (COMMANDS + 1), p[3]);
                break;
        case 5:
                grant(r, k, p[3] * 1031u);
                break;
        case 6:
                drop(r);
                break;
        case 7:
                forget_command(command);
                break;
        case 9:
                halt(p[1], p[2] * 7u);
                break;
        default:
                settle();
        }
}

/* Whatever is left must come to its end, once there is credit. */
static void end_all(void) {
        for (unsigned i = 0; i < COMMANDS; i++)
                finish(i);
        for (int round = 0; round < 4; round++) {
                settle();
                for (unsigned r = 0; r < READERS; r++)
                        for (int k = 0; k < 2; k++)
                                grant(r, k, FRAME_CREDIT);
        }
        settle();
        for (unsigned r = 0; r < READERS; r++)
                check(!listeners[r].used);
        for (unsigned i = 0; i < COMMANDS; i++) {
                check(!commands[i].ended || commands[i].told);
                check(commands[i].held == (exec_find(&agent, i) != NULL));
                forget_command(i);
        }
        check(halts == 0 && !agent.halt_due);
        check(agent.top == 0 && agent.n_execs == 0 && agent.n_readers == 0 && agent.n_untold == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        int fd[2];

        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) == 0);
        agent.ids = (struct agent_ids){ .user = { 10000, 10000 },
                                        .exec_gid_first = 1900000000,
                                        .exec_gid_count = 65536 };
        link_init(&agent.link);
        agent.link.fd = fd[0];
        theirs = fd[1];
        in_len = 0;
        halts = 0;
        memset(commands, 0, sizeof(commands));
        memset(listeners, 0, sizeof(listeners));
        for (; size >= 4; data += 4, size -= 4)
                step(data);
        end_all();
        link_close(&agent.link);
        close(theirs);
        return 0;
}
