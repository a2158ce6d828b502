/* Sessions that are stopped and started, asked for over sockets: what their agents are told, who waits for what, what ends
 * and what the next manager makes of it. */
#include "sessionrig.h"

static struct rig_end *stop(unsigned slot, unsigned user, const char *name) {
        return ask(slot, user, (struct ask){ .op = ASK_SESSION_STOP, .name = name, .grace_ms = 1500 });
}

static struct rig_end *start(unsigned slot, unsigned user, const char *name) {
        return ask(slot, user, (struct ask){ .op = ASK_SESSION_START, .name = name });
}

static void halted(uint8_t processes) {
        uint8_t payload[4] = { processes };

        rig_frame(&r->agents[0], FRAME_HALTED, 0, 0, payload, sizeof(payload));
        settle();
}

static bool open_in_trail(const char *exec_id) {
        struct audit_open_exec o;

        for (size_t i = 0; audit_open_next(r->m.audit, &i, &o); i++)
                if (strcmp(o.exec_id, exec_id) == 0)
                        return true;
        return false;
}

static void stops_and_starts(void **state) {
        struct rig_end *c, *d, *w;
        struct session *s;
        char id[4096];

        (void)state;
        open_session(ALICE, "a");
        s = session_find(&r->m, "a");
        c = exec_in(0, ALICE, "a", (struct exec_request){ 0 });
        snprintf(id, sizeof(id), "%s",
                 exec_in(1, ALICE, "a", (struct exec_request){ .detach = true })->said);
        w = stop(2, ALICE, "a");
        assert_int_equal(r->agents[0].got[FRAME_HALT], 1);
        assert_false(w->final);
        assert_int_equal(s->state, SESSION_STOPPING);
        d = exec_in(3, ALICE, "a", (struct exec_request){ 0 });
        assert_says(d, 125, "session \"a\" is stopped: hermes-sandbox session start a");
        assert_int_equal(d->reason, REJECT_STOPPED);
        exited(1, (struct exited){ .cause = CAUSE_SIGNALED, .signaled = true, .code = 15 });
        assert_says(c, 137, "cancelled, as its session was stopped");
        exited(2, (struct exited){ .cause = CAUSE_EXITED, .code = 3 });
        assert_int_equal(session_ended(s, id)->result.exit_code, 3);
        assert_false(open_in_trail(id));
        halted(2);
        assert_says(w, 0, "");
        assert_int_equal(s->state, SESSION_STOPPED);
        assert_true(s->finished >= s->opened && s->recorded);
        assert_says(stop(2, ALICE, "a"), 0, "");
        assert_int_equal(r->agents[0].got[FRAME_HALT], 1);
        assert_says(exec_in(3, ALICE, "a", (struct exec_request){ .open = true }), 125, "is stopped");
        assert_says(start(3, ALICE, "a"), 0, "");
        assert_int_equal(s->state, SESSION_OPEN);
        assert_says(start(3, ALICE, "a"), 0, "");
        c = exec_in(3, ALICE, "a", (struct exec_request){ 0 });
        assert_true(c->started);
        exited(3, (struct exited){ .cause = CAUSE_SIGNALED, .signaled = true, .code = 15 });
        assert_says(c, 143, "");
}

/* What a detached command ended with is told alike by ps, to who is attached, and to who comes later. */
static void detached_ends(void **state) {
        struct rig_end *c;
        char id[4096];

        (void)state;
        open_session(ALICE, "a");
        snprintf(id, sizeof(id), "%s",
                 exec_in(1, ALICE, "a", (struct exec_request){ .detach = true })->said);
        c = attach(1, ALICE, id, true);
        stop(2, ALICE, "a");
        exited(1, (struct exited){ .cause = CAUSE_CANCELLED, .signaled = true, .code = 9 });
        exited(2, (struct exited){ .cause = CAUSE_SIGNALED, .signaled = true, .code = 9 });
        assert_says(c, 137, "as its session was stopped");
        halted(1);
        assert_says(ask(3, ALICE, (struct ask){ .op = ASK_PS, .form = ANSWER_JSON }), 0,
                    "\"cause\":\"cancelled\",\"exit_code\":137");
        c = attach(1, ALICE, id, false);
        exited(3, (struct exited){ .cause = CAUSE_SIGNALED, .signaled = true, .code = 9 });
        assert_says(c, 137, "as its session was stopped");
}

