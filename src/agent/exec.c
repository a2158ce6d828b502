/*
 * The table of commands. A slot goes FREE -> RUNNING -> (KILLING) -> DRAINING -> FREE, and a detached command's
 * from DRAINING to KEPT; move() is the one place that assigns the state.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Between two looks at a tree that is being killed. */
#define KILL_RETRY_US 1000

static const bool moves[5][5] = {
        [EXEC_FREE] = { [EXEC_RUNNING] = true },
        [EXEC_RUNNING] = { [EXEC_KILLING] = true, [EXEC_DRAINING] = true },
        [EXEC_KILLING] = { [EXEC_DRAINING] = true },
        [EXEC_DRAINING] = { [EXEC_FREE] = true, [EXEC_KEPT] = true },
        [EXEC_KEPT] = { [EXEC_FREE] = true },
};

static bool is_live(enum exec_state s) {
        return s != EXEC_FREE && s != EXEC_KEPT;
}

void exec_move(struct agent *a, struct exec *x, enum exec_state to) {
        unsigned slot = (unsigned)(x - a->execs);

        if (!moves[x->state][to])
                __builtin_trap();
        a->n_execs -= is_live(x->state);
        a->n_execs += is_live(to);
        x->state = to;
        if (slot >= a->top)
                a->top = slot + 1;
        while (a->top > 0 && a->execs[a->top - 1].state == EXEC_FREE)
                a->top--;
}

struct exec *exec_find(struct agent *a, uint32_t channel) {
        for (unsigned i = 0; i < a->top; i++)
                if (a->execs[i].state != EXEC_FREE && !a->execs[i].abandoned &&
                    a->execs[i].channel == channel)
                        return &a->execs[i];
        return NULL;
}

gid_t exec_next_gid(struct agent *a) {
        if (a->ids.exec_gid_count == 0)
                return 0;
        return a->ids.exec_gid_first + a->exec_serial++ % a->ids.exec_gid_count;
}

unsigned exec_free_slot(const struct agent *a) {
        unsigned i = 0;

        while (i < a->top && a->execs[i].state != EXEC_FREE)
                i++;
        return i;
}

static unsigned take_slot(struct agent *a) {
        unsigned i;

        if (a->ready.made)
                return a->ready.slot;
        i = exec_free_slot(a);
        if (i == AGENT_EXECS && keep_evict(a))
                i = exec_free_slot(a);
        return i;
}

struct exec *exec_take(struct agent *a, uint32_t channel, const struct exec_order *o,
                       const struct agent_user *user) {
        unsigned i = a->n_execs < AGENT_RUNNING ? take_slot(a) : AGENT_EXECS;
        uint8_t *pool = keep_pool(i);
        struct exec *x = &a->execs[i];

        if (i == AGENT_EXECS)
                return NULL;
        *x = (struct exec){
                .channel = channel,
                .pid = -1,
                .user = user,
                .tree = { .gid = a->ready.made ? a->ready.gid : exec_next_gid(a) },
                .one_shot = o->one_shot,
                .detached = o->detached,
                .tty = o->tty,
                .in = { .fd = -1, .buf = pool },
                .out = { { .fd = -1, .theirs = -1, .credit = FRAME_CREDIT, .final_left = -1 },
                         { .fd = -1, .theirs = -1, .credit = FRAME_CREDIT, .final_left = -1 } },
                .limited = o->output_bytes > 0,
                .output_left = o->output_bytes,
                .grace_us = o->grace_ms * UINT64_C(1000),
                .started_us = now_us(),
                .oom_before = a->ready.made ? a->ready.oom : cgroup_oom_kills(&a->cgroup),
                .pids_before = a->ready.made ? a->ready.pids : cgroup_pids_refused(&a->cgroup),
                /* What is ready was made while nothing ran, and is the next command's. */
                .shared = !a->ready.made && exec_children_left(),
        };
        memcpy(x->marker, EXEC_MARKER, strlen(EXEC_MARKER));
        memcpy(x->marker + strlen(EXEC_MARKER), o->exec_id, PROTO_EXEC_ID);
        x->tree.marker = x->marker;
        for (int k = 0; k < 2 && o->detached; k++)
                x->out[k].ring = pool + (size_t)k * FRAME_CREDIT;
        if (o->timeout_ms > 0)
                x->deadline_us = x->started_us + o->timeout_ms * 1000;
        for (unsigned k = 0; k < a->top; k++)
                a->execs[k].shared |= a->execs[k].state == EXEC_RUNNING;
        exec_move(a, x, EXEC_RUNNING);
        return x;
}

