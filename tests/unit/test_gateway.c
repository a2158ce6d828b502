/* The ssh gateway's account speaks for the holders of keys: who may say so, and that no two of them meet. */
#include "sessionrig.h"

#define KEY0 "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+/123"
#define KEY1 "SHA256:321/+LKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba"

/* A new caller in that place: the holder of that key. */
static struct rig_end *holder(unsigned slot, unsigned key) {
        if (r->clients[slot].fd >= 0)
                rig_client(r, slot, 0);
        rig_settle(r);
        rig_gateway(r, slot, key);
        return &r->clients[slot];
}

static struct rig_end *asks(unsigned slot, unsigned key, struct ask a) {
        struct rig_end *c = holder(slot, key);
        uint8_t buf[2048];

        a.name = a.name ? a.name : "";
        a.profile = "";
        rig_frame(c, FRAME_ASK, 0, 1, buf, (size_t)ask_encode(&a, buf, sizeof(buf)));
        settle();
        return c;
}

static struct rig_end *opens(unsigned slot, unsigned key, const char *name) {
        const struct open_request q = { .name = name, .profile = "", .image = "", .workdir = "" };
        struct rig_end *c = holder(slot, key);
        uint8_t buf[512];

        rig_frame(c, FRAME_OPEN, 0, 1, buf, (size_t)open_request_encode(&q, buf, sizeof(buf)));
        settle();
        return c;
}

static struct rig_end *runs(unsigned slot, unsigned key, const char *session, struct exec_request q) {
        struct rig_end *c = holder(slot, key);

        send_exec(c, session, q);
        settle();
        return c;
}

static struct rig_end *attaches(unsigned slot, unsigned key, const char *id) {
        const struct attach a = { .exec_id = id, .output = true };
        struct rig_end *c = holder(slot, key);
        uint8_t buf[64];

        rig_frame(c, FRAME_ATTACH, 0, 1, buf, (size_t)attach_encode(&a, buf, sizeof(buf)));
        settle();
        return c;
}

static struct rig_end *says(unsigned slot, uid_t uid, uint8_t role, const char *text) {
        if (r->clients[slot].fd >= 0)
                rig_client(r, slot, 0);
        rig_settle(r);
        rig_connect_as(r, slot, uid, role, text);
        settle();
        return &r->clients[slot];
}

static void texts(void **state) {
        static const char *const bad[] = {
                "",
                KEY0,
                KEY0 " 192.0.2.1",
                KEY0 " 192.0.2.1 ",
                KEY0 " 192.0.2.1 22",
                KEY0 " 192.0.2.1 22 ",
                KEY0 " 192.0.2.1 22 a b",
                KEY0 " 192.0.2.1 22 a/b",
                KEY0 " 192.0.2.1 22 123456789012345678901234567890123",
                KEY0 " 192.0.2.1 65536 a",
                KEY0 " 192.0.2.1 -1 a",
                KEY0 "  22 a",
                KEY0 " 192.0.2.1\n22 a",
                KEY0 " a\"b 22 a",
                "SHA256:abc 192.0.2.1 22 a",
                "MD5:aabcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+/123 192.0.2.1 22 a",
                KEY0 "= 192.0.2.1 22 a",
                "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+:123 192.0.2.1 22 a",
        };
        struct gateway_login l;

        (void)state;
        assert_int_equal(gateway_parse(KEY0 " fe80::1%eth0 65535 sshauth.aZ09_-", &l), 0);
        assert_string_equal(l.fp, KEY0);
        assert_string_equal(l.address, "fe80::1%eth0");
        assert_int_equal(l.port, 65535);
        assert_string_equal(l.connection, "sshauth.aZ09_-");
        assert_int_equal(gateway_parse(KEY0 " UNKNOWN 0 12345678901234567890123456789012", &l), 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (gateway_parse(bad[i], &l) != -EPROTO)
                        fail_msg("taken: %s", bad[i]);
}

static void who_may(void **state) {
        struct rig_end *c;

        (void)state;
        c = says(0, FIRST_UID, HELLO_GATEWAY, KEY0 " 192.0.2.1 22 a");
        assert_says(c, 77, "is not the ssh gateway's account");
        c = says(0, GATEWAY_UID, HELLO_CLIENT, "a client");
        assert_says(c, 77, "for whose key");
        c = says(0, GATEWAY_UID, HELLO_GATEWAY, "nonsense");
        assert_true(LIST_EMPTY(&r->m.clients));
        r->m.policy.have_gateway = false;
        c = says(0, GATEWAY_UID, HELLO_GATEWAY, KEY0 " 192.0.2.1 22 a");
        assert_says(c, 77, "is not the ssh gateway's account");
}

/* Whoever had it would keep the key's holder out. */
static void names_of_keys(void **state) {
        static const char name[] = "ssh-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL-_123";
        const struct open_request q = { .name = name, .profile = "", .image = "", .workdir = "" };
        struct rig_end *c;
        uint8_t buf[512];

        (void)state;
        c = says(0, FIRST_UID, HELLO_CLIENT, "a client");
        rig_frame(c, FRAME_OPEN, 0, 1, buf, (size_t)open_request_encode(&q, buf, sizeof(buf)));
        settle();
        assert_says(c, 64, "an ssh key's session");
        c = says(0, FIRST_UID, HELLO_CLIENT, "a client");
        send_exec(c, name, (struct exec_request){ .open = true });
        settle();
        assert_says(c, 64, "an ssh key's session");
        assert_says(opens(0, 1, name), 64, "an ssh key's session");
        assert_null(session_find(&r->m, name));
        assert_says(opens(0, 0, name), 0, name);
}

/* Everything that could show one the other's. */
static void two_keys(void **state) {
        static const uint16_t ops[] = { ASK_SESSION_INFO, ASK_SESSION_STOP, ASK_SESSION_START,
                                        ASK_SESSION_CLOSE, ASK_PS };
        struct session *s;
        struct rig_end *c;
        char id[4096];

        (void)state;
        assert_says(opens(0, 0, "ssh-a"), 0, "ssh-a\n");
        s = session_find(&r->m, "ssh-a");
        assert_string_equal(s->owner.fp, KEY0);
        snprintf(id, sizeof(id), "%s",
                 runs(0, 0, "ssh-a", (struct exec_request){ .detach = true })->said);
        assert_int_equal(strlen(id), PROTO_EXEC_ID);
        assert_says(asks(0, 0, (struct ask){ .op = ASK_SESSION_LIST }), 0, "\nssh-a ");
        assert_says(asks(0, 0, (struct ask){ .op = ASK_PS }), 0, id);

        assert_says(asks(1, 1, (struct ask){ .op = ASK_SESSION_LIST, .form = ANSWER_JSON }), 0, "[]\n");
        assert_null(strstr(asks(1, 1, (struct ask){ .op = ASK_PS })->said, id));
        assert_says(asks(1, 1, (struct ask){ .op = ASK_TOP, .form = ANSWER_JSON }), 0, "[]\n");
        for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
                c = asks(1, 1, (struct ask){ .op = ops[i], .name = "ssh-a" });
                assert_says(c, 125, "no session \"ssh-a\"");
                assert_int_equal(c->reason, REJECT_NO_SESSION);
                c = asks(1, 1, (struct ask){ .op = ops[i], .name = s->container });
                assert_int_equal(c->reason, REJECT_NO_SESSION);
        }
        c = runs(1, 1, "ssh-a", (struct exec_request){ 0 });
        assert_int_equal(c->reason, REJECT_NO_SESSION);
        assert_says(asks(1, 1, (struct ask){ .op = ASK_KILL, .name = id }), 125, "no command");
        assert_int_equal(r->agents[0].got[FRAME_CANCEL], 0);
        assert_says(attaches(1, 1, id), 125, "no detached command");
        /* Nor is it the account's without a key, or another user's. */
        assert_says(ask(1, BOB, (struct ask){ .op = ASK_SESSION_CLOSE, .name = "ssh-a" }), 77,
                    "another user's");
        if (getuid() == 0)
                assert_says(
                        ask(1, SELF,
                            (struct ask){ .op = ASK_SESSION_LIST, .all = true, .form = ANSWER_JSON }),
                        0, "\"key\":\"" KEY0 "\"");
        assert_non_null(session_find(&r->m, "ssh-a"));
}

