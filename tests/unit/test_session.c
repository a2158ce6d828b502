/* Sessions, asked for over sockets, with agents and a broker at the other ends that do as they are told
 * (fuzz/manager_rig.h): who may what, what is bounded, and what the next manager finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sessionrig.h"

static void names(void **state) {
        char longest[66];

        (void)state;
        memset(longest, 'x', 65);
        longest[65] = '\0';
        assert_false(session_name_valid(longest));
        longest[64] = '\0';
        assert_true(session_name_valid(longest));
        assert_true(session_name_valid("aZ0_.-"));
        for (const char *const *s = (const char *const[]){ "", ".", "..", ".new", "-a", "a/b", "a b",
                                                           "a\n", "é", NULL };
             *s; s++)
                assert_false(session_name_valid(*s));
}

static void opened_and_closed(void **state) {
        struct rig_end *c;

        (void)state;
        c = open_as(0, ALICE,
                    (struct open_request){
                            .name = "a", .ttl_ms = 5000, .n_labels = 1, .labels = { "k=v" } });
        assert_says(c, 0, "a\n");
        assert_int_equal(strlen(c->said), 2);
        assert_true(is_kept("a"));
        c = ask(1, ALICE, (struct ask){ .op = ASK_SESSION_LIST, .form = ANSWER_JSON });
        assert_says(c, 0, "\"session\":\"a\",\"uid\":1000,\"profile\":\"default\",\"state\":\"open\"");
        assert_says(c, 0, "\"ttl_ms\":5000");
        assert_says(c, 0, "\"labels\":{\"k\":\"v\"}");
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_SESSION_LIST, .form = ANSWER_JSON }), 0, "[]\n");
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_SESSION_LIST, .all = true }), 77, "only root");
        c = ask(1, ALICE, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "a", .form = ANSWER_JSON });
        assert_says(c, 0, "{}\n");
        assert_false(is_kept("a"));
        assert_false(r->agents[0].there);
        assert_says(ask(1, ALICE, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "a" }), 125,
                    "no session");
}

static void made_up_names_differ(void **state) {
        char first[4096];

        (void)state;
        snprintf(first, sizeof(first), "%s", open_session(ALICE, "")->said);
        assert_memory_equal(first, "s-", 2);
        assert_int_equal(strlen(first), 11);
        caller(1, ALICE);
        open_as(1, ALICE, (struct open_request){});
        rig_answer(r, 0);
        rig_agent(r, 1, "scrub=yes\n");
        rig_held(r, &r->agents[1], 0, 1);
        settle();
        assert_true(r->clients[1].final);
        assert_string_not_equal(r->clients[1].said, first);
}

static void refused(void **state) {
        (void)state;
        open_session(ALICE, "a");
        assert_says(open_as(1, ALICE, (struct open_request){ .name = "a" }), 64, "is taken");
        assert_says(open_as(1, BOB, (struct open_request){ .name = "a" }), 64, "is taken");
        assert_says(open_as(1, ALICE, (struct open_request){ .name = "-x" }), 64, "cannot be");
        assert_says(open_as(1, ALICE, (struct open_request){ .profile = "none" }), 64, "no profile");
        assert_says(open_as(1, ALICE, (struct open_request){ .ttl_ms = UINT64_MAX }), 64,
                    "over the limit");
        assert_says(open_as(1, ALICE, (struct open_request){ .mounts = true }), 64, "no descriptor");
        assert_says(exec_in(1, ALICE, "b", (struct exec_request){ 0 }), 125, "no session \"b\"");
        assert_says(exec_in(1, ALICE, ".b", (struct exec_request){ 0 }), 64, "cannot be");
        assert_says(exec_in(1, ALICE, "a", (struct exec_request){ .profile = "once" }), 64,
                    "of profile \"default\"");
        /* A field that the question does not take. */
        assert_int_equal(
                ask(1, ALICE, (struct ask){ .op = ASK_SESSION_LIST, .name = "a" })->got[FRAME_ANSWER],
                0);
}