void exec_send_exited(struct agent *a, const struct exec *x, uint32_t channel) {
        uint8_t buf[EXITED_MAX];
        ssize_t n = exited_encode(&x->end, buf, sizeof(buf));

        link_put(&a->link, FRAME_EXITED, channel, buf, (uint32_t)n);
}

void exec_free(struct agent *a, struct exec *x) {
        x->in.fd = close_fd(x->in.fd);
        for (int i = 0; i < 2; i++)
                stream_end(&x->out[i]);
        if (x->pool_used)
                forget(keep_pool((unsigned)(x - a->execs)), 2 * (size_t)FRAME_CREDIT);
        exec_move(a, x, EXEC_FREE);
}

void exec_failed(struct agent *a, struct exec *x, uint8_t cause, uint8_t stage, int error) {
        x->end.cause = cause;
        x->end.code = stage;
        x->end.error = error;
        x->end.wall_us = now_us() - x->started_us;
        x->pid = -1;
        stream_end(&x->out[0]);
        stream_end(&x->out[1]);
        exec_move(a, x, EXEC_DRAINING);
}

/* --- ends -------------------------------------------------------------------------------------- */

/* The counters are the sandbox's, and one that rose tells nothing of whose process met the limit. Where others ran, only
 * what the command itself shows is held against it: the kernel's kill, or its shell's word for one; that the agent had no
 * process left to start it in. Alone, a failure counts. Who asked for a sandbox of its own is told of a kill also after
 * success; in a session the line would come between a good answer and those who read both streams as one. */
static uint8_t limit_met(struct agent *a, const struct exec *x) {
        const struct exited *e = &x->end;
        bool failed = e->signaled || e->code != 0;
        bool killed = e->code == (e->signaled ? SIGKILL : 128 + SIGKILL);

        if ((x->shared ? killed : failed || x->one_shot) && cgroup_oom_kills(&a->cgroup) > x->oom_before)
                return CAUSE_OOM;
        if (failed && (!x->shared || x->from_reserve) &&
            cgroup_pids_refused(&a->cgroup) > x->pids_before)
                return CAUSE_PIDS_LIMIT;
        return 0;
}

/* The main process has ended: what did it die of? */
static void judge(struct agent *a, struct exec *x, int status, const struct rusage *ru) {
        struct exited *e = &x->end;

        e->wall_us = now_us() - x->started_us;
        e->user_us = (uint64_t)ru->ru_utime.tv_sec * 1000000 + (uint64_t)ru->ru_utime.tv_usec;
        e->system_us = (uint64_t)ru->ru_stime.tv_sec * 1000000 + (uint64_t)ru->ru_stime.tv_usec;
        e->maxrss_bytes = (uint64_t)ru->ru_maxrss * 1024;
        e->sandbox_peak_bytes = cgroup_peak(&a->cgroup);
        e->signaled = WIFSIGNALED(status);
        e->code = (uint8_t)(e->signaled ? WTERMSIG(status) : WEXITSTATUS(status));
        if (e->cause) /* timeout, cancelled */
                return;
        e->cause = limit_met(a, x);
        if (!e->cause)
                e->cause = e->signaled ? CAUSE_SIGNALED : CAUSE_EXITED;
}

static void drain(struct agent *a, struct exec *x) {
        stream_drain(x);
        exec_move(a, x, EXEC_DRAINING);
}

