/* From what an agent says of its confinement to what status says, layer by layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manager/manager.h"

#define GOOD_V1                                                                                         \
        "no_new_privs=1\nseccomp=2\nseccomp_filters=2\ncap_bounding=00000000000000e0\n"                 \
        "apparmor=docker-default (enforce)\nrootfs=read-only\nnetwork=none\nuserns=private\ncgroup=1\n" \
        "memory_max=134217728\nmemory_reserve=16777216\nswap_max=134217728\npids_max=64\ncpu_max=100000\n"

static struct config_profile profile = { .memory_bytes = 128 << 20,
                                         .memory_reserve_bytes = 16 << 20,
                                         .pids_limit = 64,
                                         .cpu_nano = 1000000000,
                                         .read_only = true,
                                         .network = (char *)"none",
                                         .n_tmpfs = 2,
                                         .uid = 10000 };
static struct manager manager;
static struct pool pool;
static char dir[] = "/tmp/test-layers.XXXXXX", trail[64], state_file[64];

static int begin(void **state) {
        struct config c = { .log_backup_count = 1,
                            .log_max_bytes = 1 << 20,
                            .audit_required = TRI_FALSE };
        struct errmsg e;

        (void)state;
        if (!mkdtemp(dir))
                return -1;
        snprintf(trail, sizeof(trail), "%s/trail", dir);
        snprintf(state_file, sizeof(state_file), "%s/state", dir);
        c.audit_file = trail;
        pool.m = &manager;
        pool.profile = &profile;
        return audit_new(&c, false, state_file, &manager.audit, &e);
}

static int end(void **state) {
        (void)state;
        audit_free(manager.audit);
        unlink(trail);
        unlink(state_file);
        return rmdir(dir);
}

static struct layer layer(const char *name) {
        struct layer l[LAYERS_MAX];
        size_t n = layers_of(&pool, l);

        for (size_t i = 0; i < n; i++)
                if (strcmp(l[i].name, name) == 0)
                        return l[i];
        return (struct layer){ .state = LAYER_DISABLED, .why = "no such layer" };
}

/* GOOD_V1 with @from replaced by @to. */
static void says(const char *from, const char *to) {
        static const char good[] = GOOD_V1;
        const char *p = strstr(good, from);

        assert_non_null(p);
        snprintf(pool.probe, sizeof(pool.probe), "%.*s%s%s", (int)(p - good), good, to,
                 p + strlen(from));
}

static void expect(const char *name, enum layer_state state, const char *why) {
        struct layer l = layer(name);

        assert_string_equal(layer_state_name(l.state), layer_state_name(state));
        assert_non_null(strstr(l.why, why));
}

static void all_good(void **state) {
        static const char *const names[] = { "namespaces", "seccomp", "apparmor", "capabilities",
                                             "rootfs",     "network", "limits" };

        (void)state;
        says("", "");
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                expect(names[i], LAYER_ACTIVE, "");
        expect("limits", LAYER_ACTIVE, "cgroup v1: memory 128 MiB, 64 processes, 1.00 CPUs");
        expect("audit",
               strcmp(audit_kernel_state(manager.audit, NULL), "acknowledged") == 0
                       ? LAYER_ACTIVE
                       : layer("audit").state,
               audit_kernel_state(manager.audit, NULL));
}

static void nothing_known(void **state) {
        struct layer l[LAYERS_MAX];

        (void)state;
        pool.probe[0] = '\0';
        assert_int_equal(layers_of(&pool, l), 0);
        says("", "");
        pool.profile = NULL;
        assert_int_equal(layers_of(&pool, l), 0);
        pool.profile = &profile;
        /* An agent that says nothing of a layer does not make it active. */
        strcpy(pool.probe, "seccomp=2\nno_new_privs=1\n");
        for (size_t i = 0, n = layers_of(&pool, l); i < n; i++)
                if (strcmp(l[i].name, "audit") != 0)
                        assert_int_not_equal(l[i].state, LAYER_ACTIVE);
}

/* What root inside is given is known, and more than that is not. */
static void root_inside(void **state) {
        const struct config_profile before = profile;

        (void)state;
        profile.capabilities = CONFIG_CAPABILITIES;
        says("00000000000000e0", "00000000000004fb");
        expect("capabilities", LAYER_DEGRADED, "00000000000004fb, more than the agent needs");
        profile.uid = 0;
        expect("capabilities", LAYER_ACTIVE,
               "commands as root: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, NET_BIND_SERVICE; others: none; "
               "no-new-privileges; agent: SETUID, SETGID, KILL, too");
        says("00000000000000e0", "00000000002004fb");
        expect("capabilities", LAYER_DEGRADED, "more than the agent needs");
        profile = before;
}

