/*
 * From an EXEC order to a running command. The order is kept where it was received: the arguments point
 * into it, and it stays untouched until the child has exec'd, because the agent waits for that (vfork).
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wire.h"

/* The longest single argument that Linux takes, its NUL included (MAX_ARG_STRLEN, linux/binfmts.h). */
#define ARG_MAX_ONE 131072
/* Variables that an image may set; more are left out. */
#define IMAGE_ENV_MAX 1024
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* A shell that does not end by itself in this time is no reason not to start. */
#define WARM_UP_MAX_US 1000000
/* How sh reads a script that does not fit an argument: $0 and the exit code stay as with -c. */
#define SCRIPT_ARG ". /proc/self/fd/3"

static char *argv[PROTO_ARGS_MAX + 4];
static char *envp[PROTO_ENV_MAX + IMAGE_ENV_MAX + 2];

struct environment {
        size_t n;
        const char *path;
};

static bool same_key(const char *a, const char *b) {
        size_t n = strcspn(a, "=");

        return strncmp(a, b, n) == 0 && b[n] == '=';
}

static void env_set(struct environment *e, const char *var) {
        size_t i = 0;

        while (i < e->n && !same_key(var, envp[i]))
                i++;
        envp[i] = (char *)var;
        if (i == e->n)
                e->n++;
        if (strncmp(var, "PATH=", 5) == 0)
                e->path = var + 5;
}

/* The image's variables first, then the order's: later ones win. */
static const char *build_env(const struct agent *a, struct wire_in *in, uint32_t n_env) {
        struct environment e = { 0 };

        env_set(&e, "PATH=" DEFAULT_PATH);
        for (size_t i = 0; i < IMAGE_ENV_MAX && a->image_env[i]; i++)
                if (a->image_env[i][0] != '=' && strchr(a->image_env[i], '='))
                        env_set(&e, a->image_env[i]);
        for (uint32_t i = 0; i < n_env; i++)
                env_set(&e, wire_get_str(in, PROTO_EXEC_MAX));
        envp[e.n] = NULL;
        return e.path;
}

/* A script as an unchangeable file that has no name. */
static int script_file(const char *script, size_t len) {
        _cleanup_fd_ int fd = memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        while (len > 0) {
                ssize_t n = write(fd, script, len);

                if (n < 0)
                        return -errno;
                script += n;
                len -= (size_t)n;
        }
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;
        return take_fd(&fd);
}

static int build_argv(struct child *c, struct wire_in *in, const struct exec_order *o) {
        size_t n = 0;

        if (o->shell) {
                argv[n++] = (char *)"sh";
                argv[n++] = (char *)"-c";
        }
        for (uint32_t i = 0; i < o->n_args; i++)
                argv[n++] = (char *)wire_get_str(in, PROTO_EXEC_MAX);
        argv[n] = NULL;
        c->argv = argv;
        c->program = o->shell ? "/bin/sh" : argv[0];
        if (o->shell) {
                size_t len = strlen(argv[2]);

                if (len >= ARG_MAX_ONE) {
                        c->script_fd = script_file(argv[2], len);
                        if (c->script_fd < 0)
                                return c->script_fd;
                        argv[2] = (char *)SCRIPT_ARG;
                }
        }
        return 0;
}

