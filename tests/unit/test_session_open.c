/* How sessions are opened, and found: image, user, less than the profile gives, variables, ids. */
#include "common/wire.h"
#include "sessionrig.h"

#define PAIR(uid_, gid_) \
        { .user = true, .uid = (uid_), .gid = (gid_) }

/* The broker and the agents of what it makes do their work, until there is nothing left to do. */
static void work(void) {
        for (int i = 0; i < 20; i++) {
                rig_settle(r);
                rig_answer(r, 0);
                rig_settle(r);
                for (unsigned k = 0; k < AGENTS; k++)
                        if (r->agents[k].there && r->agents[k].fd < 0) {
                                rig_agent(r, k, k > 0 ? "scrub=yes\npids_max=20\n" : "scrub=yes\n");
                                rig_held(r, &r->agents[k], 0, 1);
                        }
        }
        settle();
}

static bool is_asked(uint16_t type) {
        for (unsigned i = 0; i < r->n_pending; i++)
                if (r->pending[i].type == type)
                        return true;
        return false;
}

static void images(void **state) {
        static const char *const same[] = {
                "",
                "debian:bookworm-slim",
                "docker.io/library/debian:bookworm-slim",
                "index.docker.io/debian:bookworm-slim",
                "library/debian:bookworm-slim",
        };
        static const char *const others[] = { "debian",
                                              "debian:bookworm",
                                              "quay.io/library/debian:bookworm-slim",
                                              "debian:bookworm-slim@sha256:00",
                                              "debian:bookworm-slim-2",
                                              "bookworm-slim",
                                              "sha256:0" };
        struct rig_end *c;

        (void)state;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                c = open_as(0, ALICE, (struct open_request){ .name = "a", .image = others[i] });
                assert_says(c, 125,
                            "is not that of profile \"default\", which is \"debian:bookworm-slim\"");
                assert_string_equal(c->said + strlen(c->said) - 22, "\"debian:bookworm-slim\"");
                assert_int_equal(c->reason, REJECT_OTHER_IMAGE);
        }
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
                c = open_as(0, ALICE, (struct open_request){ .name = "a", .image = same[i] });
                if (c->code != 0)
                        fail_msg("%s: %s", same[i], c->said);
                rig_client(r, 0, 0);
                settle();
                if (session_find(&r->m, "a"))
                        ask(1, ALICE, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "a" });
        }
}

static void image_ids(void **state) {
        struct pool *p = pool_find(&r->m, "");
        struct rig_end *c;

        (void)state;
        memset(p->image_id, 0, sizeof(p->image_id));
        snprintf(p->image_id, sizeof(p->image_id), "sha256:%064d", 7);
        c = open_as(0, ALICE, (struct open_request){ .name = "a", .image = "00000000000" });
        assert_int_equal(c->reason, REJECT_OTHER_IMAGE);
        c = open_as(0, ALICE, (struct open_request){ .name = "a", .image = "sha256:000000000000" });
        assert_int_equal(c->reason, 0);
}

static void reasons(void **state) {
        struct rig_end *c;

        (void)state;
        open_session(ALICE, "a");
        c = open_as(1, ALICE, (struct open_request){ .name = "a" });
        assert_int_equal(c->reason, REJECT_NAME_TAKEN);
        c = open_as(1, ALICE, (struct open_request){ .profile = "none" });
        assert_int_equal(c->reason, REJECT_NO_PROFILE);
        c = exec_in(1, ALICE, "b", (struct exec_request){ 0 });
        assert_int_equal(c->reason, REJECT_NO_SESSION);
        c = ask(1, ALICE, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "b" });
        assert_int_equal(c->reason, REJECT_NO_SESSION);
        c = open_as(1, ALICE, (struct open_request){ .narrow = PAIR(4242, 4242) });
        assert_says(c, 77, "may not run as 4242:4242");
        assert_int_equal(c->reason, REJECT_NO_USER);
        c = open_as(1, ALICE, (struct open_request){ .narrow = PAIR(0, 0) });
        assert_int_equal(c->reason, REJECT_NO_USER);
        c = exec_in(1, ALICE, "a", (struct exec_request){ .user = true, .uid = 0, .gid = UINT32_MAX });
        assert_says(c, 77, "may not run as uid 0");
        assert_int_equal(c->reason, REJECT_NO_USER);
        c = exec_in(1, ALICE, "", (struct exec_request){ .user = true, .uid = 10000, .gid = 10000 });
        assert_int_equal(c->reason, 0);
}