static void another_users(void **state) {
        struct rig_end *c;
        char id[4096];

        (void)state;
        open_session(ALICE, "a");
        snprintf(id, sizeof(id), "%s",
                 exec_in(0, ALICE, "a", (struct exec_request){ .detach = true })->said);
        assert_int_equal(strlen(id), PROTO_EXEC_ID);
        assert_says(exec_in(1, BOB, "a", (struct exec_request){ 0 }), 77, "another user's");
        assert_says(exec_in(1, BOB, "a", (struct exec_request){ .open = true }), 77, "another user's");
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "a" }), 77,
                    "another user's");
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_PS, .name = "a" }), 77, "another user's");
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_KILL, .name = id }), 77, "another user's");
        assert_says(attach(1, BOB, id, true), 77, "another user's");
        c = ask(1, BOB, (struct ask){ .op = ASK_PS });
        assert_null(strstr(c->said, id));
        if (getuid() != 0)
                return;
        assert_says(exec_in(1, SELF, "a", (struct exec_request){ 0 }), 77, "another user's");
        assert_says(ask(1, SELF, (struct ask){ .op = ASK_SESSION_LIST, .all = true }), 0, "\na ");
        assert_says(ask(1, SELF, (struct ask){ .op = ASK_PS, .all = true }), 0, id);
        ask(1, SELF, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "a" });
        assert_null(session_find(&r->m, "a"));
}

static void quotas(void **state) {
        (void)state;
        open_session(ALICE, "a");
        for (int i = 0; i < 6; i++)
                assert_int_equal(exec_in(1, ALICE, "a", (struct exec_request){ .detach = true })
                                         ->got[FRAME_STARTED],
                                 1);
        assert_says(exec_in(1, ALICE, "a", (struct exec_request){ .detach = true }), 125,
                    "limits.execs");
        assert_says(exec_in(1, ALICE, "", (struct exec_request){ 0 }), 125, "limits.execs");
        open_as(1, ALICE, (struct open_request){ .name = "b" });
        assert_false(r->clients[1].final);
        assert_says(open_as(2, ALICE, (struct open_request){ .name = "c" }), 125, "limits.sessions");
        /* What it holds is counted over all who wait for it. */
        for (unsigned i = 2; i < 4; i++)
                assert_false(exec_in(i, BOB, "d", (struct exec_request){ .open = true })->final);
        caller(1, BOB);
        assert_false(exec_in(1, BOB, "d", (struct exec_request){ 0 })->final);
        assert_says(exec_in(0, BOB, "d", (struct exec_request){ 0 }), 125, "limits.queued");
}

/* The bytes of a user's commands, those that are still coming in among them; another user's count for himself. */
static void much_held(void **state) {
        static const uint8_t bytes[2048];
        struct exec *x;

        (void)state;
        open_session(ALICE, "a");
        exec_in(1, ALICE, "a", (struct exec_request){ .detach = true });
        x = LIST_FIRST(&r->m.execs);
        assert_true(x->payload_len > 0 && x->payload_len < 1000);
        x->payload_len = (256u << 20) - 3000;
        for (unsigned user = ALICE; user <= BOB; user++) {
                caller(2, user);
                for (int i = 0; i < 2; i++)
                        rig_frame(&r->clients[2], FRAME_EXEC, FRAME_MORE, 1, bytes, sizeof(bytes));
                rig_settle(r);
                if (user == ALICE)
                        assert_says(&r->clients[2], 125, "your commands that wait or run have 256 MiB");
                else
                        assert_false(r->clients[2].final);
        }
}

static void full(void **state) {
        struct session *s;

        (void)state;
        open_session(ALICE, "a");
        s = session_find(&r->m, "a");
        s->n_running += SESSION_EXECS_MAX;
        r->m.n_running += SESSION_EXECS_MAX; /* and so that it fits together */
        send_exec(caller(1, ALICE), "a", (struct exec_request){ 0 });
        rig_settle(r);
        r->m.n_running -= SESSION_EXECS_MAX;
        assert_says(&r->clients[1], 125, "as many commands run");
        s->n_running -= SESSION_EXECS_MAX;
}

/* Two MiB wait for its agent, the last of them a long command. */
static struct session *busy(const char *name) {
        static const uint8_t bytes[FRAME_PAYLOAD_MAX];
        struct session *s;

        open_session(ALICE, name);
        s = session_find(&r->m, name);
        for (int i = 0; i < 32; i++)
                conn_queue(&s->sandbox->conn, FRAME_STDIN, 0, UINT32_MAX, bytes, sizeof(bytes));
        sandbox_took(s->sandbox, 1 << 20);
        return s;
}

static struct rig_end *long_in(unsigned slot, const char *session) {
        static char word[70000];
        static uint8_t buf[sizeof(word) + 512];
        const char *args[] = { word };
        struct exec_request q = { .session = session,
                                  .profile = "",
                                  .workdir = "",
                                  .n_args = 1,
                                  .args = args,
                                  .detach = true };
        struct rig_end *c = caller(slot, ALICE);
        size_t len, done = 0;

