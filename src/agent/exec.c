/*
 * The table of commands. A slot goes FREE -> RUNNING -> (KILLING) -> DRAINING -> FREE; move() is the one
 * place that assigns the state.
 *
 * The pipes are watched edge-triggered and remembered as ready, so that a stream without credit costs no
 * wake-up and no epoll_ctl. Output goes from the pipe straight into the link's buffer.
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
/* Chunks of each stream between two looks at everything else. */
#define PUMP_ROUNDS 16

static const bool moves[4][4] = {
        [EXEC_FREE] = { [EXEC_RUNNING] = true },
        [EXEC_RUNNING] = { [EXEC_KILLING] = true, [EXEC_DRAINING] = true },
        [EXEC_KILLING] = { [EXEC_DRAINING] = true, [EXEC_FREE] = true },
        [EXEC_DRAINING] = { [EXEC_FREE] = true },
};

static void move(struct agent *a, struct exec *x, enum exec_state to) {
        if (!moves[x->state][to])
                __builtin_trap();
        if (x->state == EXEC_FREE)
                a->n_execs++;
        if (to == EXEC_FREE)
                a->n_execs--;
        x->state = to;
}

struct exec *exec_find(struct agent *a, uint32_t channel) {
        for (unsigned i = 0; i < AGENT_EXECS; i++)
                if (a->execs[i].state != EXEC_FREE && !a->execs[i].abandoned &&
                    a->execs[i].channel == channel)
                        return &a->execs[i];
        return NULL;
}

struct exec *exec_take(struct agent *a, uint32_t channel, const struct exec_order *o) {
        for (unsigned i = 0; i < AGENT_EXECS; i++) {
                struct exec *x = &a->execs[i];

                if (x->state != EXEC_FREE)
                        continue;
                *x = (struct exec){
                        .channel = channel,
                        .pid = -1,
                        .gid = a->ids.exec_gid_first + a->exec_serial++ % a->ids.exec_gid_count,
                        .one_shot = o->one_shot,
                        .in = { .fd = -1, .buf = a->stdin_pool[i] },
                        .out = { { -1, false, FRAME_CREDIT, -1 }, { -1, false, FRAME_CREDIT, -1 } },
                        .limited = o->output_bytes > 0,
                        .output_left = o->output_bytes,
                        .grace_us = o->grace_ms * UINT64_C(1000),
                        .started_us = now_us(),
                        .oom_before = cgroup_oom_kills(&a->cgroup),
                        .pids_before = cgroup_pids_refused(&a->cgroup),
                };
                if (o->timeout_ms > 0)
                        x->deadline_us = x->started_us + o->timeout_ms * 1000;
                move(a, x, EXEC_RUNNING);
                return x;
        }
        return NULL;
}

static void send_exited(struct agent *a, struct exec *x) {
        uint8_t buf[EXITED_MAX];
        ssize_t n = exited_encode(&x->end, buf, sizeof(buf));

        link_put(&a->link, FRAME_EXITED, x->channel, buf, (uint32_t)n);
}

/* Releases the slot; EXITED is sent by the caller beforehand where somebody listens. */
static void finish(struct agent *a, struct exec *x) {
        x->in.fd = close_fd(x->in.fd);
        for (int i = 0; i < 2; i++)
                x->out[i].fd = close_fd(x->out[i].fd);
        move(a, x, EXEC_FREE);
}

void exec_failed(struct agent *a, struct exec *x, uint8_t cause, uint8_t stage, int error) {
        x->end.cause = cause;
        x->end.code = stage;
        x->end.error = error;
        x->end.wall_us = now_us() - x->started_us;
        x->pid = -1;
        x->out[0].fd = close_fd(x->out[0].fd);
        x->out[1].fd = close_fd(x->out[1].fd);
        move(a, x, EXEC_DRAINING);
}

/* --- streams ----------------------------------------------------------------------------------- */

