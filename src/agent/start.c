/*
 * From an EXEC order to a running command. The order is kept where it was received: the arguments point
 * into it, and it stays untouched until the child has exec'd, because the agent waits for that.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/files.h"
#include "common/agent_args.h"
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

/* Arguments, and the environment right behind them: most commands touch one page of it. */
static char *words[PROTO_ARGS_MAX + 4 + PROTO_ENV_MAX + IMAGE_ENV_MAX + 3] PLACED_SCRATCH;

struct environment {
        char **vars;
        size_t n;
        const char *path;
};

static bool same_key(const char *a, const char *b) {
        size_t n = strcspn(a, "=");

        return strncmp(a, b, n) == 0 && b[n] == '=';
}

static void env_set(struct environment *e, const char *var) {
        size_t i = 0;

        while (i < e->n && !same_key(var, e->vars[i]))
                i++;
        e->vars[i] = (char *)var;
        if (i == e->n)
                e->n++;
        if (strncmp(var, "PATH=", 5) == 0)
                e->path = var + 5;
}

/* The image's variables first, then the order's: later ones win. */
static void build_env(const struct agent *a, const struct exec *x, struct child *c, struct wire_in *in,
                      uint32_t n_env) {
        struct environment e = { .vars = c->envp };

        env_set(&e, "PATH=" DEFAULT_PATH);
        for (size_t i = 0; i < IMAGE_ENV_MAX && a->image_env[i]; i++)
                if (a->image_env[i][0] != '=' && strchr(a->image_env[i], '='))
                        env_set(&e, a->image_env[i]);
        for (uint32_t i = 0; i < n_env; i++)
                env_set(&e, wire_get_str(in, PROTO_EXEC_MAX));
        if (x->tree.gid == 0)
                env_set(&e, x->marker);
        e.vars[e.n] = NULL;
        c->path = e.path;
}

static void build_argv(struct child *c, struct wire_in *in, const struct exec_order *o) {
        char **argv = words;
        size_t n = 0;

        if (o->shell) {
                argv[n++] = (char *)"sh";
                argv[n++] = (char *)"-c";
        }
        if (o->files)
                argv[n++] = (char *)FILES_NAME;
        for (uint32_t i = 0; i < o->n_args; i++)
                argv[n++] = (char *)wire_get_str(in, PROTO_EXEC_MAX);
        argv[n] = NULL;
        c->argv = argv;
        c->envp = argv + n + 1;
        c->program = o->shell ? "/bin/sh" : o->files ? AGENT_PATH : argv[0];
        if (o->shell) {
                size_t len = strlen(argv[2]);

                if (len >= ARG_MAX_ONE) {
                        c->script = argv[2];
                        c->script_len = len;
                        argv[2] = (char *)SCRIPT_ARG;
                }
        }
}

