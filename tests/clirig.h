/*
 * The command line against a fake manager in a forked child: what test_cli_exec.c and test_cli_input.c
 * share. A fake is a function that speaks frames; run() starts it and the CLI, and tells what came out.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "common/frame.h"
#include "common/proto.h"
#include "common/proto_open.h"
#include "common/wire.h"

#define EXEC_ID "0123456789abcdef"
#define SANDBOX EXEC_ID EXEC_ID EXEC_ID EXEC_ID
#define DEADLINE_S 30

/* --- the manager's side --------------------------------------------------------------------- */

struct peer {
        int fd, listener;
        int passed;     /* a descriptor that came along, 0: none */
        bool may_leave; /* the caller, before it has all that is sent to it */
        size_t len, used;
        uint8_t buf[4 * FRAME_MAX];
        struct frame f;
};

static inline void must(bool ok, const char *what) {
        if (ok)
                return;
        fprintf(stderr, "fake manager: %s\n", what);
        _exit(99);
}

/* As recv(2), and takes one descriptor. */
static inline ssize_t peer_receive(struct peer *p) {
        struct iovec iov = { p->buf + p->len, sizeof(p->buf) - p->len };
        union {
                struct cmsghdr h;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(p->fd, &m, MSG_CMSG_CLOEXEC);

        must(!(m.msg_flags & MSG_CTRUNC), "more than one descriptor");
        if (n > 0 && m.msg_controllen > 0 && control.h.cmsg_type == SCM_RIGHTS)
                memcpy(&p->passed, CMSG_DATA(&control.h), sizeof(int));
        return n;
}

static inline bool peer_next(struct peer *p) {
        memmove(p->buf, p->buf + p->used, p->len - p->used);
        p->len -= p->used;
        p->used = 0;
        for (;;) {
                int r = frame_parse(p->buf, p->len, FRAME_FROM_CLIENT, &p->f, &p->used);
                ssize_t n;

                must(r >= 0, "a bad frame");
                if (r > 0)
                        return true;
                n = peer_receive(p);
                if (n <= 0)
                        return false;
                p->len += (size_t)n;
        }
}

/* The next caller, after the one that was there. */
static inline void peer_again(struct peer *p) {
        close(p->fd);
        p->fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
        must(p->fd >= 0, "accept");
        p->len = p->used = 0;
}

static inline void put_flagged(struct peer *p, uint8_t type, uint8_t flags, uint32_t channel,
                               const void *payload, size_t len) {
        static uint8_t out[FRAME_MAX];

        frame_put_header(out, type, flags, channel, (uint32_t)len);
        memcpy(out + FRAME_HEADER, payload, len);
        for (size_t off = 0; off < FRAME_HEADER + len;) {
                ssize_t n = send(p->fd, out + off, FRAME_HEADER + len - off, MSG_NOSIGNAL);

                if (n < 0 && p->may_leave)
                        _exit(0);
                must(n > 0, "cannot send");
                off += (size_t)n;
        }
}

static inline void put(struct peer *p, uint8_t type, uint32_t channel, const void *payload, size_t len) {
        put_flagged(p, type, 0, channel, payload, len);
}

static inline void put_hello(struct peer *p, uint16_t version) {
        struct hello h = { .version = version, .role = HELLO_MANAGER, .text = "fake" };
        uint8_t buf[64];

        put(p, FRAME_HELLO, 0, buf, (size_t)hello_encode(&h, buf, sizeof(buf)));
}

static inline void put_started(struct peer *p) {
        struct started s = { EXEC_ID, SANDBOX, "default", true };
        uint8_t buf[512];

        put(p, FRAME_STARTED, 1, buf, (size_t)started_encode(&s, buf, sizeof(buf)));
}

static inline struct result a_result(void) {
        return (struct result){ .cause = CAUSE_EXITED,
                                .pool_hit = true,
                                .wall_us = 1,
                                .user_us = 2,
                                .system_us = 3,
                                .maxrss_bytes = 4,
                                .sandbox_peak_bytes = 5,
                                .exec_id = EXEC_ID,
                                .container_id = SANDBOX,
                                .profile = "default",
                                .session = "",
                                .message = "" };
}

static inline void put_result(struct peer *p, const struct result *r) {
        uint8_t buf[2048];

        put(p, FRAME_RESULT, 1, buf, (size_t)result_encode(r, buf, sizeof(buf)));
}

static inline void put_exit(struct peer *p, uint8_t code) {
        struct result r = a_result();

        r.exit_code = r.code = code;
        put_result(p, &r);
}

/* Reads the request, all its frames, and leaves its payload in a static buffer. */
static inline struct exec_request take_request(struct peer *p) {
        static uint8_t whole[PROTO_EXEC_MAX];
        struct exec_request r;
        struct hello h;
        size_t len = 0;

        must(peer_next(p) && p->f.type == FRAME_HELLO && p->f.channel == 0, "no HELLO");
        must(hello_decode(p->f.payload, p->f.len, &h) == 0 && h.role == HELLO_CLIENT, "bad HELLO");
        do {
                must(peer_next(p) && p->f.type == FRAME_EXEC && p->f.channel == 1, "no EXEC");
                memcpy(whole + len, p->f.payload, p->f.len);
                len += p->f.len;
        } while (p->f.flags & FRAME_MORE);
        must(exec_request_decode(whole, len, &r) == 0, "bad EXEC");
        return r;
}

static inline void take_hello(struct peer *p) {
        must(peer_next(p) && p->f.type == FRAME_HELLO && p->f.channel == 0, "no HELLO");
}

static inline struct ask take_ask(struct peer *p) {
        struct ask a;

        take_hello(p);
        must(peer_next(p) && p->f.type == FRAME_ASK && p->f.channel == 1, "no ASK");
        must(ask_decode(p->f.payload, p->f.len, &a) == 0, "bad ASK");
        must(p->passed == 0, "a descriptor");
        return a;
}

static inline struct open_request take_open(struct peer *p) {
        struct open_request r;

        take_hello(p);
        must(peer_next(p) && p->f.type == FRAME_OPEN && p->f.channel == 1, "no OPEN");
        must(open_request_decode(p->f.payload, p->f.len, &r) == 0, "bad OPEN");
        must(r.mounts == (p->passed > 0), "a descriptor, or none");
        return r;
}

static inline struct attach take_attach(struct peer *p) {
        struct attach a;

        take_hello(p);
        must(peer_next(p) && p->f.type == FRAME_ATTACH && p->f.channel == 1, "no ATTACH");
        must(attach_decode(p->f.payload, p->f.len, &a) == 0, "bad ATTACH");
        return a;
}

static inline void put_answer(struct peer *p, const char *text) {
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_ANSWER, 1, text, strlen(text));
}

