/*
 * HALT: the end of all that runs, of commands and of what commands left behind, while all files stay.
 *
 * TERM goes to everybody, after the grace time KILL: by one call, which to the kernel comes before or after each fork,
 * so that there is no outrunning it. Who had been stopped is woken, so that TERM reaches it. The commands end as by any
 * other signal, and their ends are told as always; the loop goes on meanwhile. HALTED comes once no process is left, one
 * for each HALT. Ends come before it, but for those of commands whose output nobody takes: for them it waits DRAIN_MAX_US.
 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "common/wire.h"

/* Between two looks whether all are dead. */
#define KILL_RETRY_US 1000
#define DRAIN_MAX_US UINT64_C(1000000)
/* Without a manager the loop stands still for so long at most. */
#define ABANDON_MAX_US UINT64_C(400000)
#define ABANDON_PAUSE_NS 200000L
#define HALTED_SIZE 4

/* Everybody is everybody in the sandbox for its PID 1 alone. */
static void signal_all(int signo) {
        if (getpid() == 1)
                kill(-1, signo);
}

static void kill_all(struct agent *a) {
        signal_all(SIGKILL);
        exec_reap(a);
}

static bool drained(const struct agent *a, uint64_t now) {
        return a->n_execs == 0 || now >= a->halt_dead_us + DRAIN_MAX_US;
}

static void tell(struct agent *a) {
        uint8_t buf[HALTED_SIZE];
        struct wire_out out;

        wire_out_init(&out, buf, sizeof(buf));
        wire_put_u32(&out, a->halted);
        for (; a->halts > 0 && link_room(&a->link) >= EXITED_MAX; a->halts--)
                link_put(&a->link, FRAME_HALTED, 0, buf, sizeof(buf));
        a->halt_due = a->halts > 0;
}

/* Nothing runs: what is prepared may stay so. A second HALT may have crossed with the answer to the first, and a command
 * may stand behind it. */
static void answer_at_once(struct agent *a) {
        a->halt_dead_us = 1;
        tell(a);
}

int halt_frame(struct agent *a, const struct frame *f) {
        struct wire_in in;
        uint64_t until;
        int n;

        wire_in_init(&in, f->payload, f->len);
        until = now_us() + wire_get_u32(&in) * UINT64_C(1000);
        if (!wire_in_done(&in) || f->channel != 0 || a->scrub_due || a->order_len > 0)
                return -EPROTO;
        a->halts++;
        if (a->halt_due) {
                if (a->halt_kill_us > until)
                        a->halt_kill_us = until;
                return 0;
        }
        exec_advance(a); /* ends that can be told come first */
        a->halt_due = true;
        a->halt_dead_us = 0;
        a->halt_kill_us = until;
        a->halted = 0;
        if (!exec_children_left()) {
                answer_at_once(a);
                return 0;
        }
        /* It would take the signals along into the command that it becomes. */
        spare_end();
        n = tree_count_all();
        a->halted = n > 0 ? (uint32_t)n : 0;
        signal_all(SIGTERM);
        signal_all(SIGCONT);
        return 0;
}

bool halt_advance(struct agent *a) {
        uint64_t now;

        if (!a->halt_due)
                return false;
        now = now_us();
        if (a->halt_kill_us && now >= a->halt_kill_us)
                a->halt_kill_us = 0;
        if (!a->halt_kill_us && exec_children_left())
                kill_all(a);
        if (exec_children_left())
                return false;
        if (!a->halt_dead_us) {
                a->halt_dead_us = now;
                if (a->n_execs > 0)
                        return true; /* their ends come first */
        }
        if (!drained(a, now) || a->n_untold > 0)
                return false;
        tell(a);
        return false;
}

uint64_t halt_next_us(const struct agent *a) {
        if (!a->halt_due)
                return 0;
        if (a->halt_dead_us)
                return a->n_execs > 0 ? a->halt_dead_us + DRAIN_MAX_US : 0;
        return a->halt_kill_us ? a->halt_kill_us : now_us() + KILL_RETRY_US;
}

void halt_abandon(struct agent *a) {
        const struct timespec pause = { 0, ABANDON_PAUSE_NS };
        uint64_t until = now_us() + ABANDON_MAX_US;

        if (!a->halt_due)
                return;
        a->halt_due = false;
        a->halts = 0;
        while (exec_children_left() && now_us() < until) {
                kill_all(a);
                nanosleep(&pause, NULL);
        }
}
