/*
 * Readers of what detached commands write, each on a channel of its own and with its own credit. A ring waits
 * for no reader: one that was passed goes on at the oldest byte that is there, and ATTACHED says so before it.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

struct reader *attach_find(struct agent *a, uint32_t channel) {
        for (unsigned i = 0; a->n_readers > 0 && i < AGENT_READERS; i++)
                if (a->readers[i].used && a->readers[i].channel == channel)
                        return &a->readers[i];
        return NULL;
}

void attach_drop(struct agent *a, struct reader *r) {
        struct exec *x = &a->execs[r->slot];

        r->used = false;
        a->n_readers--;
        x->readers--;
        keep_release(a, x);
}

void attach_abandon(struct agent *a) {
        for (unsigned i = 0; a->n_readers > 0 && i < AGENT_READERS; i++)
                if (a->readers[i].used)
                        attach_drop(a, &a->readers[i]);
}

/* As near to what was asked for as what is there allows. */
static uint64_t begin(const struct exec_out *o, uint64_t asked) {
        uint64_t oldest = keep_oldest(o);

        if (asked > o->written)
                return o->written;
        return asked < oldest ? oldest : asked;
}

int attach_frame(struct agent *a, const struct frame *f) {
        struct attach_order o;
        struct reader *r = a->readers;
        struct exec *x;

        if (attach_order_decode(f->payload, f->len, &o) < 0 || exec_find(a, f->channel) ||
            attach_find(a, f->channel))
                return -EPROTO;
        x = exec_find(a, o.target);
        if (!x || !x->detached)
                return start_refuse(a, f->channel, CAUSE_NOT_FOUND, ENOENT);
        if (a->n_readers == AGENT_READERS)
                return start_refuse(a, f->channel, CAUSE_PIDS_LIMIT, EAGAIN);
        while (r->used)
                r++;
        *r = (struct reader){
                .used = true,
                .output = o.output,
                .tell = o.output,
                .channel = f->channel,
                .slot = (unsigned)(x - a->execs),
                .at = { begin(&x->out[0], o.offset[0]), begin(&x->out[1], o.offset[1]) },
                .credit = { FRAME_CREDIT, FRAME_CREDIT },
        };
        a->n_readers++;
        x->readers++;
        return 0;
}

static bool tell(struct agent *a, struct reader *r) {
        uint8_t buf[ATTACHED_SIZE];

        if (link_room(&a->link) < sizeof(buf))
                return false;
        attached_encode(&(struct attached){ { r->at[0], r->at[1] } }, buf);
        link_put(&a->link, FRAME_ATTACHED, r->channel, buf, sizeof(buf));
        r->tell = false;
        return true;
}

/* Only who can be sent something is told that it missed something: the others would be told for ever. */
static bool pump(struct agent *a, struct reader *r, int i) {
        const struct exec_out *o = &a->execs[r->slot].out[i];
        uint64_t oldest = keep_oldest(o), left, n;

        if (r->credit[i] == 0 || r->at[i] == o->written)
                return false;
        if (r->at[i] < oldest) {
                r->at[i] = oldest;
                r->tell = true;
        }
        if (r->tell && !tell(a, r))
                return false;
        left = FRAME_CREDIT - r->at[i] % FRAME_CREDIT;
        n = o->written - r->at[i];
        n = n < left ? n : left;
        n = n < r->credit[i] ? n : r->credit[i];
        n = n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX;
        n = n < link_room(&a->link) ? n : link_room(&a->link);
        if (n == 0)
                return false;
        memcpy(link_payload(&a->link), o->ring + r->at[i] % FRAME_CREDIT, n);
        link_commit(&a->link, i == 0 ? FRAME_STDOUT : FRAME_STDERR, 0, r->channel, (uint32_t)n);
        r->at[i] += n;
        r->credit[i] -= n;
        return true;
}

bool attach_pump(struct agent *a) {
        bool more = false;

        for (unsigned i = 0; a->n_readers > 0 && i < AGENT_READERS; i++) {
                struct reader *r = &a->readers[i];

                if (!r->used || !r->output || (r->tell && !tell(a, r)))
                        continue;
                more |= pump(a, r, 0);
                more |= pump(a, r, 1);
        }
        return more;
}

void attach_advance(struct agent *a) {
        for (unsigned i = 0; a->n_readers > 0 && i < AGENT_READERS; i++) {
                struct reader *r = &a->readers[i];
                struct exec *x = &a->execs[r->slot];

                if (!r->used || x->state != EXEC_KEPT || r->tell || link_room(&a->link) < EXITED_MAX)
                        continue;
                if (r->output && (r->at[0] < x->out[0].written || r->at[1] < x->out[1].written))
                        continue;
                exec_send_exited(a, x, r->channel);
                attach_drop(a, r);
        }
}
