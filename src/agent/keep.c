/*
 * Detached commands: nobody has to be there for them. What they write goes into two rings, of which the last
 * FRAME_CREDIT bytes stand, so that they are never held up; how they ended stays until nobody will ask for it
 * any more, or its slot is needed. A new manager hears of all of them.
 */
#include "agent/agent.h"

#include <string.h>

/* Not within the agent's struct: rings are given back by the page. */
static uint8_t pool[AGENT_EXECS][2][FRAME_CREDIT] PLACED_SCRATCH;

uint8_t *keep_pool(unsigned slot) {
        return slot < AGENT_EXECS ? pool[slot][0] : NULL;
}

/* EXITED counts what did not go over the command's own channel: of a detached one that is all. */
void keep_written(struct exec *x, int i, size_t n) {
        struct exec_out *o = &x->out[i];
        const uint8_t *p = o->ring + o->written % FRAME_CREDIT;

        x->pool_used = true;
        o->written += n;
        stream_count_unsent(x, i, p, n);
}

uint64_t keep_oldest(const struct exec_out *o) {
        return o->written > FRAME_CREDIT ? o->written - FRAME_CREDIT : 0;
}

void keep_ended(struct agent *a, struct exec *x) {
        stream_end(&x->out[0]);
        stream_end(&x->out[1]);
        x->ended_as = ++a->ends;
        exec_move(a, x, EXEC_KEPT);
        a->n_untold++;
        keep_tell(a);
}

void keep_tell(struct agent *a) {
        for (unsigned i = 0; i < a->top && a->n_untold > 0; i++) {
                struct exec *x = &a->execs[i];

                if (x->state != EXEC_KEPT || x->told)
                        continue;
                if (link_room(&a->link) < EXITED_MAX)
                        return;
                exec_send_exited(a, x, x->channel);
                x->told = true;
                a->n_untold--;
                keep_release(a, x);
        }
}

static void give_up(struct agent *a, struct exec *x) {
        a->n_untold -= !x->told;
        exec_free(a, x);
}

void keep_release(struct agent *a, struct exec *x) {
        if (x->state == EXEC_KEPT && x->forget && x->told && x->readers == 0)
                give_up(a, x);
}

bool keep_evict(struct agent *a) {
        struct exec *oldest = NULL;

        for (unsigned i = 0; i < a->top; i++) {
                struct exec *x = &a->execs[i];

                if (x->state == EXEC_KEPT && x->readers == 0 &&
                    (!oldest || x->ended_as < oldest->ended_as))
                        oldest = x;
        }
        if (oldest)
                give_up(a, oldest);
        return oldest;
}

/* It may come before the end: the manager's word and the command's are then on their way at once. */
int keep_forget_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);

        if (x && x->detached) {
                x->forget = true;
                keep_release(a, x);
        }
        return 0;
}

ssize_t keep_held(struct agent *a, void *buf, size_t cap) {
        struct held h = { 0 };

        a->n_untold = 0;
        for (unsigned i = 0; i < a->top; i++) {
                struct exec *x = &a->execs[i];

                if (x->state == EXEC_FREE || !x->detached)
                        continue;
                h.of[h.n].exec_id = x->marker + strlen(EXEC_MARKER);
                h.of[h.n].channel = x->channel;
                h.of[h.n].ended = x->state == EXEC_KEPT;
                h.n++;
                x->told = false;
                a->n_untold += x->state == EXEC_KEPT;
        }
        return held_encode(&h, buf, cap);
}
