/* The file of a session: what is written is read again, and what is damaged, or was never ours, is removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wire.h"
#include "manager/manager.h"
#include "manager/session.h"

#define FP "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+/123"

static struct manager m;
static char dir[64], path[128];
static uint8_t good[4096], first[4096]; /* and as the first version wrote it */
static size_t good_len, first_len;

static char *const labels[] = { (char *)"k=v", (char *)"line\n=\x1b", NULL };

static const uint8_t env[] = { 4, 0, 0, 0, 'A', '=', 'b', 0 };

/* The fields of the first version, as it put them. */
static size_t write_first(const struct session *s) {
        struct wire_out out;

        wire_out_init(&out, first, sizeof(first));
        wire_put_u16(&out, 1);
        wire_put_str(&out, s->name);
        wire_put_u32(&out, s->owner.uid);
        wire_put_u32(&out, s->owner.loginuid);
        wire_put_u32(&out, (uint32_t)s->owner.pid);
        wire_put_u32(&out, s->gid);
        wire_put_str(&out, s->pool->name);
        wire_put_str(&out, s->container);
        wire_put_u64(&out, s->ttl_ms);
        wire_put_u64(&out, s->opened);
        wire_put_u8(&out, s->mounts);
        wire_put_u32(&out, s->n_labels);
        for (uint32_t i = 0; i < s->n_labels; i++)
                wire_put_str(&out, s->labels[i]);
        assert_false(out.bad);
        return out.len;
}

static int begin(void **state) {
        struct pool *p;
        struct session *s;
        _cleanup_fd_ int fd = -1;

        (void)state;
        log_set_level((enum log_priority)0);
        memset(&m, 0, sizeof(m));
        TAILQ_INIT(&m.sessions);
        snprintf(dir, sizeof(dir), "/tmp/test-session-XXXXXX");
        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof(path), "%s/sessions/work", dir);
        m.options.state_dir = dir;
        p = pool_of(&m, "dev");
        s = session_known(&m, "work", "dev");
        assert_ptr_equal(s->pool, p);
        s->gid = 100;
        memset(s->container, 'c', sizeof(s->container) - 1);
        s->ttl_ms = 5000;
        s->opened = 1796010000;
        s->mounts = true;
        s->owner = (struct audit_caller){ .uid = 1000, .pid = 77, .loginuid = UINT32_MAX, .fp = FP };
        s->started = 1796010001;
        s->finished = 1796010002;
        s->stopped = true;
        s->workdir = strdup("/data");
        s->env = malloc(sizeof(env));
        memcpy(s->env, env, sizeof(env));
        s->env_len = sizeof(env);
        s->n_env = 1;
        narrow_copy(&(struct narrow){ .pids_limit = 20, .n_tmpfs = 1, .tmpfs = { { "/tmp", 4096 } } },
                    &s->narrow, s->narrow_paths);
        s->shape = (struct session_shape){ .image = "debian:12",
                                           .network = "none",
                                           .pids_limit = 20,
                                           .n_users = 2,
                                           .users = { { 7, 8 }, { 0, 0 } } };
        s->labels = calloc(3, sizeof(*s->labels));
        for (; s->n_labels < 2; s->n_labels++)
                s->labels[s->n_labels] = strdup(labels[s->n_labels]);
        assert_int_equal(session_state_write(s), 0);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        good_len = (size_t)read(fd, good, sizeof(good));
        first_len = write_first(s);
        session_unknow(s);
        return 0;
}

static int end(void **state) {
        char sessions[128];

        (void)state;
        sessions_free(&m);
        pools_free(&m);
        unlink(path);
        snprintf(sessions, sizeof(sessions), "%s/sessions", dir);
        return rmdir(sessions) < 0 || rmdir(dir) < 0 ? -1 : 0;
}

static void put(const void *p, size_t len) {
        _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_int_equal(write(fd, p, len), len);
}

/* It is not taken, and it is gone. */
static void load_nothing(void) {
        struct stat st;

        assert_int_equal(session_state_load(&m), 0);
        assert_true(TAILQ_EMPTY(&m.sessions));
        assert_int_equal(m.n_adopting, 0);
        assert_int_equal(lstat(path, &st), -1);
}