        ((struct config_profile *)pool_find(&r->m, "default")->profile)->limits.command_bytes = sizeof(
                word);
        memset(word, 'x', sizeof(word) - 1);
        len = (size_t)exec_request_encode(&q, buf, sizeof(buf));
        c->detach = true;
        for (; len - done > 2000; done += 2000)
                rig_frame(c, FRAME_EXEC, FRAME_MORE, 1, buf + done, 2000);
        rig_frame(c, FRAME_EXEC, 0, 1, buf + done, len - done);
        settle();
        return c;
}

static void agent_busy_short(void **state) {
        struct rig_end *c;

        (void)state;
        busy("a");
        c = exec_in(1, ALICE, "a", (struct exec_request){ .detach = true });
        assert_int_equal(c->got[FRAME_STARTED], 1);
}

/* What is short is waited for too where it comes behind what is long. */
static void agent_busy(void **state) {
        struct session *s = busy("a");
        unsigned orders = r->agents[0].got[FRAME_EXEC];

        (void)state;
        assert_int_equal(long_in(1, "a")->got[FRAME_STARTED], 0);
        assert_int_equal(
                exec_in(2, ALICE, "a", (struct exec_request){ .detach = true })->got[FRAME_STARTED], 0);
        assert_false(r->clients[1].final || r->clients[2].final);
        assert_int_equal(r->m.n_waiting, 2);
        conn_flush(&s->sandbox->conn);
        for (int i = 0; i < 50; i++)
                settle();
        assert_int_equal(r->agents[0].got[FRAME_EXEC], orders + 3); /* the long one has two frames */
        assert_int_equal(r->clients[1].got[FRAME_STARTED], 1);
        assert_int_equal(r->clients[2].got[FRAME_STARTED], 1);
        assert_int_equal(r->m.n_waiting, 0);
}

/* What waits for it leaves with its caller, and is refused where the session is stopped. */
static void agent_busy_meanwhile(void **state) {
        (void)state;
        busy("a");
        long_in(1, "a");
        assert_int_equal(r->m.n_waiting, 1);
        rig_client(r, 1, 0);
        settle();
        assert_int_equal(r->m.n_waiting, 0);
        long_in(1, "a");
        ask(2, ALICE, (struct ask){ .op = ASK_SESSION_STOP, .name = "a" });
        assert_says(&r->clients[1], 125, "the session is stopped");
        assert_int_equal(r->m.n_waiting, 0);
}

/* Whoever waits for one whose agent goes has begun nothing: he may ask for another. */
static void agent_busy_and_gone(void **state) {
        (void)state;
        busy("a");
        long_in(1, "a");
        r->agents[0].fd = close_fd(r->agents[0].fd);
        settle();
        assert_says(&r->clients[1], 125, "");
        assert_int_equal(r->clients[1].reason, REJECT_NO_SESSION);
}

static void agent_busy_too_long(void **state) {
        struct session *s = busy("a");

        (void)state;
        long_in(1, "a");
        sessions_check(&r->m, now_ms() + s->pool->profile->queue_timeout_ms + 1);
        settle();
        assert_says(&r->clients[1], 125, "within queue_timeout");
        assert_int_equal(r->m.n_waiting, 0);
}

static void by_a_command(void **state) {
        struct rig_end *c = exec_in(0, ALICE, "a", (struct exec_request){ .open = true });
        struct session *s = session_find(&r->m, "a");

        (void)state;
        assert_non_null(s);
        assert_true(is_kept("a"));
        assert_true(c->started && s->n_running == 1);
        exited(1, (struct exited){ .cause = CAUSE_EXITED, .code = 3 });
        assert_says(c, 3, "");
        assert_ptr_equal(session_find(&r->m, "a"), s);
        /* Nobody is left who wants it. */
        exec_in(1, ALICE, "b", (struct exec_request){ .open = true });
        assert_non_null(session_find(&r->m, "b"));
        rig_client(r, 1, 0);
        settle();
        assert_null(session_find(&r->m, "b"));
}