bool exec_children_left(void) {
        siginfo_t si;

        return !(waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD);
}

bool exec_alone(const struct agent *a) {
        const struct exec *x = a->execs;

        if (a->n_execs != 1)
                return false;
        while (!is_live(x->state))
                x++;
        return x->one_shot;
}

/* One round; the tree is gone when nothing is left to be seen. Alone in its sandbox, a one-shot's tree is
 * everything but the agent, and one call reaches all of it. */
static bool kill_round(struct agent *a, struct exec *x) {
        if (exec_alone(a)) {
                kill(-1, SIGKILL);
                exec_reap(a);
                return !exec_children_left();
        }
        return tree_kill(&x->tree) == 0;
}

static void main_ended(struct agent *a, struct exec *x, int status, const struct rusage *ru,
                       bool others) {
        x->pid = -1;
        judge(a, x, status, ru);
        /* Of a HALT all that is left has the same end. */
        if (others && !a->halt_due) {
                int n = tree_count(&x->tree);

                x->end.background_left = n > 0 ? (uint32_t)n : 0;
        }
        if ((others && x->one_shot) || x->kill_now) {
                exec_move(a, x, EXEC_KILLING);
                x->deadline_us = 0;
        } else
                drain(a, x);
}

void exec_reap(struct agent *a) {
        for (;;) {
                struct exec *x = NULL;
                struct rusage ru;
                bool others;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG, &ru);

                if (pid <= 0)
                        return;
                for (unsigned i = 0; i < a->top; i++)
                        if (a->execs[i].state == EXEC_RUNNING && a->execs[i].pid == pid)
                                x = &a->execs[i];
                if (!x)
                        continue;
                others = exec_children_left();
                main_ended(a, x, status, &ru, others);
                if (!others)
                        return;
        }
}

/* --- signals and deadlines ---------------------------------------------------------------------- */

int exec_signal_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);

        if (f->len != 1 || f->payload[0] == 0 || f->payload[0] > 64)
                return -EPROTO;
        /* Its process group, as a terminal would. The pid is not reaped yet, so it is its own. */
        if (x && x->state == EXEC_RUNNING && x->pid > 0)
                kill(-x->pid, f->payload[0]);
        return 0;
}

static void kill_all(struct agent *a, struct exec *x, uint8_t cause) {
        if (x->state != EXEC_RUNNING)
                return;
        if (!x->end.cause)
                x->end.cause = cause;
        x->kill_now = true;
        kill_round(a, x);
}

/* Nobody reads on, nor gives credit: what is left of the output must not be waited for. A terminal's session
 * gets its SIGHUP, and the grace time to heed it. */
static void cut_off(struct agent *a, struct exec *x) {
        bool hang_up = x->tty && x->state == EXEC_RUNNING && x->grace_us > 0 && !x->kill_now;

        if (x->detached) {
                kill_all(a, x, CAUSE_CANCELLED);
                return;
        }
        if (x->tty)
                tty_hang_up(x);
        stream_end(&x->out[0]);
        stream_end(&x->out[1]);
        if (!hang_up) {
                kill_all(a, x, CAUSE_CANCELLED);
                return;
        }
        if (!x->end.cause)
                x->end.cause = CAUSE_CANCELLED;
        x->kill_now = x->termed = true;
        x->deadline_us = now_us() + x->grace_us;
}

int exec_cancel_frame(struct agent *a, const struct frame *f) {
        struct reader *r = attach_find(a, f->channel);
        struct exec *x = exec_find(a, f->channel);

        if (r)
                attach_drop(a, r);
        if (x && x->state != EXEC_KEPT)
                cut_off(a, x);
        return 0;
}

void exec_abandon(struct agent *a) {
        for (unsigned i = 0; i < a->top; i++) {
                struct exec *x = &a->execs[i];

                if (!is_live(x->state) || x->detached)
                        continue;
                cut_off(a, x);
                x->abandoned = true;
        }
}

