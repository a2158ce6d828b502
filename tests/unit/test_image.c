/* image list, pull and verify in the manager: what the broker is asked, and what the caller hears of its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#define CLIENTS 64
#include "fuzz/manager_rig.h"

#define ALICE 0
#define BOB 1
/* The image of the sandboxes that the rig makes, and another one. */
#define OURS "sha256:0"
#define OTHER "sha256:00ffeeddccbbaa99887766554433221100ffeeddccbbaa998877665544332211"

static struct rig *r;

static int begin(void **state) {
        (void)state;
        r = rig_begin();
        return 0;
}

static int end(void **state) {
        (void)state;
        rig_finish(r);
        return 0;
}

static void settle(void) {
        rig_settle(r);
        client_announce(NULL, 0, &r->m);
        rig_settle(r);
        rig_check(r);
}

static struct rig_end *ask(unsigned slot, unsigned user, struct ask a) {
        uint8_t buf[2048];

        if (r->clients[slot].fd >= 0)
                rig_client(r, slot, 0);
        rig_settle(r);
        rig_client(r, slot, user);
        a.name = a.profile = "";
        rig_frame(&r->clients[slot], FRAME_ASK, 0, 1, buf, (size_t)ask_encode(&a, buf, sizeof(buf)));
        settle();
        return &r->clients[slot];
}

/* How many requests of that type wait for an answer. */
static unsigned asked(uint16_t type) {
        unsigned n = 0;

        for (unsigned i = 0; i < r->n_pending; i++)
                n += r->pending[i].type == type;
        return n;
}

static struct broker_request *request(uint16_t type, unsigned *ret_pending) {
        struct broker_request *q;
        unsigned i = 0;

        while (i < r->n_pending && r->pending[i].type != type)
                i++;
        assert_true(i < r->n_pending);
        LIST_FOREACH(q, &r->m.broker.requests, link)
        if (q->id == r->pending[i].id)
                break;
        assert_non_null(q);
        *ret_pending = i;
        return q;
}

static void answer(uint16_t type, struct engine_msg m) {
        unsigned i;
        struct broker_request *q = request(type, &i);

        r->pending[i] = r->pending[--r->n_pending];
        LIST_REMOVE(q, link);
        q->answer(q->userdata, &m, -1);
        free(q);
        settle();
}

static void progress(struct engine_msg m) {
        unsigned i;
        struct broker_request *q = request(ENGINE_IMAGE, &i);

        q->progress(q->userdata, &m);
        settle();
}

static struct engine_msg image(const char *id) {
        return (struct engine_msg){ .type = ENGINE_IMAGE_IS,
                                    .present = true,
                                    .image = id,
                                    .digest = "",
                                    .bytes = 74800000,
                                    .created = "2026-11-20T00:00:00Z" };
}

static struct engine_msg no_image(void) {
        return (struct engine_msg){ .type = ENGINE_IMAGE_IS, .image = "", .digest = "", .created = "" };
}

static void assert_says(const struct rig_end *c, uint8_t code, const char *words) {
        assert_true(c->final);
        if (!strstr(c->said, words))
                fail_msg("it says: %s", c->said);
        assert_int_equal(c->code, code);
}

/* --- list ---------------------------------------------------------------------------------------- */

/* One question an image, one after the other. */
static void lists(void **state) {
        struct rig_end *c = ask(0, ALICE, (struct ask){ .op = ASK_IMAGE_LIST });

        (void)state;
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 1);
        answer(ENGINE_IMAGE_LOOK, image(OTHER));
        assert_false(c->final);
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 1);
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 0);
        assert_says(
                c, 0,
                "IMAGE                      PROFILES      STATE    ID              SIZE  CREATED     PINNED\n"
                "debian:bookworm-slim       default,wait  present  00ffeeddccbb    75MB  2026-11-20  no\n"
                "one:2@sha256:0123456789ab  once          missing  -                  -  -           digest\n");
        c = ask(0, ALICE, (struct ask){ .op = ASK_IMAGE_LIST, .form = ANSWER_JSON });
        answer(ENGINE_IMAGE_LOOK, image(OTHER));
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_says(
                c, 0,
                "[{\"image\":\"debian:bookworm-slim\",\"pinned\":null,\"present\":true,\"id\":\"" OTHER
                "\",\"digest\":null,\"size_bytes\":74800000,\"created\":\"2026-11-20T00:00:00Z\","
                "\"profiles\":[\"default\",\"wait\"]},{\"image\":\"one:2@sha256:");
        assert_says(c, 0, "\"size_bytes\":null,\"created\":null,\"profiles\":[\"once\"]}]\n");
}

