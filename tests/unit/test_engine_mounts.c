/*
 * Who may mount what: the caller's pair of sockets and what must not be taken for one, his messages, and his folders
 * against config and profile. As root the pairs are made under another uid; else the broker is a single user's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "engine/mountinfo.h"
#include "engine/mounts.h"

#define UID 1234
#define GID 1235
#define MANAGER 4321

static struct broker b;
static struct {
        struct mounts *m;
        enum engine_error error;
        char why[256];
        unsigned times;
} got;

static int setup(void **state) {
        (void)state;
        b = (struct broker){ .manager_uid = MANAGER, .options.single_user = geteuid() != 0 };
        memset(&got, 0, sizeof(got));
        return sd_event_new(&b.event) < 0 ? -1 : 0;
}

static int teardown(void **state) {
        (void)state;
        mounts_drop_all(&b);
        mounts_free(got.m);
        sd_event_unref(b.event);
        return 0;
}

/* A pair made by that uid: the kernel notes the effective ids of the moment. */
static void make_pair(uid_t uid, gid_t gid, int type, int pair[2]) {
        if (geteuid() == 0) {
                assert_int_equal(setegid(gid), 0);
                assert_int_equal(seteuid(uid), 0);
        }
        assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
        if (geteuid() != getuid() || getegid() != getgid()) {
                assert_int_equal(seteuid(getuid()), 0);
                assert_int_equal(setegid(getgid()), 0);
        }
}

static void callers_pair(int pair[2]) {
        make_pair(UID, GID, SOCK_SEQPACKET, pair);
}

static void done(void *userdata, struct mounts *m, enum engine_error error, const char *why) {
        assert_ptr_equal(userdata, &got);
        mounts_free(got.m);
        got.m = m;
        got.times++;
        snprintf(got.why, sizeof(got.why), "%s", why ? why : "");
        got.error = why ? error : 0;
        assert_true(!m == !!why);
}

/* Reads the pair's other end until there is an answer. */
static void read_it(int sock) {
        unsigned before = got.times;

        assert_int_equal(mounts_read(&b, sock, done, &got), 0);
        while (got.times == before)
                assert_true(sd_event_run(b.event, 20 * 1000000) > 0);
        assert_int_equal(got.times, before + 1);
}

static void is_refused(int sock, const char *why) {
        read_it(sock);
        assert_null(got.m);
        assert_non_null(strstr(got.why, why));
}

static void put(int sock, unsigned index, unsigned total, const char *dst, const char *folder) {
        struct mount_msg m = { (uint8_t)index, (uint8_t)total, index % 2, dst };
        int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(mount_msg_send(sock, &m, fd), 0);
        close(fd);
}

static bool same_file(int fd, const char *path) {
        struct stat x, y;

        return fstat(fd, &x) == 0 && stat(path, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void taken(void **state) {
        int pair[2];

        (void)state;
        callers_pair(pair);
        put(pair[0], 0, 2, "/a", "/tmp");
        put(pair[0], 1, 2, "/b", "/usr");
        close(pair[0]);
        read_it(pair[1]);
        assert_non_null(got.m);
        assert_int_equal(got.m->uid, geteuid() == 0 ? UID : geteuid());
        assert_int_equal(got.m->gid, geteuid() == 0 ? GID : getegid());
        assert_int_equal(got.m->n, 2);
        assert_string_equal(got.m->of[0].dst, "/a");
        assert_false(got.m->of[0].read_only);
        assert_true(same_file(got.m->of[0].fd, "/tmp"));
        assert_string_equal(got.m->of[1].dst, "/b");
        assert_true(got.m->of[1].read_only);
        assert_true(same_file(got.m->of[1].fd, "/usr"));
        assert_null(b.mounts_readers);
}

/* What comes only later is waited for. */
static void late(void **state) {
        int pair[2];

        (void)state;
        callers_pair(pair);
        put(pair[0], 0, 2, "/a", "/tmp");
        assert_int_equal(mounts_read(&b, pair[1], done, &got), 0);
        assert_int_equal(got.times, 0);
        put(pair[0], 1, 2, "/b", "/usr");
        while (got.times == 0)
                assert_true(sd_event_run(b.event, 20 * 1000000) > 0);
        assert_non_null(got.m);
        close(pair[0]);
}

static void never(void **state) {
        int pair[2];

        (void)state;
        callers_pair(pair);
        put(pair[0], 0, 2, "/a", "/tmp");
        is_refused(pair[1], "did not say in time");
        close(pair[0]);
}

static void wrong_callers(void **state) {
        static const struct {
                uid_t uid;
                gid_t gid;
                const char *why;
        } bad[] = { { 0, GID, "root's folders" },
                    { UID, 0, "root's folders" },
                    { MANAGER, GID, "this account may mount nothing" },
                    { 3000000000u, GID, "too large" } };
        int pair[2];

        (void)state;
        if (geteuid() != 0)
                skip();
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                make_pair(bad[i].uid, bad[i].gid, SOCK_SEQPACKET, pair);
                put(pair[0], 0, 1, "/a", "/tmp");
                close(pair[0]);
                is_refused(pair[1], bad[i].why);
        }
        /* A single user's broker serves its own uid alone. */
        b.options.single_user = true;
        callers_pair(pair);
        close(pair[0]);
        is_refused(pair[1], "this account may mount nothing");
}

/* One side of such a connection is told to be of the uid that listens. */
static void connections(void **state) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        int pair[2], listening, client, server;
        socklen_t len;

        (void)state;
        listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(listening, (struct sockaddr *)&sa, sizeof(sa.sun_family)), 0);
        len = sizeof(sa);
        assert_int_equal(getsockname(listening, (struct sockaddr *)&sa, &len), 0);
        assert_int_equal(listen(listening, 1), 0);
        client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(client, (struct sockaddr *)&sa, len), 0);
        server = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        put(server, 0, 1, "/a", "/tmp");
        put(client, 0, 1, "/a", "/tmp");
        is_refused(client, "no end of a pair");
        is_refused(server, "no end of a pair");
        is_refused(listening, "no end of a pair");
        make_pair(UID, GID, SOCK_STREAM, pair);
        close(pair[0]);
        is_refused(pair[1], "no end of a pair");
        make_pair(UID, GID, SOCK_DGRAM, pair);
        close(pair[0]);
        is_refused(pair[1], "no end of a pair");
        is_refused(open("/dev/null", O_RDWR | O_CLOEXEC), "no end of a pair");
        is_refused(open("/tmp", O_PATH | O_CLOEXEC), "no end of a pair");
        is_refused(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "no end of a pair");
}

