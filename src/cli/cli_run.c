/*
 * One poll loop over the connection, a signalfd and, with -i, fd 0. Nothing waits on the connection but
 * poll: what is to be sent stands in one small buffer, and a source (stdin, a signal) is only read when
 * its frame has room there. So a manager that is slow to read can never keep us from reading what it
 * sends. Writing the output may block: credit bounds what the manager then holds for us.
 *
 * Of much output into a pipe only the headers of the frames are read: the kernel moves the payload from the
 * socket to the pipe.
 */
#include "cli/cli_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_tty.h"
#include "common/exitcode.h"
#include "common/proto_session.h"
#include "common/wire.h"

/* Room that stdin leaves to windows and signals. */
#define CONTROL_ROOM 1024
/* Bytes of a frame that are worth a call of their own. */
#define MOVE_MIN 4096
/* A frame of this size is taken for the first of many. After so many small ones it is over. */
#define MOVE_FROM (FRAME_PAYLOAD_MAX / 2)
#define MOVE_PATIENCE 8
/* Calls between two looks at everything else. */
#define SOCKET_ROUNDS 32
/* Of what is for a terminal so much is read at a time: a key has not long to wait. */
#define TTY_CHUNK 8192

struct run {
        struct cli_conn *conn;
        const struct cli_way *way;
        struct cli_sink *sink;
        struct cli_outcome *out;
        int signal_fd;
        sigset_t signals;
        uint64_t last_int_ms; /* when SIGINT came last, 0: never */

        uint16_t rows, cols; /* the size of the terminal that was sent last */

        bool stdin_open;
        uint32_t stdin_credit;
        size_t input_pos;     /* in way->input */
        uint32_t consumed[3]; /* by stream: delivered and not yet granted again */

        unsigned
                moving; /* the next frame is one to be moved, most likely: no byte of it is read ahead */
        uint8_t rest_stream; /* of the frame that is being moved */
        size_t rest;         /* what is still to come of it */

        bool send_dead;              /* the manager reads no more; what it wrote is still to be read */
        size_t send_start, send_end; /* in to_send */
};

static uint8_t to_send[FRAME_MAX + CONTROL_ROOM];

static size_t room(const struct run *r) {
        return sizeof(to_send) - r->send_end;
}

static void flush(struct run *r) {
        while (r->send_start < r->send_end && !r->send_dead) {
                ssize_t n = send(r->conn->fd, to_send + r->send_start, r->send_end - r->send_start,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n >= 0)
                        r->send_start += (size_t)n;
                else if (errno == EAGAIN)
                        return;
                else if (errno != EINTR)
                        r->send_dead = true;
        }
        r->send_start = r->send_end = 0;
}

static void put_frame(struct run *r, uint8_t type, const void *payload, uint32_t len) {
        frame_put_header(to_send + r->send_end, type, 0, CLI_CHANNEL, len);
        memcpy(to_send + r->send_end + FRAME_HEADER, payload, len);
        r->send_end += FRAME_HEADER + len;
}

/* Grants again what was delivered, in few frames: half the credit at a time. */
static void grant(struct run *r, uint8_t stream) {
        struct window w = { .stream = stream, .bytes = r->consumed[stream] };
        uint8_t payload[WINDOW_SIZE];

        if (w.bytes < FRAME_CREDIT / 2 || room(r) < FRAME_HEADER + WINDOW_SIZE)
                return;
        window_encode(&w, payload);
        put_frame(r, FRAME_WINDOW, payload, WINDOW_SIZE);
        r->consumed[stream] = 0;
        flush(r);
}

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Lets the signal do to us what it would have done: end us, and so close the connection. */
static void obey(struct run *r, int signo) {
        raise(signo);
        sigprocmask(SIG_UNBLOCK, &r->signals, NULL);
}

static void send_size(struct run *r) {
        struct resize size;
        uint8_t payload[RESIZE_SIZE];

        if (!cli_tty_size(&size.rows, &size.cols) || (size.rows == r->rows && size.cols == r->cols) ||
            room(r) < FRAME_HEADER + RESIZE_SIZE)
                return;
        r->rows = size.rows;
        r->cols = size.cols;
        resize_encode(&size, payload);
        put_frame(r, FRAME_RESIZE, payload, RESIZE_SIZE);
        flush(r);
}

/* True: the signal is one of those that a terminal brings, and done with. */
static bool of_terminal(struct run *r, int signo) {
        if (signo == SIGCONT && r->way->use_stdin)
                cli_tty_again();
        if (signo == SIGCONT || signo == SIGWINCH)
                send_size(r);
        return signo == SIGCONT || signo == SIGWINCH;
}

