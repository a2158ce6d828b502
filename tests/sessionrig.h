/* Of the tests of sessions: they are asked for over sockets, with agents and a broker at the other ends that do as they are
 * told (fuzz/manager_rig.h). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "fuzz/manager_rig.h"

#define ALICE 0
#define BOB 1
#define SELF 2 /* root, where root runs this */

static struct rig *r;

static inline int begin(void **state) {
        (void)state;
        r = rig_begin();
        return 0;
}

static inline int end(void **state) {
        (void)state;
        rig_finish(r);
        return 0;
}

/* A new caller in that place. */
static inline struct rig_end *caller(unsigned slot, unsigned user) {
        if (r->clients[slot].fd >= 0)
                rig_client(r, slot, 0);
        rig_settle(r);
        rig_client(r, slot, user);
        return &r->clients[slot];
}

static inline void settle(void) {
        struct client *c;

        rig_settle(r);
        LIST_FOREACH(c, &r->m.clients, link)
        c->since_ms -= 100; /* STARTED of what stays silent */
        client_announce(NULL, 0, &r->m);
        rig_settle(r);
        rig_check(r);
}

static inline struct rig_end *ask(unsigned slot, unsigned user, struct ask a) {
        struct rig_end *c = caller(slot, user);
        uint8_t buf[2048];

        a.name = a.name ? a.name : "";
        a.profile = a.profile ? a.profile : "";
        rig_frame(c, FRAME_ASK, 0, 1, buf, (size_t)ask_encode(&a, buf, sizeof(buf)));
        settle();
        return c;
}

static inline struct rig_end *open_as(unsigned slot, unsigned user, struct open_request q) {
        struct rig_end *c = caller(slot, user);
        uint8_t buf[2048];

        q.name = q.name ? q.name : "";
        q.profile = q.profile ? q.profile : "";
        q.image = q.image ? q.image : "";
        q.workdir = q.workdir ? q.workdir : "";
        rig_frame(c, FRAME_OPEN, 0, 1, buf, (size_t)open_request_encode(&q, buf, sizeof(buf)));
        settle();
        return c;
}

static inline void send_exec(struct rig_end *c, const char *session, struct exec_request q) {
        const char *args[] = { "true" };
        uint8_t buf[512];

        q.session = session;
        q.profile = q.profile ? q.profile : "";
        q.workdir = "";
        q.n_args = 1;
        q.args = args;
        c->detach = q.detach;
        rig_frame(c, FRAME_EXEC, 0, 1, buf, (size_t)exec_request_encode(&q, buf, sizeof(buf)));
}

static inline struct rig_end *exec_in(unsigned slot, unsigned user, const char *session,
                                      struct exec_request q) {
        struct rig_end *c = caller(slot, user);

        send_exec(c, session, q);
        settle();
        return c;
}

static inline struct rig_end *attach(unsigned slot, unsigned user, const char *id, bool output) {
        struct rig_end *c = caller(slot, user);
        struct attach a = { .exec_id = id, .output = output };
        uint8_t buf[64];

        rig_frame(c, FRAME_ATTACH, 0, 1, buf, (size_t)attach_encode(&a, buf, sizeof(buf)));
        settle();
        return c;
}

static inline void exited(uint32_t channel, struct exited e) {
        uint8_t buf[256];

        rig_frame(&r->agents[0], FRAME_EXITED, 0, channel, buf,
                  (size_t)exited_encode(&e, buf, sizeof(buf)));
        settle();
}

static inline struct rig_end *open_session(unsigned user, const char *name) {
        struct rig_end *c = open_as(0, user, (struct open_request){ .name = name });

        assert_true(c->final);
        return c;
}

static inline bool is_kept(const char *name) {
        char path[256];
        struct stat st;

        snprintf(path, sizeof(path), "%s/sessions/%s", rig_state_dir, name);
        return lstat(path, &st) == 0;
}

static inline void assert_says(const struct rig_end *c, uint8_t code, const char *words) {
        assert_true(c->final);
        if (!strstr(c->said, words))
                fail_msg("it says: %s", c->said);
        assert_int_equal(c->code, code);
}

/* The engine and the agent as they are when the next manager looks for the session. */
static inline void come_back(unsigned held) {
        while (r->n_pending > 0 && r->pending[0].type != ENGINE_LISTEN)
                rig_answer(r, 0);
        rig_settle(r);
        assert_true(r->n_pending > 0);
        rig_answer(r, 0);
        rig_agent(r, 0, "scrub=yes\n");
        rig_held(r, &r->agents[0], held, 1);
        settle();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