static void seccomp(void **state) {
        (void)state;
        says("seccomp_filters=2", "seccomp_filters=1");
        expect("seccomp", LAYER_DEGRADED, "the engine's profile is off");
        says("seccomp=2", "seccomp=0");
        expect("seccomp", LAYER_DISABLED, "");
        says("seccomp_filters=2", "seccomp_filters=11");
        expect("seccomp", LAYER_ACTIVE, "");
}

static void apparmor(void **state) {
        (void)state;
        says("docker-default (enforce)", "absent");
        expect("apparmor", LAYER_UNSUPPORTED, "without AppArmor");
        says("apparmor=docker-default (enforce)\n", "");
        expect("apparmor", LAYER_UNSUPPORTED, "");
        says("docker-default (enforce)", "unconfined");
        expect("apparmor", LAYER_DISABLED, "no profile");
        says("(enforce)", "(complain)");
        expect("apparmor", LAYER_DEGRADED, "docker-default (complain)");
        says("docker-default", "\x1b[2Jx"); /* its words are not trusted */
        expect("apparmor", LAYER_ACTIVE, "?[2Jx (enforce)");
}

static void capabilities(void **state) {
        (void)state;
        says("00000000000000e0", "000001ffffffffff");
        expect("capabilities", LAYER_DEGRADED, "000001ffffffffff");
        says("00000000000000e0", "0000000000000000");
        expect("capabilities", LAYER_ACTIVE, "");
        says("no_new_privs=1", "no_new_privs=0");
        expect("capabilities", LAYER_DEGRADED, "no-new-privileges");
}

static void root_and_network(void **state) {
        (void)state;
        says("rootfs=read-only", "rootfs=writable");
        expect("rootfs", LAYER_DISABLED, "although read_only is true; unenforced");
        says("network=none", "network=eth0,eth1");
        expect("network", LAYER_DISABLED, "eth0,eth1");
        says("userns=private", "userns=host");
        expect("namespaces", LAYER_DEGRADED, "uid 10000");
}

static void limits(void **state) {
        (void)state;
        says("memory_max=134217728", "memory_max=9223372036854771712");
        expect("limits", LAYER_DEGRADED, "cgroup v1; unenforced on this machine: memory_limit");
        says("memory_reserve=16777216", "memory_reserve=9223372036854771712");
        expect("limits", LAYER_DEGRADED, ": memory_reserve");
        says("swap_max=134217728\n", ""); /* no swap accounting */
        expect("limits", LAYER_DEGRADED, ": swap");
        says("pids_max=64", "pids_max=max");
        expect("limits", LAYER_DEGRADED, ": pids_limit");
        says("cpu_max=100000", "cpu_max=-1");
        expect("limits", LAYER_DEGRADED, ": cpus");
        says("cgroup=1", "cgroup=0");
        expect("limits", LAYER_UNSUPPORTED, "sees no cgroup");
        says("cgroup=1\nmemory_max=134217728\nmemory_reserve=16777216\nswap_max=134217728\npids_max=64\ncpu_max=100000",
             "cgroup=2\nmemory_max=134217728\nmemory_reserve=16777216\nswap_max=0\npids_max=64\ncpu_max=100000 100000");
        expect("limits", LAYER_ACTIVE, "cgroup v2");
        says("cgroup=1\nmemory_max=134217728\nmemory_reserve=16777216\nswap_max=134217728\npids_max=64\ncpu_max=100000",
             "cgroup=2\nmemory_max=max\nmemory_reserve=0\nswap_max=max\npids_max=max\ncpu_max=max 100000");
        expect("limits", LAYER_DEGRADED, ": memory_limit memory_reserve swap pids_limit cpus");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_good),     cmocka_unit_test(nothing_known),
                cmocka_unit_test(seccomp),      cmocka_unit_test(apparmor),
                cmocka_unit_test(capabilities), cmocka_unit_test(root_and_network),
                cmocka_unit_test(limits),       cmocka_unit_test(root_inside),
        };

        return cmocka_run_group_tests(tests, begin, end);
}