static void read_again(void **state) {
        struct session *s;
        struct stat st;

        (void)state;
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(session_state_load(&m), 0);
        s = session_find(&m, "work");
        assert_non_null(s);
        assert_int_equal(s->state, SESSION_ADOPTING);
        assert_int_equal(m.n_adopting, 1);
        assert_int_equal(s->owner.uid, 1000);
        assert_int_equal(s->owner.pid, 77);
        assert_int_equal(s->owner.loginuid, UINT32_MAX);
        assert_int_equal(s->gid, 100);
        assert_string_equal(s->pool->name, "dev");
        assert_int_equal(strspn(s->container, "c"), ENGINE_ID_LEN);
        assert_int_equal(s->ttl_ms, 5000);
        assert_int_equal(s->opened, 1796010000);
        assert_true(s->mounts);
        assert_int_equal(s->n_labels, 2);
        assert_string_equal(s->labels[1], labels[1]);
        assert_string_equal(s->owner.fp, FP);
        assert_true(s->started == 1796010001 && s->finished == 1796010002);
        assert_true(s->stopped && !s->recorded);
        assert_string_equal(s->workdir, "/data");
        assert_int_equal(s->n_env, 1);
        assert_int_equal(s->env_len, sizeof(env));
        assert_memory_equal(s->env, env, sizeof(env));
        assert_int_equal(s->narrow.pids_limit, 20);
        assert_string_equal(s->narrow.tmpfs[0].path, "/tmp");
        assert_string_equal(s->shape.image, "debian:12");
        assert_true(s->shape.n_users == 2 && s->shape.users[0].gid == 8 && s->shape.users[1].uid == 0);
        session_state_remove(s);
        assert_int_equal(lstat(path, &st), -1);
}

static void first_version(void **state) {
        struct session *s;

        (void)state;
        put(first, first_len);
        assert_int_equal(session_state_load(&m), 0);
        s = session_find(&m, "work");
        assert_non_null(s);
        assert_int_equal(s->n_labels, 2);
        assert_true(s->mounts && !s->stopped && s->started == s->opened);
        assert_true(s->owner.fp[0] == '\0' && s->shape.n_users == 0 && narrow_is_empty(&s->narrow));
        session_unknow(s);
        for (size_t n = 0; n < first_len; n++) {
                put(first, n);
                load_nothing();
        }
        first[0] = 3; /* one that is not known yet */
        put(first, first_len);
        load_nothing();
}

static void cut_anywhere(void **state) {
        (void)state;
        for (size_t n = 0; n < good_len; n++) {
                put(good, n);
                load_nothing();
        }
}

static void more_than_there_is(void **state) {
        uint8_t buf[4097];

        (void)state;
        memcpy(buf, good, good_len);
        buf[good_len] = 0;
        put(buf, good_len + 1);
        load_nothing();
}

static void other_contents(void **state) {
        uint8_t buf[65536] = { 0 };

        (void)state;
        put(buf, sizeof(buf));
        load_nothing();
        memset(buf, 0xff, sizeof(buf));
        put(buf, sizeof(buf));
        load_nothing();
        memcpy(buf, good, good_len);
        buf[0]++; /* the version */
        put(buf, good_len);
        load_nothing();
        memcpy(buf, good, good_len);
        buf[6]++; /* the name: "xork" */
        put(buf, good_len);
        load_nothing();
        memcpy(buf, good, good_len);
        *(uint8_t *)memchr(buf, 'c', good_len) = 'g'; /* no hex digit in the container's id */
        put(buf, good_len);
        load_nothing();
}

static void other_files(void **state) {
        char elsewhere[80], finished[128];
        struct stat st;

        (void)state;
        snprintf(elsewhere, sizeof(elsewhere), "%s/file", dir);
        assert_int_equal(rename(path, elsewhere), 0);
        assert_int_equal(symlink("../file", path), 0);
        load_nothing();
        assert_int_equal(unlink(elsewhere), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        load_nothing();
        /* What was being written when the last life ended, and a name that no session has. */
        snprintf(finished, sizeof(finished), "%s/sessions/.new", dir);
        assert_int_equal(rename(path, finished), -1);
        put(good, good_len);
        assert_int_equal(rename(path, finished), 0);
        load_nothing();
        assert_int_equal(lstat(finished, &st), -1);
}

static void no_folder(void **state) {
        struct session *s;

        (void)state;
        m.options.state_dir = "/dev/null";
        assert_int_equal(session_state_load(&m), -ENOTDIR);
        s = session_known(&m, "work", "dev");
        assert_int_equal(session_state_write(s), -ENOTDIR);
        session_state_remove(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(read_again),     TEST(first_version), TEST(cut_anywhere), TEST(more_than_there_is),
                TEST(other_contents), TEST(other_files),   TEST(no_folder),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
