/* review_log.h and review_join.h: which records count, what they hold, and how they become events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/audit/review.h"
#include "cli/audit/review_show.h"
#include "common/exitcode.h"

#define HEAD "pid=7 uid=993 auid=4294967295 ses=4294967295 msg='"
#define TAIL " exe=\"/m\" hostname=? addr=? terminal=? res="
#define WHO "uid=60123 id=60123 sauid=4294967295 pid=4321 cid=\"89a93f85b752\" profile=\"default\""
#define HASH "75562b230ecf766a815b7c52285f4b759f1ce7bc7f2bdea51a21b611df316da1"
#define STAMP " seq=2 hash=\"" HASH "\""
#define START(id, cmd) HEAD "op=exec-start exec=\"" id "\" " WHO " pool=hit cmd=" cmd TAIL "success'"
#define END(id, end, res) HEAD "op=exec-end exec=\"" id "\" " WHO " " end STAMP TAIL res "'"
#define ONE "00000000000000aa"

static char dir[64], log_path[128], conf_path[128];
static FILE *log_file;
static unsigned serial;

static int setup(void **state) {
        (void)state;
        snprintf(dir, sizeof(dir), "/tmp/test-review-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(log_path, sizeof(log_path), "%s/audit.log", dir);
        snprintf(conf_path, sizeof(conf_path), "%s/auditd.conf", dir);
        log_file = fopen(log_path, "w");
        setenv("TZ", "UTC", 1);
        return log_file ? 0 : -1;
}

static int teardown(void **state) {
        (void)state;
        if (log_file)
                fclose(log_file);
        log_file = NULL;
        unlink(log_path);
        unlink(conf_path);
        return rmdir(dir);
}

/* One record, a second after the one before. */
static void put(const char *type, const char *rest) {
        serial++;
        fprintf(log_file, "type=%s msg=audit(%u.250:%u): %s\n", type, 1795997800 + serial, serial, rest);
        fflush(log_file);
}

static char out[65536], err[4096];

static int review(char *const *more) {
        const struct review_paths paths = { .auditd_conf = conf_path,
                                            .audit_log = log_path,
                                            .trail = "/nonexistent/trail",
                                            .manager = "/m",
                                            .helper = "/h",
                                            .account = "993" };
        char *argv[16] = { (char[]){ "audit" } };
        FILE *o = fmemopen(out, sizeof(out), "w"), *e = fmemopen(err, sizeof(err), "w");
        int argc = 1, rc;

        out[0] = err[0] = 0;
        for (; more && *more; more++)
                argv[argc++] = *more;
        rc = review_command(&paths, argc, argv, o, e);
        fclose(o);
        fclose(e);
        return rc;
}

#define REVIEW(...) review((char *[]){ __VA_ARGS__, NULL })

static unsigned out_lines(void) {
        unsigned n = 0;

        for (const char *p = out; *p; p++)
                n += *p == '\n';
        return n;
}

static void has(const char *s) {
        if (!strstr(out, s))
                fail_msg("'%s' is not in: %s", s, out);
}

static void test_joined(void **state) {
        (void)state;
        serial = 0;
        put("USER_CMD", START(ONE, "\"true\""));
        put("USER_CMD", START("bb", "6C73202D6C"));
        put("USER_CMD", END("bb", "cause=exited rc=2", "failed"));
        put("USER_CMD", END(ONE, "cause=signaled rc=137", "failed"));
        put("USER_CMD", START("cc", "\"sleep\""));
        put("USER_CMD", END("dd", "cause=exited rc=0", "success"));
        assert_int_equal(review(NULL), 0);
        assert_int_equal(out_lines(), 5);
        has("WHEN ");
        has("60123      89a93f85b752 default  exit 2          1.000s  ls -l\n");
        has("signal 9        3.000s  true\n");
        has("running or lost      -  sleep\n");
        has("exit 0               -  ? (its start is not in the log)\n");
        assert_string_equal(err, "");
        assert_int_equal(REVIEW((char[]){ "--failed" }), 0);
        assert_int_equal(out_lines(), 4);
        assert_int_equal(REVIEW((char[]){ "--json" }, (char[]){ "--exec" }, (char[]){ "bb" }), 0);
        assert_int_equal(out_lines(), 1);
        has("\"uid\":60123,\"user\":\"60123\",\"login_uid\":null,\"exec_id\":\"bb\",\"pid\":4321,");
        has("\"command\":\"ls -l\",\"command_encoding\":\"utf-8\",\"command_bytes\":5,");
        has("\"cause\":\"exited\",\"exit_code\":2,\"ended\":\"2026-11-30T00:16:43.250Z\",\"wall_ms\":1000,");
        has("\"seq\":2,\"hash\":\"" HASH "\"}");
}