static inline void put_reject(struct peer *p, uint8_t code, const char *line) {
        struct reject r = { code, REJECT_OTHER, line };
        uint8_t buf[1100];

        put_hello(p, FRAME_VERSION);
        put(p, FRAME_REJECT, 1, buf, (size_t)reject_encode(&r, buf, sizeof(buf)));
}

static inline void greet(struct peer *p) {
        take_request(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
}

/* --- the runner --------------------------------------------------------------------- */

struct outcome {
        int status; /* of waitpid */
        char out[4096], err[4096];
        size_t out_len;
};

struct how {
        void (*manager)(struct peer *p); /* NULL: nobody listens */
        int stdin_fd;                    /* -1: closed */
        int stdout_fd;                   /* 0: captured */
        void (*meanwhile)(pid_t cli);
};

static char dir[] = "/tmp/test-cli.XXXXXX";
static char sock[64];

static inline pid_t start_manager(void (*manager)(struct peer *p)) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        static struct peer p;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        pid_t pid;

        strcpy(sa.sun_path, sock);
        unlink(sock);
        assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(listen(fd, 4), 0);
        pid = fork();
        if (pid == 0) {
                alarm(DEADLINE_S);
                p.listener = fd;
                p.fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
                must(p.fd >= 0, "accept");
                manager(&p);
                _exit(0);
        }
        close(fd);
        return pid;
}

static const char *log_dir = "/nonexistent";

static inline void run_child(char **argv, const struct how *h, int out, int err) {
        struct cli c = { .libexec = "/nonexistent",
                         .system_socket = sock,
                         .systemd_dir = "/nonexistent",
                         .group_file = "/etc/group",
                         .log_dir = log_dir };
        int argc = 0;

        while (argv[argc])
                argc++;
        alarm(DEADLINE_S);
        unsetenv("HERMES_SANDBOX_SOCKET");
        unsetenv("XDG_RUNTIME_DIR");
        dup2(out, 1);
        dup2(err, 2);
        if (h->stdin_fd < 0)
                close(0);
        else
                dup2(h->stdin_fd, 0);
        close_range(3, ~0U, 0);
        exit(cli_main(&c, argc, argv));
}

