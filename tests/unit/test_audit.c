/* audit.h without a kernel trail that can be relied on: lines, state file, recovery, failures, commands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wire.h"
#include "manager/audit.h"
#include "manager/audit_command.h"
#include "manager/audit_kernel.h"
#include "manager/audit_line.h"

static char dir[64], file[128], state_file[128];
static uint8_t wire[70000];

static int setup(void **state) {
        (void)state;
        snprintf(dir, sizeof(dir), "/tmp/test-audit-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(file, sizeof(file), "%s/log", dir);
        snprintf(state_file, sizeof(state_file), "%s/open", dir);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        unlink(file);
        unlink(state_file);
        return rmdir(dir);
}

static struct audit *opened(void) {
        struct config c = { .log_backup_count = 3,
                            .log_max_bytes = 1 << 20,
                            .audit_required = TRI_FALSE };
        struct errmsg e = { "" };
        struct audit *a = NULL;

        c.audit_file = file;
        if (audit_new(&c, false, state_file, &a, &e) < 0)
                fail_msg("%s", e.text);
        return a;
}

static size_t put_args(uint32_t n, const char *const *args) {
        struct wire_out out;

        wire_out_init(&out, wire, sizeof(wire));
        for (uint32_t i = 0; i < n; i++)
                wire_put_str(&out, args[i]);
        assert_false(out.bad);
        return out.len;
}

static struct audit_exec exec_of(const char *id, const char *cmd) {
        return (struct audit_exec){
                .exec_id = id,
                .container_id = "89a93f85b752aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                .profile = "default",
                .caller = { .uid = 1000, .pid = 42, .loginuid = UINT32_MAX },
                .args_wire = wire,
                .args_len = put_args(1, &cmd),
                .n_args = 1,
                .shell = true,
                .pool_hit = true,
        };
}

/* Line @n (from 0) of the trail, without its newline; "" where it ends before. */
static const char *line(int n) {
        static char buf[TRAIL_LINE_MAX];
        FILE *f = fopen(file, "re");

        assert_non_null(f);
        buf[0] = 0;
        for (int i = 0; i <= n; i++)
                if (!fgets(buf, sizeof(buf), f))
                        buf[0] = 0;
        fclose(f);
        buf[strcspn(buf, "\n")] = 0;
        return buf;
}

static void assert_line(int n, const char *want) {
        const char *s = line(n);

        if (strlen(s) < 21 || strncmp(s + 21, want, strlen(want)) != 0)
                fail_msg("line %d: %s\nwanted: %s", n, s, want);
}

static void test_lines(void **state) {
        const struct audit_end ok = { .cause = CAUSE_EXITED, .wall_us = 123999, .lines = 2 };
        const struct audit_end cold = {
                .cause = CAUSE_TIMEOUT, .code = 124, .wall_us = 600000, .lines = 1, .truncated = true
        };
        struct audit *a = opened();
        struct audit_exec x = exec_of("0123456789abcdef", "echo \"hi\"\n2026 REJECTED");
        struct audit_counts counts;

        (void)state;
        assert_int_equal(audit_pool(a, true, 3), 0);
        assert_int_equal(audit_exec_start(a, &x), 0);
        assert_int_equal(audit_exec_end(a, &x, &ok), 0);
        x.pool_hit = false;
        x.session = "s \"1";
        assert_int_equal(audit_exec_start(a, &x), 0);
        assert_int_equal(audit_exec_end(a, &x, &cold), 0);
        assert_int_equal(audit_rejected(a, &x, "too_long", 20000), 0);
        assert_int_equal(audit_rejected(a, &x, "not_allowed", 0), 0);
        assert_int_equal(audit_pool(a, false, 3), 0);
        assert_line(0, "POOL-START containers=3 seq=1 prev=0000");
        assert_line(1, "POOL HIT=true rc=0 dur=123ms out=2L cid=89a93f85b752 "
                       "cmd=\"echo \\x22hi\\x22\\x0a2026 REJECTED\" exec=0123456789abcdef uid=1000 "
                       "profile=\"default\" cause=exited seq=2 prev=");
        assert_line(2,
                    "COLD DONE rc=124 dur=600ms out=1L cid=89a93f85b752 "
                    "cmd=\"echo \\x22hi\\x22\\x0a2026 REJECTED\" exec=0123456789abcdef uid=1000 "
                    "profile=\"default\" session=\"s \\x221\" cause=timeout truncated=true seq=3 prev=");
        assert_line(3, "REJECTED 20000B cmd=\"");
        assert_line(4, "REJECTED not_allowed cmd=\"");
        assert_line(5, "POOL-STOP containers=3 seq=6 prev=");
        assert_string_equal(line(6), "");
        audit_counts(a, &counts);
        assert_int_equal(counts.trail_lines, 6);
        assert_int_equal(counts.failures, 0);
        audit_free(a);
}