static void test_said_twice(void **state) {
        (void)state;
        put("USER_CMD", START(ONE, "\"true\""));
        put("USER_CMD", END(ONE, "cause=exited rc=0", "success"));
        put("USER_CMD", END(ONE, "cause=unknown rc=?", "unknown"));
        put("USER_CMD", START("bb", "\"true\""));
        put("USER_CMD", END("bb", "cause=unknown rc=?", "unknown"));
        assert_int_equal(review(NULL), 0);
        assert_int_equal(out_lines(), 3);
        has(" exit 0 ");
        has(" unknown ");
}

/* The same records, by somebody else, or with something in them that the manager does not write. */
static void test_forged(void **state) {
        static const char *const others[] = {
                /* another account, whatever it says behind msg=' */
                "pid=7 uid=0 auid=0 ses=1 msg='op=exec-end exec=\"bb\" " WHO
                " cause=exited rc=0" STAMP TAIL "success'",
                "pid=7 uid=1000 auid=993 ses=1 msg='uid=993 op=exec-end exec=\"bb\" " WHO
                " cause=exited rc=0" STAMP TAIL "success'",
                "pid=7 uid=1000 uid=993 auid=0 ses=1 msg='op=exec-end exec=\"bb\" " WHO
                " cause=exited rc=0" STAMP TAIL "success'",
        };
        static const char *const broken[] = {
                /* ours by its header; a field twice, a word that is none, a hash that is too short */
                HEAD "op=exec-end exec=\"bb\" exec=\"cc\" " WHO " cause=exited rc=0" STAMP TAIL
                     "success'",
                HEAD "op=exec-end exec=\"bb\" " WHO " cause=\"ex\" rc=0" STAMP TAIL "success'",
                HEAD "op=exec-end exec=\"bb\" " WHO " cause=exited rc=0 seq=2 hash=\"75\"" TAIL
                     "success'",
                HEAD "op=exec-end exec=\"bb\" " WHO " cause=exited rc=1000" STAMP TAIL "success'",
                HEAD "op=exec-end exec=\"bb\" " WHO " cause=exited rc=0 seq=-1 hash=\"" HASH "\"" TAIL
                     "success'",
                HEAD "op=exec-start exec=\"bb\" " WHO " pool=hit cmd=0" TAIL "success'",
                HEAD "op=exec-start exec=\"bb\" " WHO " pool=hit cmd=id" TAIL "success'",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                put("USER_CMD", others[i]);
        put("USER_CMD", HEAD "op=exec-start exec=\"bb\" " WHO " cmd=\"id\" exe=\"/x\" res=success'");
        put("USER_LOGIN", START("bb", "\"id\""));
        put("SYSCALL", START("bb", "\"id\""));
        put("GRP_MGMT",
            "pid=7 uid=1000 auid=0 ses=1 msg='op=docker-enable acct=\"a\" grp=\"g\" exe=\"/h\" res=success'");
        assert_int_equal(review(NULL), 0);
        assert_string_equal(out, "");
        assert_non_null(strstr(err, "4 records name our programs and were written by another account"));
        assert_null(strstr(err, "not in the form"));
        for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
                put("USER_CMD", broken[i]);
        assert_int_equal(review(NULL), 0);
        assert_string_equal(out, "");
        assert_non_null(strstr(err, "7 records of ours are not in the form that we write"));
}

/* A command that looks like fields, ends of records and a terminal's orders. */
static void test_hostile(void **state) {
        static const char cmd[] =
                "a\n' uid=0 op=x res=success\x1b[2J\xc2\x9b\xe2\x80\xa8\xe2\x80\xae\xff\\\"";
        char hex[256], record[2048];

        (void)state;
        for (size_t i = 0; i < sizeof(cmd) - 1; i++)
                snprintf(hex + 2 * i, 3, "%02X", (unsigned char)cmd[i]);
        snprintf(record, sizeof(record),
                 HEAD "op=exec-start exec=\"" ONE "\" " WHO " session=6120620A pool=hit cmd=%s" TAIL
                      "success'",
                 hex);
        put("USER_CMD", record);
        snprintf(record, sizeof(record),
                 HEAD "op=exec-end exec=\"" ONE "\" " WHO
                      " session=6120620A cause=exited rc=0" STAMP TAIL
                      "success'\x1dUID=\"_hermes-sandbox\" AUID=\"unset\" UID=\"hermes\" ID=\"hermes\"");
        put("USER_CMD", record);
        assert_int_equal(review(NULL), 0);
        assert_int_equal(out_lines(), 2);
        has(" hermes     89a93f85b752 default/a b\\x0a exit 0 ");
        has("  a\\x0a' uid=0 op=x res=success\\x1b[2J\\u{9b}\\u{2028}\\u{202e}\\xff\\\\\"\n");
        assert_int_equal(REVIEW((char[]){ "--json" }, (char[]){ "--session" }, (char[]){ "a b\n" }), 0);
        assert_int_equal(out_lines(), 1);
        for (const char *p = out; *p; p++)
                assert_true((*p >= 0x20 && *p < 0x7f) || (*p == '\n' && !p[1]));
        has("\"session\":\"a b\\n\",\"command\":\"YQonIHVpZD0wIG9wPXggcmVzPXN1Y2Nlc3MbWzJKwpvigKjigK7/XCI=\","
            "\"command_encoding\":\"base64\",");
        has("\"user\":\"hermes\"");
}

static void test_cut_command(void **state) {
        (void)state;
        put("USER_CMD", HEAD "op=exec-start exec=\"" ONE "\" " WHO
                             " pool=cold cmd=61C3 cmd_len=9000 cmd_sha256=\"" HASH "\"" TAIL "success'");
        assert_int_equal(review(NULL), 0);
        has("  a\\... (9000 bytes)\n");
        assert_int_equal(REVIEW((char[]){ "--json" }), 0);
        has("\"command\":\"a\",\"command_encoding\":\"utf-8\",\"command_bytes\":9000,\"command_sha256\":\"" HASH);
        has("\"cause\":\"running_or_lost\",\"exit_code\":null,\"ended\":null,\"wall_ms\":null");
}

/* Characters count, not bytes, and the ellipsis is one of them. */
static void test_width(void **state) {
        static const char cmd[] = "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc";
        struct review_event e = { .kind = REVIEW_EXEC, .begin_ms = 0, .end_ms = 1000 };
        const struct review_names names = { 0 };
        bool began = true;
        FILE *f;

        (void)state;
        e.record.command = (struct review_bytes){ .p = (const uint8_t *)cmd, .len = sizeof(cmd) - 1 };
        strcpy(e.record.cause, "exited");
        for (unsigned width = 79; width <= 90; width++) {
                const char *at;

                memset(out, 0, sizeof(out));
                f = fmemopen(out, sizeof(out), "w");
                assert_int_equal(review_show_line(f, &e, &names, width, &began), 0);
                fclose(f);
                at = strstr(out, "1.000s  ");
                assert_non_null(at);
                at += 8;
                if ((unsigned)(at - out) + 6 <= width) {
                        assert_memory_equal(at, cmd, sizeof(cmd) - 1);
                        assert_string_equal(at + sizeof(cmd) - 1, "\n");
                } else {
                        size_t left = width - (size_t)(at - out) - 1;

                        assert_memory_equal(at, cmd, 2 * left);
                        assert_string_equal(at + 2 * left, "\xe2\x80\xa6\n");
                }
        }
}

static void others(void) {
        put("TRUSTED_APP", HEAD "op=exec-rejected exec=? " WHO
                                " reason=too_long bytes=20000 cmd=\"id\"" STAMP TAIL "failed'");
        put("TRUSTED_APP",
            HEAD "op=exec-suppressed uid=60123 id=60123 requests=512 ms=2750" STAMP TAIL "failed'");
        put("TRUSTED_APP",
            HEAD "op=scrub-failed exec=\"aa\" cid=\"89a93f85b752\" check=files place=\"/tmp\"" STAMP TAIL
                 "failed'");
        put("TRUSTED_APP", HEAD "op=session-open " WHO " session=\"work\"" STAMP TAIL "success'");
        put("TRUSTED_APP",
            HEAD "op=session-close " WHO " session=\"work\" reason=closed by=0" STAMP TAIL "success'");
        put("TRUSTED_APP",
            HEAD "op=session-close " WHO " session=\"work\" reason=lost by=?" STAMP TAIL "failed'");
        put("TRUSTED_APP", HEAD "op=pool-start containers=3" STAMP TAIL "success'");
        put("TRUSTED_APP", HEAD "op=trail-open seq=? hash=?" TAIL "success'");
        put("TRUSTED_APP", HEAD "op=from-the-future new=1" TAIL "success'");
        put("GRP_MGMT",
            "pid=9 uid=0 auid=1000 ses=1 msg='op=docker-enable acct=\"_hermes-engine\" grp=\"docker\" "
            "uid=60124 reason=added exe=\"/h\" hostname=? addr=? terminal=? res=success'");
}

static void test_other_events(void **state) {
        (void)state;
        others();
        assert_int_equal(review(NULL), 0);
        assert_int_equal(out_lines(), 11);
        has(" opened               -  session work opened\n");
        has(" closed               -  session work closed by uid 0\n");
        has(" lost                 -  session work closed\n");
        has(" refused: too_long ");
        has(" suppressed           -  512 requests in 2.750s over limits.exec_rate\n");
        has(" not clean            -  check files at /tmp after exec aa\n");
        has(" pool-start           -  3 containers\n");
        has(" from-the-future ");
        has(" 60124      -            -        success: added       -  docker-enable _hermes-engine in group docker\n");
        assert_int_equal(REVIEW((char[]){ "--user" }, (char[]){ "60124" }, (char[]){ "--json" }), 0);
        assert_int_equal(out_lines(), 1);
        has("{\"event\":\"helper\",\"op\":\"docker-enable\",");
        has("\"uid\":60124,\"user\":\"60124\",\"login_uid\":1000,\"account\":\"_hermes-engine\",\"group\":\"docker\","
            "\"reason\":\"added\"");
        assert_int_equal(REVIEW((char[]){ "--failed" }), 0);
        assert_int_equal(out_lines(), 5);
        assert_int_equal(REVIEW((char[]){ "--session" }, (char[]){ "work" }, (char[]){ "--json" }), 0);
        assert_int_equal(out_lines(), 3);
        has("{\"event\":\"session\",\"op\":\"session-close\",");
        has("\"session\":\"work\",\"reason\":\"closed\",\"closed_by\":\"0\"");
        has("\"session\":\"work\",\"reason\":\"lost\",\"closed_by\":null");
}

#define FP "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+/123"

/* What the holders of ssh keys do, and sessions that are stopped. */
static void test_keys(void **state) {
        (void)state;
        serial = 0;
        put("TRUSTED_APP", HEAD "op=ssh-login " WHO " fp=\"" FP "\" port=40022" STAMP
                                " exe=\"/m\" hostname=? addr=2001:db8::7 terminal=? res=success'");
        put("TRUSTED_APP", HEAD "op=session-stop " WHO " session=\"work\" fp=\"" FP
                                "\" processes=3 by=0" STAMP TAIL "success'");
        put("TRUSTED_APP",
            HEAD "op=session-start " WHO " session=\"work\" fp=\"" FP "\" by=?" STAMP TAIL "success'");
        put("TRUSTED_APP", HEAD "op=session-open " WHO " session=\"other\"" STAMP TAIL "success'");
        assert_int_equal(review(NULL), 0);
        has("ssh login of " FP " from 2001:db8::7 port 40022\n");
        has(" session-stop         -  session work stopped by uid 0, 3 processes ended\n");
        has(" session-start        -  session work started\n");
        assert_int_equal(REVIEW((char[]){ "--key" }, (char[]){ FP }, (char[]){ "--json" }), 0);
        assert_int_equal(out_lines(), 3);
        has("{\"event\":\"login\",\"op\":\"ssh-login\",");
        has("\"key\":\"" FP "\",\"address\":\"2001:db8::7\",\"port\":40022");
        has("\"stopped_by\":\"0\",\"processes\":3");
}

static void test_times(void **state) {
        (void)state;
        serial = 0;
        put("USER_CMD", START(ONE, "\"one\""));
        put("USER_CMD", START("bb", "\"two\""));
        put("USER_CMD", END(ONE, "cause=exited rc=0", "success"));
        put("USER_CMD", END("bb", "cause=exited rc=0", "success"));
        /* What ran in that time, were it only a part of it. */
        assert_int_equal(REVIEW((char[]){ "--since" }, (char[]){ "@1795997803.5" }), 0);
        assert_int_equal(out_lines(), 2);
        has("two");
        assert_int_equal(REVIEW((char[]){ "--until" }, (char[]){ "@1795997802" }), 0);
        assert_int_equal(out_lines(), 2);
        has("one");
        assert_int_equal(REVIEW((char[]){ "--until" }, (char[]){ "2026-11-30 00:16:42.25Z" }), 0);
        assert_int_equal(out_lines(), 3);
}

static void test_summary(void **state) {
        (void)state;
        serial = 0;
        others();
        put("USER_CMD", START(ONE, "\"one\""));
        put("USER_CMD", END(ONE, "cause=exited rc=0", "success"));
        put("USER_CMD", START("bb", "\"two\""));
        serial += 86400;
        put("USER_CMD", START("cc", "\"three\""));
        put("USER_CMD", END("cc", "cause=timeout rc=124", "failed"));
        assert_int_equal(REVIEW((char[]){ "--summary" }), 0);
        assert_string_equal(
                out,
                "DAY        USER               COMMANDS   FAILURES   REFUSALS SUPPRESSED     BURSTS\n"
                "2026-11-30 60123                     2          1          1        512          1\n"
                "2026-12-01 60123                     1          1          0          0          0\n");
        assert_int_equal(REVIEW((char[]){ "--summary" }, (char[]){ "--json" }), 0);
        assert_int_equal(out_lines(), 2);
        has("{\"day\":\"2026-11-30\",\"uid\":60123,\"user\":\"60123\",\"commands\":2,\"failures\":1,\"refusals\":1,"
            "\"suppressed\":512,\"bursts\":1}\n");
}

/* Lines that are none, or not whole, are passed over. */
static void test_rubbish(void **state) {
        (void)state;
        fputs("\n\ntype=USER_CMD\ntype=USER_CMD msg=audit(): \ntype=USER_CMD msg=audit(x.y:z): uid=993 msg='\n",
              log_file);
        fputs("node=h type=USER_CMD \nnode=\ntype=USER_CMD msg=audit(1.2:3): =\n", log_file);
        fprintf(log_file, "type=USER_CMD msg=audit(1.2:3): %s%c\n", START("bb", "\"id\""), 0);
        for (int i = 0; i < 300000; i++)
                fputc(i == 0 ? 'x' : '=', log_file);
        fputc('\n', log_file);
        put("USER_CMD", START(ONE, "\"true\""));
        fprintf(log_file, "node=host type=USER_CMD msg=audit(1795997900.250:99): %s\n",
                END(ONE, "cause=exited rc=0", "success"));
        fprintf(log_file, "type=USER_CMD msg=audit(1795997900.250:100): " HEAD "op=exec-st");
        fflush(log_file);
        assert_int_equal(review(NULL), 0);
        assert_int_equal(out_lines(), 2);
        has(" exit 0 ");
}

static void test_usage(void **state) {
        static const char *const bad[][3] = {
                { "--since", "gestern" },
                { "--until", "" },
                { "--since" },
                { "--user", "no-such-user-anywhere" },
                { "--nonsense" },
                { "operand" },
                { "--verify", "--summary" },
                { "--trail", "x" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(review((char *const *)bad[i]), EXIT_USAGE);
                assert_string_equal(out, "");
                assert_non_null(strchr(err, '\n'));
                assert_null(strchr(strchr(err, '\n') + 1, '\n'));
        }
        assert_int_equal(REVIEW((char[]){ "--help" }), 0);
        has("usage: hermes-sandbox audit");
}

static void test_no_log(void **state) {
        FILE *conf = fopen(conf_path, "w");

        (void)state;
        fprintf(conf, "# a comment\nlog_file = %s/elsewhere.log\n", dir);
        fclose(conf);
        assert_int_equal(review(NULL), EXIT_NO_MANAGER);
        assert_non_null(strstr(err, "elsewhere.log does not exist"));
        assert_int_equal(REVIEW((char[]){ "--log" }, (char[]){ "/nonexistent" }), EXIT_NO_MANAGER);
        assert_int_equal(REVIEW((char[]){ "--log" }, (char[]){ "/dev/null" }), EXIT_OS);
        assert_int_equal(REVIEW((char[]){ "--log" }, log_path), 0);
        assert_int_equal(REVIEW((char[]){ "--verify" }), EXIT_NO_MANAGER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_joined),       TEST(test_said_twice),  TEST(test_forged),
                TEST(test_hostile),      TEST(test_cut_command), TEST(test_width),
                TEST(test_other_events), TEST(test_keys),        TEST(test_times),
                TEST(test_summary),      TEST(test_rubbish),     TEST(test_usage),
                TEST(test_no_log),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