static void count_dropped(struct exec *x, int i, const uint8_t *p, size_t n) {
        x->end.truncated = true;
        x->end.dropped_bytes[i] += n;
        for (const uint8_t *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
                x->end.dropped_lines[i]++;
}

static void stream_ended(struct exec_out *o) {
        o->fd = close_fd(o->fd);
        o->ready = false;
}

/* Moves one chunk of a stream. Returns true when it moved one and more may follow at once. */
static bool pump(struct agent *a, struct exec *x, int i) {
        static uint8_t waste[FRAME_PAYLOAD_MAX];
        struct exec_out *o = &x->out[i];
        bool drop = x->limited && x->output_left == 0;
        uint8_t *to = waste;
        size_t n = FRAME_PAYLOAD_MAX;
        ssize_t got;

        if (o->fd < 0 || !o->ready)
                return false;
        if (o->final_left == 0) {
                stream_ended(o); /* which takes no credit */
                return false;
        }
        if (!drop) {
                size_t room = link_room(&a->link);

                if (o->credit == 0 || room == 0)
                        return false;
                to = link_payload(&a->link);
                n = room < n ? room : n;
                n = o->credit < n ? o->credit : n;
                n = x->limited && x->output_left < n ? x->output_left : n;
        }
        if (o->final_left >= 0 && (uint64_t)o->final_left < n)
                n = (size_t)o->final_left;
        got = read(o->fd, to, n);
        if (got < 0 && errno == EAGAIN) {
                o->ready = false;
                /* The writer is a background process that outlives the command. */
                if (x->state == EXEC_DRAINING)
                        stream_ended(o);
                return false;
        }
        if (got <= 0) {
                stream_ended(o);
                return false;
        }
        if (o->final_left >= 0)
                o->final_left -= got;
        if (drop) {
                count_dropped(x, i, waste, (size_t)got);
                return true;
        }
        o->credit -= (uint64_t)got;
        if (x->limited)
                x->output_left -= (uint64_t)got;
        link_commit(&a->link, i == 0 ? FRAME_STDOUT : FRAME_STDERR, 0, x->channel, (uint32_t)got);
        return true;
}

static void grant_stdin(struct agent *a, struct exec *x, uint32_t bytes) {
        uint8_t buf[WINDOW_SIZE];

        window_encode(&(struct window){ STREAM_STDIN, bytes }, buf);
        link_put(&a->link, FRAME_WINDOW, x->channel, buf, sizeof(buf));
}

/* Writes what is buffered for the command's stdin, and gives the sender credit for what went. A command
 * that closed its stdin, or is gone, takes everything: the sender must not wait for it. */
static void feed(struct agent *a, struct exec *x) {
        struct exec_in *in = &x->in;
        uint32_t gone = 0;

        while (in->len > 0) {
                ssize_t n = in->fd >= 0 ? write(in->fd, in->buf + in->start, in->len) : (ssize_t)in->len;

                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) {
                        in->fd = close_fd(in->fd);
                        continue;
                }
                in->start += (size_t)n;
                in->len -= (size_t)n;
                gone += (uint32_t)n;
        }
        if (in->len == 0) {
                in->start = 0;
                if (in->eof)
                        in->fd = close_fd(in->fd);
        }
        if (gone > 0 && link_room(&a->link) >= WINDOW_SIZE)
                grant_stdin(a, x, gone);
        else
                in->ungranted += gone;
}

int exec_stdin_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);
        struct exec_in *in;

        if (!x)
                return 0; /* it ended while the frame was on its way */
        in = &x->in;
        if (in->eof || f->len > FRAME_CREDIT - in->len)
                return -EPROTO;
        if (in->start + in->len + f->len > FRAME_CREDIT) {
                memmove(in->buf, in->buf + in->start, in->len);
                in->start = 0;
        }
        memcpy(in->buf + in->start + in->len, f->payload, f->len);
        in->len += f->len;
        in->eof = f->flags & FRAME_EOF;
        feed(a, x);
        return 0;
}

