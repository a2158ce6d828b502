/* session open: the request that comes of its options, what is refused of them, and the folders that go along. */
#include "clirig.h"

#include <sys/stat.h>

#include "common/mount_proto.h"

/* --- the request ----------------------------------------------------------------------------- */

static void m_open(struct peer *p) {
        struct open_request r = take_open(p);

        must(strcmp(r.name, "work") == 0 && strcmp(r.profile, "dev") == 0 && r.ttl_ms == 7200000,
             "open");
        must(r.n_labels == 2 && strcmp(r.labels[0], "task=4=2") == 0 && strcmp(r.labels[1], "x=") == 0,
             "labels");
        must(r.form == ANSWER_TEXT && narrow_is_empty(&r.narrow) && r.n_env == 0, "more");
        must(!r.workdir[0] && !r.image[0], "more words");
        put_answer(p, "work\n");
}

static void m_open_any(struct peer *p) {
        struct open_request r = take_open(p);

        must(!r.name[0] && !r.profile[0] && r.ttl_ms == 0 && r.form == ANSWER_JSON, "open");
        put_answer(p, "{\"name\":\"s-00112233\"}\n");
}

static void m_narrow(struct peer *p) {
        struct open_request r = take_open(p);
        const struct narrow *n = &r.narrow;
        struct wire_in in;

        must(n->memory_bytes == 64 << 20 && n->cpu_nano == 250000000 && n->pids_limit == 40, "limits");
        must(n->shm_bytes == 65536 && n->no_network, "more limits");
        must(n->user && n->uid == 1000 && n->gid == 100, "user");
        must(n->n_tmpfs == 2 && strcmp(n->tmpfs[0].path, "/tmp") == 0 && n->tmpfs[0].bytes == 1 << 20 &&
                     strcmp(n->tmpfs[1].path, "/a=b") == 0 && n->tmpfs[1].bytes == 4096,
             "tmpfs");
        must(strcmp(r.workdir, "/tmp") == 0 && r.n_env == 2, "surroundings");
        wire_in_init(&in, r.env_wire, r.env_len);
        must(strcmp(wire_get_str(&in, 99), "A=b c") == 0, "first");
        must(strcmp(wire_get_str(&in, 99), "CLIRIG=from here") == 0, "second");
        put_answer(p, "s-1\n");
}

static void test_request(void **state) {
        (void)state;
        asked(ARGV(W("session"), W("open"), W("work"), W("--profile=dev"), W("--ttl"), W("2h"),
                   W("--label"), W("task=4=2"), W("--label=x=")),
              m_open, 0, "work\n", "");
        asked(ARGV(W("session"), W("open"), W("--json")), m_open_any, 0, "{\"name\":\"s-00112233\"}\n",
              "");
        setenv("CLIRIG", "from here", 1);
        asked(ARGV(W("session"), W("open"), W("--memory=64m"), W("--cpus=.25"), W("--pids-limit"),
                   W("40"), W("--shm-size=64k"), W("--no-network"), W("--user=1000:100"),
                   W("--tmpfs=/tmp=1m"), W("--tmpfs=/a=b=4096"), W("-w/tmp"), W("-e"), W("A=b c"),
                   W("-eCLIRIG"), W("-eCLIRIG_NOT_SET")),
              m_narrow, 0, "s-1\n", "");
}

/* --- bad usage ------------------------------------------------------------------------------- */

