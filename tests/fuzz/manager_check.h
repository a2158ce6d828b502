/* Of manager_rig.h: what must hold after each step, whatever the step was. */
#pragma once

/* What one has used nobody else gets: another user, or the holder of another key. */
static inline void rig_check_owner(struct rig_end *a, const struct audit_caller *who) {
        check(!a->used || (a->uid == who->uid && strcmp(a->fp, who->fp) == 0));
        a->used = true;
        a->uid = who->uid;
        memcpy(a->fp, who->fp, sizeof(a->fp));
}

static inline void rig_check_sandbox(struct rig *r, struct sandbox *sb, unsigned count[SANDBOX_STATES]) {
        struct rig_end *a = NULL;

        count[sb->state]++;
        for (int i = 0; i < AGENTS; i++)
                if (strcmp(r->agents[i].id, sb->id) == 0)
                        a = &r->agents[i];
        check(a && !!sb->exec == (sb->state == SANDBOX_BUSY && !sb->spent));
        check(!!sb->session == (sb->state == SANDBOX_LEASED));
        if (sb->session) {
                check(sb->session->sandbox == sb && strcmp(sb->session->container, sb->id) == 0);
                rig_check_owner(a, &sb->session->owner);
        }
        /* It is warm again only where its agent may have said that it is clean. */
        check(sb->state != SANDBOX_WARM || sb->uses == 0 || a->may_be_clean);
        if (!sb->exec)
                return;
        check(sb->exec->sandbox == sb && sb->exec->state == EXEC_RUNNING);
        rig_check_owner(a, &sb->exec->audit.caller);
        a->may_be_clean = false;
}

static inline void rig_check_session(struct rig *r, struct session *s) {
        unsigned running = 0, attached = 0, left = 0, ended = 0, pending = 0, sandbox = 0;
        struct client *c;
        struct ended *e;
        struct exec *x;

        check(session_name_valid(s->name) && session_find(&r->m, s->name) == s);
        check(s->state == SESSION_OPENING || s->state == SESSION_ADOPTING ||
              (s->sandbox && s->sandbox->ready && s->shape.n_users > 0));
        check(s->state == SESSION_ADOPTING ||
              s->stopped == (s->state == SESSION_STOPPING || s->state == SESSION_STOPPED));
        LIST_FOREACH(c, &s->waiting, stop_link)
        check(s->state == SESSION_STOPPING && c->stopping == s && !c->answered);
        check(!s->waiter.turn || (s->state == SESSION_OPENING && !s->sandbox && !s->making));
        check(s->state != SESSION_OPENING || s->waiter.turn || s->making || s->sandbox);
        check(s->state != SESSION_OPENING || s->opener || !TAILQ_EMPTY(&s->pending));
        check(!s->opener || (s->state == SESSION_OPENING && s->opener->opening == s));
        for (int i = 0; i < SESSION_BUCKETS; i++)
                LIST_FOREACH(x, &s->execs[i], in_session) {
                        check(x->session == s && x->sandbox == s->sandbox && x->state == EXEC_RUNNING);
                        check(session_exec_at(s, x->channel) == x &&
                              x->channel < s->sandbox->next_channel);
                        running += !x->attach;
                        attached += x->attach && !x->hung_ms;
                        left += x->attach && x->hung_ms;
                        check(!x->attach || !!x->client == !x->hung_ms);
                }
        check(running == s->n_running && attached == s->n_attached && left == s->n_left);
        TAILQ_FOREACH(x, &s->pending, pending) {
                check(x->is_pending && x->session == s);
                pending++;
        }
        check(pending == 0 || s->state == SESSION_OPENING || s->state == SESSION_ADOPTING ||
              (s->state == SESSION_OPEN &&
               !sandbox_takes(s->sandbox, TAILQ_FIRST(&s->pending)->payload_len + s->env_len)));
        TAILQ_FOREACH(e, &s->ended, link)
        ended++;
        check(ended == s->n_ended && ended <= SESSION_ENDED_MAX);
        sandbox = s->sandbox != NULL;
        check(sandbox == 0 || s->sandbox->session == s);
}

static inline void rig_check_exec(const struct exec *x) {
        if (x->state == EXEC_WAITING)
                check(!!x->waiter.turn != x->is_pending && x->client);
        else
                check(x->sandbox &&
                      (x->session ? x->sandbox->session == x->session : x->sandbox->exec == x));
}

/* Few are under way, of each profile's image one at most, and one more waits. */
static inline void rig_check_looks(const struct rig *r) {
        const struct image_look *a, *b;
        struct image_wait *w;
        unsigned begun = 0;

        TAILQ_FOREACH(a, &r->m.image_looks, link) {
                begun += a->begun;
                check(a->begun || !LIST_EMPTY(&a->waits));
                LIST_FOREACH(w, &a->waits, link)
                check(w->look == a);
                for (b = TAILQ_NEXT(a, link); b; b = TAILQ_NEXT(b, link))
                        check(a->begun != b->begun || strcmp(a->profile, b->profile) != 0 ||
                              strcmp(a->image, b->image) != 0);
        }
        check(begun <= IMAGE_LOOKS_MAX);
}

static inline void rig_check(struct rig *r) {
        unsigned creating = 0, clients = 0, running = 0, waiting = 0, adopting = 0;
        struct session *s;
        struct client *c;
        struct exec *x;
        struct pool *p;

        LIST_FOREACH(p, &r->m.pools, link) {
                unsigned count[SANDBOX_STATES] = { 0 }, queued = 0;
                struct sandbox *sb;
                struct waiter *w;
                struct turn *t;

                TAILQ_FOREACH(sb, &p->sandboxes, link)
                rig_check_sandbox(r, sb, count);
                check(count[SANDBOX_STARTING] == p->n_starting && count[SANDBOX_WARM] == p->n_warm);
                check(count[SANDBOX_BUSY] == p->n_busy && count[SANDBOX_SCRUBBING] == p->n_scrubbing);
                check(count[SANDBOX_LEASED] == p->n_leased);
                waiting += p->n_queue;
                check(!p->profile || supply_total(p) <= p->profile->max_sandboxes);
                creating += p->n_creating + p->n_alone;
                TAILQ_FOREACH(t, &p->turns, link) {
                        unsigned cold = 0;

                        check(!TAILQ_EMPTY(&t->waiters));
                        TAILQ_FOREACH(w, &t->waiters, link) {
                                check(w->turn == t);
                                queued++;
                                cold += w->cold;
                        }
                        check(cold == t->n_cold);
                }
                check(queued == p->n_queue);
        }
        check(creating == r->m.n_creating);
        LIST_FOREACH(c, &r->m.clients, link) {
                clients++;
                check(!c->exec || c->exec->client == c);
                check(!c->opening || c->opening->opener == c);
                check(!c->images || !c->answered);
                check(!c->stopping || !c->answered);
        }
        check(clients == r->m.n_clients);
        LIST_FOREACH(x, &r->m.execs, link) {
                rig_check_exec(x);
                running += x->state == EXEC_RUNNING && !x->attach;
                waiting += x->is_pending;
        }
        check(running == r->m.n_running && waiting == r->m.n_waiting);
        TAILQ_FOREACH(s, &r->m.sessions, link) {
                rig_check_session(r, s);
                adopting += s->state == SESSION_ADOPTING;
        }
        check(adopting == r->m.n_adopting);
        rig_check_looks(r);
        rig_note_ids(r);
}