static void test_scrub_and_suppressed(void **state) {
        static const char cid[] = "89a93f85b752aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        struct scrubbed s = { .check = SCRUB_CLEAN, .us = 1234, .place = "" };
        struct audit *a = opened();
        struct audit_counts before, after;

        (void)state;
        audit_counts(a, &before);
        assert_int_equal(audit_scrubbed(a, cid, "0123456789abcdef", &s), 0);
        audit_counts(a, &after);
        assert_int_equal(after.kernel_records, before.kernel_records);
        s = (struct scrubbed){
                .check = SCRUB_FILES, .emptied = true, .us = 999, .place = "/tmp\" x=\n"
        };
        assert_int_equal(audit_scrubbed(a, cid, "0123456789abcdef", &s), 0);
        s = (struct scrubbed){ .check = 200, .us = UINT64_MAX };
        assert_int_equal(audit_scrubbed(a, "no id", NULL, &s), 0);
        assert_int_equal(audit_suppressed(a, 1000, 17, 2500), 0);
        assert_line(0, "SCRUB ok=true dur=1ms cid=89a93f85b752 exec=0123456789abcdef check=clean "
                       "emptied=false us=1234 seq=1 prev=0000");
        assert_line(1, "SCRUB ok=false dur=0ms cid=89a93f85b752 exec=0123456789abcdef check=files "
                       "emptied=true us=999 place=\"/tmp\\x22 x=\\x0a\" seq=2 prev=");
        assert_line(2, "SCRUB ok=false dur=18446744073709551ms cid=? exec=? check=unknown "
                       "emptied=false us=18446744073709551615 seq=3 prev=");
        assert_line(3, "SUPPRESSED requests=17 dur=2500ms uid=1000 seq=4 prev=");
        audit_free(a);
}

static void test_scrub_and_suppressed_fields(void **state) {
        const struct scrubbed s = { .check = SCRUB_ATTRIBUTES, .place = "/a b" };
        struct trail_stamp stamp = { .seq = 7, .hash = "ab" };
        char buf[AUDIT_RECORD_MAX];
        struct text t;

        (void)state;
        text_init(&t, buf, sizeof(buf));
        audit_fields_scrub_failed(&t, "89a93f85b752aa", "0123456789abcdef", &s, &stamp);
        assert_string_equal(buf, "op=scrub-failed exec=\"0123456789abcdef\" cid=\"89a93f85b752\" "
                                 "check=attributes place=2F612062 seq=7 hash=\"ab\"");
        text_init(&t, buf, sizeof(buf));
        stamp.seq = 0;
        audit_fields_suppressed(&t, 1000, 17, 2500, &stamp);
        assert_string_equal(buf, "op=exec-suppressed uid=1000 id=1000 requests=17 ms=2500 seq=? hash=?");
}

/* Of those that an earlier life left open, the ones that are still alive. */
static bool none(void *userdata, const struct audit_open_exec *o) {
        (void)userdata;
        (void)o;
        return false;
}

static bool that_one(void *userdata, const struct audit_open_exec *o) {
        return strcmp(o->exec_id, userdata) == 0;
}

