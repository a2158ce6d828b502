/* A machine for the doctor's checks: a tree of files in a temporary folder, and probes that answer what a test has
 * put into them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define PASSWD                                      \
        "root:x:0:0::/root:/bin/sh\n"               \
        "_hermes-engine:x:990:990::/:/bin/false\n"  \
        "_hermes-sandbox:x:991:991::/:/bin/false\n" \
        "alice:x:1000:1000::/home/alice:/bin/sh\n"  \
        "bob:x:1001:1001::/home/bob:/bin/sh\n"
#define GROUP                                                                                    \
        "root:x:0:\n_hermes-engine:x:990:\n_hermes-sandbox:x:991:\nalice:x:1000:\nbob:x:1001:\n" \
        "hermes-sandbox:x:992:alice\n"
#define DOCKER_GROUP "docker:x:993:_hermes-engine"

static struct rig {
        char root[64];
        struct doctor d;

        struct {
                const char *path, *body;
                long http;
        } replies[8];       /* of the engine; none: it does not answer */
        const char *status; /* of the manager, NULL: */
        int status_r;       /* what asking it gives */
        struct {
                const char *path;
                mode_t mode;
                uid_t uid;
                gid_t gid;
        } files[8]; /* what stat finds, none of it needs to be there */
        int stat_r;
        struct statvfs disk;
        int disk_r;
        struct doctor_audit audit;
        int audit_r, write_r;
        const char
                *write_to; /* the log into which the kernel's record goes, below root; NULL: nowhere */
        bool synchronized;
        time_t now;
        int clock_r;
        gid_t groups[4];
        int n_groups;
} rig;

static int rig_engine(const char *socket, const char *path, int64_t end_ms, long *ret_http, json_t **ret,
                      struct errmsg *e) {
        (void)end_ms;
        for (size_t i = 0; i < 8 && rig.replies[i].path; i++) {
                if (strcmp(rig.replies[i].path, path) != 0)
                        continue;
                *ret_http = rig.replies[i].http;
                *ret = json_loads(rig.replies[i].body, 0, NULL);
                return 0;
        }
        return errmsg_set(e, -ECONNREFUSED, "the engine does not answer at %s", socket);
}

static int rig_manager(const char *socket, int64_t end_ms, json_t **ret, struct errmsg *e) {
        (void)end_ms;
        if (!rig.status)
                return errmsg_set(e, rig.status_r ? rig.status_r : -ENOENT, "no manager at %s", socket);
        *ret = json_loads(rig.status, 0, NULL);
        assert_non_null(*ret);
        return 0;
}

static int rig_audit_state(int64_t end_ms, struct doctor_audit *ret, struct errmsg *e) {
        (void)end_ms;
        *ret = rig.audit;
        return rig.audit_r < 0 ? errmsg_set(e, rig.audit_r, "no audit socket") : 0;
}

static int rig_audit_write(const char *fields, struct errmsg *e) {
        char path[PATH_MAX];
        FILE *f;

        if (rig.write_r < 0)
                return errmsg_set(e, rig.write_r, "the kernel takes no record");
        if (!rig.write_to)
                return 0;
        f = fopen(doctor_path(&rig.d, rig.write_to, path), "a");
        assert_non_null(f);
        fprintf(f,
                "type=TRUSTED_APP msg=audit(1795997800.250:77): pid=1 uid=0 auid=0 ses=1 msg='%s "
                "exe=\"/d\" hostname=? addr=? terminal=? res=success'\n",
                fields);
        fclose(f);
        return 0;
}

static int rig_stat(const char *path, struct stat *ret) {
        if (rig.stat_r < 0)
                return rig.stat_r;
        path += strlen(rig.root);
        for (size_t i = 0; i < 8 && rig.files[i].path; i++)
                if (strcmp(rig.files[i].path, path) == 0) {
                        *ret = (struct stat){ .st_mode = rig.files[i].mode,
                                              .st_uid = rig.files[i].uid,
                                              .st_gid = rig.files[i].gid };
                        return 0;
                }
        return -ENOENT;
}