/* TERM to the whole tree, and after the grace time KILL. */
static void deadline_passed(struct agent *a, struct exec *x, uint64_t now) {
        if (x->state != EXEC_RUNNING)
                return;
        if (!x->end.cause)
                x->end.cause = CAUSE_TIMEOUT;
        x->kill_now = true; /* also what outlives the main process' TERM */
        if (!x->termed && x->grace_us > 0) {
                x->termed = true;
                x->deadline_us = now + x->grace_us;
                tree_signal(&x->tree, SIGTERM);
                return;
        }
        x->deadline_us = now + KILL_RETRY_US;
        kill_all(a, x, CAUSE_TIMEOUT);
}

/* It has ended, and nothing more will come of it. */
static void conclude(struct agent *a, struct exec *x) {
        if (x->detached) {
                keep_ended(a, x);
                return;
        }
        if (!x->abandoned && link_room(&a->link) < EXITED_MAX)
                return;
        if (!x->abandoned) {
                exec_send_exited(a, x, x->channel);
                /* The caller waits for this, and for nothing that comes after it. */
                link_flush(&a->link);
        }
        exec_free(a, x);
}

/* Returns true when its streams have something to do that no event will tell. */
static bool advance_one(struct agent *a, struct exec *x, uint64_t now) {
        bool idle, drained = false;

        if (x->deadline_us && now >= x->deadline_us)
                deadline_passed(a, x, now);
        if (x->in.eof_us && now >= x->in.eof_us)
                tty_end_input(x, now);
        if (x->state == EXEC_KILLING && kill_round(a, x)) {
                drain(a, x);
                drained = true;
        }
        stream_grant(a, x);
        if (x->state != EXEC_DRAINING)
                return false;
        idle = x->abandoned || (stream_done(&x->out[0]) && stream_done(&x->out[1]));
        if (idle)
                conclude(a, x);
        return drained && !idle;
}

/* EXITED goes first, as the caller waits for it: nothing but the SCRUBBED stands in the link. */
void exec_scrub(struct agent *a) {
        struct scrubbed s;
        uint8_t buf[SCRUBBED_MAX];

        if (!a->scrub_due || a->n_execs > 0 || a->link.out_len > 0)
                return;
        scrub(&a->ids, &s);
        a->scrub_due = false;
        link_put(&a->link, FRAME_SCRUBBED, a->scrub_channel, buf,
                 (uint32_t)scrubbed_encode(&s, buf, sizeof(buf)));
}

bool exec_advance(struct agent *a) {
        uint64_t now;
        bool more;

        if (a->n_execs == 0 && a->n_readers == 0 && a->n_untold == 0 && !a->halt_due)
                return false;
        more = stream_pump(a);
        now = now_us();
        for (unsigned i = 0; i < a->top; i++)
                if (is_live(a->execs[i].state))
                        more |= advance_one(a, &a->execs[i], now);
        if (a->n_untold > 0)
                keep_tell(a);
        if (a->n_readers > 0)
                attach_advance(a);
        return halt_advance(a) || more;
}

static uint64_t sooner(uint64_t a, uint64_t b) {
        return b > 0 && b < a ? b : a;
}

int exec_timeout(const struct agent *a) {
        uint64_t now, next = UINT64_MAX;

        if (a->n_execs == 0 && !a->halt_due)
                return -1;
        now = now_us();
        next = sooner(next, halt_next_us(a));
        for (unsigned i = 0; i < a->top; i++) {
                const struct exec *x = &a->execs[i];

                if (x->state == EXEC_KILLING)
                        next = sooner(next, now + KILL_RETRY_US);
                if (x->state == EXEC_RUNNING)
                        next = sooner(sooner(next, x->deadline_us), x->in.eof_us);
        }
        if (next == UINT64_MAX)
                return -1;
        if (next <= now)
                return 0;
        next = (next - now + 999) / 1000;
        return next < INT32_MAX ? (int)next : INT32_MAX;
}
