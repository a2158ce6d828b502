/*
 * What the broker really sends: a whole broker in a child process, a scripted engine on a Unix socket in
 * this one, and the manager's messages. The create call that the engine gets is compared with the golden
 * body; then an engine that answers nonsense, and one that refuses.
 */
#include "unit/broker_rig.h"

/* What differs from one run to the next gets the golden file's values; the image's own are the
 * profile's. */
static void check_body(void) {
        json_t *sent = json_loads(t.create_body, JSON_REJECT_DUPLICATES, NULL), *host, *mounts, *golden;
        json_t *labels = json_object_get(sent, "Labels");
        char stream[256];

        assert_non_null(sent);
        host = json_object_get(sent, "HostConfig");
        mounts = json_object_get(host, "Mounts");
        snprintf(stream, sizeof(stream), "%s/run/%s", t.dir, t.name + strlen("hermes-sandbox-"));
        assert_string_equal(json_string_value(json_object_get(json_array_get(mounts, 0), "Source")),
                            in_dir("agent"));
        assert_string_equal(json_string_value(json_object_get(json_array_get(mounts, 1), "Source")),
                            stream);
        assert_string_equal(json_string_value(json_object_get(labels, "hermes-sandbox.installation")),
                            t.installation);
        assert_string_equal(json_string_value(json_object_get(sent, "Image")), IMAGE_ID);
        golden = json_load_file("tests/unit/golden/create-default.json", 0, NULL);
        assert_non_null(golden);
        json_object_set(
                json_array_get(mounts, 0), "Source",
                json_object_get(
                        json_array_get(json_object_get(json_object_get(golden, "HostConfig"), "Mounts"),
                                       0),
                        "Source"));
        json_object_set(
                json_array_get(mounts, 1), "Source",
                json_object_get(
                        json_array_get(json_object_get(json_object_get(golden, "HostConfig"), "Mounts"),
                                       1),
                        "Source"));
        json_object_set(sent, "Image", json_object_get(golden, "Image"));
        json_object_set(sent, "Labels", json_object_get(golden, "Labels"));
        json_object_set(sent, "User", json_object_get(golden, "User"));
        /* Sizes and places of the shipped profile are the config's, not this file's. */
        for (size_t i = 0; i < 3; i++) {
                static const char *const sized[] = { "Tmpfs", "ShmSize", "PidsLimit" };

                json_object_set(host, sized[i],
                                json_object_get(json_object_get(golden, "HostConfig"), sized[i]));
        }
        assert_true(json_equal(sent, golden));
        json_decref(golden);
        json_decref(sent);
}

static void creates_and_removes(void **state) {
        struct engine_msg m, rm = { .id = 3, .type = ENGINE_REMOVE, .container = ID };
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        (void)state;
        ask_create(-1);
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        assert_string_equal(m.container, ID);
        assert_int_equal(m.pid, 4711);
        assert_string_equal(m.image, IMAGE_ID);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(strncmp(t.name, "hermes-sandbox-", 15), 0);
        check_body();
        assert_int_equal(entries("state/containers"), 1);
        assert_int_equal(entries("run"), 1);
        tell(&rm);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_DONE);
        assert_int_equal(entries("state/containers"), 0);
        assert_int_equal(entries("run"), 0);
}

/* One more socket for a sandbox that runs: whoever connects to its name from now on comes out at the new one. */
static void listens_anew(void **state) {
        struct engine_msg m, ask = { .id = 3, .type = ENGINE_LISTEN, .container = ID };
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        uint8_t buf[ENGINE_MSG_MAX];
        int first = -1, second = -1, agent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)state;
        ask_create(-1);
        next_message(buf, &m, &first);
        assert_int_equal(m.type, ENGINE_CREATED);
        tell(&ask);
        next_message(buf, &m, &second);
        assert_int_equal(m.type, ENGINE_LISTENING);
        assert_int_equal(m.id, 3);
        assert_int_equal(m.pid, 4711);
        assert_string_equal(m.image, IMAGE_ID);
        assert_true(second >= 0);
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%.40s/run/%.32s/agent.sock", t.dir,
                 t.name + strlen("hermes-sandbox-"));
        assert_int_equal(connect(agent, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(poll(&(struct pollfd){ .fd = first, .events = POLLIN }, 1, 0), 0);
        assert_int_equal(poll(&(struct pollfd){ .fd = second, .events = POLLIN }, 1, DEADLINE_MS), 1);
        close(agent);
        close(first);
        close(second);
}

static void refuses_to_listen(const char *container, const char *why) {
        struct engine_msg m, ask = { .id = 4, .type = ENGINE_LISTEN, .container = container };
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        tell(&ask);
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_NOT_OURS);
        assert_non_null(strstr(m.text, why));
        assert_int_equal(fd, -1);
}