/* A pipe whose end @ours does not block; the other is for the child. */
static int make_pipe(int p[2], int ours) {
        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        return fcntl(p[ours], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int start_watch(struct agent *a, int fd, uint32_t events, enum agent_event kind, unsigned index) {
        struct epoll_event ev = { .events = events | EPOLLET, .data.u64 = AGENT_EVENT(kind, index) };

        return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static void close_pipes(struct ready *p) {
        for (int i = 0; i < 2; i++) {
                p->in[i] = close_fd(p->in[i]);
                p->out[0][i] = close_fd(p->out[0][i]);
                p->out[1][i] = close_fd(p->out[1][i]);
        }
}

void start_as_command(const struct agent_user *user) {
        setfsuid(user->uid);
}

int start_as_agent(void) {
        setfsuid(0);
        /* As after any change of uid (child.c). */
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int make_pipes(struct agent *a, const struct agent_user *user, struct ready *p, unsigned index,
                      bool use_stdin) {
        int r = 0, back;

        *p = (struct ready){ .in = { -1, -1 }, .out = { { -1, -1 }, { -1, -1 } } };
        /* A command may open its own /dev/stderr again. */
        start_as_command(user);
        for (int i = 0; i < 2 && r == 0; i++)
                r = make_pipe(p->out[i], 0);
        if (use_stdin && r == 0)
                r = make_pipe(p->in, 1);
        back = start_as_agent();
        if (r == 0)
                r = back;
        for (int i = 0; i < 2 && r == 0; i++)
                r = start_watch(a, p->out[i][0], EPOLLIN, i == 0 ? EVENT_STDOUT : EVENT_STDERR, index);
        if (r < 0)
                close_pipes(p);
        return r;
}

/* What was ready and is not, or is not wanted. */
static void drop_ready(struct agent *a) {
        if (a->ready.made)
                close_pipes(&a->ready);
        a->ready.made = false;
}

/* A terminal in the place of pipes; those that were ready are the prepared child's until it has another. */
static int take_tty(struct agent *a, struct exec *x, struct child *c, const struct exec_order *o,
                    char name[TTY_NAME]) {
        c->prepared = a->ready.made;
        drop_ready(a);
        c->out[0] = c->out[1] = a->null_fd;
        c->tty = name;
        return tty_open(a, x, o, name);
}

/* Fills the slot with our ends, and @c with the child's. */
static int take_pipes(struct agent *a, struct exec *x, struct child *c, bool use_stdin) {
        unsigned index = (unsigned)(x - a->execs);
        struct ready p = a->ready;
        int r;

        c->prepared = p.made;
        a->ready.made = false;
        if (!p.made) {
                r = make_pipes(a, x->user, &p, index, use_stdin);
                if (r < 0)
                        return r;
        }
        for (int i = 0; i < 2; i++) {
                x->out[i].fd = p.out[i][0];
                x->out[i].theirs = c->out[i] = p.out[i][1];
        }
        c->in = p.in[0];
        x->in.fd = p.in[1];
        c->use_stdin = use_stdin;
        return use_stdin ? start_watch(a, x->in.fd, EPOLLOUT, EVENT_STDIN, index) : 0;
}

void start_ready(struct agent *a) {
        struct ready *p = &a->ready;
        struct child c = { .ids = &a->ids, .user = &a->ids.user, .in = -1, .out = { -1, -1 } };
        unsigned slot;

        if (a->halt_due || (p->made && spare_is_prepared()))
                return;
        if (a->n_execs > 0 || exec_children_left()) {
                /* No reserve where commands have the agent's uid: one of them could end it, or stop it. */
                if (!exec_alone(a) && !ids_exposed(&a->ids))
                        spare_make();
                return;
        }
        drop_ready(a);
        slot = exec_free_slot(a);
        if (slot == AGENT_EXECS || make_pipes(a, &a->ids.user, p, slot, true) < 0)
                return;
        p->slot = slot;
        p->gid = exec_next_gid(a);
        c.exec_gid = p->gid;
        c.in = p->in[0];
        c.out[0] = p->out[0][1];
        c.out[1] = p->out[1][1];
        if (spare_prepare(&c) < 0) {
                close_pipes(p);
                return;
        }
        p->made = true;
        p->oom = cgroup_oom_kills(&a->cgroup);
        p->pids = cgroup_pids_refused(&a->cgroup);
}

static uint8_t failure_cause(const struct child *c) {
        if (c->stage == START_PROGRAM && (c->error == ENOENT || c->error == ENOTDIR))
                return CAUSE_NOT_FOUND;
        return CAUSE_NOT_EXECUTABLE;
}

static void start(struct agent *a, struct exec *x, const struct exec_order *o) {
        struct child c = {
                .ids = &a->ids,
                .user = x->user,
                .exec_gid = x->tree.gid,
                .in = -1,
                .out = { -1, -1 },
                .workdir = o->workdir,
        };
        char tty[TTY_NAME];
        struct wire_in in;
        int r;

        wire_in_init(&in, o->strings, o->strings_len);
        build_argv(&c, &in, o);
        build_env(a, x, &c, &in, o->n_env);
        r = o->tty ? take_tty(a, x, &c, o, tty) : take_pipes(a, x, &c, o->use_stdin);
        if (r == 0)
                r = x->pid = x->tree.sid = child_start(&c);
        x->from_reserve = c.from_reserve;
        close_fd(c.in);
        if (!o->use_stdin)
                x->in.fd = close_fd(x->in.fd);
        if (r == -EAGAIN)
                exec_failed(a, x, CAUSE_PIDS_LIMIT, START_PLUMBING, EAGAIN);
        else if (r < 0)
                exec_failed(a, x, CAUSE_NOT_EXECUTABLE, START_PLUMBING, -r);
        else if (c.error)
                exec_failed(a, x, failure_cause(&c), c.stage, c.error);
}

void start_warm_up(struct agent *a) {
        char *args[] = { (char *)"sh", (char *)"-c", (char *)":", NULL }, *env[] = { NULL };
        struct child c = {
                .ids = &a->ids,
                .user = &a->ids.user,
                .exec_gid = a->ids.exec_gid_first,
                .in = -1,
                .out = { a->null_fd, a->null_fd },
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

int start_refuse(struct agent *a, uint32_t channel, uint8_t cause, int error) {
        struct exited e = { .cause = cause, .code = START_PLUMBING, .error = error };
        uint8_t buf[EXITED_MAX];

        if (link_room(&a->link) < sizeof(buf))
                return LINK_LATER;
        link_put(&a->link, FRAME_EXITED, channel, buf, (uint32_t)exited_encode(&e, buf, sizeof(buf)));
        return 0;
}

static int order_whole(struct agent *a, uint32_t channel, const uint8_t *p, size_t len) {
        const struct agent_user *user;
        struct exec_order o;
        struct exec *x;

        if (exec_order_decode(p, len, &o) < 0 || exec_find(a, channel) || attach_find(a, channel))
                return -EPROTO;
        user = ids_find(&a->ids, o.uid, o.gid);
        if (!user || a->halt_due)
                return -EPROTO;
        /* A scrub ends all that runs: such a command is alone until its SCRUBBED. */
        if (a->scrub_due || (o.scrub && (a->n_execs > 0 || a->no_scrub[0])))
                return -EPROTO;
        /* The prepared child is of the first pair, and nobody else shall meet it. */
        if (spare_is_prepared() && user != &a->ids.user)
                spare_end();
        if (!spare_is_prepared())
                drop_ready(a);
        x = exec_take(a, channel, &o, user);
        if (!x)
                return start_refuse(a, channel, CAUSE_PIDS_LIMIT, EAGAIN);
        a->scrub_due = o.scrub;
        a->scrub_channel = channel;
        start(a, x, &o);
        return 0;
}

int start_order_frame(struct agent *a, const struct frame *f) {
        size_t before = a->order_len;
        int r;

        /* The usual one is read where it was received. */
        if (a->order_len == 0 && !(f->flags & FRAME_MORE))
                return order_whole(a, f->channel, f->payload, f->len);
        if (a->order_len > 0 && a->order_channel != f->channel)
                return -EPROTO;
        if (f->len > sizeof(a->order) - a->order_len)
                return -EPROTO;
        memcpy(a->order + a->order_len, f->payload, f->len);
        a->order_len += f->len;
        a->order_channel = f->channel;
        if (f->flags & FRAME_MORE)
                return 0;
        r = order_whole(a, f->channel, a->order, a->order_len);
        a->order_len = r == LINK_LATER ? before : 0;
        return r;
}