/* What goes on in a session is the same command for the next life, and gets one end. */
static void test_kept(void **state) {
        const struct audit_end ok = { .cause = CAUSE_EXITED };
        struct audit *a = opened();
        struct audit_exec x = exec_of("1111111111111111", "sleep 1");
        struct audit_exec y = exec_of("2222222222222222", "sleep 2");
        struct audit_exec z = exec_of("3333333333333333", "sleep 3");
        struct audit_open_exec o;
        size_t i = 0;

        (void)state;
        exec_of("", "sleep 9");
        y.detached = z.detached = true;
        y.begun_us = 123456789;
        y.session = z.session = "work";
        assert_int_equal(audit_exec_start(a, &x), 0);
        assert_int_equal(audit_exec_start(a, &y), 0);
        assert_int_equal(audit_exec_start(a, &z), 0);
        audit_free(a);
        a = opened();
        assert_int_equal(audit_recover(a, that_one, (void *)(uintptr_t)y.exec_id), 0);
        assert_line(0, "UNKNOWN cid=89a93f85b752 cmd=\"sleep 9\" exec=1111111111111111");
        assert_line(1, "UNKNOWN cid=89a93f85b752 cmd=\"sleep 9\" exec=3333333333333333");
        assert_true(audit_open_next(a, &i, &o));
        assert_string_equal(o.exec_id, y.exec_id);
        assert_string_equal(o.session, "work");
        assert_true(o.detached);
        assert_int_equal(o.begun_us, 123456789);
        i++;
        assert_false(audit_open_next(a, &i, &o));
        x = (struct audit_exec){ .open = &o };
        i = 0;
        assert_true(audit_open_next(a, &i, &o));
        assert_int_equal(audit_exec_end(a, &x, &ok), 0);
        assert_line(
                2,
                "POOL HIT=true rc=0 dur=0ms out=0L cid=89a93f85b752 cmd=\"sleep 9\" exec=2222222222222222");
        i = 0;
        assert_false(audit_open_next(a, &i, &o));
        audit_free(a);
}

/* Nobody saw the end of it. */
static void test_kept_in_vain(void **state) {
        struct audit *a = opened();
        struct audit_exec x = exec_of("1111111111111111", "sleep 1");
        struct audit_open_exec o;
        size_t i = 0;

        (void)state;
        x.detached = true;
        assert_int_equal(audit_exec_start(a, &x), 0);
        assert_true(audit_open_next(a, &i, &o));
        assert_int_equal(audit_exec_unknown(a, &o), 0);
        assert_line(0, "UNKNOWN cid=89a93f85b752 cmd=\"sleep 1\" exec=1111111111111111");
        i = 0;
        assert_false(audit_open_next(a, &i, &o));
        audit_free(a);
}

#define FP "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+/123"

static void test_session(void **state) {
        struct audit *a = opened();
        struct audit_session s = { .name = "work",
                                   .container_id = "89a93f85b752aaaa",
                                   .profile = "default",
                                   .owner = { .uid = 1000, .pid = 4321, .loginuid = 7 } };
        struct audit_caller root = { .uid = 0, .pid = 1, .loginuid = 2 };

        (void)state;
        assert_int_equal(audit_session_opened(a, &s), 0);
        assert_int_equal(audit_session_closed(a, &s, "closed", &root), 0);
        s.container_id = "";
        assert_int_equal(audit_session_closed(a, &s, "idle", NULL), 0);
        assert_int_equal(audit_session_stopped(a, &s, 4, NULL), 0);
        memcpy(s.owner.fp, FP, sizeof(FP));
        assert_int_equal(audit_session_started(a, &s, &root), 0);
        assert_int_equal(audit_ssh_login(a, &s.owner, "192.0.2.7", 40022), 0);
        assert_line(
                0,
                "SESSION-OPEN cid=89a93f85b752 session=\"work\" uid=1000 profile=\"default\" seq=1 prev=");
        assert_line(1, "SESSION-CLOSE cid=89a93f85b752 session=\"work\" uid=1000 profile=\"default\" "
                       "reason=closed by=0 seq=2 prev=");
        assert_line(
                2,
                "SESSION-CLOSE cid=? session=\"work\" uid=1000 profile=\"default\" reason=idle by=? seq=3 prev=");
        assert_line(3, "SESSION-STOP cid=? session=\"work\" uid=1000 profile=\"default\" processes=4 "
                       "by=? seq=4 prev=");
        assert_line(4, "SESSION-START cid=? session=\"work\" uid=1000 fp=" FP
                       " profile=\"default\" by=0 seq=5 prev=");
        assert_line(5, "SSH-LOGIN uid=1000 fp=" FP " addr=\"192.0.2.7\" port=40022 seq=6 prev=");
        audit_free(a);
}