static void ids(void **state) {
        struct rig_end *c;
        struct session *s;
        char id[ENGINE_ID_LEN + 1];

        (void)state;
        open_session(ALICE, "a");
        s = session_find(&r->m, "a");
        memcpy(id, s->container, sizeof(id));
        assert_true(exec_in(1, ALICE, id, (struct exec_request){ 0 })->started);
        id[12] = '\0';
        assert_true(exec_in(1, ALICE, id, (struct exec_request){ 0 })->started);
        assert_true(exec_in(1, ALICE, "0", (struct exec_request){ 0 })->started);
        c = exec_in(1, BOB, id, (struct exec_request){ 0 });
        assert_int_equal(c->reason, REJECT_NO_SESSION);
        /* Where a session is to be opened its name is meant. */
        exec_in(1, ALICE, "0", (struct exec_request){ .open = true });
        assert_non_null(session_find(&r->m, "0"));
        rig_client(r, 1, 0);
        settle();
        /* Another's name does not hide an id. */
        open_as(1, BOB, (struct open_request){ .name = id });
        assert_non_null(session_find(&r->m, id));
        assert_true(exec_in(2, ALICE, id, (struct exec_request){ 0 })->started);
        rig_client(r, 1, 0);
        settle();
        assert_says(ask(1, ALICE, (struct ask){ .op = ASK_SESSION_INFO, .name = id }), 0,
                    "session    a\n");
        assert_says(ask(1, ALICE, (struct ask){ .op = ASK_PS, .name = id, .form = ANSWER_JSON }), 0,
                    "\"session\":\"a\"");
        /* Two of them begin so. */
        open_as(1, ALICE, (struct open_request){ .name = "z" });
        rig_answer(r, 0);
        rig_agent(r, 1, "scrub=yes\n");
        rig_held(r, &r->agents[1], 0, 1);
        settle();
        c = exec_in(2, ALICE, "0", (struct exec_request){ 0 });
        assert_says(c, 125, "give more digits");
        assert_int_equal(c->reason, REJECT_AMBIGUOUS);
        assert_true(exec_in(2, ALICE, "z", (struct exec_request){ 0 })->started);
}

static void info(void **state) {
        const char *env[] = { "A=b", "C=" };
        struct session_info i;
        const uint8_t *p, *record;
        size_t left, len;
        struct rig_end *c;

        (void)state;
        c = open_as(0, ALICE,
                    (struct open_request){ .form = ANSWER_RECORDS,
                                           .name = "a",
                                           .workdir = "/data",
                                           .ttl_ms = 5000,
                                           .n_labels = 1,
                                           .labels = { "k=v" },
                                           .n_env = 2,
                                           .env = env });
        assert_true(c->final && c->code == 0);
        p = (const uint8_t *)c->said;
        left = (size_t)p[0] + 256 * p[1] + 4;
        assert_int_equal(record_next(&p, &left, &record, &len), 1);
        assert_int_equal(session_info_decode(record, len, &i), 0);
        assert_string_equal(i.name, "a");
        assert_string_equal(i.image, "debian:bookworm-slim");
        assert_string_equal(i.workdir, "/data");
        assert_string_equal(i.network, "none");
        assert_int_equal(i.status, SESSION_IS_RUNNING);
        assert_int_equal(strlen(i.id), ENGINE_ID_LEN);
        assert_true(i.created > 0 && i.started == i.created && i.finished == 0);
        assert_true(i.uid == 10000 && i.gid == 10000 && i.ttl_ms == 5000 && i.n_labels == 1);
        assert_int_equal(record_next(&p, &left, &record, &len), 0);
        assert_says(ask(1, ALICE, (struct ask){ .op = ASK_SESSION_INFO, .name = "a" }), 0,
                    "workdir    /data\n");
        assert_says(
                ask(1, ALICE, (struct ask){ .op = ASK_SESSION_INFO, .name = "a", .form = ANSWER_JSON }),
                0, "\"workdir\":\"/data\"");
        /* A form that is none for this question. */
        c = ask(1, ALICE, (struct ask){ .op = ASK_PS, .form = ANSWER_RECORDS });
        assert_int_equal(c->got[FRAME_ANSWER] + c->got[FRAME_REJECT], 0);
}

/* What changes nothing takes a warm sandbox, what narrows has one made for it. */
static void narrowed(void **state) {
        struct open_request q = {
                .name = "a",
                .narrow = { .pids_limit = 20, .n_tmpfs = 1, .tmpfs = { { "/tmp", 1 << 20 } } }
        };
        struct session *s;
        struct rig_end *c;

        (void)state;
        c = open_as(0, ALICE, (struct open_request){ .name = "b", .narrow = { .pids_limit = 4000 } });
        assert_says(c, 0, "b\n");
        assert_false(session_alone(session_find(&r->m, "b")));
        ask(0, ALICE, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "b" });
        work();
        c = open_as(1, ALICE, q);
        assert_false(c->final);
        while (!is_asked(ENGINE_CREATE_FOR)) {
                assert_true(r->n_pending > 0);
                rig_answer(r, 0);
                rig_settle(r);
        }
        s = session_find(&r->m, "a");
        assert_true(session_alone(s) && s->making);
        assert_int_equal(s->shape.pids_limit, 20);
        work();
        assert_says(c, 0, "a\n");
        assert_null(strstr(s->pool->probe, "pids_max"));
        assert_says(open_as(0, BOB,
                            (struct open_request){
                                    .narrow = { .n_tmpfs = 1, .tmpfs = { { "/nowhere", 1 << 20 } } } }),
                    125, "/nowhere");
}

/* As many as are made for one user at once; another's is made beside them. */
static void many_of_one_user(void **state) {
        struct open_request q = { .narrow = { .pids_limit = 20 } };
        struct config_profile *p = (struct config_profile *)pool_find(&r->m, "default")->profile;
        unsigned n = 0;

        (void)state;
        p->limits.sessions = p->max_sandboxes = 20;
        for (int i = 0; i < 6; i++)
                open_as(1, ALICE, q); /* whoever asked before has gone */
        open_as(2, BOB, q);
        for (unsigned i = 0; i < r->n_pending; i++)
                n += r->pending[i].type == ENGINE_CREATE_FOR;
        assert_int_equal(n, CREATING_MAX / 2 + 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(images), TEST(image_ids), TEST(reasons),          TEST(ids),
                TEST(info),   TEST(narrowed),  TEST(many_of_one_user),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
