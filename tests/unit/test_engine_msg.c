/* The messages between manager and broker: every type there and back, and what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/engine_msg.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INSTALLATION "00112233445566778899aabbccddeeff"

static const uint8_t hash[ENGINE_RECIPE] = { 1, 2, 3 };

static struct engine_msg sample(uint16_t type) {
        struct engine_msg m = {
                .id = 7,
                .type = type,
                .version = 1,
                .profile = "dev",
                .hash = hash,
                .container = ID,
                .installation = INSTALLATION,
                .pid = 4711,
                .status = "running",
                .exit_code = 137,
                .oom_killed = true,
                .image = "sha256:00ff",
                .pulled = true,
                .present = true,
                .digest = "a/b@sha256:00ff",
                .bytes = UINT64_C(5000000000),
                .created = "2026-11-29T18:12:43.876860898Z",
                .entrypoint = "[\"/init\"]",
                .narrow = { .memory_bytes = 1,
                            .cpu_nano = 2,
                            .pids_limit = 3,
                            .shm_bytes = 4,
                            .no_network = true,
                            .user = true,
                            .uid = 5,
                            .gid = 6,
                            .n_tmpfs = 2,
                            .tmpfs = { { "/tmp", 7 }, { "/a", 8 } } },
                .mounts = true,
                .layer = "0123456789ab",
                .done = 1,
                .total = UINT64_C(5000000001),
                .error = ENGINE_E_BUSY,
                .state = ENGINE_DOWN,
                .text = "one line",
                .more = true,
                .n_listed = 2,
        };

        m.listed[0] = (struct engine_listed){ ID, "default", "running" };
        m.listed[1] = (struct engine_listed){ ID, "dev", "created" };
        return m;
}

static const uint16_t types[] = {
        ENGINE_HELLO,     ENGINE_CREATE,     ENGINE_REMOVE,      ENGINE_LIST,    ENGINE_INSPECT,
        ENGINE_IMAGE,     ENGINE_INFO,       ENGINE_WELCOME,     ENGINE_CREATED, ENGINE_DONE,
        ENGINE_LISTED,    ENGINE_INSPECTED,  ENGINE_IMAGE_READY, ENGINE_INFO_IS, ENGINE_FAILED,
        ENGINE_PROGRESS,  ENGINE_STATE,      ENGINE_DIED,        ENGINE_LISTEN,  ENGINE_CREATE_FOR,
        ENGINE_LISTENING, ENGINE_IMAGE_LOOK, ENGINE_IMAGE_IS,
};

static enum engine_from sender(uint16_t type) {
        return type < ENGINE_WELCOME ? ENGINE_FROM_MANAGER : ENGINE_FROM_BROKER;
}

static void there_and_back(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                struct engine_msg m = sample(types[i]), back;
                uint8_t a[ENGINE_MSG_MAX], b[ENGINE_MSG_MAX];
                ssize_t n = engine_msg_encode(&m, a, sizeof(a));

                assert_true(n >= ENGINE_HEADER);
                assert_int_equal(engine_msg_decode(a, (size_t)n, sender(types[i]), &back), 0);
                assert_int_equal(back.id, 7);
                assert_int_equal(engine_msg_encode(&back, b, sizeof(b)), n);
                assert_memory_equal(a, b, (size_t)n);
        }
}

/* Each prefix, each message with a byte more, and each from the wrong side is refused. */
static void exact_length_and_side(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                struct engine_msg m = sample(types[i]), back;
                enum engine_from from = sender(types[i]);
                uint8_t a[ENGINE_MSG_MAX];
                ssize_t n = engine_msg_encode(&m, a, sizeof(a) - 1);

                for (ssize_t k = 0; k < n; k++)
                        assert_int_equal(engine_msg_decode(a, (size_t)k, from, &back), -EPROTO);
                a[n] = 0;
                assert_int_equal(engine_msg_decode(a, (size_t)n + 1, from, &back), -EPROTO);
                from = from == ENGINE_FROM_MANAGER ? ENGINE_FROM_BROKER : ENGINE_FROM_MANAGER;
                assert_int_equal(engine_msg_decode(a, (size_t)n, from, &back), -EPROTO);
        }
}

static void ids_are_hex(void **state) {
        static const char *const bad[] = { "", "abc", ID "0", "../../" };
        struct engine_msg m = sample(ENGINE_REMOVE), back;
        uint8_t a[ENGINE_MSG_MAX];
        ssize_t n;

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                m.container = bad[i];
                n = engine_msg_encode(&m, a, sizeof(a));
                if (n > 0)
                        assert_int_equal(engine_msg_decode(a, (size_t)n, ENGINE_FROM_MANAGER, &back),
                                         -EPROTO);
        }
        m = sample(ENGINE_LIST);
        m.container = "";
        n = engine_msg_encode(&m, a, sizeof(a));
        assert_int_equal(engine_msg_decode(a, (size_t)n, ENGINE_FROM_MANAGER, &back), 0);
        m.container = "zz";
        n = engine_msg_encode(&m, a, sizeof(a));
        assert_int_equal(engine_msg_decode(a, (size_t)n, ENGINE_FROM_MANAGER, &back), -EPROTO);
}

