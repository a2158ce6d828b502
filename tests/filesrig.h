/*
 * The file commands against a fake manager that has the agent's tool and no sandbox: what test_cli_files.c and
 * test_cli_files_hostile.c share. The tool works in inside/, the command line beside it.
 */
#pragma once

#include "agent/files.h"
#include "clirig.h"
#include "filetree.h"

/* Both below dir. */
static char inside[80], outside[80];

/* --- the manager's side -------------------------------------------------------------------------- */

struct tool {
        pid_t pid;
        int in, out[2]; /* our ends; -1: closed */
        size_t credit[2];
        char *argv[64];
};

static inline void tool_args(struct tool *t, const struct exec_request *r) {
        struct wire_in in;

        must(r->files && !r->shell && !r->tty && !r->detach && strcmp(r->session, "s1") == 0,
             "the request");
        must(r->profile[0] == '\0' && r->workdir[0] == '\0' && r->n_args < 62, "the request");
        wire_in_init(&in, r->args_wire, r->strings_len);
        t->argv[0] = (char *)FILES_NAME;
        for (uint32_t i = 0; i < r->n_args; i++)
                t->argv[i + 1] = (char *)wire_get_str(&in, PROTO_EXEC_MAX);
        t->argv[r->n_args + 1] = NULL;
}

static inline void tool_start(struct tool *t, const struct exec_request *r) {
        int in[2], out[2], err[2], n = 0;

        tool_args(t, r);
        must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0,
             "pipes");
        t->pid = fork();
        if (t->pid == 0) {
                dup2(in[0], 0);
                dup2(out[1], 1);
                dup2(err[1], 2);
                close_range(3, ~0U, 0);
                signal(SIGPIPE, SIG_DFL);
                while (t->argv[n])
                        n++;
                must(chdir(inside) == 0, "chdir");
                exit(files_main(n, t->argv));
        }
        close(in[0]);
        close(out[1]);
        close(err[1]);
        t->in = in[1];
        if (!r->use_stdin) {
                close(t->in);
                t->in = -1;
        }
        t->out[0] = out[0];
        t->out[1] = err[0];
        t->credit[0] = t->credit[1] = FRAME_CREDIT;
}

static inline void tool_stdin(struct peer *p, struct tool *t) {
        struct window w = { STREAM_STDIN, p->f.len };
        uint8_t buf[WINDOW_SIZE];

        for (size_t done = 0; done < p->f.len && t->in >= 0;) {
                ssize_t n = write(t->in, p->f.payload + done, p->f.len - done);

                if (n < 0) {
                        close(t->in);
                        t->in = -1;
                        return;
                }
                done += (size_t)n;
        }
        if (p->f.flags & FRAME_EOF) {
                close(t->in);
                t->in = -1;
        } else if (p->f.len > 0) {
                window_encode(&w, buf);
                put(p, FRAME_WINDOW, 1, buf, sizeof(buf));
        }
}

static inline void tool_frame(struct peer *p, struct tool *t) {
        struct window w;

        switch (p->f.type) {
        case FRAME_STDIN:
                tool_stdin(p, t);
                return;
        case FRAME_WINDOW:
                must(window_decode(p->f.payload, p->f.len, &w) == 0 && w.stream != STREAM_STDIN,
                     "WINDOW");
                t->credit[w.stream - 1] += w.bytes;
                return;
        case FRAME_SIGNAL:
                kill(t->pid, p->f.payload[0]);
                return;
        default:
                must(false, "a frame");
        }
}

static inline void tool_output(struct peer *p, struct tool *t, int i) {
        static uint8_t buf[FRAME_PAYLOAD_MAX];
        size_t most = t->credit[i] < sizeof(buf) ? t->credit[i] : sizeof(buf);
        ssize_t n = read(t->out[i], buf, most);

        if (n <= 0) {
                close(t->out[i]);
                t->out[i] = -1;
                return;
        }
        t->credit[i] -= (size_t)n;
        put(p, i == 0 ? FRAME_STDOUT : FRAME_STDERR, 1, buf, (size_t)n);
}