static void on_signal(struct run *r) {
        struct signalfd_siginfo info;
        struct sigaction sa;
        uint8_t signo;

        if (read(r->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return;
        if (r->way->tty && of_terminal(r, (int)info.ssi_signo))
                return;
        /* A blocked signal is queued even if it is ignored, as SIGHUP is under nohup(1). */
        if (sigaction((int)info.ssi_signo, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
                return;
        signo = (uint8_t)info.ssi_signo;
        if (!r->out->started || (signo == SIGHUP && (r->way->tty || r->way->watch))) {
                obey(r, signo);
                return;
        }
        if (signo == SIGINT) {
                uint64_t now = now_ms();

                if (r->last_int_ms != 0 && now - r->last_int_ms < 1000)
                        obey(r, signo);
                r->last_int_ms = now;
        }
        put_frame(r, FRAME_SIGNAL, &signo, 1);
        flush(r);
}

/* Reads straight into the frame that carries it. Whatever ends the reading ends the stream: a command
 * must not wait for bytes that cannot come. */
static void on_stdin(struct run *r) {
        uint8_t *frame = to_send + r->send_end;
        size_t max = room(r) - CONTROL_ROOM - FRAME_HEADER;
        ssize_t n;

        if (max > FRAME_PAYLOAD_MAX)
                max = FRAME_PAYLOAD_MAX;
        if (max > r->stdin_credit)
                max = r->stdin_credit;
        n = r->way->input ? cli_input_read(r->way->input, &r->input_pos, frame + FRAME_HEADER, max)
                          : read(STDIN_FILENO, frame + FRAME_HEADER, max);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        /* No key brings the end of a terminal in raw mode: it has been hung up. */
        if (n <= 0 && r->way->tty)
                obey(r, SIGHUP);
        else if (n < 0)
                cli_error("cannot read stdin: %s", strerror(errno));
        if (n < 0)
                n = 0;
        if (n == 0)
                r->stdin_open = false;
        r->stdin_credit -= (uint32_t)n;
        frame_put_header(frame, FRAME_STDIN, n == 0 ? FRAME_EOF : 0, CLI_CHANNEL, (uint32_t)n);
        r->send_end += FRAME_HEADER + (size_t)n;
        flush(r);
}

static bool protocol_error(struct run *r, const char *what) {
        r->out->end = CLI_END_LOST;
        r->out->exit_code = EXIT_SANDBOX;
        errmsg_set(&r->out->error, 0, "protocol error: %s", what);
        return true;
}

static bool undeliverable(struct run *r, int code) {
        r->out->end = CLI_END_SINK;
        r->out->exit_code = code;
        return true;
}

static uint8_t stream_of(const struct frame *f) {
        return f->type == FRAME_STDOUT ? STREAM_STDOUT : STREAM_STDERR;
}

static void delivered(struct run *r, uint8_t stream, size_t n) {
        r->consumed[stream] += (uint32_t)n;
        grant(r, stream);
}

static bool on_output(struct run *r, const struct frame *f) {
        uint8_t stream = stream_of(f);
        int code;

        if (!r->out->started || r->way->kind == CLI_WAIT ||
            (r->way->kind == CLI_ATTACH && !r->out->attached))
                return protocol_error(r, "output before the command was started");
        code = r->sink->take(r->sink, stream, f->payload, f->len);
        if (code != 0)
                return undeliverable(r, code);
        if (f->len >= MOVE_FROM && r->sink->moves && r->sink->moves(stream))
                r->moving = MOVE_PATIENCE;
        delivered(r, stream, f->len);
        return false;
}

/* Only now: until the command runs, ^C and ^Z are for us. */
static void enter_terminal(struct run *r) {
        int n = cli_tty_enter(STDIN_FILENO, CLI_TTY_RAW, "", "");

        if (n < 0)
                cli_error("cannot put the terminal into raw mode: %s", strerror(-n));
        sigaddset(&r->signals, SIGTSTP);
        if (r->signal_fd >= 0 && signalfd(r->signal_fd, &r->signals, 0) >= 0)
                sigprocmask(SIG_BLOCK, &r->signals, NULL);
}

static bool on_started(struct run *r, const struct frame *f) {
        struct started s;

        if (r->out->started || started_decode(f->payload, f->len, &s) < 0)
                return protocol_error(r, "a bad STARTED frame");
        r->out->started = true;
        r->out->pool_hit = s.pool_hit;
        /* The decoder has checked that each fits. */
        strcpy(r->out->exec_id, s.exec_id);
        strcpy(r->out->container_id, s.container_id);
        strcpy(r->out->profile, s.profile);
        if (r->way->tty && r->way->use_stdin)
                enter_terminal(r);
        if (r->way->tty)
                send_size(r);
        if (r->way->kind == CLI_DETACH)
                r->out->end = CLI_END_DETACHED;
        return r->way->kind == CLI_DETACH;
}

static bool on_attached(struct run *r, const struct frame *f) {
        struct attached a;

        if (r->way->kind != CLI_ATTACH || !r->out->started || r->out->attached ||
            attached_decode(f->payload, f->len, &a) < 0)
                return protocol_error(r, "a bad ATTACHED frame");
        r->out->attached = true;
        memcpy(r->out->from, a.from, sizeof(a.from));
        return false;
}

static bool on_window(struct run *r, const struct frame *f) {
        struct window w;

        if (window_decode(f->payload, f->len, &w) < 0 || w.stream != STREAM_STDIN ||
            w.bytes > UINT32_MAX - r->stdin_credit)
                return protocol_error(r, "a bad WINDOW frame");
        r->stdin_credit += w.bytes;
        return false;
}

/* True when it was the last one. */
static bool on_frame(struct run *r, const struct frame *f) {
        /* A connection that is refused as a whole has no channel yet. */
        if (f->channel != CLI_CHANNEL && f->type != FRAME_REJECT)
                return protocol_error(r, "a frame of a channel that is not open");
        switch (f->type) {
        case FRAME_STDOUT:
        case FRAME_STDERR:
                return on_output(r, f);
        case FRAME_STARTED:
                return on_started(r, f);
        case FRAME_ATTACHED:
                return on_attached(r, f);
        case FRAME_WINDOW:
                return on_window(r, f);
        case FRAME_RESULT:
                if (result_decode(f->payload, f->len, &r->out->result) < 0)
                        return protocol_error(r, "a bad RESULT frame");
                r->out->end = CLI_END_RESULT;
                r->out->exit_code = r->out->result.exit_code;
                return true;
        case FRAME_REJECT:
                if (reject_decode(f->payload, f->len, &r->out->reject) < 0)
                        return protocol_error(r, "a bad REJECT frame");
                r->out->end = CLI_END_REJECT;
                r->out->exit_code = r->out->reject.exit_code;
                return true;
        default:
                return protocol_error(r, "a frame that has no place here");
        }
}

/* @n is 0 or -errno. */
static bool lost(struct run *r, int n) {
        r->out->end = CLI_END_LOST;
        r->out->exit_code = EXIT_SANDBOX;
        errmsg_set(&r->out->error, 0, "lost the manager%s%s: %s", n < 0 ? ": " : "",
                   n < 0 ? strerror(-n) : "",
                   r->way->kind == CLI_ATTACH || r->way->kind == CLI_WAIT
                           ? "the command goes on without us: ask again"
                           : "nothing is known of the command's end");
        return true;
}

/* Begins with the frame that has not come whole, where that pays. True: it was the end. */
static bool begin_move(struct run *r) {
        struct frame f;
        size_t have;

        if (!r->sink->moves || !cli_conn_begun(r->conn, &f, &have))
                return false;
        r->moving -= r->moving > 0;
        if ((f.type != FRAME_STDOUT && f.type != FRAME_STDERR) || f.channel != CLI_CHANNEL ||
            f.len - have < MOVE_MIN || !r->sink->moves(stream_of(&f)))
                return false;
        r->moving = MOVE_PATIENCE;
        r->rest_stream = stream_of(&f);
        r->rest = f.len - have;
        f.len = (uint32_t)have;
        cli_conn_cut(r->conn);
        return on_output(r, &f);
}

/* True: it was the end. */
static bool go_on_moving(struct run *r, bool *ret_empty) {
        size_t n = 0;
        int code = r->sink->move(r->rest_stream, r->conn->fd, r->rest, &n);

        if (code == -ECONNRESET)
                return lost(r, 0);
        if (code != 0)
                return undeliverable(r, code);
        r->rest -= n;
        *ret_empty = n == 0;
        delivered(r, r->rest_stream, n);
        return false;
}

/* What was received, and what comes behind it in the same frame. True: it was the end. */
static bool on_received(struct run *r, bool *ret_empty) {
        struct frame f;
        size_t max = r->moving ? cli_conn_missing(r->conn) : r->way->tty ? TTY_CHUNK : SIZE_MAX;
        int n = cli_conn_fill(r->conn, max, MSG_DONTWAIT);

        *ret_empty = n == -EAGAIN;
        if (n == -EAGAIN)
                return false;
        if (n <= 0)
                return lost(r, n);
        while ((n = cli_conn_next(r->conn, &f, &r->out->error)) > 0)
                if (on_frame(r, &f))
                        return true;
        if (n < 0) {
                r->out->end = CLI_END_LOST;
                r->out->exit_code = EXIT_SANDBOX;
                return true;
        }
        return begin_move(r);
}

static bool on_socket(struct run *r) {
        bool done = false, empty = false;

        for (int i = 0; i < SOCKET_ROUNDS && !done && !empty && (i == 0 || r->moving); i++)
                done = r->rest > 0 ? go_on_moving(r, &empty) : on_received(r, &empty);
        return done;
}

static void catch_signals(struct run *r) {
        static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
        static const int of_tty[] = { SIGWINCH, SIGCONT };

        sigemptyset(&r->signals);
        for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
                sigaddset(&r->signals, forwarded[i]);
        for (size_t i = 0; r->way->tty && i < sizeof(of_tty) / sizeof(of_tty[0]); i++)
                sigaddset(&r->signals, of_tty[i]);
        /* Without a signalfd they keep their default: the caller can still end us. */
        r->signal_fd = signalfd(-1, &r->signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (r->signal_fd >= 0)
                sigprocmask(SIG_BLOCK, &r->signals, NULL);
}

/* The end of an input that there is none of. */
static void end_input(struct run *r) {
        frame_put_header(to_send + r->send_end, FRAME_STDIN, FRAME_EOF, CLI_CHANNEL, 0);
        r->send_end += FRAME_HEADER;
        flush(r);
}

static void loop(struct run *r) {
        bool done = false;

        while (!done) {
                bool control = !r->send_dead && room(r) >= FRAME_HEADER + WINDOW_SIZE;
                bool input = r->stdin_open && r->stdin_credit > 0 && !r->send_dead && r->send_end == 0 &&
                             (!r->way->tty || r->out->started);
                bool waits = input && cli_input_waits(r->way->input, r->input_pos);
                struct pollfd p[] = {
                        { .fd = r->conn->fd, .events = POLLIN },
                        { .fd = control ? r->signal_fd : -1, .events = POLLIN },
                        { .fd = input ? STDIN_FILENO : -1, .events = POLLIN },
                        { .fd = STDOUT_FILENO }, /* of it only the end is told */
                };

                if (r->send_end > r->send_start && !r->send_dead)
                        p[0].events |= POLLOUT;
                if (poll(p, r->way->watch ? 4 : r->way->use_stdin ? 3 : 2, waits ? 0 : -1) < 0)
                        continue;
                if (p[3].revents)
                        obey(r, SIGHUP);
                if (p[0].revents & POLLOUT) {
                        flush(r);
                        grant(r, STREAM_STDOUT);
                        grant(r, STREAM_STDERR);
                }
                if (p[0].revents & ~POLLOUT)
                        done = on_socket(r);
                if (!done && p[1].revents)
                        on_signal(r);
                if (!done && (p[2].revents || waits) && r->send_end == 0)
                        on_stdin(r);
        }
}

void cli_run_way(struct cli_conn *conn, const struct cli_way *way, struct cli_sink *sink,
                 struct cli_outcome *ret) {
        struct run r = { 0 };

        memset(ret, 0, sizeof(*ret));
        r.conn = conn;
        r.way = way;
        r.sink = sink;
        r.out = ret;
        r.rows = way->rows;
        r.cols = way->cols;
        r.stdin_open = way->use_stdin;
        r.stdin_credit = FRAME_CREDIT;
        r.signal_fd = -1;
        if (way->kind == CLI_EXEC)
                catch_signals(&r);
        if (way->no_input)
                end_input(&r);
        loop(&r);
        if (way->tty)
                cli_tty_leave();
        if (way->kind == CLI_EXEC)
                sigprocmask(SIG_UNBLOCK, &r.signals, NULL);
}

void cli_run(struct cli_conn *conn, bool use_stdin, struct cli_sink *sink, struct cli_outcome *ret) {
        const struct cli_way way = { .kind = CLI_EXEC, .use_stdin = use_stdin };

        cli_run_way(conn, &way, sink, ret);
}