static void test_session_fields(void **state) {
        struct audit_session s = { .name = "a b",
                                   .container_id = "89a93f85b752aaaa",
                                   .profile = "default",
                                   .owner = { .uid = 1000, .pid = 4321, .loginuid = 7 } };
        struct audit_caller root = { .uid = 0, .pid = 1, .loginuid = 2 };
        struct trail_stamp stamp = { 0 };
        char buf[512];
        struct text t;

        (void)state;
        text_init(&t, buf, sizeof(buf));
        audit_fields_session(&t, &s, &(struct audit_session_event){ .what = AUDIT_OPENED }, &stamp);
        assert_string_equal(buf,
                            "op=session-open uid=1000 id=1000 sauid=7 pid=4321 cid=\"89a93f85b752\" "
                            "profile=\"default\" session=612062 seq=? hash=?");
        text_init(&t, buf, sizeof(buf));
        audit_fields_session(
                &t, &s,
                &(struct audit_session_event){ .what = AUDIT_CLOSED, .reason = "closed", .by = &root },
                &stamp);
        assert_string_equal(buf,
                            "op=session-close uid=1000 id=1000 sauid=7 pid=4321 cid=\"89a93f85b752\" "
                            "profile=\"default\" session=612062 reason=closed by=0 seq=? hash=?");
        text_init(&t, buf, sizeof(buf));
        audit_fields_session(
                &t, &s, &(struct audit_session_event){ .what = AUDIT_CLOSED, .reason = "lost" }, &stamp);
        assert_string_equal(buf,
                            "op=session-close uid=1000 id=1000 sauid=7 pid=4321 cid=\"89a93f85b752\" "
                            "profile=\"default\" session=612062 reason=lost by=? seq=? hash=?");
        text_init(&t, buf, sizeof(buf));
        audit_fields_session(
                &t, &s,
                &(struct audit_session_event){ .what = AUDIT_STOPPED, .processes = 3, .by = &root },
                &stamp);
        assert_string_equal(buf,
                            "op=session-stop uid=1000 id=1000 sauid=7 pid=4321 cid=\"89a93f85b752\" "
                            "profile=\"default\" session=612062 processes=3 by=0 seq=? hash=?");
        memcpy(s.owner.fp, FP, sizeof(FP));
        text_init(&t, buf, sizeof(buf));
        audit_fields_session(&t, &s, &(struct audit_session_event){ .what = AUDIT_STARTED }, &stamp);
        assert_string_equal(buf,
                            "op=session-start uid=1000 id=1000 sauid=7 pid=4321 cid=\"89a93f85b752\" "
                            "profile=\"default\" session=612062 fp=\"" FP "\" by=? seq=? hash=?");
        text_init(&t, buf, sizeof(buf));
        audit_fields_login(&t, &s.owner, 40022, &stamp);
        assert_string_equal(buf, "op=ssh-login uid=1000 id=1000 sauid=7 pid=4321 fp=\"" FP
                                 "\" port=40022 seq=? hash=?");
}

static void test_recover(void **state) {
        const struct audit_end ok = { .cause = CAUSE_EXITED };
        struct audit *a = opened();
        struct audit_exec x = exec_of("1111111111111111", "sleep 1");
        struct audit_exec y = exec_of("2222222222222222", "sleep 2");
        struct audit_exec z = exec_of("3333333333333333", "sleep 3");
        struct stat st;
        int fd;

        (void)state;
        exec_of("", "sleep 9");
        assert_int_equal(audit_exec_start(a, &x), 0);
        assert_int_equal(audit_exec_start(a, &y), 0);
        assert_int_equal(audit_exec_start(a, &z), 0);
        assert_int_equal(audit_exec_end(a, &y, &ok), 0);
        audit_free(a);
        assert_int_equal(stat(state_file, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        /* The third slot was torn. */
        fd = open(state_file, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "X", 1, 2 * 512 + 30), 1);
        close(fd);
        a = opened();
        assert_int_equal(audit_recover(a, none, NULL), 0);
        assert_line(1, "UNKNOWN cid=89a93f85b752 cmd=\"sleep 9\" exec=1111111111111111 uid=1000 "
                       "profile=\"default\" cause=unknown seq=2 prev=");
        assert_line(2, "UNKNOWN cid=? cmd=\"\" exec=? uid=4294967295 profile=\"?\" cause=unknown seq=3");
        assert_int_equal(audit_recover(a, none, NULL), 0);
        assert_string_equal(line(3), "");
        audit_free(a);
}

/* A slot without its last word was not finished before a SIGKILL, or was freed: nothing is open there. */
static void test_unfinished_slot(void **state) {
        static const char nothing[8];
        struct audit *a = opened();
        struct audit_exec x = exec_of("1111111111111111", "sleep 1");
        int fd;

        (void)state;
        assert_int_equal(audit_exec_start(a, &x), 0);
        audit_free(a);
        fd = open(state_file, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, nothing, 8, 512 - 8), 8);
        close(fd);
        a = opened();
        assert_int_equal(audit_recover(a, none, NULL), 0);
        assert_string_equal(line(0), "");
        audit_free(a);
}