static void idle(void **state) {
        struct rig_end *c;

        (void)state;
        open_as(0, ALICE, (struct open_request){ .name = "a", .ttl_ms = 10000 });
        c = exec_in(1, ALICE, "a", (struct exec_request){ 0 });
        sessions_check(&r->m, now_ms() + 20000);
        assert_non_null(session_find(&r->m, "a"));
        exited(1, (struct exited){ .cause = CAUSE_EXITED });
        assert_says(c, 0, "");
        sessions_check(&r->m, now_ms() + 9000);
        assert_non_null(session_find(&r->m, "a"));
        sessions_check(&r->m, now_ms() + 10001);
        assert_null(session_find(&r->m, "a"));
        assert_false(is_kept("a"));
}

static void not_put_down(void **state) {
        (void)state;
        r->m.options.state_dir = "/dev/null";
        assert_says(open_session(ALICE, "a"), 125, "state file could not be written");
        assert_null(session_find(&r->m, "a"));
        assert_int_equal(r->m.pools.lh_first->n_leased, 0);
        r->m.options.state_dir = rig_state_dir;
        assert_says(open_session(ALICE, "a"), 0, "a\n");
}

static void detached(void **state) {
        struct rig_end *c, *w;
        char id[4096];

        (void)state;
        open_session(ALICE, "a");
        snprintf(id, sizeof(id), "%s",
                 exec_in(0, ALICE, "a", (struct exec_request){ .detach = true })->said);
        c = attach(1, ALICE, id, true);
        assert_true(c->started);
        w = attach(2, ALICE, id, false);
        exited(1, (struct exited){ .cause = CAUSE_EXITED, .code = 7 });
        exited(2, (struct exited){ .cause = CAUSE_EXITED, .code = 7 });
        assert_says(c, 7, "");
        assert_false(w->final);
        exited(3, (struct exited){ .cause = CAUSE_EXITED, .code = 7 });
        assert_says(w, 7, "");
        assert_says(ask(1, ALICE, (struct ask){ .op = ASK_PS, .form = ANSWER_JSON }), 0,
                    "\"state\":\"ended\",\"detached\":true,\"cause\":\"exited\",\"exit_code\":7");
        assert_says(ask(1, ALICE, (struct ask){ .op = ASK_KILL, .name = id }), 125, "runs");
        /* The agent has forgotten it, and its end is known all the same. */
        c = attach(1, ALICE, id, false);
        exited(4, (struct exited){ .cause = CAUSE_NOT_FOUND, .code = START_PLUMBING, .error = ENOENT });
        assert_says(c, 7, "");
        for (uint32_t i = 0; i < SESSION_ENDED_MAX; i++) {
                assert_int_equal(r->agents[0].got[FRAME_FORGET], 0);
                exec_in(0, ALICE, "a", (struct exec_request){ .detach = true });
                exited(5 + i, (struct exited){ .cause = CAUSE_EXITED });
        }
        assert_int_equal(r->agents[0].got[FRAME_FORGET], 1);
        assert_says(attach(1, ALICE, id, true), 125, "no detached command");
}

static void killed(void **state) {
        struct rig_end *c;
        char id[4096];

        (void)state;
        open_session(ALICE, "a");
        c = exec_in(1, ALICE, "a", (struct exec_request){ 0 });
        snprintf(id, sizeof(id), "%s", c->said);
        ask(2, ALICE, (struct ask){ .op = ASK_KILL, .name = id, .signal = 15 });
        assert_int_equal(r->agents[0].got[FRAME_SIGNAL], 1);
        ask(2, ALICE, (struct ask){ .op = ASK_KILL, .name = id });
        assert_int_equal(r->agents[0].got[FRAME_CANCEL], 1);
        exited(1, (struct exited){ .cause = CAUSE_CANCELLED, .signaled = true, .code = 9 });
        assert_says(c, 137, "by hermes-sandbox kill");
}

static void agent_gone(void **state) {
        struct rig_end *c;

        (void)state;
        open_session(ALICE, "a");
        c = exec_in(1, ALICE, "a", (struct exec_request){ 0 });
        rig_agent(r, 0, "");
        settle();
        assert_says(c, 125, "nothing is known");
        assert_null(session_find(&r->m, "a"));
        assert_false(is_kept("a"));
}

/* What the agent of a sandbox with host folders says of itself is not said of the pool's. */
static void mounted(void **state) {
        struct session *s;
        struct pool *p;

        (void)state;
        open_session(ALICE, "a");
        s = session_find(&r->m, "a");
        p = s->pool;
        assert_string_equal(p->probe, "scrub=yes\n");
        s->mounts = true;
        rig_restart(r);
        rig_settle(r);
        while (r->n_pending > 0 && r->pending[0].type != ENGINE_LISTEN)
                rig_answer(r, 0);
        rig_answer(r, 0);
        s = session_find(&r->m, "a");
        s->mounts = true;
        rig_agent(r, 0, "scrub=no: commands run as the agent itself\n");
        rig_held(r, &r->agents[0], 0, 1);
        settle();
        assert_int_equal(s->state, SESSION_OPEN);
        assert_string_equal(p->probe, "scrub=yes\n");
}