/* Runs `hermes-sandbox argv…` and collects all that it writes. */
static inline void run(char **argv, const struct how *h, struct outcome *o) {
        int out[2], err[2], status = 0;
        pid_t manager = h->manager ? start_manager(h->manager) : 0, cli;
        size_t out_len = 0, err_len = 0;

        if (!h->manager)
                unlink(sock);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        assert_int_equal(pipe2(err, O_CLOEXEC), 0);
        cli = fork();
        if (cli == 0)
                run_child(argv, h, h->stdout_fd ? h->stdout_fd : out[1], err[1]);
        close(out[1]);
        close(err[1]);
        if (h->meanwhile)
                h->meanwhile(cli);
        o->out_len = 0;
        for (;;) {
                char scratch[4096];
                ssize_t n = read(out[0], scratch, sizeof(scratch));

                if (n <= 0)
                        break;
                o->out_len += (size_t)n;
                for (ssize_t i = 0; i < n && out_len < sizeof(o->out) - 1; i++)
                        o->out[out_len++] = scratch[i];
        }
        for (ssize_t n; (n = read(err[0], o->err + err_len, sizeof(o->err) - 1 - err_len)) > 0;)
                err_len += (size_t)n;
        o->out[out_len] = o->err[err_len] = '\0';
        close(out[0]);
        close(err[0]);
        assert_int_equal(waitpid(cli, &o->status, 0), cli);
        if (manager > 0) {
                assert_int_equal(waitpid(manager, &status, 0), manager);
                assert_int_equal(status, 0);
        }
}

#define ARGV(...) ((char *[]){ (char[]){ "hermes-sandbox" }, __VA_ARGS__, NULL })
#define W(s) ((char[]){ s })

static inline void assert_exit(const struct outcome *o, int code) {
        if (!WIFEXITED(o->status) || WEXITSTATUS(o->status) != code)
                print_message("stderr: %s\n", o->err);
        assert_true(WIFEXITED(o->status));
        assert_int_equal(WEXITSTATUS(o->status), code);
}

static inline int null_fd(void) {
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static struct outcome o;

static inline void simple(void (*manager)(struct peer *p), int code, const char *out, const char *err) {
        struct how h = { .manager = manager, .stdin_fd = null_fd() };

        run(ARGV(W("exec"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, code);
        assert_string_equal(o.out, out);
        assert_string_equal(o.err, err);
}

/* Until the program blocks that signal: in its loop it does so with those that it forwards. While fork(3) is
 * under way the C library blocks all of them. */
static inline void when_blocked(pid_t cli, int signo) {
        for (int i = 0; i < 5000; i++) {
                char path[64], line[256];
                uint64_t blocked = 0;
                FILE *f;

                snprintf(path, sizeof(path), "/proc/%d/status", (int)cli);
                f = fopen(path, "re");
                while (f && fgets(line, sizeof(line), f))
                        if (strncmp(line, "SigBlk:", 7) == 0)
                                blocked = strtoull(line + 7, NULL, 16);
                if (f)
                        fclose(f);
                if ((blocked & UINT64_C(1) << (signo - 1)) && !(blocked & UINT64_C(1) << (SIGSEGV - 1)))
                        return;
                poll(NULL, 0, 1);
        }
}

/* --- the cases --------------------------------------------------------------------- */

static inline void m_plain(struct peer *p) {
        struct exec_request r = take_request(p);
        struct wire_in in;

        must(r.shell && !r.use_stdin && r.n_args == 1 && r.n_env == 0, "the request");
        wire_in_init(&in, r.args_wire, r.strings_len);
        must(strcmp(wire_get_str(&in, 100), "cmd") == 0, "the command");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put(p, FRAME_STDOUT, 1, "out\n", 4);
        put(p, FRAME_STDERR, 1, "err\n", 4);
        put_exit(p, 7);
}

static inline int setup(void **state) {
        (void)state;
        signal(SIGPIPE, SIG_DFL);
        if (!mkdtemp(dir))
                return -1;
        snprintf(sock, sizeof(sock), "%s/pool.sock", dir);
        return 0;
}

static inline int teardown(void **state) {
        (void)state;
        unlink(sock);
        return rmdir(dir);
}

/* Runs it and expects that. */
static inline void asked(char **argv, void (*manager)(struct peer *p), int code, const char *out,
                         const char *err) {
        struct how h = { .manager = manager, .stdin_fd = null_fd() };

        run(argv, &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, code);
        assert_string_equal(o.out, out);
        assert_string_equal(o.err, err);
}

/* Words that are refused as bad usage, with that line. */
struct bad_usage {
        const char *words[5];
        const char *line;
};

static inline void refused(const struct bad_usage *cases, size_t n_cases) {
        for (size_t i = 0; i < n_cases; i++) {
                char words[5][64], *argv[7] = { W("hermes-sandbox") };
                char line[512];

                for (int n = 0; n < 5 && cases[i].words[n]; n++) {
                        snprintf(words[n], sizeof(words[n]), "%s", cases[i].words[n]);
                        argv[n + 1] = words[n];
                }
                snprintf(line, sizeof(line), "hermes-sandbox: %s\n", cases[i].line);
                asked(argv, NULL, 64, "", line);
        }
}