/* The file grows, and what stands in it stays. */
static void test_many_open(void **state) {
        const struct audit_end ok = { .cause = CAUSE_EXITED };
        struct audit *a = opened();
        struct audit_exec x;
        char id[17];

        (void)state;
        for (int i = 0; i < 300; i++) {
                snprintf(id, sizeof(id), "%016x", i);
                x = exec_of(id, "sleep 1");
                assert_int_equal(audit_exec_start(a, &x), 0);
        }
        for (int i = 0; i < 300; i += 2) {
                snprintf(id, sizeof(id), "%016x", i);
                x = exec_of(id, "sleep 1");
                assert_int_equal(audit_exec_end(a, &x, &ok), 0);
        }
        audit_free(a);
        a = opened();
        assert_int_equal(audit_recover(a, none, NULL), 0);
        assert_line(149, "POOL HIT=true");
        for (int i = 0; i < 150; i++)
                assert_line(150 + i, "UNKNOWN cid=89a93f85b752 cmd=\"sleep 1\" exec=0000000000000");
        assert_string_equal(line(300), "");
        audit_free(a);
}

static void test_no_room_is_no_silence(void **state) {
        const struct audit_end ok = { .cause = CAUSE_EXITED };
        struct audit *a = opened();
        struct audit_exec x = exec_of("0123456789abcdef", "true");
        struct audit_counts counts;
        struct rlimit old, small;

        (void)state;
        for (int i = 0; i < 6; i++)
                assert_int_equal(audit_pool(a, true, 3), 0);
        assert_int_equal(audit_exec_start(a, &x), 0);
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        small = old;
        small.rlim_cur = 700; /* less than the trail; the state file has its room already */
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(audit_exec_end(a, &x, &ok), -EFBIG);
        assert_int_equal(audit_exec_start(a, &x), -EFBIG);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        audit_counts(a, &counts);
        assert_int_equal(counts.failures, 2);
        assert_int_equal(audit_exec_start(a, &x), 0);
        assert_line(6, "LOST lines=1 seq=7 prev=");
        audit_free(a);
}

static void test_refused_files(void **state) {
        struct config c = { .audit_required = TRI_FALSE };
        struct audit *a = NULL;
        struct errmsg e;

        (void)state;
        c.audit_file = file;
        assert_int_equal(symlink("/dev/null", state_file), 0);
        assert_int_equal(audit_new(&c, false, state_file, &a, &e), -ELOOP);
        unlink(state_file);
        assert_int_equal(mkfifo(state_file, 0600), 0);
        assert_int_equal(audit_new(&c, false, state_file, &a, &e), -ENOTSUP);
        unlink(state_file);
        assert_int_equal(symlink("/dev/null", file), 0);
        assert_int_equal(audit_new(&c, false, state_file, &a, &e), -ELOOP);
        assert_null(a);
}

