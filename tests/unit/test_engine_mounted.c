/*
 * A create with host folders, from the manager's message to the answer, in a whole broker: what the engine is asked
 * for, and what becomes of a container that has got another folder. The container's init process is a child of this
 * program with mounts of its own. Takes root: the caller has another uid.
 */
#include "unit/broker_rig.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "common/mount_proto.h"

#define UID 1234
#define GID 1235

/* The caller's pair, with that folder on it; the end for the broker. */
static int callers_end(const char *folder, const char *dst, uid_t uid) {
        struct mount_msg m = { .index = 0, .total = 1, .dst = dst };
        int pair[2], fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(setegid(GID), 0);
        assert_int_equal(seteuid(uid), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(setegid(0), 0);
        assert_int_equal(mount_msg_send(pair[0], &m, fd), 0);
        close(fd);
        close(pair[0]);
        return pair[1];
}

/* A process that has @folder mounted at @dst, until the test ends. */
static void container_begin(const char *folder, const char *dst) {
        int ready[2];
        char c;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        t.pid = fork();
        if (t.pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (unshare(CLONE_NEWNS) < 0 ||
                    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    /* Below /mnt there is a tmpfs first, as the engine makes it. */
                    (strncmp(dst, "/mnt/", 5) == 0 &&
                     (mount("none", "/mnt", "tmpfs", 0, NULL) < 0 || mkdir(dst, 0755) < 0)) ||
                    mount(folder, dst, NULL, MS_BIND, NULL) < 0)
                        _exit(1);
                if (write(ready[1], "", 1) == 1)
                        pause();
                _exit(1);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        close(ready[0]);
}

static int begin(void **state) {
        if (getuid() != 0)
                return 0;
        rig_pool = "profiles: {root: {user: 0, capabilities: [CHOWN], tmpfs: {/mnt: 1m}}}\n";
        if (setup(state) < 0)
                return -1;
        mkdir(in_dir("allowed"), 0755);
        mkdir(in_dir("allowed/a"), 0755);
        mkdir(in_dir("allowed/b"), 0755);
        return 0;
}

static int end(void **state) {
        if (getuid() != 0)
                return 0;
        if (t.pid > 0) {
                kill(t.pid, SIGKILL);
                waitpid(t.pid, NULL, 0);
        }
        return teardown(state);
}

/* What the engine was asked to mount is the folder itself, in this broker. */
static void check_mount(const char *folder, const char *dst) {
        json_t *sent = json_loads(t.create_body, JSON_REJECT_DUPLICATES, NULL);
        json_t *host = json_object_get(sent, "HostConfig"), *mounts = json_object_get(host, "Mounts");
        json_t *last = json_array_get(mounts, 2), *driver, *options;
        struct stat x, y;
        const char *device;

        assert_string_equal(json_string_value(json_object_get(sent, "User")), "1234:1235");
        assert_int_equal(json_array_size(json_object_get(host, "CapAdd")), 0);
        assert_int_equal(json_array_size(mounts), 3);
        assert_string_equal(json_string_value(json_object_get(last, "Type")), "volume");
        assert_string_equal(json_string_value(json_object_get(last, "Target")), dst);
        assert_null(json_object_get(last, "Source"));
        driver = json_object_get(json_object_get(last, "VolumeOptions"), "DriverConfig");
        options = json_object_get(driver, "Options");
        device = json_string_value(json_object_get(options, "device"));
        assert_string_equal(json_string_value(json_object_get(options, "o")), "bind,private");
        assert_int_equal(stat(device, &x), 0);
        assert_int_equal(stat(folder, &y), 0);
        assert_true(x.st_ino == y.st_ino && x.st_dev == y.st_dev);
        json_decref(sent);
}

static void next_is_failed(enum engine_error error, const char *why) {
        uint8_t buf[ENGINE_MSG_MAX];
        struct engine_msg m;
        int fd = -1;

        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, error);
        if (!strstr(m.text, why))
                fail_msg("\"%s\" does not say \"%s\"", m.text, why);
        assert_int_equal(fd, -1);
}

static void created(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        (void)state;
        if (getuid() != 0)
                skip();
        container_begin(in_dir("allowed/a"), "/mnt");
        ask_create(callers_end(in_dir("allowed/a"), "/mnt", UID));
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        assert_int_equal(m.pid, t.pid);
        assert_true(fd >= 0);
        close(fd);
        assert_non_null(strstr(t.create_body, "\"hermes-sandbox.caller\":\"1234\""));
}

static void check_moved(void) {
        check_mount(in_dir("allowed/moved"), "/mnt");
}

/* Swapped before the engine is asked: what is mounted is the folder that was opened. */
static void swapped(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1, end_fd;

        (void)state;
        if (getuid() != 0)
                skip();
        end_fd = callers_end(in_dir("allowed/a"), "/mnt", UID);
        assert_int_equal(rename(in_dir("allowed/a"), in_dir("allowed/moved")), 0);
        assert_int_equal(symlink("/etc", in_dir("allowed/a")), 0);
        container_begin(in_dir("allowed/moved"), "/mnt");
        t.on_create = check_moved;
        ask_create(end_fd);
        do {
                next_message(buf, &m, &fd);
        } while (m.type == ENGINE_STATE);
        assert_int_equal(m.type, ENGINE_CREATED);
        close(fd);
        assert_non_null(strstr(t.create_body, "/mnt"));
}

static void another_folder(void **state) {
        long deadline = now_ms() + DEADLINE_MS;

        (void)state;
        if (getuid() != 0)
                skip();
        container_begin(in_dir("allowed/b"), "/mnt");
        ask_create(callers_end(in_dir("allowed/a"), "/mnt", UID));
        next_is_failed(ENGINE_E_NOT_ALLOWED, "the sandbox has got another folder there");
        /* Destroyed, and nothing is left. */
        while (!t.removed || entries("state/containers") + entries("run") > 0) {
                struct engine_msg m, list = { .id = (uint32_t)(now_ms() | 1 << 30),
                                              .type = ENGINE_LIST,
                                              .container = "" };
                uint8_t buf[ENGINE_MSG_MAX];

                assert_true(now_ms() < deadline);
                tell(&list);
                next_message(buf, &m, NULL);
        }
}

static void not_there(void **state) {
        (void)state;
        if (getuid() != 0)
                skip();
        container_begin(in_dir("allowed/a"), "/mnt");
        ask_create(callers_end(in_dir("allowed/a"), "/work", UID));
        next_is_failed(ENGINE_E_REFUSED, "not found in the sandbox");
}

/* Refused before the engine hears of it. */
static void refused(void **state) {
        (void)state;
        if (getuid() != 0)
                skip();
        ask_create(callers_end(in_dir("allowed/a"), "/mnt", 0));
        next_is_failed(ENGINE_E_NOT_ALLOWED, "root's folders are not mounted");
        assert_string_equal(t.create_body, "");
        assert_int_equal(entries("state/containers") + entries("run"), 0);
}

static void outside(void **state) {
        (void)state;
        if (getuid() != 0)
                skip();
        ask_create(callers_end(in_dir("run"), "/mnt", UID));
        next_is_failed(ENGINE_E_NOT_ALLOWED, "not below allowed_file_paths");
        assert_string_equal(t.create_body, "");
        assert_int_equal(entries("state/containers") + entries("run"), 0);
}

/* Less of a sandbox than its profile's, and nobody else in it than the caller. */
static void narrowed(void **state) {
        const struct narrow less = { .memory_bytes = 64 << 20, .user = true, .uid = UID, .gid = GID };
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        (void)state;
        if (getuid() != 0)
                skip();
        container_begin(in_dir("allowed/a"), "/mnt");
        ask_create_for("", &less, callers_end(in_dir("allowed/a"), "/mnt", UID));
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        close(fd);
        assert_non_null(strstr(t.create_body, "\"Memory\":67108864,"));
        assert_non_null(strstr(t.create_body, "\"CapAdd\":[]"));
        assert_non_null(strstr(t.create_body,
                               ",\"1234\",\"1235\",\"0\",\"0\",\"120000\",\"0000000000000000\"]"));
}

static void as_another(void **state) {
        const struct narrow other = { .user = true, .uid = UID, .gid = GID + 1 };

        (void)state;
        if (getuid() != 0)
                skip();
        ask_create_for("", &other, callers_end(in_dir("allowed/a"), "/mnt", UID));
        next_is_failed(ENGINE_E_NOT_ALLOWED,
                       "commands run as 1234:1235, who mounts it, and not as 1234:1236");
        assert_string_equal(t.create_body, "");
        assert_int_equal(entries("state/containers") + entries("run"), 0);
}

/* In the place of a tmpfs there is the folder alone, and whoever's sandbox it is, root is not in it. */
static void instead_of_a_tmpfs(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        (void)state;
        if (getuid() != 0)
                skip();
        container_begin(in_dir("allowed/a"), "/mnt");
        ask_create_for("root", NULL, callers_end(in_dir("allowed/a"), "/mnt", UID));
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        close(fd);
        assert_null(strstr(t.create_body, "\"/mnt\":"));
        assert_non_null(strstr(t.create_body, "\"/tmp\":"));
        assert_non_null(strstr(t.create_body, "\"Target\":\"/mnt\""));
        assert_non_null(strstr(t.create_body, "\"CapAdd\":[]"));
        assert_non_null(strstr(t.create_body, "\"User\":\"1234:1235\""));
}

static void below_a_tmpfs(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        (void)state;
        if (getuid() != 0)
                skip();
        container_begin(in_dir("allowed/a"), "/mnt/x");
        ask_create_for("root", NULL, callers_end(in_dir("allowed/a"), "/mnt/x", UID));
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        close(fd);
        assert_non_null(strstr(t.create_body, "\"/mnt\":"));
        assert_non_null(strstr(t.create_body, "\"Target\":\"/mnt/x\""));
}

/* A descriptor where none belongs, and none where one does: the connection ends. */
static void hangs_up(void **state) {
        static const uint16_t types[] = { ENGINE_HELLO,     ENGINE_CREATE,  ENGINE_REMOVE,
                                          ENGINE_LIST,      ENGINE_INSPECT, ENGINE_IMAGE,
                                          ENGINE_INFO,      ENGINE_LISTEN,  ENGINE_CREATE_FOR,
                                          ENGINE_CREATE_FOR };
        const size_t n = sizeof(types) / sizeof(types[0]);

        (void)state;
        if (getuid() != 0)
                skip();
        for (size_t i = 0; i < n; i++) {
                uint8_t agent[ENGINE_RECIPE], buf[ENGINE_MSG_MAX];
                struct engine_msg m = { .id = 7,
                                        .type = types[i],
                                        .version = ENGINE_PROTO_VERSION,
                                        .profile = "",
                                        .hash = agent,
                                        .container = types[i] == ENGINE_LIST ? "" : ID,
                                        .mounts = i == n - 1 };
                struct pollfd p = { .events = POLLIN };
                int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

                hello(agent);
                tell_with(&m, m.mounts ? -1 : fd);
                close(fd);
                p.fd = t.manager;
                assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
                assert_int_equal(engine_msg_recv(t.manager, buf, sizeof(buf), NULL), 0);
                close(t.manager);
                connect_manager();
        }
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(created, begin, end),
                cmocka_unit_test_setup_teardown(swapped, begin, end),
                cmocka_unit_test_setup_teardown(another_folder, begin, end),
                cmocka_unit_test_setup_teardown(not_there, begin, end),
                cmocka_unit_test_setup_teardown(refused, begin, end),
                cmocka_unit_test_setup_teardown(outside, begin, end),
                cmocka_unit_test_setup_teardown(narrowed, begin, end),
                cmocka_unit_test_setup_teardown(as_another, begin, end),
                cmocka_unit_test_setup_teardown(instead_of_a_tmpfs, begin, end),
                cmocka_unit_test_setup_teardown(below_a_tmpfs, begin, end),
                cmocka_unit_test_setup_teardown(hangs_up, begin, end),
        };
        int r = broker_main(argc, argv);

        if (r >= 0)
                return r;
        return cmocka_run_group_tests_name("engine_mounted", tests, NULL, NULL);
}