/* Somebody else's, one that has ended, and one that is gone: no socket, and the old one stays as it is. */
static void listens_for_ours_alone(void **state) {
        static const char other[] = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
        uint8_t buf[ENGINE_MSG_MAX];
        struct engine_msg m;
        struct stat before, after;
        char path[160];
        int fd = -1;

        (void)state;
        ask_create(-1);
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        snprintf(path, sizeof(path), "%.40s/run/%.32s/agent.sock", t.dir,
                 t.name + strlen("hermes-sandbox-"));
        assert_int_equal(stat(path, &before), 0);
        refuses_to_listen(other, "not one of ours");
        t.stopped = true;
        refuses_to_listen(ID, "does not run (state exited)");
        t.removed = true;
        refuses_to_listen(ID, "is gone");
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        close(fd);
}

/* Refused, or answered with nonsense: FAILED, and nothing stays. */
static void leaves_nothing(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        long deadline = now_ms() + DEADLINE_MS;

        t.create_reply = *state;
        ask_create(-1);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_REFUSED);
        assert_non_null(strstr(m.text, "sandbox of profile \"default\""));
        /* The removal goes on in the background. */
        while (entries("state/containers") + entries("run") > 0) {
                struct engine_msg list = { .id = (uint32_t)(now_ms() | 1 << 30),
                                           .type = ENGINE_LIST,
                                           .container = "" };

                assert_true(now_ms() < deadline);
                tell(&list);
                next_message(buf, &m, NULL);
        }
}

/* The engine's words are the machine's, not the profile's. */
static void no_room(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];

        (void)state;
        t.create_reply = "500 Internal Server Error";
        t.create_message = "{\"message\":\"mkdir /x: no space left on device\"}";
        ask_create(-1);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_non_null(strstr(m.text, "the engine has no room: mkdir /x: no space left on device"));
        assert_null(strstr(m.text, "mend the profile"));
}

/* A removal that failed is tried again, also of one that runs by then: nobody else knows of it. */
static void removes_later(void **state) {
        struct engine_msg m, list = { .id = 3, .type = ENGINE_LIST, .container = "" };
        uint8_t buf[ENGINE_MSG_MAX];
        long deadline = now_ms() + DEADLINE_MS;

        (void)state;
        t.no_start = t.no_delete = t.listed = true;
        ask_create(-1);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_non_null(strstr(m.text, "no start"));
        tell(&list);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_LISTED);
        assert_int_equal(entries("state/containers"), 1);
        t.no_delete = false;
        while (entries("state/containers") + entries("run") > 0) {
                list.id++;
                assert_true(now_ms() < deadline);
                tell(&list);
                next_message(buf, &m, NULL);
        }
        assert_true(t.removed);
}

/* --- images
 * ------------------------------------------------------------------------------------------ */

#define PINNED_ID "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define DIGEST "@sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static int setup_id(void **state) {
        int r;

        rig_pool = "pool:\n  image: \"" PINNED_ID "\"\n";
        r = setup(state);
        rig_pool = "";
        return r;
}

static int setup_digest(void **state) {
        int r;

        rig_pool = "pool:\n  image: \"a/b:1" DIGEST "\"\n";
        r = setup(state);
        rig_pool = "";
        return r;
}

static void create_fails(uint16_t error, const char *why) {
        uint8_t buf[ENGINE_MSG_MAX];
        struct engine_msg m;

        ask_create(-1);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, error);
        if (!strstr(m.text, why))
                fail_msg("it says: %s", m.text);
}

/* The engine has taken another image than it was told, by whatever way: nobody gets that container. */
static void made_from_another(void **state) {
        struct engine_msg m, list = { .id = 3, .type = ENGINE_LIST, .container = "" };
        uint8_t buf[ENGINE_MSG_MAX];
        long deadline = now_ms() + DEADLINE_MS;

        (void)state;
        t.made_from = PINNED_ID;
        create_fails(ENGINE_E_REFUSED,
                     "the engine made it from another image than \"debian:bookworm-slim\"");
        while (!t.removed || entries("state/containers") + entries("run") > 0) {
                list.id++;
                assert_true(now_ms() < deadline);
                tell(&list);
                next_message(buf, &m, NULL);
        }
}

/* Nothing is created, and so nothing is left. */
static void image_absent(void **state) {
        (void)state;
        t.image_reply = NULL;
        create_fails(ENGINE_E_NO_IMAGE,
                     "image \"debian:bookworm-slim\" is not there: docker pull debian:bookworm-slim");
        assert_int_equal(entries("state/containers") + entries("run"), 0);
        assert_string_equal(t.create_line, "");
}

/* What the engine has under the name is another one. */
static void not_as_pinned(void **state) {
        (void)state;
        t.image_reply = "{\"Id\":\"" IMAGE_ID "\",\"RepoDigests\":[\"a/b@sha256:" ID "\"]}";
        create_fails(ENGINE_E_REFUSED,
                     "the engine has " IMAGE_ID " under that name, which is another one");
        assert_string_equal(t.create_line, "");
}