static void test_command_text(void **state) {
        static char huge[60001];
        static struct audit_command c;
        const char *const args[] = { "ls", "", "a b", "it's", "x=1", "$(id)" };
        const char *const one[] = { huge };
        uint8_t digest[SHA256_DIGEST_SIZE];
        char hex[2 * SHA256_DIGEST_SIZE + 1];
        struct sha256_ctx ctx;

        (void)state;
        audit_command_read(&c, wire, put_args(6, args), 6, false, false);
        assert_int_equal(c.len, c.total);
        c.head[c.len] = 0;
        assert_string_equal((char *)c.head, "ls '' 'a b' 'it'\\''s' x=1 '$(id)'");
        assert_string_equal(c.sha256, "");
        audit_command_read(&c, wire, put_args(6, args), 2, false, true);
        c.head[c.len] = 0;
        assert_string_equal((char *)c.head, "hermes-files ls ''");

        memset(huge, 'y', 60000);
        audit_command_read(&c, wire, put_args(1, one), 1, true, false);
        assert_int_equal(c.len, AUDIT_COMMAND_HEAD);
        assert_int_equal(c.total, 60000);
        sha256_init(&ctx);
        sha256_update(&ctx, 60000, (uint8_t *)huge);
        sha256_digest(&ctx, sizeof(digest), digest);
        audit_hex(digest, hex);
        assert_string_equal(c.sha256, hex);

        /* Not well-formed: what can be read. */
        audit_command_read(&c, wire, 3, 1, true, false);
        assert_int_equal(c.total, 0);
        audit_command_read(&c, NULL, 0, 0, true, false);
        assert_int_equal(c.total, 0);
}

static void test_kernel_encoding(void **state) {
        char buf[256];
        struct text t;

        (void)state;
        text_init(&t, buf, sizeof(buf));
        audit_kernel_encode(&t, "cmd", "true", 4);
        audit_kernel_encode(&t, "cmd", "a b", 3);
        audit_kernel_encode(&t, "cmd", "a'b", 3);
        audit_kernel_encode(&t, "cmd", "\"\n\377", 3);
        audit_kernel_encode(&t, "cmd", "", 0);
        assert_string_equal(buf, " cmd=\"true\" cmd=612062 cmd=612762 cmd=220AFF cmd=\"\"");
}

/* The longest record that there can be stays below what libaudit and the kernel would cut. */
static void test_largest_record(void **state) {
        static char huge[60001], name[PROTO_NAME_MAX + 10];
        static struct audit_command c;
        const char *const one[] = { huge };
        struct audit_open_exec o;
        struct audit_exec x = exec_of("0123456789abcdef", "");
        struct trail_stamp stamp = { .seq = UINT64_MAX };
        char buf[AUDIT_RECORD_MAX];
        struct text t;

        (void)state;
        memset(huge, '\'', 60000);
        memset(name, '"', sizeof(name) - 1);
        x.profile = x.session = name;
        x.args_len = put_args(1, one);
        audit_command_read(&c, x.args_wire, x.args_len, 1, true, false);
        audit_open_exec_fill(&o, &x, &c);
        memset(stamp.hash, 'f', TRAIL_HASH);
        text_init(&t, buf, sizeof(buf));
        audit_fields_rejected(&t, &o, &c, "not_allowed", UINT64_MAX, &stamp);
        assert_false(t.bad);
        text_init(&t, buf, TRAIL_LINE_MAX - 200);
        memset(o.command, 0, sizeof(o.command));
        audit_line_rejected(&t, &o, "not_allowed", 0);
        assert_false(t.bad);
}

static void test_ids(void **state) {
        char a[PROTO_EXEC_ID + 1], b[PROTO_EXEC_ID + 1];

        (void)state;
        audit_exec_id(a);
        audit_exec_id(b);
        assert_int_equal(strspn(a, "0123456789abcdef"), PROTO_EXEC_ID);
        assert_string_not_equal(a, b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_lines),
                TEST(test_scrub_and_suppressed),
                cmocka_unit_test(test_scrub_and_suppressed_fields),
                TEST(test_kept),
                TEST(test_kept_in_vain),
                TEST(test_session),
                cmocka_unit_test(test_session_fields),
                TEST(test_recover),
                TEST(test_unfinished_slot),
                TEST(test_many_open),
                TEST(test_no_room_is_no_silence),
                TEST(test_refused_files),
                cmocka_unit_test(test_command_text),
                cmocka_unit_test(test_kernel_encoding),
                cmocka_unit_test(test_largest_record),
                cmocka_unit_test(test_ids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