static void who_waits(void **state) {
        struct rig_end *a, *b, *c;

        (void)state;
        open_session(ALICE, "a");
        a = ask(1, ALICE, (struct ask){ .op = ASK_SESSION_STOP, .name = "a" });
        /* Without one it is the profile's grace time. */
        assert_true(session_find(&r->m, "a")->halt_due_ms > now_ms() + EXEC_LATE_MS + 1500);
        b = start(2, ALICE, "a");
        assert_false(a->final || b->final);
        halted(0);
        assert_says(a, 0, "");
        assert_says(b, 0, "");
        assert_int_equal(session_find(&r->m, "a")->state, SESSION_OPEN);
        /* One that goes away, and one whose session does. */
        a = stop(1, ALICE, "a");
        rig_client(r, 1, 0);
        settle();
        b = stop(2, ALICE, "a");
        assert_int_equal(r->agents[0].got[FRAME_HALT], 3);
        c = ask(3, ALICE, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "a" });
        assert_says(c, 0, "");
        assert_says(b, 125, "session stop: session \"a\": it was closed meanwhile");
        assert_int_equal(b->reason, REJECT_NO_SESSION);
}

/* While an answer is owed nothing more may be asked, and what was put off until the sessions are there is asked once. */
static void asks_twice(void **state) {
        struct ask a = { .op = ASK_SESSION_STOP, .name = "a", .profile = "" };
        uint8_t buf[512];
        size_t len = (size_t)ask_encode(&a, buf, sizeof(buf));

        (void)state;
        open_session(ALICE, "a");
        for (int put_off = 0; put_off < 2; put_off++) {
                const struct client *c;

                if (put_off)
                        rig_restart(r);
                caller(0, ALICE);
                for (int i = 0; i < 2; i++)
                        rig_frame(&r->clients[0], FRAME_ASK, 0, 1, buf, len);
                rig_settle(r);
                if (put_off)
                        come_back(0);
                c = LIST_FIRST(&session_find(&r->m, "a")->waiting);
                assert_true(c && !LIST_NEXT(c, stop_link));
        }
        while (session_find(&r->m, "a")->state == SESSION_STOPPING)
                halted(0);
        assert_says(&r->clients[0], 0, "");
}

/* Nor beside a request that has only begun. */
static void asks_within(void **state) {
        struct ask a = { .op = ASK_PS, .name = "", .profile = "" };
        uint8_t buf[512];
        size_t len = (size_t)ask_encode(&a, buf, sizeof(buf));

        (void)state;
        caller(0, ALICE);
        rig_frame(&r->clients[0], FRAME_EXEC, FRAME_MORE, 1, buf, sizeof(buf));
        rig_frame(&r->clients[0], FRAME_ASK, 0, 1, buf, len);
        settle();
        assert_true(LIST_EMPTY(&r->m.clients));
}

/* Each of two is answered, and nothing may run in between. */
static void two_stops(void **state) {
        struct rig_end *a, *b;
        struct session *s;

        (void)state;
        open_session(ALICE, "a");
        s = session_find(&r->m, "a");
        a = stop(1, ALICE, "a");
        b = stop(2, ALICE, "a");
        assert_int_equal(r->agents[0].got[FRAME_HALT], 2);
        halted(1);
        assert_false(a->final || b->final);
        assert_int_equal(s->state, SESSION_STOPPING);
        halted(1);
        assert_says(a, 0, "");
        assert_says(b, 0, "");
        assert_int_equal(s->state, SESSION_STOPPED);
        halted(1);
        assert_null(session_find(&r->m, "a"));
}

static void another_users(void **state) {
        (void)state;
        open_session(ALICE, "a");
        assert_says(stop(1, BOB, "a"), 77, "another user's");
        assert_says(start(1, BOB, "a"), 77, "another user's");
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_SESSION_INFO, .name = "a" }), 77,
                    "another user's");
        assert_says(stop(1, ALICE, "b"), 125, "no session \"b\"");
        assert_int_equal(r->clients[1].reason, REJECT_NO_SESSION);
        assert_int_equal(r->agents[0].got[FRAME_HALT], 0);
}