/* Each with one thing wrong. */
static void wrong_messages(void **state) {
        struct mount_msg m = { .index = 0, .total = 1, .dst = "/a" };
        uint8_t buf[MOUNT_MSG_MAX], long_one[MOUNT_MSG_MAX + 1] = { 0 };
        size_t n = (size_t)mount_msg_encode(&m, buf, sizeof(buf));
        int pair[2], fd;

        (void)state;
        callers_pair(pair);
        assert_int_equal(send(pair[0], buf, n, 0), n);
        is_refused(pair[1], "without a folder");
        close(pair[0]);

        callers_pair(pair);
        fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(mount_msg_send(pair[0], &m, fd), 0);
        is_refused(pair[1], "without a folder");
        close(fd);
        close(pair[0]);

        callers_pair(pair);
        fd = open("/etc/passwd", O_PATH | O_CLOEXEC);
        assert_int_equal(mount_msg_send(pair[0], &m, fd), 0);
        is_refused(pair[1], "without a folder");
        close(fd);
        close(pair[0]);

        callers_pair(pair);
        buf[0]++;
        assert_int_equal(send(pair[0], buf, n, 0), n);
        is_refused(pair[1], "malformed");
        close(pair[0]);

        callers_pair(pair);
        assert_int_equal(send(pair[0], long_one, sizeof(long_one), 0), sizeof(long_one));
        is_refused(pair[1], "malformed");
        close(pair[0]);

        callers_pair(pair);
        put(pair[0], 1, 2, "/a", "/tmp");
        is_refused(pair[1], "not complete");
        close(pair[0]);

        callers_pair(pair);
        put(pair[0], 0, 3, "/a", "/tmp");
        put(pair[0], 1, 2, "/b", "/tmp");
        is_refused(pair[1], "not complete");
        close(pair[0]);

        callers_pair(pair);
        put(pair[0], 0, 2, "/a", "/tmp");
        close(pair[0]);
        is_refused(pair[1], "went away");
}

static void too_many(void **state) {
        int pairs[MOUNTS_READERS_MAX + 1][2];

        (void)state;
        for (size_t i = 0; i <= MOUNTS_READERS_MAX; i++) {
                callers_pair(pairs[i]);
                assert_int_equal(mounts_read(&b, pairs[i][1], done, &got),
                                 i < MOUNTS_READERS_MAX ? 0 : -EBUSY);
        }
        mounts_drop_all(&b);
        assert_int_equal(got.times, MOUNTS_READERS_MAX);
        assert_string_equal(got.why, "the broker ends");
        for (size_t i = 0; i <= MOUNTS_READERS_MAX; i++)
                close(pairs[i][0]);
}

/* --- against config and profile
 * ---------------------------------------------------------------------- */

static struct config_tmpfs places[] = { { (char *)"/home/sandbox", 1 << 20 },
                                        { (char *)"/tmp", 1 << 20 } };