static void fails(void **state) {
        struct rig_end *c = ask(0, ALICE, (struct ask){ .op = ASK_IMAGE_LIST });

        (void)state;
        answer(ENGINE_IMAGE_LOOK, (struct engine_msg){ .type = ENGINE_FAILED,
                                                       .error = ENGINE_E_REFUSED,
                                                       .text = "an \x1b[31mescape" });
        assert_says(c, 125, "image list: an \\x1b[31mescape");
        c = ask(0, ALICE, (struct ask){ .op = ASK_IMAGE_LIST });
        answer(ENGINE_IMAGE_LOOK, (struct engine_msg){ .type = ENGINE_DONE });
        assert_says(c, 125, "image list: the broker answered nonsense");
        r->m.broker.state = ENGINE_DOWN;
        snprintf(r->m.broker.state_text, sizeof(r->m.broker.state_text), "no engine: start it");
        assert_says(ask(0, ALICE, (struct ask){ .op = ASK_IMAGE_LIST }), 125,
                    "image list: no engine: start it");
        assert_says(ask(0, ALICE, (struct ask){ .op = 999 }), 125, "does not know request 999");
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 0);
}

/* Whoever comes while others wait waits with them, and costs the broker nothing. */
static void many(void **state) {
        unsigned n = 0;

        (void)state;
        for (unsigned i = 0; i < CLIENTS; i++)
                ask(i, ALICE, (struct ask){ .op = ASK_IMAGE_LIST, .form = i % 3 });
        for (; asked(ENGINE_IMAGE_LOOK) > 0; n++)
                answer(ENGINE_IMAGE_LOOK, image(OTHER));
        /* Of each of the two images that of the first to come to it, once or twice, and one for the others. */
        assert_true(n >= 4 && n <= 6);
        for (unsigned i = 0; i < CLIENTS; i++) {
                assert_true(r->clients[i].final && r->clients[i].code == 0);
                if (i % 3 == ANSWER_TEXT)
                        assert_non_null(strstr(r->clients[i].said, " present  00ffeeddccbb "));
        }
        assert_true(LIST_EMPTY(&r->m.image_jobs));
}

/* What has begun is over with its answer; nothing is asked for those who have gone. */
static void leave(void **state) {
        (void)state;
        for (unsigned i = 0; i < 20; i++)
                ask(i, ALICE, (struct ask){ .op = i % 2 ? ASK_IMAGE_LIST : ASK_IMAGE_VERIFY });
        for (unsigned i = 1; i < 20; i++)
                rig_client(r, i, ALICE);
        settle();
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 1);
        rig_client(r, 0, ALICE);
        settle();
        assert_true(LIST_EMPTY(&r->m.image_jobs));
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 0);
        assert_true(TAILQ_EMPTY(&r->m.image_looks));
}

static void broker_goes(void **state) {
        (void)state;
        for (unsigned i = 0; i < 3; i++)
                ask(i, ALICE, (struct ask){ .op = ASK_IMAGE_LIST });
        r->m.broker.welcomed = false;
        answer(ENGINE_IMAGE_LOOK, (struct engine_msg){ .type = ENGINE_FAILED,
                                                       .error = ENGINE_E_UNREACHABLE,
                                                       .text = "gone" });
        r->m.broker.welcomed = true;
        for (unsigned i = 0; i < 3; i++)
                assert_says(&r->clients[i], 125,
                            i == 0 ? "image list: gone"
                                   : "image list: the engine broker takes no request");
        assert_true(LIST_EMPTY(&r->m.image_jobs));
}

static unsigned n_found;

static void count(struct image_wait *w, const struct engine_msg *m) {
        assert_true(!w->look && m->type == ENGINE_IMAGE_IS);
        n_found++;
}

