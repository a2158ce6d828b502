/* The counters of both cgroup versions, from files of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"

static char root[64];

static void put(const char *name, const char *text) {
        char path[128];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", root, name);
        f = fopen(path, "we");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static int begin(void **state) {
        char path[128];

        (void)state;
        strcpy(root, "/tmp/test-cgroup.XXXXXX");
        if (!mkdtemp(root))
                return -1;
        snprintf(path, sizeof(path), "%s/memory", root);
        mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/pids", root);
        return mkdir(path, 0700);
}

static int end(void **state) {
        static const char *const names[] = { "memory/memory.oom_control",
                                             "memory/memory.max_usage_in_bytes",
                                             "pids/pids.events",
                                             "memory.events",
                                             "pids.events",
                                             "memory.peak",
                                             "memory",
                                             "pids",
                                             "" };
        char path[128];

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                snprintf(path, sizeof(path), "%s/%s", root, names[i]);
                remove(path);
        }
        return 0;
}

static void done(struct cgroup *cg) {
        close(cg->oom_fd);
        close(cg->pids_fd);
        close(cg->peak_fd);
}

static void version_1(void **state) {
        struct cgroup cg;

        (void)state;
        put("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        put("memory/memory.max_usage_in_bytes", "4294967296\n");
        put("pids/pids.events", "max 17\n");
        cgroup_init(&cg, root);
        assert_int_equal(cg.version, 1);
        assert_int_equal(cgroup_oom_kills(&cg), 3);
        assert_int_equal(cgroup_pids_refused(&cg), 17);
        assert_true(cgroup_peak(&cg) == UINT64_C(4294967296));
        put("pids/pids.events", "max 18\n");
        assert_int_equal(cgroup_pids_refused(&cg), 18); /* read anew */
        done(&cg);
}

static void version_2(void **state) {
        struct cgroup cg;

        (void)state;
        put("memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n");
        put("pids.events", "max 4\n");
        cgroup_init(&cg, root);
        assert_int_equal(cg.version, 2);
        assert_int_equal(cgroup_oom_kills(&cg), 1);
        assert_int_equal(cgroup_pids_refused(&cg), 4);
        assert_int_equal(cg.peak_fd, -1); /* kernels before 5.19 have no memory.peak */
        assert_int_equal(cgroup_peak(&cg), 0);
        done(&cg);
}

static void none(void **state) {
        struct cgroup cg;

        (void)state;
        cgroup_init(&cg, root);
        assert_int_equal(cg.version, 0);
        assert_int_equal(cgroup_oom_kills(&cg), 0);
        assert_int_equal(cgroup_pids_refused(&cg), 0);
        assert_int_equal(cgroup_peak(&cg), 0);
        put("pids/pids.events", "");
        cgroup_init(&cg, root);
        assert_int_equal(cg.version, 1);
        assert_int_equal(cgroup_pids_refused(&cg), 0);
        done(&cg);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(version_1, begin, end),
                cmocka_unit_test_setup_teardown(version_2, begin, end),
                cmocka_unit_test_setup_teardown(none, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