static void found_again(void **state) {
        struct rig_end *c, *p;
        struct session *s;

        (void)state;
        open_as(0, ALICE,
                (struct open_request){
                        .name = "a", .ttl_ms = 10000, .n_labels = 1, .labels = { "k=v" } });
        exec_in(1, ALICE, "a", (struct exec_request){ .detach = true });
        rig_restart(r);
        s = session_find(&r->m, "a");
        assert_non_null(s);
        assert_int_equal(s->state, SESSION_ADOPTING);
        assert_int_equal(s->owner.uid, FIRST_UID);
        assert_int_equal(s->ttl_ms, 10000);
        assert_int_equal(s->n_labels, 1);
        assert_string_equal(s->labels[0], "k=v");
        /* What is asked meanwhile waits. */
        c = exec_in(1, ALICE, "a", (struct exec_request){ 0 });
        p = ask(2, ALICE, (struct ask){ .op = ASK_PS, .form = ANSWER_JSON });
        assert_false(c->final || c->started || p->final);
        assert_says(exec_in(3, BOB, "a", (struct exec_request){ 0 }), 77, "another user's");
        come_back(1);
        assert_int_equal(s->state, SESSION_OPEN);
        assert_true(c->started);
        assert_says(p, 0, "\"state\":\"running\",\"detached\":true");
        assert_int_equal(s->n_running, 2);
        exited(2, (struct exited){ .cause = CAUSE_EXITED, .code = 5 });
        assert_says(c, 5, "");
        exited(1, (struct exited){ .cause = CAUSE_EXITED, .code = 6 });
        assert_int_equal(session_ended(s, r->ids[0])->result.exit_code, 6);
}

static void not_held_any_more(void **state) {
        struct audit_open_exec o;
        size_t i = 0;

        (void)state;
        open_session(ALICE, "a");
        exec_in(1, ALICE, "a", (struct exec_request){ .detach = true });
        rig_restart(r);
        assert_true(audit_open_next(r->m.audit, &i, &o));
        come_back(0);
        i = 0;
        assert_false(audit_open_next(r->m.audit, &i, &o));
        assert_int_equal(session_find(&r->m, "a")->n_running, 0);
}

static void held_and_unknown(void **state) {
        struct session *s;

        (void)state;
        open_session(ALICE, "a");
        exec_in(1, ALICE, "a", (struct exec_request){ .detach = true });
        exited(1, (struct exited){ .cause = CAUSE_EXITED });
        rig_restart(r);
        come_back(1); /* as if it ran */
        assert_int_equal(r->agents[0].got[FRAME_CANCEL], 1);
        s = session_find(&r->m, "a");
        assert_int_equal(s->n_running, 1);
        exited(1, (struct exited){ .cause = CAUSE_CANCELLED });
        assert_int_equal(s->n_running, 0);
        assert_int_equal(s->n_ended, 1);
}

static void container_gone(void **state) {
        struct rig_end *c;

        (void)state;
        open_session(ALICE, "a");
        exec_in(1, ALICE, "a", (struct exec_request){ .detach = true });
        rig_restart(r);
        c = exec_in(1, ALICE, "a", (struct exec_request){ 0 });
        r->agents[0].there = false;
        while (r->n_pending > 0) {
                rig_answer(r, 0);
                rig_settle(r);
        }
        settle();
        assert_says(c, 125, "rejected");
        assert_null(session_find(&r->m, "a"));
        assert_false(is_kept("a"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names),
                TEST(opened_and_closed),
                TEST(made_up_names_differ),
                TEST(refused),
                TEST(another_users),
                TEST(quotas),
                TEST(much_held),
                TEST(full),
                TEST(agent_busy_short),
                TEST(agent_busy),
                TEST(agent_busy_meanwhile),
                TEST(agent_busy_and_gone),
                TEST(agent_busy_too_long),
                TEST(by_a_command),
                TEST(idle),
                TEST(not_put_down),
                TEST(detached),
                TEST(killed),
                TEST(agent_gone),
                TEST(mounted),
                TEST(found_again),
                TEST(not_held_any_more),
                TEST(held_and_unknown),
                TEST(container_gone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