/* However many profiles there are. */
static void few_at_once(void **state) {
        struct image_wait waits[3 * IMAGE_LOOKS_MAX] = { 0 };
        const unsigned n = sizeof(waits) / sizeof(waits[0]);
        char profile[16];

        (void)state;
        n_found = 0;
        for (unsigned i = 0; i < n; i++) {
                waits[i].found = count;
                snprintf(profile, sizeof(profile), "p%u", i);
                image_look(&r->m, profile, "image", &waits[i]);
        }
        settle();
        image_look_leave(&waits[n - 1]);
        for (unsigned i = 0; i < n - 1; i++) {
                unsigned left = n - 1 - i;

                assert_int_equal(asked(ENGINE_IMAGE_LOOK),
                                 left < IMAGE_LOOKS_MAX ? left : IMAGE_LOOKS_MAX);
                answer(ENGINE_IMAGE_LOOK, no_image());
        }
        assert_int_equal(n_found, n - 1);
        assert_true(TAILQ_EMPTY(&r->m.image_looks));
}

/* Out of the config alone. */
static void profiles(void **state) {
        struct rig_end *c = ask(0, ALICE, (struct ask){ .op = ASK_PROFILES, .form = ANSWER_RECORDS });
        const uint8_t *p = (const uint8_t *)c->said, *record;
        size_t left = sizeof(c->said), len;
        struct image_info info;

        (void)state;
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 0);
        assert_true(c->final && c->code == 0);
        assert_int_equal(record_next(&p, &left, &record, &len), 1);
        assert_int_equal(image_info_decode(record, len, &info), 0);
        assert_string_equal(info.profile, "default");
        assert_string_equal(info.name, "debian:bookworm-slim");
        assert_false(info.present);
        assert_true(info.memory_bytes > 0);
        r->m.broker.state = ENGINE_DOWN;
        snprintf(r->m.broker.state_text, sizeof(r->m.broker.state_text), "no engine: start it");
        assert_says(ask(0, ALICE, (struct ask){ .op = ASK_PROFILES }), 125,
                    "profiles: no engine: start it");
}

/* --- verify -------------------------------------------------------------------------------------- */

static void verifies(void **state) {
        struct ask a = { .op = ASK_IMAGE_VERIFY, .n_labels = 1, .labels = { "profile=default" } };
        struct rig_end *c = ask(0, ALICE, a);

        (void)state;
        answer(ENGINE_IMAGE_LOOK, image(OURS));
        assert_says(c, 0,
                    "ok       default: debian:bookworm-slim (not pinned) is 0, and so is 1 sandbox\n");
        c = ask(0, ALICE, a);
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_says(c, 1, "image verify: 1 of 1 profile is not as it should be");
        assert_string_equal(c->before,
                            "missing  default: debian:bookworm-slim is not there: hermes-sandbox "
                            "image pull default\n");
        /* Somebody has moved the tag. */
        c = ask(0, ALICE, a);
        answer(ENGINE_IMAGE_LOOK, image(OTHER));
        assert_says(c, 1, "image verify: 1 of 1 profile is not as it should be");
        assert_string_equal(
                c->before, "other    default: debian:bookworm-slim is 00ffeeddccbb, but not in 1 of 1 "
                           "sandboxes, which are being replaced: hermes-sandbox image verify default\n");
        assert_int_equal(asked(ENGINE_CREATE), 1);
}

/* The image of a profile of which no sandbox is kept need not be there, unless it is asked for by name. */
static void unused(void **state) {
        struct ask all = { .op = ASK_IMAGE_VERIFY },
                   named = { .op = ASK_IMAGE_VERIFY, .n_labels = 1, .labels = { "profile=once" } };
        struct rig_end *c = ask(0, ALICE, all);

        (void)state;
        answer(ENGINE_IMAGE_LOOK, image(OURS));
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_says(
                c, 0,
                "unused   once: one:2@sha256:0123456789ab is not there, and no sandbox of it is kept "
                "warm: hermes-sandbox image pull once\n");
        c = ask(0, ALICE, named);
        answer(ENGINE_IMAGE_LOOK, no_image());
        assert_says(c, 1, "1 of 1 profile is not as it should be");
        assert_string_equal(c->before, "missing  once: one:2@sha256:0123456789ab is not there: "
                                       "hermes-sandbox image pull once\n");
}