/* An agent that does not end what it is told to end, and one that says so unasked. */
static void agent_wrong(void **state) {
        struct rig_end *c;

        (void)state;
        open_session(ALICE, "a");
        c = stop(1, ALICE, "a");
        rig_later(r, 1000);
        settle();
        assert_false(c->final);
        sandbox_check(session_find(&r->m, "a")->sandbox, now_ms() + 1500 + EXEC_LATE_MS);
        settle();
        assert_says(c, 125, "its agent does not end");
        assert_null(session_find(&r->m, "a"));
}

static void halted_unasked(void **state) {
        (void)state;
        open_session(ALICE, "a");
        halted(1);
        assert_null(session_find(&r->m, "a"));
}

static void idle(void **state) {
        (void)state;
        open_as(0, ALICE, (struct open_request){ .name = "a", .ttl_ms = 10000 });
        stop(1, ALICE, "a");
        sessions_check(&r->m, now_ms() + 20000);
        assert_non_null(session_find(&r->m, "a"));
        halted(0);
        sessions_check(&r->m, now_ms() + 9000);
        assert_non_null(session_find(&r->m, "a"));
        sessions_check(&r->m, now_ms() + 10001);
        assert_null(session_find(&r->m, "a"));
        assert_false(is_kept("a"));
}

static void not_put_down(void **state) {
        struct session *s;

        (void)state;
        open_session(ALICE, "a");
        s = session_find(&r->m, "a");
        r->m.options.state_dir = "/dev/null";
        assert_says(stop(1, ALICE, "a"), 125, "state file could not be written");
        assert_int_equal(s->state, SESSION_OPEN);
        assert_int_equal(r->agents[0].got[FRAME_HALT], 0);
        r->m.options.state_dir = rig_state_dir;
        stop(1, ALICE, "a");
        halted(0);
        r->m.options.state_dir = "/dev/null";
        assert_says(start(1, ALICE, "a"), 125, "state file could not be written");
        assert_int_equal(s->state, SESSION_STOPPED);
        r->m.options.state_dir = rig_state_dir;
        assert_says(start(1, ALICE, "a"), 0, "");
}

static void stays_stopped(void **state) {
        struct session *s;
        struct rig_end *c, *x;

        (void)state;
        open_session(ALICE, "a");
        stop(1, ALICE, "a");
        halted(0);
        rig_restart(r);
        c = ask(1, ALICE, (struct ask){ .op = ASK_SESSION_STOP, .name = "a" });
        x = exec_in(2, ALICE, "a", (struct exec_request){ 0 });
        assert_false(c->final || x->final);
        come_back(0);
        s = session_find(&r->m, "a");
        assert_int_equal(s->state, SESSION_STOPPING);
        assert_says(x, 125, "is stopped");
        assert_int_equal(x->reason, REJECT_STOPPED);
        assert_true(r->agents[0].got[FRAME_HALT] > 0);
        for (unsigned n = r->agents[0].got[FRAME_HALT]; n > 0; n--)
                halted(0);
        assert_says(c, 0, "");
        assert_int_equal(s->state, SESSION_STOPPED);
        assert_says(start(1, ALICE, "a"), 0, "");
}

/* The manager ended while one was being stopped: the next one goes on with that, and every command has its end. */
static void ended_in_between(void **state) {
        struct session *s;
        char id[4096];

        (void)state;
        open_session(ALICE, "a");
        snprintf(id, sizeof(id), "%s",
                 exec_in(1, ALICE, "a", (struct exec_request){ .detach = true })->said);
        stop(2, ALICE, "a");
        rig_restart(r);
        assert_true(open_in_trail(id));
        come_back(1);
        s = session_find(&r->m, "a");
        assert_int_equal(s->state, SESSION_STOPPING);
        assert_false(s->recorded);
        exited(1, (struct exited){ .cause = CAUSE_SIGNALED, .signaled = true, .code = 9 });
        assert_false(open_in_trail(id));
        assert_int_equal(session_ended(s, id)->result.cause, CAUSE_CANCELLED);
        halted(1);
        assert_int_equal(s->state, SESSION_STOPPED);
        assert_true(s->recorded);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(stops_and_starts), TEST(detached_ends), TEST(who_waits),     TEST(asks_twice),
                TEST(asks_within),      TEST(two_stops),     TEST(another_users), TEST(agent_wrong),
                TEST(halted_unasked),   TEST(idle),          TEST(not_put_down),  TEST(stays_stopped),
                TEST(ended_in_between),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