/* True when the client is there still. */
static inline bool tool_turn(struct peer *p, struct tool *t) {
        /* Some frames may have come with the one before. */
        while (p->len - p->used >= FRAME_HEADER) {
                if (!peer_next(p))
                        return false;
                tool_frame(p, t);
        }
        struct pollfd f[] = {
                { .fd = p->fd, .events = POLLIN },
                { .fd = t->credit[0] ? t->out[0] : -1, .events = POLLIN },
                { .fd = t->credit[1] ? t->out[1] : -1, .events = POLLIN },
        };

        must(poll(f, 3, -1) > 0, "poll");
        for (int i = 0; i < 2; i++)
                if (f[i + 1].revents)
                        tool_output(p, t, i);
        if (f[0].revents) {
                if (!peer_next(p))
                        return false;
                tool_frame(p, t);
        }
        return true;
}

/* The manager of a session that has an agent. */
static inline void m_tool(struct peer *p) {
        static struct tool t;
        struct exec_request r = take_request(p);
        struct result end = a_result();
        int status;

        signal(SIGPIPE, SIG_IGN);
        p->may_leave = true; /* after more than it takes */
        put_hello(p, FRAME_VERSION);
        put_started(p);
        tool_start(&t, &r);
        while (t.out[0] >= 0 || t.out[1] >= 0)
                if (!tool_turn(p, &t)) {
                        kill(t.pid, SIGKILL);
                        waitpid(t.pid, &status, 0);
                        return;
                }
        must(waitpid(t.pid, &status, 0) == t.pid, "waitpid");
        end.session = "s1";
        end.signaled = WIFSIGNALED(status);
        end.cause = end.signaled ? CAUSE_SIGNALED : CAUSE_EXITED;
        end.code = (uint8_t)(end.signaled ? WTERMSIG(status) : WEXITSTATUS(status));
        end.exit_code = end.signaled ? (uint8_t)(128 + end.code) : end.code;
        put_result(p, &end);
}

/* --- the runner ---------------------------------------------------------------------------------- */

/* The command line in outside/, with m_tool; its outcome is in o. */
static inline void files_with(void (*manager)(struct peer *p), char **argv, int code) {
        struct how h = { .manager = manager, .stdin_fd = null_fd() };

        assert_int_equal(chdir(outside), 0);
        run(argv, &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, code);
}

#define FILES(code, ...) files_with(m_tool, ARGV(__VA_ARGS__), code)

static inline int files_setup(void **state) {
        (void)state;
        snprintf(inside, sizeof(inside), "%s/inside", dir);
        snprintf(outside, sizeof(outside), "%s/outside", dir);
        umask(077);
        return mkdir(inside, 0700) == 0 && mkdir(outside, 0700) == 0 && chdir(outside) == 0 ? 0 : -1;
}

static inline int files_teardown(void **state) {
        (void)state;
        if (chdir("/") < 0)
                return -1;
        tree_remove(inside);
        tree_remove(outside);
        return 0;
}

/* A path below inside/, good until the fourth call from here. */
static inline const char *in(const char *name) {
        static char path[4][512];
        static unsigned n;

        n = (n + 1) % 4;
        snprintf(path[n], sizeof(path[n]), "%s/%s", inside, name);
        return path[n];
}

static inline struct stat stat_of(const char *path) {
        struct stat st;

        if (lstat(path, &st) < 0)
                fail_msg("%s: %s", path, strerror(errno));
        return st;
}

static inline bool is_there(const char *path) {
        struct stat st;

        return lstat(path, &st) == 0;
}

static inline void assert_text(const char *path, const char *text) {
        char buf[256] = "";
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || read(fd, buf, sizeof(buf) - 1) < 0)
                fail_msg("%s: %s", path, strerror(errno));
        close(fd);
        assert_string_equal(buf, text);
}