/* A session's sandbox stays; whose it is, only its user is told. */
static void of_sessions(void **state) {
        struct ask a = { .op = ASK_IMAGE_VERIFY,
                         .n_labels = 1,
                         .labels = { "profile=default" },
                         .form = ANSWER_JSON };
        struct rig_end *c = &r->clients[0];
        uint8_t buf[256];
        struct open_request open = { .name = "work", .profile = "", .image = "", .workdir = "" };

        (void)state;
        rig_client(r, 0, ALICE);
        rig_frame(c, FRAME_OPEN, 0, 1, buf, (size_t)open_request_encode(&open, buf, sizeof(buf)));
        settle();
        assert_true(c->final);
        c = ask(1, BOB, a);
        answer(ENGINE_IMAGE_LOOK, image(OTHER));
        assert_says(c, 1, "is not as it should be");
        assert_non_null(strstr(c->before, "\"state\":\"leased\",\"session\":null}]"));
        assert_non_null(strstr(c->before, "one is a session of another user\",\"mend\":null"));
        c = ask(1, ALICE, a);
        answer(ENGINE_IMAGE_LOOK, image(OTHER));
        assert_non_null(strstr(c->before, "\"state\":\"leased\",\"session\":\"work\"}]"));
        assert_non_null(strstr(c->before, "\"mend\":\"hermes-sandbox session close work\"}]\n"));
        assert_true(r->agents[0].there);
}

/* Without anybody who asks. */
static void noticed(void **state) {
        struct pool *p = pool_find(&r->m, "");

        (void)state;
        image_check(&r->m, now_ms());
        settle();
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 1);
        answer(ENGINE_IMAGE_LOOK, image(OURS));
        image_check(&r->m, now_ms());
        settle();
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 0);
        assert_int_equal(p->n_warm, 1);
        assert_non_null(pool_claim(p, 1000));
        image_check(&r->m, now_ms() + 31000);
        settle();
        answer(ENGINE_IMAGE_LOOK, image(OTHER));
        assert_null(pool_claim(p, 1000));
        assert_int_equal(asked(ENGINE_CREATE), 1);
        /* One that is made from the old one after all is not believed to be the new one. */
        image_seen(p, OURS);
        assert_true(engine_same_image(p->image_id, OTHER));
        image_check(&r->m, now_ms());
        settle();
        assert_int_equal(asked(ENGINE_IMAGE_LOOK), 1);
}

/* --- pull ---------------------------------------------------------------------------------------- */

static const struct ask two = { .op = ASK_IMAGE_PULL,
                                .n_labels = 2,
                                .labels = { "profile=default", "profile=once" } };

static void pulls(void **state) {
        struct rig_end *c = ask(0, ALICE, two);

        (void)state;
        progress((struct engine_msg){ .layer = "", .text = "pulling image x" });
        assert_string_equal(c->said, "pulling image x\n");
        progress((struct engine_msg){
                .layer = "0123456789ab", .text = "Down\x1bloading", .done = 2000, .total = 9000 });
        progress((struct engine_msg){ .layer = "0123456789ab", .text = "Pull complete" });
        assert_string_equal(c->said, "pulling image x\n0123456789ab: Down\\x1bloading 2 of 9 kB\n"
                                     "0123456789ab: Pull complete\n");
        answer(ENGINE_IMAGE,
               (struct engine_msg){ .type = ENGINE_IMAGE_READY, .image = OTHER, .pulled = true });
        assert_false(c->final);
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_IMAGE_READY, .image = OTHER });
        assert_says(c, 0, "pulled debian:bookworm-slim (00ffeeddccbb)\n");
        assert_says(c, 0, " is there already (00ffeeddccbb): nothing is pulled\n");
}

/* Without a name nothing is pulled that no sandbox is kept of. */
static void pulls_what_is_kept(void **state) {
        struct rig_end *c = ask(0, ALICE, (struct ask){ .op = ASK_IMAGE_PULL });

        (void)state;
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_IMAGE_READY, .image = OTHER });
        assert_says(c, 0, "debian:bookworm-slim is there already");
        assert_int_equal(asked(ENGINE_IMAGE), 0);
}

static void pull_fails(void **state) {
        struct rig_end *c = ask(0, ALICE, two);

        (void)state;
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_FAILED,
                                                  .error = ENGINE_E_NO_IMAGE,
                                                  .text = "first" });
        assert_false(c->final);
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_FAILED,
                                                  .error = ENGINE_E_NO_IMAGE,
                                                  .text = "second" });
        assert_says(c, 125, "image pull: first");
        assert_string_equal(c->before, "second\n");
        /* Without an engine there is no second. */
        c = ask(0, ALICE, two);
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_FAILED,
                                                  .error = ENGINE_E_UNREACHABLE,
                                                  .text = "gone" });
        assert_says(c, 125, "image pull: gone");
        assert_int_equal(asked(ENGINE_IMAGE), 0);
}