int exec_window_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);
        struct window w;
        int r = window_decode(f->payload, f->len, &w);

        if (r < 0 || w.stream == STREAM_STDIN)
                return -EPROTO;
        if (x)
                x->out[w.stream - STREAM_STDOUT].credit += w.bytes;
        return 0;
}

void exec_event(struct agent *a, enum agent_event kind, unsigned index) {
        struct exec *x = &a->execs[index];

        if (x->state == EXEC_FREE)
                return;
        if (kind == EVENT_STDIN)
                feed(a, x);
        else
                x->out[kind == EVENT_STDOUT ? 0 : 1].ready = true;
}

/* --- ends -------------------------------------------------------------------------------------- */

/* The main process has ended: what did it die of? */
static void judge(struct agent *a, struct exec *x, int status, const struct rusage *ru) {
        struct exited *e = &x->end;
        uint64_t pids = cgroup_pids_refused(&a->cgroup) - x->pids_before;

        e->wall_us = now_us() - x->started_us;
        e->user_us = (uint64_t)ru->ru_utime.tv_sec * 1000000 + (uint64_t)ru->ru_utime.tv_usec;
        e->system_us = (uint64_t)ru->ru_stime.tv_sec * 1000000 + (uint64_t)ru->ru_stime.tv_usec;
        e->maxrss_bytes = (uint64_t)ru->ru_maxrss * 1024;
        e->sandbox_peak_bytes = cgroup_peak(&a->cgroup);
        e->signaled = WIFSIGNALED(status);
        e->code = (uint8_t)(e->signaled ? WTERMSIG(status) : WEXITSTATUS(status));
        if (e->cause) /* timeout, cancelled */
                return;
        if (cgroup_oom_kills(&a->cgroup) > x->oom_before)
                e->cause = CAUSE_OOM;
        else if (pids > 0 && (e->signaled || e->code != 0))
                e->cause = CAUSE_PIDS_LIMIT;
        else
                e->cause = e->signaled ? CAUSE_SIGNALED : CAUSE_EXITED;
}

/* All that the streams hold now belongs to the command; what a background process adds later does not. */
static void drain(struct agent *a, struct exec *x) {
        x->in.fd = close_fd(x->in.fd);
        for (int i = 0; i < 2; i++) {
                int held = 0;

                if (x->out[i].fd < 0)
                        continue;
                if (ioctl(x->out[i].fd, FIONREAD, &held) == 0)
                        x->out[i].final_left = held;
                x->out[i].ready = true;
        }
        move(a, x, EXEC_DRAINING);
}

/* Is there any child, dead or alive? The spare one does not count (child.c). */
static bool children_left(void) {
        siginfo_t si;

        return !(waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD);
}

/* One round; the tree is gone when nothing is left to be seen. Alone in its sandbox, a one-shot's tree is
 * everything but the agent, and one call reaches all of it. */
static bool kill_round(struct agent *a, struct exec *x) {
        if (x->one_shot && a->n_execs == 1) {
                kill(-1, SIGKILL);
                exec_reap(a);
                return !children_left();
        }
        return tree_kill(x->gid) == 0;
}

static void main_ended(struct agent *a, struct exec *x, int status, const struct rusage *ru,
                       bool others) {
        x->pid = -1;
        judge(a, x, status, ru);
        if (others) {
                int n = tree_count(x->gid);

                x->end.background_left = n > 0 ? (uint32_t)n : 0;
        }
        if ((others && x->one_shot) || x->kill_now) {
                move(a, x, EXEC_KILLING);
                x->deadline_us = 0;
        } else
                drain(a, x);
}

