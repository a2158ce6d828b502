/* usage.h, with files as v1, hybrid and v2 kernels have them, and top.h: whose sandboxes, in 80 columns and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <sys/stat.h>

#include "countrig.h"
#include "manager/top.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ALICE 4000000001u
#define BOB 4000000002u

/* --- a /proc and a /sys/fs/cgroup ---------------------------------------------------------------- */

static char root[64], proc[80];
static struct usage_roots roots = { proc, root };

static void put(const char *file, const char *text) {
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "%s%s", root, file);
        for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
                *p = '\0';
                mkdir(path, 0700);
        }
        f = fopen(path, "we");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static int make_root(void **state) {
        (void)state;
        snprintf(root, sizeof(root), "/tmp/test-top-XXXXXX");
        if (!mkdtemp(root))
                return -1;
        snprintf(proc, sizeof(proc), "%s/proc", root);
        return 0;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *w) {
        (void)st;
        (void)type;
        (void)w;
        return remove(path);
}

static int drop_root(void **state) {
        (void)state;
        return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static struct usage look(const char *id) {
        struct usage u;

        usage_read(&roots, 42, id, &u);
        return u;
}

static void expect_unknown(const struct usage *u) {
        assert_true(u->cpu_us == USAGE_UNKNOWN);
        assert_true(u->memory_bytes == USAGE_UNKNOWN && u->memory_max_bytes == USAGE_UNKNOWN);
        assert_true(u->pids == USAGE_UNKNOWN && u->pids_max == USAGE_UNKNOWN);
}

#define V1_MOUNTS                                                                                      \
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"                          \
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"         \
        "34 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:4 master:2 - cgroup cgroup rw,memory\n" \
        "36 31 0:33 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"

static void put_v1(const char *below) {
        char name[256];

        snprintf(name, sizeof(name), "/sys/fs/cgroup/cpu,cpuacct%s/cpuacct.usage", below);
        put(name, "2500999\n");
        snprintf(name, sizeof(name), "/sys/fs/cgroup/memory%s/memory.usage_in_bytes", below);
        put(name, "5000\n");
        snprintf(name, sizeof(name), "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", below);
        put(name, "134217728\n");
        snprintf(name, sizeof(name), "/sys/fs/cgroup/memory%s/memory.stat", below);
        put(name, "cache 1\ninactive_file 77\ntotal_cache 4\ntotal_inactive_file 1000\n");
        snprintf(name, sizeof(name), "/sys/fs/cgroup/pids%s/pids.current", below);
        put(name, "3\n");
        snprintf(name, sizeof(name), "/sys/fs/cgroup/pids%s/pids.max", below);
        put(name, "64\n");
}

static void expect_v1(const struct usage *u) {
        assert_int_equal(u->cpu_us, 2500);
        assert_int_equal(u->memory_bytes, 4000);
        assert_int_equal(u->memory_max_bytes, 134217728);
        assert_int_equal(u->pids, 3);
        assert_int_equal(u->pids_max, 64);
}

static void v1(void **state) {
        struct usage u;

        (void)state;
        put("/proc/self/mountinfo", V1_MOUNTS);
        put("/proc/42/cgroup", "9:name=systemd:/docker/" ID "\n8:pids:/docker/" ID
                               "\n4:memory:/docker/" ID "\n2:cpu,cpuacct:/docker/" ID "\n");
        put_v1("/docker/" ID);
        u = look(ID);
        expect_v1(&u);
        put("/sys/fs/cgroup/memory/docker/" ID "/memory.limit_in_bytes", "9223372036854771712\n");
        put("/sys/fs/cgroup/pids/docker/" ID "/pids.max", "max\n");
        u = look(ID);
        assert_true(u.memory_max_bytes == USAGE_NO_LIMIT && u.pids_max == USAGE_NO_LIMIT);

        /* The pid is another process's now. */
        u = look("fedcba");
        expect_unknown(&u);
}

/* In a container with the engine in it: what is mounted is the outer container's part. */
static void v1_nested(void **state) {
        struct usage u;

        (void)state;
        put("/proc/self/mountinfo",
            "32 31 0:29 /docker/outer /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "34 31 0:31 /docker/outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "36 31 0:33 /docker/out /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
        put("/proc/42/cgroup", "8:pids:/docker/outer/docker/" ID "\n4:memory:/docker/outer/docker/" ID
                               "\n2:cpu,cpuacct:/docker/outer/docker/" ID "\n");
        put_v1("/docker/" ID);
        u = look(ID);
        assert_int_equal(u.cpu_us, 2500);
        assert_int_equal(u.memory_bytes, 4000);
        assert_true(u.pids == USAGE_UNKNOWN);
}

static void hybrid(void **state) {
        struct usage u;

        (void)state;
        put("/proc/self/mountinfo",
            V1_MOUNTS "38 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
        put("/proc/42/cgroup", "8:pids:/docker/" ID "\n4:memory:/docker/" ID
                               "\n2:cpuacct,cpu:/docker/" ID "\n0::/docker/" ID "\n");
        put_v1("/docker/" ID);
        u = look(ID);
        expect_v1(&u);
}

static void v2(void **state) {
        static const char group[] = "/sys/fs/cgroup/system.slice/docker-" ID ".scope";
        char name[256];
        struct usage u;

        (void)state;
        put("/proc/self/mountinfo",
            "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
        put("/proc/42/cgroup", "0::/system.slice/docker-" ID ".scope\n");
        snprintf(name, sizeof(name), "%s/cpu.stat", group);
        put(name, "usage_usec 777\nuser_usec 1\n");
        snprintf(name, sizeof(name), "%s/memory.current", group);
        put(name, "100\n");
        snprintf(name, sizeof(name), "%s/memory.stat", group);
        put(name, "anon 1\nfile 2\ninactive_file 200\n");
        snprintf(name, sizeof(name), "%s/memory.max", group);
        put(name, "max\n");
        snprintf(name, sizeof(name), "%s/pids.current", group);
        put(name, "1\n");
        snprintf(name, sizeof(name), "%s/pids.max", group);
        put(name, "nonsense\n");
        u = look(ID);
        assert_int_equal(u.cpu_us, 777);
        assert_int_equal(u.memory_bytes, 0);
        assert_true(u.memory_max_bytes == USAGE_NO_LIMIT);
        assert_int_equal(u.pids, 1);
        assert_true(u.pids_max == USAGE_UNKNOWN);
}

static void hidden(void **state) {
        static const char *const odd[] = { "",           "\n",   "no colon\n",
                                           "0:\n",       "::\n", "0::/../" ID "\n",
                                           "0::" ID "\n" };
        struct usage u = look(ID);

        (void)state;
        expect_unknown(&u);
        put("/proc/42/cgroup", "0::/docker/" ID "\n");
        u = look(ID);
        expect_unknown(&u);
        put("/proc/self/mountinfo",
            "\n- - -\n35 24 0:30 / /sys/fs/cgroup rw - cgroup2\n35 24 0:30 / /x rw x y z\n");
        u = look(ID);
        expect_unknown(&u);
        put("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
                put("/proc/42/cgroup", odd[i]);
                u = look(ID);
                expect_unknown(&u);
        }
}

static void sampled(void **state) {
        struct usage_sample s = { 0 };

        (void)state;
        assert_true(usage_cpu_per_mille(&s, 500, 10000000) == USAGE_UNKNOWN);
        assert_true(usage_cpu_per_mille(&s, 600, 10000000) == USAGE_UNKNOWN);
        assert_int_equal(usage_cpu_per_mille(&s, 250500, 10500000), 500);
        /* Young as it was, it was kept. */
        assert_int_equal(usage_cpu_per_mille(&s, 2000500, 11000000), 2000);
        assert_int_equal(usage_cpu_per_mille(&s, 2000500, 12000000), 0);
        assert_true(usage_cpu_per_mille(&s, USAGE_UNKNOWN, 13000000) == USAGE_UNKNOWN);
        assert_true(usage_cpu_per_mille(&s, 5, 13000000) == USAGE_UNKNOWN);
}

/* --- top.h --------------------------------------------------------------------------------------- */

static const char *text(uid_t uid, bool all) {
        size_t len = 0;
        char *s = top_text(&m, &(struct peer){ .uid = uid }, all, false, &len);

        return checked(s, len);
}

static const char *json(uid_t uid, bool all) {
        size_t len = 0;
        char *s = top_text(&m, &(struct peer){ .uid = uid }, all, true, &len);

        return checked(s, len);
}

static unsigned lines(const char *s) {
        unsigned n = 0;

        for (; *s; s++)
                n += *s == '\n';
        return n;
}

static void add(struct sandbox *sb, struct pool *p, enum sandbox_state state, uid_t owner,
                unsigned uses) {
        *sb = (struct sandbox){ .pool = p,
                                .state = state,
                                .owner = owner,
                                .uses = uses,
                                .id = ID,
                                .pid = getpid(),
                                .born_ms = now_ms() - 7200000 };
        TAILQ_INSERT_TAIL(&p->sandboxes, sb, link);
}

static void whose(void **state) {
        struct sandbox sb[5];
        struct session session = { .name = "work", .owner = { .uid = BOB } };
        struct exec x = { .state = EXEC_RUNNING };

        (void)state;
        assert_int_equal(lines(text(0, true)), 1);
        assert_string_equal(json(0, true), "[]\n");
        add(&sb[0], &dev, SANDBOX_BUSY, ALICE, 3);
        add(&sb[1], &dev, SANDBOX_WARM, ALICE, 2);
        add(&sb[2], &web, SANDBOX_SCRUBBING, BOB, 1);
        add(&sb[3], &web, SANDBOX_WARM, 0, 0);
        add(&sb[4], &web, SANDBOX_LEASED, BOB, 0);
        sb[4].session = &session;
        x.sandbox = &sb[0];
        LIST_INSERT_HEAD(&m.execs, &x, link);
        assert_int_equal(lines(text(ALICE, false)), 3);
        assert_int_equal(lines(text(BOB, false)), 3);
        assert_int_equal(lines(text(0, false)), 1);
        assert_int_equal(lines(text(0, true)), 6);
        assert_true(widest(text(0, true)) < 80);
        has(text(ALICE, false),
            "\ndev      busy      -          4000000001   1    ?       ?     ?/?        ?   2h\n");
        has(text(0, true), "\nweb-1.x  warm      -          -            0    ?");
        has(json(BOB, false),
            "[{\"profile\":\"web-1.x\",\"state\":\"scrubbing\",\"session\":null,\"uid\":4000000002,"
            "\"container\":\"" ID "\",\"commands\":0,\"uses\":1,\"cpu_per_mille\":null,"
            "\"cpu_us\":null,\"memory_bytes\":null,\"memory_max_bytes\":null,\"pids\":null,"
            "\"pids_max\":null,\"age_seconds\":7200},");
        has(json(ALICE, false), "\"commands\":1,");
        has(json(0, true), "\"uid\":null,");
        has(text(BOB, false), "\nweb-1.x  leased    work       4000000002   0 ");
        has(json(BOB, false), "\"state\":\"leased\",\"session\":\"work\",\"uid\":4000000002,");
        LIST_REMOVE(&x, link);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(v1, make_root, drop_root),
                cmocka_unit_test_setup_teardown(v1_nested, make_root, drop_root),
                cmocka_unit_test_setup_teardown(hybrid, make_root, drop_root),
                cmocka_unit_test_setup_teardown(v2, make_root, drop_root),
                cmocka_unit_test_setup_teardown(hidden, make_root, drop_root),
                cmocka_unit_test(sampled),
                cmocka_unit_test_setup_teardown(whose, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