static int rig_disk(const char *path, struct statvfs *ret) {
        (void)path;
        *ret = rig.disk;
        return rig.disk_r;
}

static int rig_clock(bool *ret_synchronized, time_t *ret_now) {
        *ret_synchronized = rig.synchronized;
        *ret_now = rig.now;
        return rig.clock_r;
}

static int rig_groups(int n, gid_t *ret) {
        if (n > 0)
                memcpy(ret, rig.groups, sizeof(gid_t) * (size_t)rig.n_groups);
        return rig.n_groups;
}

static const struct doctor_probes rig_probes = {
        .engine = rig_engine,
        .manager = rig_manager,
        .audit_state = rig_audit_state,
        .audit_write = rig_audit_write,
        .stat = rig_stat,
        .disk = rig_disk,
        .clock = rig_clock,
        .groups = rig_groups,
};

/* Writes a file of the tree, with the folders above it. */
static inline void rig_put(const char *path, const char *content) {
        char full[PATH_MAX];
        FILE *f;

        doctor_path(&rig.d, path, full);
        for (char *p = full + strlen(rig.root) + 1; (p = strchr(p, '/')); p++) {
                *p = '\0';
                mkdir(full, 0755);
                *p = '/';
        }
        f = fopen(full, "w");
        assert_non_null(f);
        fputs(content, f);
        fclose(f);
        assert_int_equal(0, chmod(full, 0644));
}

static int rig_setup(void **state) {
        (void)state;
        unsetenv("HERMES_SANDBOX_SOCKET");
        memset(&rig, 0, sizeof(rig));
        strcpy(rig.root, "/tmp/test-doctor-XXXXXX");
        if (!mkdtemp(rig.root))
                return -1;
        rig.d = (struct doctor){ .root = rig.root, .build_year = 2026, .probes = &rig_probes };
        rig_put("/etc/passwd", PASSWD);
        rig_put("/etc/group", GROUP DOCKER_GROUP "\n");
        rig_put("/etc/hermes-sandbox/sandbox.yaml", "pool:\n  image: \"one:1\"\n");
        return 0;
}

static int rig_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static int rig_teardown(void **state) {
        (void)state;
        doctor_done(&rig.d);
        return nftw(rig.root, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Looks anew at what the test has set up, and runs one check. */
static inline void rig_run(const char *name, void (*check)(struct doctor *d)) {
        doctor_done(&rig.d);
        rig.d.end_ms = doctor_now_ms() + 100;
        doctor_look(&rig.d);
        rig.d.check = name;
        check(&rig.d);
}

/* The only line with @word in it has that result; a word of its command is @mend, NULL: it has none. */
static inline void rig_says(enum doctor_result result, const char *word, const char *mend) {
        size_t n = 0;

        for (size_t i = 0; i < rig.d.n_lines; i++) {
                const struct doctor_line *l = &rig.d.lines[i];

                if (!strstr(l->text, word))
                        continue;
                n++;
                if (l->result != result)
                        fail_msg("result %d: %s", l->result, l->text);
                if (!mend != !l->mend || (mend && !strstr(l->mend, mend)))
                        fail_msg("%s is mended by %s", l->text, l->mend ? l->mend : "nothing");
        }
        if (n == 1)
                return;
        for (size_t i = 0; i < rig.d.n_lines; i++)
                print_error("line %zu: %s\n", i, rig.d.lines[i].text);
        fail_msg("%zu lines say '%s'", n, word);
}

static inline void rig_n(size_t n) {
        if (rig.d.n_lines == n)
                return;
        for (size_t i = 0; i < rig.d.n_lines; i++)
                print_error("line %zu: %s\n", i, rig.d.lines[i].text);
        fail_msg("%zu lines, expected %zu", rig.d.n_lines, n);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