static void as_pinned(void **state) {
        uint8_t buf[ENGINE_MSG_MAX];
        struct engine_msg m;
        int fd = -1;

        (void)state;
        t.image_reply = "{\"Id\":\"" PINNED_ID "\",\"RepoDigests\":[\"other" DIGEST "\"]}";
        t.made_from = PINNED_ID;
        ask_create(-1);
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        assert_string_equal(m.image, PINNED_ID);
        assert_non_null(strstr(t.create_body, "\"Image\":\"" PINNED_ID "\""));
        close_fd(fd);
}

/* Looked up without the tag, which says nothing beside a digest; and as nothing is pulled, it is only absent. */
static void looks(void **state) {
        struct engine_msg m, look = { .id = 3, .type = ENGINE_IMAGE_LOOK, .profile = "" };
        uint8_t buf[ENGINE_MSG_MAX], agent[ENGINE_RECIPE];

        (void)state;
        t.image_reply = "{\"Id\":\"" IMAGE_ID "\",\"RepoDigests\":[\"x" DIGEST "\"],\"Size\":7,"
                        "\"Created\":\"2026-11-29T18:12:43Z\"}";
        hello(agent);
        tell(&look);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_IMAGE_IS);
        assert_true(m.present && m.bytes == 7);
        assert_string_equal(m.image, IMAGE_ID);
        assert_string_equal(m.digest, "x" DIGEST);
        assert_string_equal(m.created, "2026-11-29T18:12:43Z");
        assert_string_equal(t.last_line, "GET /v1.41/images/a/b" DIGEST "/json HTTP/1.1");
        t.image_reply = NULL;
        look.id = 4;
        tell(&look);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_IMAGE_IS);
        assert_false(m.present);
        look.id = 5;
        look.profile = "none";
        tell(&look);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_NO_PROFILE);
}

/* An id is no name that a registry knows. */
static void pulls_no_id(void **state) {
        struct engine_msg m, pull = { .id = 3, .type = ENGINE_IMAGE, .profile = "" };
        uint8_t buf[ENGINE_MSG_MAX], agent[ENGINE_RECIPE];

        (void)state;
        t.image_reply = NULL;
        hello(agent);
        tell(&pull);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_NO_IMAGE);
        assert_non_null(strstr(m.text, "it is an id, not a name: docker load the image with that id"));
}

/* An engine that goes away is told once, and requests fail at once. */
static void engine_goes(void **state) {
        struct engine_msg m, image = { .id = 9, .type = ENGINE_IMAGE, .profile = "" };
        uint8_t buf[ENGINE_MSG_MAX], agent[ENGINE_RECIPE];

        (void)state;
        hello(agent);
        unlink(in_dir("docker.sock"));
        for (size_t i = 0; i < PEERS; i++)
                t.peers[i].fd = close_fd(t.peers[i].fd);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_STATE);
        assert_int_equal(m.state, ENGINE_DOWN);
        tell(&image);
        do
                next_message(buf, &m, NULL);
        while (m.type == ENGINE_STATE);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_UNREACHABLE);
}

/* Ends a request that is under way, without a leak: teardown looks at the exit. */
static void ends_under_way(void **state) {
        struct engine_msg list = { .id = 5, .type = ENGINE_LIST, .container = "" };
        struct engine_msg image = { .id = 6, .type = ENGINE_IMAGE, .profile = "" };
        uint8_t agent[ENGINE_RECIPE];

        (void)state;
        hello(agent);
        tell(&list);
        tell(&image);
        poll(&(struct pollfd){ .fd = t.peers[0].fd, .events = POLLIN }, 1, 200);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(creates_and_removes, setup, teardown),
                cmocka_unit_test_setup_teardown(listens_anew, setup, teardown),
                cmocka_unit_test_setup_teardown(listens_for_ours_alone, setup, teardown),
                { "refused", leaves_nothing, setup, teardown, (void *)"500 Internal Server Error" },
                { "no id", leaves_nothing, setup, teardown, (void *)"201 Created" },
                cmocka_unit_test_setup_teardown(no_room, setup, teardown),
                cmocka_unit_test_setup_teardown(removes_later, setup, teardown),
                cmocka_unit_test_setup_teardown(made_from_another, setup, teardown),
                cmocka_unit_test_setup_teardown(image_absent, setup, teardown),
                { "another id", not_as_pinned, setup_id, teardown, NULL },
                { "another digest", not_as_pinned, setup_digest, teardown, NULL },
                { "the id", as_pinned, setup_id, teardown, NULL },
                { "the digest", as_pinned, setup_digest, teardown, NULL },
                cmocka_unit_test_setup_teardown(looks, setup_digest, teardown),
                cmocka_unit_test_setup_teardown(pulls_no_id, setup_id, teardown),
                cmocka_unit_test_setup_teardown(engine_goes, setup, teardown),
                cmocka_unit_test_setup_teardown(ends_under_way, setup, teardown),
        };

        int r = broker_main(argc, argv);

        if (r >= 0)
                return r;
        return cmocka_run_group_tests_name("engine_sends", tests, NULL, NULL);
}
