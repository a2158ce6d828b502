/* Records and socket folders on a real file system: what outlives a crash, and what is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/records.h"
#include "engine/sockdir.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[300];

static int wipe(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

static int setup(void **state) {
        (void)state;
        /* Longer than sun_path. */
        snprintf(dir, sizeof(dir), "/tmp/hst-records-%0150d-XXXXXX", 0);
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
        (void)state;
        return nftw(dir, wipe, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_file(const char *name, const char *text) {
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        f = fopen(path, "we");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void survive(void **state) {
        struct errmsg e = { "" };
        struct records r;
        struct record *rec;
        char installation[64], name[64];
        struct stat st;
        char path[512];

        (void)state;
        assert_int_equal(records_init(&r, dir, &e), 0);
        strcpy(installation, r.installation);
        assert_true(engine_is_hex(installation, ENGINE_INSTALLATION_LEN));
        snprintf(path, sizeof(path), "%s/installation-id", dir);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(records_add(&r, &rec), 0);
        assert_false(rec->unsure);
        assert_int_equal(records_add(&r, &rec), 0);
        strcpy(name, rec->name);
        assert_int_equal(records_set_id(&r, rec, ID), 0);
        records_done(&r);

        /* As the next start finds it, with others' files in the folder and one torn record. */
        put_file("containers/README", "not ours");
        put_file("containers/hermes-sandbox-00", "");
        put_file("containers/hermes-sandbox-0123456789abcdef0123456789abcdef", "0123");
        assert_int_equal(records_init(&r, dir, &e), 0);
        assert_string_equal(r.installation, installation);
        assert_string_equal(records_by_id(&r, ID)->name, name);
        assert_false(records_by_name(&r, name)->unsure);
        rec = records_by_name(&r, "hermes-sandbox-0123456789abcdef0123456789abcdef");
        assert_string_equal(rec->id, "");
        assert_true(rec->unsure);
        assert_null(records_by_name(&r, "hermes-sandbox-00"));
        assert_null(records_by_id(&r, ""));
        records_drop(&r, records_by_id(&r, ID));
        records_done(&r);
        assert_int_equal(records_init(&r, dir, &e), 0);
        assert_null(records_by_name(&r, name));
        records_done(&r);
}

static void bad_installation(void **state) {
        struct errmsg e = { "" };
        struct records r;

        (void)state;
        put_file("installation-id", "nonsense\n");
        assert_int_equal(records_init(&r, dir, &e), -EINVAL);
        assert_non_null(strstr(e.text, "expected 32 hex digits"));
        records_done(&r);
        assert_int_equal(records_init(&r, "/nonexistent", &e), -ENOENT);
        records_done(&r);
}

static bool want_none(void *userdata, const char *tag) {
        (void)tag;
        ++*(int *)userdata;
        return false;
}

static void folders(void **state) {
        char tag[RECORD_TAG_LEN + 1], path[600];
        struct sockdir d;
        struct stat st;
        int fd = -1, again = -1, seen = 0, on = 0;
        socklen_t len = sizeof(on);
        char *folder;

        (void)state;
        assert_int_equal(chmod(dir, 02750), 0);
        assert_int_equal(sockdir_init(&d, dir), 0);
        records_random_hex(tag);
        assert_int_equal(sockdir_make(&d, tag, SOCKDIR_GROUP, &fd), 0);
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len), 0);
        assert_int_equal(on, 1);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        folder = sockdir_path(&d, tag);
        assert_int_equal(stat(folder, &st), 0);
        assert_int_equal(st.st_mode & 07777, 02750);
        snprintf(path, sizeof(path), "%s/agent.sock", folder);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0660);
        /* A name is never used twice. */
        assert_int_equal(sockdir_make(&d, tag, SOCKDIR_GROUP, &fd), -EEXIST);
        assert_int_equal(stat(path, &st), 0);
        /* A second socket in the place of the first, as open as that one. */
        assert_int_equal(sockdir_listen_again(&d, tag, &again), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0660);
        assert_int_equal(getsockopt(again, SOL_SOCKET, SO_ACCEPTCONN, &on, &len), 0);
        assert_int_equal(on, 1);
        close(again);
        assert_int_equal(sockdir_listen_again(&d, "../x", &again), -EINVAL);
        assert_int_equal(sockdir_listen_again(&d, "0123456789abcdef0123456789abcdef", &again), -ENOENT);
        /* Only folders named like ours are looked at, and a path is no tag. */
        put_file("other", "x");
        sockdir_remove(&d, "../x");
        sockdir_sweep(&d, want_none, &seen);
        assert_int_equal(seen, 1);
        assert_int_equal(stat(folder, &st), -1);
        snprintf(path, sizeof(path), "%s/other", dir);
        assert_int_equal(stat(path, &st), 0);
        free(folder);
        close(fd);
        sockdir_done(&d);
}

/* For a process of any uid, in the one container that has the folder; nobody on the host comes through to it. */
static void folders_for_callers(void **state) {
        char tag[RECORD_TAG_LEN + 1], path[600];
        struct sockdir d;
        struct stat st;
        int fd = -1, again = -1;

        (void)state;
        assert_int_equal(chmod(dir, 02750), 0);
        assert_int_equal(sockdir_init(&d, dir), 0);
        records_random_hex(tag);
        assert_int_equal(sockdir_make(&d, tag, SOCKDIR_CALLER, &fd), 0);
        snprintf(path, sizeof(path), "%s/%s", dir, tag);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 02711);
        snprintf(path, sizeof(path), "%s/%s/agent.sock", dir, tag);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0666);
        assert_int_equal(sockdir_listen_again(&d, tag, &again), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0666);
        close(fd);
        close(again);
        sockdir_remove(&d, tag);
        /* A runtime folder that others pass is none for that. */
        assert_int_equal(chmod(dir, 02751), 0);
        assert_int_equal(sockdir_make(&d, tag, SOCKDIR_CALLER, &fd), -EPERM);
        assert_int_equal(stat(path, &st), -1);
        sockdir_done(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(survive, setup, teardown),
                cmocka_unit_test_setup_teardown(bad_installation, setup, teardown),
                cmocka_unit_test_setup_teardown(folders, setup, teardown),
                cmocka_unit_test_setup_teardown(folders_for_callers, setup, teardown),
        };

        return cmocka_run_group_tests_name("engine_records", tests, NULL, NULL);
}