/* A pipe whose end @ours does not block; the other is for the child. */
static int make_pipe(int p[2], int ours) {
        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        return fcntl(p[ours], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int watch(struct agent *a, int fd, uint32_t events, enum agent_event kind, unsigned index) {
        struct epoll_event ev = { .events = events | EPOLLET, .data.u64 = AGENT_EVENT(kind, index) };

        return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Fills c->fds with the child's ends and the slot with ours. */
static int make_streams(struct agent *a, struct exec *x, struct child *c, bool use_stdin) {
        unsigned index = (unsigned)(x - a->execs);
        int p[2], r;

        for (int i = 0; i < 2; i++) {
                r = make_pipe(p, 0);
                if (r < 0)
                        return r;
                x->out[i].fd = p[0];
                c->fds[i + 1] = p[1];
                r = watch(a, p[0], EPOLLIN, i == 0 ? EVENT_STDOUT : EVENT_STDERR, index);
                if (r < 0)
                        return r;
        }
        if (!use_stdin)
                return 0;
        r = make_pipe(p, 1);
        if (r < 0)
                return r;
        c->fds[0] = p[0];
        x->in.fd = p[1];
        return watch(a, p[1], EPOLLOUT, EVENT_STDIN, index);
}

static uint8_t failure_cause(const struct child *c) {
        if (c->stage == START_PROGRAM && (c->error == ENOENT || c->error == ENOTDIR))
                return CAUSE_NOT_FOUND;
        return CAUSE_NOT_EXECUTABLE;
}

static void start(struct agent *a, struct exec *x, const struct exec_order *o) {
        struct child c = {
                .ids = &a->ids,
                .exec_gid = x->gid,
                .fds = { a->null_fd, -1, -1 },
                .script_fd = -1,
                .workdir = o->workdir,
                .envp = envp,
        };
        struct wire_in in;
        int r;

        wire_in_init(&in, o->strings, o->strings_len);
        r = build_argv(&c, &in, o);
        if (r == 0) {
                c.path = build_env(a, &in, o->n_env);
                r = make_streams(a, x, &c, o->use_stdin);
        }
        if (r == 0)
                r = x->pid = child_start(&c);
        for (int i = 0; i < 3; i++)
                if (c.fds[i] != a->null_fd)
                        close_fd(c.fds[i]);
        close_fd(c.script_fd);
        if (r == -EAGAIN)
                exec_failed(a, x, CAUSE_PIDS_LIMIT, START_PLUMBING, EAGAIN);
        else if (r < 0)
                exec_failed(a, x, CAUSE_NOT_EXECUTABLE, START_PLUMBING, -r);
        else if (c.error)
                exec_failed(a, x, failure_cause(&c), c.stage, c.error);
}

void start_warm_up(struct agent *a) {
        static char *args[] = { (char *)"sh", (char *)"-c", (char *)":", NULL };
        static char *env[] = { NULL };
        struct child c = {
                .ids = &a->ids,
                .exec_gid = a->ids.exec_gid_first,
                .fds = { a->null_fd, a->null_fd, a->null_fd },
                .script_fd = -1,
                .workdir = "/",
                .program = "/bin/sh",
                .argv = args,
                .envp = env,
                .path = DEFAULT_PATH,
        };
        uint64_t until = now_us() + WARM_UP_MAX_US;
        pid_t pid = child_start(&c);

        while (pid > 0 && waitpid(-1, NULL, WNOHANG) >= 0) {
                struct timespec pause = { 0, 200000 };

                if (now_us() > until)
                        kill(-1, SIGKILL);
                nanosleep(&pause, NULL);
        }
}

int start_order_frame(struct agent *a, const struct frame *f) {
        struct exec_order o;
        struct exec *x;

        if (a->order_len > 0 && a->order_channel != f->channel)
                return -EPROTO;
        if (f->len > sizeof(a->order) - a->order_len)
                return -EPROTO;
        memcpy(a->order + a->order_len, f->payload, f->len);
        a->order_len += f->len;
        a->order_channel = f->channel;
        if (f->flags & FRAME_MORE)
                return 0;

        if (exec_order_decode(a->order, a->order_len, &o) < 0 || exec_find(a, f->channel))
                return -EPROTO;
        a->order_len = 0;
        x = exec_take(a, f->channel, &o);
        if (x)
                start(a, x, &o);
        else {
                struct exited e = { .cause = CAUSE_PIDS_LIMIT, .code = START_PLUMBING, .error = EAGAIN };
                uint8_t buf[EXITED_MAX];

                /* Who sends hundreds of orders at once and reads nothing is not served. */
                if (link_room(&a->link) < sizeof(buf))
                        return -EPROTO;
                link_put(&a->link, FRAME_EXITED, f->channel, buf,
                         (uint32_t)exited_encode(&e, buf, sizeof(buf)));
        }
        return 0;
}