static const struct config_profile profile = { .tmpfs = places, .n_tmpfs = 2 };

/* The words of the refusal, or "". */
static const char *judge(const char *folder, const char *dst, const char *allowed) {
        char *list[] = { (char *)"/nonexistent", (char *)allowed, NULL };
        const struct config c = { .allowed_file_paths = list };
        struct mounts m = { .n = 1 };
        static struct errmsg e;
        int r;

        e.text[0] = '\0';
        m.of[0] = (struct mount){ open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), false, (char *)dst };
        r = mounts_check(&m, &c, &profile, &e);
        assert_int_equal(r, !e.text[0] ? 0 : strstr(e.text, "mount at ") ? -EINVAL : -EPERM);
        close_fd(m.of[0].fd);
        return e.text;
}

static void allowed(void **state) {
        char dir[] = "/tmp/hst-mounts-XXXXXX", path[64];
        int fd;

        (void)state;
        assert_non_null(mkdtemp(dir));
        assert_string_equal(judge(dir, "/a", dir), "");
        assert_string_equal(judge(dir, "/a", "/tmp"), "");
        assert_non_null(strstr(judge(dir, "/a", "/usr"), "not below allowed_file_paths"));
        assert_non_null(strstr(judge(dir, "/a", "/tm"), "not below allowed_file_paths"));
        assert_non_null(strstr(judge("/tmp", "/a", dir), "not below allowed_file_paths"));
        /* Where the folder is counts, not what was written. */
        snprintf(path, sizeof(path), "%s/../../usr", dir);
        assert_non_null(strstr(judge(path, "/a", "/tmp"), "mount of /usr: not below"));
        snprintf(path, sizeof(path), "%s/x (deleted)", dir);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_non_null(strstr(judge(path, "/a", "/tmp"), "is no more"));
        fd = open(path, O_PATH | O_CLOEXEC);
        assert_int_equal(rmdir(path), 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        assert_non_null(strstr(judge(path, "/a", "/tmp"), "is no more"));
        close(fd);
        rmdir(dir);
}

static void destinations(void **state) {
        static const char *const bad[] = { "/proc",
                                           "/proc/x",
                                           "/sys",
                                           "/dev/shm",
                                           "/.hermes-sandbox",
                                           "/etc",
                                           "/etc/hosts",
                                           "/home",
                                           "/.hermes-sandbox/agent" };
        static const char *const good[] = { "/work", "/home/x", "/etc/x", "/process", "/tmpx",
                                            "/srv/a/b",
                                            /* instead of the tmpfs there, and in it */
                                            "/tmp", "/home/sandbox", "/tmp/a", "/home/sandbox/x" };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_non_null(strstr(judge("/usr", bad[i], "/usr"), "is the sandbox's own"));
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_string_equal(judge("/usr", good[i], "/usr"), "");
}

static void overlapping(void **state) {
        static const char *const bad[][2] = {
                { "/a", "/a/b" },     { "/run", "/var/run/x" }, { "/usr/bin", "/bin/x" },
                { "/usr", "/lib64" }, { "/usr/lib/x", "/lib" }, { "/var/lock/x", "/run" },
        };
        char *list[] = { (char *)"/usr", NULL };
        const struct config c = { .allowed_file_paths = list };
        struct mounts m = { .n = 2 };
        struct errmsg e;
        int fd = open("/usr", O_PATH | O_CLOEXEC);

        (void)state;
        m.of[0] = (struct mount){ fd, false, (char *)"/a/b" };
        m.of[1] = (struct mount){ fd, false, (char *)"/a/b" };
        assert_int_equal(mounts_check(&m, &c, &profile, &e), -EINVAL);
        assert_non_null(strstr(e.text, "mount at /a/b: it overlaps the one at /a/b"));
        /* One in the other, in either order, and by the links that images have. */
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                for (size_t k = 0; k < 2; k++) {
                        m.of[k].dst = (char *)bad[i][0];
                        m.of[1 - k].dst = (char *)bad[i][1];
                        assert_int_equal(mounts_check(&m, &c, &profile, &e), -EINVAL);
                        assert_non_null(strstr(e.text, "overlaps"));
                }
        m.of[0].dst = (char *)"/a/b";
        m.of[1].dst = (char *)"/a/bc";
        assert_int_equal(mounts_check(&m, &c, &profile, &e), 0);
        close(fd);
}

/* Somebody who has made himself a mount namespace can make any name mean anything. */
static void other_namespace(void **state) {
        int pair[2], status;
        pid_t pid;

        (void)state;
        if (geteuid() != 0)
                skip();
        callers_pair(pair);
        pid = fork();
        if (pid == 0) {
                if (unshare(CLONE_NEWNS) < 0 ||
                    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    mount("none", "/usr", "tmpfs", 0, NULL) < 0)
                        _exit(77);
                put(pair[0], 0, 1, "/a", "/usr");
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(pair[0]);
        read_it(pair[1]);
        assert_non_null(got.m);
        {
                char *list[] = { (char *)"/usr", NULL };
                const struct config c = { .allowed_file_paths = list };
                struct errmsg e;

                assert_int_equal(mounts_check(got.m, &c, &profile, &e), -EPERM);
                /* Its namespace is gone by now, and the path with it, or only the mount is unknown. */
                assert_true(strstr(e.text, "sees other mounts") || strstr(e.text, "not below"));
        }
}

/* --- the container's mounts
 * -------------------------------------------------------------------------- */

static void lines(void **state) {
        static const char *const bad[] = { "",
                                           "1 2 0:3",
                                           "1 2 0:3 / ",
                                           "1 2 0:3 / /x",
                                           "x 2 0:3 / / rw",
                                           "1 2 0:3 / x rw",
                                           "1 2 0:3 /\\400 / rw",
                                           "1 2 0:3 / /\\000 rw",
                                           "1 2 0:3 / /\\9 rw" };
        struct mountinfo m;
        char root[PATH_MAX];

        (void)state;
        assert_int_equal(
                mountinfo_parse("95 78 254:1 /a\\040b /mnt\\134 ro,relatime - ext4 /dev/x rw\n", &m), 0);
        assert_int_equal(m.id, 95);
        assert_int_equal(m.major, 254);
        assert_int_equal(m.minor, 1);
        assert_string_equal(m.root, "/a b");
        assert_string_equal(m.point, "/mnt\\");
        assert_true(m.read_only);
        assert_int_equal(mountinfo_root_of(&m, "/mnt\\/c", root), 0);
        assert_string_equal(root, "/a b/c");
        assert_int_equal(mountinfo_root_of(&m, "/mnt", root), -EINVAL);
        assert_int_equal(mountinfo_parse("1 2 0:3 / / rw shared:1 - ext4 /dev/x ro\n", &m), 0);
        assert_false(m.read_only);
        assert_int_equal(mountinfo_root_of(&m, "/", root), 0);
        assert_string_equal(root, "/");
        assert_int_equal(mountinfo_root_of(&m, "/x", root), 0);
        assert_string_equal(root, "/x");
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(mountinfo_parse(bad[i], &m), -EPROTO);
}

/* This process stands for the container: /proc is mounted in it, and nothing else is there. */
static const char *verify(const char *folder, const char *dst, bool read_only,
                          const char *allowed_path) {
        char *list[] = { (char *)allowed_path, NULL };
        const struct config c = { .allowed_file_paths = list };
        struct mounts m = { .n = 1 };
        static struct errmsg e;
        int r;

        e.text[0] = '\0';
        m.of[0] = (struct mount){ open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), read_only,
                                  (char *)dst };
        r = mounts_verify(&m, &c, getpid(), &e);
        assert_int_equal(r, !e.text[0] ? 0 : strstr(e.text, "not found") ? -EIO : -EPERM);
        close_fd(m.of[0].fd);
        return e.text;
}

static void verified(void **state) {
        (void)state;
        assert_string_equal(verify("/proc", "/proc", false, "/proc"), "");
        assert_non_null(strstr(verify("/proc", "/proc", true, "/proc"), "another folder"));
        assert_non_null(strstr(verify("/proc/self/fd", "/proc", false, "/proc"), "another folder"));
        assert_non_null(strstr(verify("/usr", "/proc", false, "/usr"), "another folder"));
        assert_non_null(strstr(verify("/usr", "/usr/nonexistent", false, "/usr"), "not found"));
        assert_non_null(strstr(verify("/proc", "/proc", false, "/usr"), "not below"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(taken, setup, teardown),
                cmocka_unit_test_setup_teardown(late, setup, teardown),
                cmocka_unit_test_setup_teardown(never, setup, teardown),
                cmocka_unit_test_setup_teardown(wrong_callers, setup, teardown),
                cmocka_unit_test_setup_teardown(connections, setup, teardown),
                cmocka_unit_test_setup_teardown(wrong_messages, setup, teardown),
                cmocka_unit_test_setup_teardown(too_many, setup, teardown),
                cmocka_unit_test(allowed),
                cmocka_unit_test(destinations),
                cmocka_unit_test(overlapping),
                cmocka_unit_test_setup_teardown(other_namespace, setup, teardown),
                cmocka_unit_test(lines),
                cmocka_unit_test(verified),
        };

        return cmocka_run_group_tests_name("engine_mounts", tests, NULL, NULL);
}