static void kept(void **state) {
        (void)state;
        opens(0, 0, "ssh-a");
        rig_restart(r);
        come_back(0);
        assert_string_equal(session_find(&r->m, "ssh-a")->owner.fp, KEY0);
        assert_true(runs(0, 0, "ssh-a", (struct exec_request){ 0 })->started);
        assert_int_equal(runs(1, 1, "ssh-a", (struct exec_request){ 0 })->reason, REJECT_NO_SESSION);
}

/* What one key's holder has used is scrubbed for nobody. */
static void not_reused(void **state) {
        (void)state;
        assert_true(runs(0, 0, "", (struct exec_request){ 0 })->started);
        exited(1, (struct exited){ .cause = CAUSE_EXITED });
        sandbox_retire(NULL, 0, &r->m);
        settle();
        assert_false(r->agents[0].there);
}

static unsigned logins(void) {
        unsigned n = 0;

        for (unsigned i = 0; r->m.logins && i < GATEWAY_REMEMBERED; i++)
                n += r->m.logins[i].fp[0] != '\0';
        return n;
}

static void remembered(void **state) {
        struct audit_counts before, after;
        char text[128];

        (void)state;
        assert_int_equal(logins(), 0);
        audit_counts(r->m.audit, &before);
        asks(0, 0, (struct ask){ .op = ASK_SESSION_LIST });
        asks(0, 0, (struct ask){ .op = ASK_SESSION_LIST });
        assert_int_equal(logins(), 1);
        asks(0, 1, (struct ask){ .op = ASK_SESSION_LIST });
        assert_int_equal(logins(), 2);
        audit_counts(r->m.audit, &after);
        assert_int_equal(after.trail_lines - before.trail_lines, 2);
        /* Another connection from the same port. */
        says(0, GATEWAY_UID, HELLO_GATEWAY, KEY0 " 192.0.2.1 40022 b");
        assert_int_equal(logins(), 3);
        for (unsigned port = 1; port < 600; port++) {
                snprintf(text, sizeof(text), KEY0 " 192.0.2.1 %u a", port);
                says(0, GATEWAY_UID, HELLO_GATEWAY, text);
        }
        assert_int_equal(logins(), GATEWAY_REMEMBERED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts), TEST(who_may), TEST(names_of_keys),
                TEST(two_keys),          TEST(kept),    TEST(not_reused),
                TEST(remembered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