static void test_refusals(void **state) {
        static const struct bad_usage cases[] = {
                { { "session", "open", "a", "b" }, "session open: unexpected argument 'b'" },
                { { "session", "open", ".a" },
                  "session open: session '.a': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with "
                  "- or ." },
                { { "session", "open", "a b" },
                  "session open: session 'a b': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with "
                  "- or ." },
                { { "session", "open", "" },
                  "session open: session '': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with - "
                  "or ." },
                { { "session", "open", "--ttl", "0" },
                  "session open: --ttl '0': expected more than 0 and at most a year" },
                { { "session", "open", "--ttl", "soon" },
                  "session open: --ttl 'soon': expected a number with ms, s, m, h, d, or plain seconds" },
                { { "session", "open", "--label", "=x" },
                  "session open: --label '=x': expected KEY=VALUE of at most 256 bytes" },
                { { "session", "open", "--label", "x" },
                  "session open: --label 'x': expected KEY=VALUE of at most 256 bytes" },
                { { "session", "open", "--all" },
                  "session open: unknown option --all: see hermes-sandbox session --help" },
                { { "session", "open", "--mount", "/a" },
                  "session open: --mount '/a': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", "/a:b" },
                  "session open: --mount '/a:b': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", ":/b" },
                  "session open: --mount ':/b': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", "/a:/b:rw" },
                  "session open: --mount '/a:/b:rw': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", "/:/b/../c" },
                  "session open: --mount: /b/../c has an empty, \".\" or \"..\" component" },
                { { "session", "open", "--mount", "/nonexistent:/b" },
                  "session open: --mount /nonexistent: No such file or directory" },
                { { "session", "open", "--mount", "/etc/passwd:/b" },
                  "session open: --mount /etc/passwd: Not a directory" },
                { { "session", "open", "--mount", "/proc/self/root:/b" },
                  "session open: --mount /proc/self/root: a symbolic link stands in its path: give the path that "
                  "realpath prints" },
                { { "session", "open", "--memory", "1.5g" },
                  "session open: --memory '1.5g': expected bytes, such as 512m or 1g" },
                { { "session", "open", "--memory", "0" },
                  "session open: --memory '0': expected bytes, such as 512m or 1g" },
                { { "session", "open", "--memory", "9999999999t" },
                  "session open: --memory '9999999999t': expected bytes, such as 512m or 1g" },
                { { "session", "open", "--cpus", "0" },
                  "session open: --cpus '0': expected a number of CPUs, such as 0.5 or 2" },
                { { "session", "open", "--cpus", "1e3" },
                  "session open: --cpus '1e3': expected a number of CPUs, such as 0.5 or 2" },
                { { "session", "open", "--pids-limit", "-1" },
                  "session open: --pids-limit '-1': expected a whole number of 1 to 2147483647" },
                { { "session", "open", "--tmpfs", "/tmp" },
                  "session open: --tmpfs '/tmp': expected PATH=SIZE, such as /tmp=64m" },
                { { "session", "open", "--user", "hermes" },
                  "session open: --user 'hermes': expected UID or UID:GID in numbers, or root: names are the "
                  "image's" },
                { { "session", "open", "--user", "1000" },
                  "session open: --user '1000': expected UID:GID" },
                { { "session", "open", "-w", "tmp" },
                  "session open: -w 'tmp': expected an absolute path of at most 4096 bytes" },
                { { "session", "open", "-e", "1=2" },
                  "session open: -e '1=2': expected KEY or KEY=VALUE" },
        };

        (void)state;
        refused(cases, sizeof(cases) / sizeof(cases[0]));
}

/* --- mounts ---------------------------------------------------------------------------------- */

static char folder[64];

/* One message with its descriptor, which is that folder's. */
static void take_mount(int from, struct mount_msg *ret) {
        static uint8_t buf[MOUNT_MSG_MAX];
        struct iovec iov = { buf, sizeof(buf) };
        union {
                struct cmsghdr h;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        char link[64], path[256];
        int fd;

        must(n > 0 && m.msg_controllen > 0, "no message");
        must(mount_msg_decode(buf, (size_t)n, ret) == 0, "a bad message");
        memcpy(&fd, CMSG_DATA(&control.h), sizeof(fd));
        must((fcntl(fd, F_GETFL) & O_PATH) != 0, "the descriptor is more than a place");
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        must(n > 0, "readlink");
        path[n] = '\0';
        must(strcmp(path, folder) == 0, "another folder");
        close(fd);
}

static void m_mounts(struct peer *p) {
        struct open_request a = take_open(p);
        struct ucred cred;
        socklen_t len = sizeof(cred);
        struct mount_msg m;
        char c;

        must(a.name[0] == '\0' && a.mounts, "open");
        must(getsockopt(p->passed, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == getuid() &&
                     cred.pid != getpid(),
             "whose pair it is");
        take_mount(p->passed, &m);
        must(m.index == 0 && m.total == 2 && strcmp(m.dst, "/a") == 0 && !m.read_only, "the first");
        take_mount(p->passed, &m);
        must(m.index == 1 && m.total == 2 && strcmp(m.dst, "/b c") == 0 && m.read_only, "the second");
        must(recv(p->passed, &c, 1, MSG_DONTWAIT) == 0, "more than that");
        put_answer(p, "s-1\n");
}

static void test_mounts(void **state) {
        char first[128], second[128], link[128], path[80];
        static char line[400];

        (void)state;
        /* A colon may stand in it. */
        snprintf(folder, sizeof(folder), "%s/x:y", dir);
        assert_int_equal(mkdir(folder, 0700), 0);
        snprintf(first, sizeof(first), "%s:/a", folder);
        snprintf(second, sizeof(second), "--mount=%s:/b c:ro", folder);
        asked(ARGV(W("session"), W("open"), W("--mount"), first, second), m_mounts, 0, "s-1\n", "");

        snprintf(path, sizeof(path), "%s/link", dir);
        assert_int_equal(symlink(folder, path), 0);
        snprintf(link, sizeof(link), "%s:/a", path);
        snprintf(
                line, sizeof(line),
                "hermes-sandbox: session open: --mount %s: a symbolic link stands in its path: give the path that "
                "realpath prints\n",
                path);
        asked(ARGV(W("session"), W("open"), W("--mount"), link), NULL, 64, "", line);
        unlink(path);
        rmdir(folder);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_request),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_mounts),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