/* Who does not wait for it any more costs nothing but the pull itself; who comes meanwhile is bounded. */
static void bounds(void **state) {
        struct ask pull = { .op = ASK_IMAGE_PULL, .n_labels = 1, .labels = { "profile=once" } };
        struct ask list = { .op = ASK_IMAGE_LIST }, verify = { .op = ASK_IMAGE_VERIFY };
        struct rig_end *c;

        (void)state;
        ask(0, ALICE, pull);
        assert_says(ask(1, ALICE, pull), 125,
                    "rejected: image pull: uid 1000 pulls already: wait for it");
        ask(1, BOB, pull);
        assert_int_equal(asked(ENGINE_IMAGE), 2);
        for (unsigned i = 0; i < 9; i++)
                ask(2 + i, ALICE, list);
        for (unsigned i = 0; i < 3; i++)
                ask(11 + i, ALICE, verify);
        assert_says(ask(14, ALICE, verify), 125, "too many requests about images");
        /* One that has gone makes room. */
        rig_client(r, 11, ALICE);
        assert_false(ask(14, ALICE, verify)->final);
        assert_false(ask(11, ALICE, list)->final);
        rig_client(r, 0, ALICE);
        settle();
        assert_says(ask(1, ALICE, pull), 125, "pulls already");
        while (asked(ENGINE_IMAGE) > 0)
                answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_IMAGE_READY, .image = OTHER });
        while (asked(ENGINE_IMAGE_LOOK) > 0)
                answer(ENGINE_IMAGE_LOOK, no_image());
        assert_true(LIST_EMPTY(&r->m.image_jobs));
        /* The end of the manager. */
        c = ask(1, ALICE, pull);
        ask(2, ALICE, list);
        image_refuse_all(&r->m);
        settle();
        assert_says(c, 125, "image pull: hermes-sandboxd is stopping");
        assert_says(&r->clients[2], 125, "image list: hermes-sandboxd is stopping");
        answer(ENGINE_IMAGE_LOOK, no_image());
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_IMAGE_READY, .image = OTHER });
        assert_true(LIST_EMPTY(&r->m.image_jobs));
}

static void refuses(void **state) {
        static const char *const bad[] = { "profile=", "profile=none", "image=debian", "profile=one:2" };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                for (uint16_t op = ASK_IMAGE_PULL; op <= ASK_IMAGE_VERIFY; op++)
                        assert_says(ask(0, ALICE,
                                        (struct ask){ .op = op, .n_labels = 1, .labels = { bad[i] } }),
                                    64, "in the config: give a profile's name, not an image's");
        assert_int_equal(asked(ENGINE_IMAGE) + asked(ENGINE_IMAGE_LOOK), 0);
        /* The same one twice is one. */
        ask(0, ALICE,
            (struct ask){
                    .op = ASK_IMAGE_PULL, .n_labels = 2, .labels = { "profile=once", "profile=once" } });
        answer(ENGINE_IMAGE, (struct engine_msg){ .type = ENGINE_IMAGE_READY, .image = OTHER });
        assert_says(&r->clients[0], 0, "nothing is pulled\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(lists, begin, end),
                cmocka_unit_test_setup_teardown(fails, begin, end),
                cmocka_unit_test_setup_teardown(many, begin, end),
                cmocka_unit_test_setup_teardown(leave, begin, end),
                cmocka_unit_test_setup_teardown(broker_goes, begin, end),
                cmocka_unit_test_setup_teardown(few_at_once, begin, end),
                cmocka_unit_test_setup_teardown(profiles, begin, end),
                cmocka_unit_test_setup_teardown(verifies, begin, end),
                cmocka_unit_test_setup_teardown(unused, begin, end),
                cmocka_unit_test_setup_teardown(of_sessions, begin, end),
                cmocka_unit_test_setup_teardown(noticed, begin, end),
                cmocka_unit_test_setup_teardown(pulls, begin, end),
                cmocka_unit_test_setup_teardown(pulls_what_is_kept, begin, end),
                cmocka_unit_test_setup_teardown(pull_fails, begin, end),
                cmocka_unit_test_setup_teardown(bounds, begin, end),
                cmocka_unit_test_setup_teardown(refuses, begin, end),
        };

        return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