void exec_reap(struct agent *a) {
        for (;;) {
                struct exec *x = NULL;
                struct rusage ru;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG, &ru);

                if (pid <= 0)
                        return;
                for (unsigned i = 0; i < AGENT_EXECS && a->n_execs > 0; i++)
                        if (a->execs[i].state == EXEC_RUNNING && a->execs[i].pid == pid)
                                x = &a->execs[i];
                if (!x)
                        continue;
                main_ended(a, x, status, &ru, children_left());
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

int exec_cancel_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);

        if (x) {
                /* Nobody reads on, nor gives credit: what is left of the output must not be waited for. */
                stream_ended(&x->out[0]);
                stream_ended(&x->out[1]);
                kill_all(a, x, CAUSE_CANCELLED);
        }
        return 0;
}

void exec_abandon(struct agent *a) {
        for (unsigned i = 0; i < AGENT_EXECS; i++) {
                struct exec *x = &a->execs[i];

                if (x->state == EXEC_RUNNING && x->one_shot) {
                        kill_all(a, x, CAUSE_CANCELLED);
                        x->abandoned = true;
                } else if (x->state != EXEC_FREE)
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
                tree_signal(x->gid, SIGTERM);
                return;
        }
        x->deadline_us = now + KILL_RETRY_US;
        kill_all(a, x, CAUSE_TIMEOUT);
}

static void advance_one(struct agent *a, struct exec *x, uint64_t now) {
        bool idle;

        if (x->deadline_us && now >= x->deadline_us)
                deadline_passed(a, x, now);
        if (x->state == EXEC_KILLING && kill_round(a, x))
                drain(a, x);
        if (x->in.ungranted > 0 && link_room(&a->link) >= WINDOW_SIZE) {
                grant_stdin(a, x, x->in.ungranted);
                x->in.ungranted = 0;
        }
        if (x->state != EXEC_DRAINING)
                return;
        idle = x->out[0].fd < 0 && x->out[1].fd < 0;
        if (x->abandoned)
                finish(a, x);
        else if (idle && link_room(&a->link) >= EXITED_MAX) {
                send_exited(a, x);
                finish(a, x);
        }
}

/* A chunk a stream, so that one that floods cannot starve another. The next round goes on where this one
 * found the link full: the slots in front would take all of its room for ever. */
static bool pump_round(struct agent *a) {
        unsigned from = a->pump_from;
        bool more = false, moved;

        for (unsigned n = 0; n < AGENT_EXECS; n++) {
                unsigned i = (from + n) % AGENT_EXECS;

                if (a->execs[i].state == EXEC_FREE)
                        continue;
                moved = pump(a, &a->execs[i], 0);
                moved |= pump(a, &a->execs[i], 1);
                if (moved)
                        a->pump_from = (i + 1) % AGENT_EXECS;
                more |= moved;
        }
        return more;
}

bool exec_advance(struct agent *a) {
        uint64_t now;
        bool more = a->n_execs > 0;

        for (int round = 0; more && round < PUMP_ROUNDS; round++)
                more = pump_round(a);
        if (a->n_execs == 0)
                return false;
        now = now_us();
        for (unsigned i = 0; i < AGENT_EXECS; i++)
                if (a->execs[i].state != EXEC_FREE)
                        advance_one(a, &a->execs[i], now);
        return more;
}

int exec_timeout(const struct agent *a) {
        uint64_t now, next = UINT64_MAX;

        if (a->n_execs == 0)
                return -1;
        now = now_us();
        for (unsigned i = 0; i < AGENT_EXECS; i++) {
                const struct exec *x = &a->execs[i];

                if (x->state == EXEC_KILLING && now + KILL_RETRY_US < next)
                        next = now + KILL_RETRY_US;
                if (x->state == EXEC_RUNNING && x->deadline_us && x->deadline_us < next)
                        next = x->deadline_us;
        }
        if (next == UINT64_MAX)
                return -1;
        if (next <= now)
                return 0;
        next = (next - now + 999) / 1000;
        return next < INT32_MAX ? (int)next : INT32_MAX;
}