static void bounds(void **state) {
        struct engine_msg m = sample(ENGINE_CREATE), back;
        char *text = malloc(ENGINE_TEXT_MAX * 2);
        uint8_t a[ENGINE_MSG_MAX];
        ssize_t n;

        (void)state;
        memset(text, 'x', ENGINE_TEXT_MAX * 2);
        text[ENGINE_PROFILE_MAX + 1] = '\0';
        m.profile = text;
        assert_int_equal(engine_msg_encode(&m, a, sizeof(a)), -EMSGSIZE);
        /* A line that is too long is cut, and not inside of a character. */
        memset(text, 'x', ENGINE_TEXT_MAX * 2);
        memcpy(text + ENGINE_TEXT_MAX - 1, "\xc3\xa4", 3);
        m = sample(ENGINE_FAILED);
        m.text = text;
        n = engine_msg_encode(&m, a, sizeof(a));
        assert_int_equal(engine_msg_decode(a, (size_t)n, ENGINE_FROM_BROKER, &back), 0);
        assert_int_equal(strlen(back.text), ENGINE_TEXT_MAX - 1);
        free(text);
        m = sample(ENGINE_CREATE);
        m.hash = NULL;
        assert_int_equal(engine_msg_encode(&m, a, sizeof(a)), -EMSGSIZE);
}

/* A list that does not fit says that there is more. */
static void long_list(void **state) {
        struct engine_msg m = sample(ENGINE_LISTED), back;
        uint8_t a[ENGINE_MSG_MAX];
        ssize_t n;

        (void)state;
        m.more = false;
        m.n_listed = ENGINE_LIST_MAX;
        for (size_t i = 0; i < ENGINE_LIST_MAX; i++)
                m.listed[i] = (struct engine_listed){
                        ID, "a-profile-whose-name-is-as-long-as-names-may-be-and-no-longer..", "running"
                };
        n = engine_msg_encode(&m, a, sizeof(a));
        assert_true(n > 0);
        assert_int_equal(engine_msg_decode(a, (size_t)n, ENGINE_FROM_BROKER, &back), 0);
        assert_true(back.more);
        assert_in_range(back.n_listed, 40, ENGINE_LIST_MAX - 1);
}

static void image_ids(void **state) {
        (void)state;
        assert_true(engine_same_image("sha256:00ff", "sha256:00ff"));
        assert_true(engine_same_image("sha256:00ff", "00ff"));
        assert_false(engine_same_image("sha256:00ff", "sha256:00fe"));
        assert_false(engine_same_image("sha256:00ff", "sha256:00"));
        assert_false(engine_same_image("", ""));
        assert_false(engine_same_image("sha256:", "sha256:"));
}

static void descriptors(void **state) {
        struct rlimit all, none;
        uint8_t buf[64];
        int pair[2], fd = -1;

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(engine_msg_send(pair[0], "abc", 3, STDIN_FILENO), 0);
        assert_int_equal(engine_msg_recv(pair[1], buf, sizeof(buf), &fd), 3);
        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
        /* Nobody asked for one. */
        assert_int_equal(engine_msg_send(pair[0], "abc", 3, STDIN_FILENO), 0);
        assert_int_equal(engine_msg_recv(pair[1], buf, sizeof(buf), NULL), -EPROTO);
        /* No room for it in this process: the words come without it. */
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
        none = (struct rlimit){ 0, all.rlim_max };
        assert_int_equal(engine_msg_send(pair[0], "abc", 3, STDIN_FILENO), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_int_equal(engine_msg_recv(pair[1], buf, sizeof(buf), &fd), 3);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
        assert_int_equal(fd, -EMFILE);
        /* Longer than the buffer. */
        assert_int_equal(engine_msg_send(pair[0], buf, sizeof(buf), -1), 0);
        assert_int_equal(engine_msg_recv(pair[1], buf, sizeof(buf) - 1, &fd), -EPROTO);
        assert_int_equal(engine_msg_recv(pair[1], buf, sizeof(buf), &fd), -EAGAIN);
        close(pair[0]);
        assert_int_equal(engine_msg_recv(pair[1], buf, sizeof(buf), &fd), 0);
        close(pair[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(there_and_back), cmocka_unit_test(exact_length_and_side),
                cmocka_unit_test(ids_are_hex),    cmocka_unit_test(bounds),
                cmocka_unit_test(long_list),      cmocka_unit_test(descriptors),
                cmocka_unit_test(image_ids),
        };

        return cmocka_run_group_tests_name("engine_msg", tests, NULL, NULL);
}
