/* Numbers, sizes, durations, CPUs, names and paths, each at its bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"
#include "config/units.h"
#include "common/utf8.h"
#include "config/utf8.h"
#include "config/values.h"

struct row {
        const char *text;
        int r;
        uint64_t v;
};

static void run_rows(const struct row *rows, size_t n, int (*parse)(const char *s, uint64_t *ret)) {
        for (size_t i = 0; i < n; i++) {
                uint64_t v = 77;
                int r = parse(rows[i].text, &v);

                if (r != rows[i].r || v != (r < 0 ? 77 : rows[i].v))
                        fail_msg("\"%s\": %d, %llu", rows[i].text, r, (unsigned long long)v);
        }
}

#define RUN(rows, parse) run_rows(rows, sizeof(rows) / sizeof((rows)[0]), parse)

static void integers(void **state) {
        static const struct row rows[] = {
                { "0", 0, 0 },
                { "007", 0, 7 },
                { "18446744073709551615", 0, UINT64_MAX },
                { "18446744073709551616", -ERANGE, 0 },
                { "99999999999999999999999", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "1 ", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "1.0", -EINVAL, 0 },
                { "1_000", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
        };

        (void)state;
        RUN(rows, config_parse_u64);
}

static void sizes(void **state) {
        static const struct row rows[] = {
                { "0", 0, 0 },
                { "1", 0, 1 },
                { "1b", 0, 1 },
                { "1k", 0, 1024 },
                { "1K", 0, 1024 },
                { "1kb", 0, 1024 },
                { "1KiB", 0, 1024 },
                { "128m", 0, UINT64_C(128) << 20 },
                { "128MB", 0, UINT64_C(128) << 20 },
                { "128mib", 0, UINT64_C(128) << 20 },
                { "2g", 0, UINT64_C(2) << 30 },
                { "2GiB", 0, UINT64_C(2) << 30 },
                { "17179869183g", 0, UINT64_C(17179869183) << 30 },
                { "17179869184g", -ERANGE, 0 },
                { "18446744073709551615", 0, UINT64_MAX },
                { "18446744073709551616", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "m", -EINVAL, 0 },
                { "1 m", -EINVAL, 0 },
                { "1.5g", -EINVAL, 0 },
                { "1t", -EINVAL, 0 },
                { "1mbit", -EINVAL, 0 },
                { "-1m", -EINVAL, 0 },
        };

        (void)state;
        RUN(rows, config_parse_size);
}

static void durations(void **state) {
        static const struct row rows[] = {
                { "0", 0, 0 },
                { "5", 0, 5000 },
                { "500ms", 0, 500 },
                { "2s", 0, 2000 },
                { "5m", 0, 300000 },
                { "1h", 0, 3600000 },
                { "1d", 0, 86400000 },
                { "18446744073709551615ms", 0, UINT64_MAX },
                { "18446744073709551615s", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "ms", -EINVAL, 0 },
                { "5M", -EINVAL, 0 },
                { "5Ms", -EINVAL, 0 },
                { "5mS", -EINVAL, 0 },
                { "1h30m", -EINVAL, 0 },
                { "1.5s", -EINVAL, 0 },
                { "1 s", -EINVAL, 0 },
                { "1w", -EINVAL, 0 },
        };

        (void)state;
        RUN(rows, config_parse_duration);
}

static void cpus(void **state) {
        static const struct row rows[] = {
                { "1", 0, 1000000000 },
                { "0.5", 0, 500000000 },
                { "1.25", 0, 1250000000 },
                { "0.000000001", 0, 1 },
                { "1.0000000001", -EINVAL, 0 },
                { "18446744073.709551615", 0, UINT64_MAX },
                { "18446744073.709551616", -ERANGE, 0 },
                { "18446744074", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { ".5", -EINVAL, 0 },
                { "1.", -EINVAL, 0 },
                { "1,5", -EINVAL, 0 },
                { "1.5.5", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "1e1", -EINVAL, 0 },
                { "inf", -EINVAL, 0 },
        };

        (void)state;
        RUN(rows, config_parse_cpus);
}

static void formats_read_back(void **state) {
        static const uint64_t values[] = { 0,         1,          999,        1000,
                                           1023,      1024,       1500,       60000,
                                           86400000,  90061001,   1u << 20,   UINT64_C(3) << 30,
                                           500000000, 1250000000, UINT64_MAX, UINT64_MAX - 1 };
        char buf[CONFIG_UNIT_TEXT];

        (void)state;
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                uint64_t v;

                assert_int_equal(config_parse_size(config_format_size(values[i], buf), &v), 0);
                assert_true(v == values[i]);
                assert_int_equal(config_parse_duration(config_format_duration(values[i], buf), &v), 0);
                assert_true(v == values[i]);
                assert_int_equal(config_parse_cpus(config_format_cpus(values[i], buf), &v), 0);
                assert_true(v == values[i]);
        }
        assert_string_equal(config_format_size(UINT64_C(48) << 20, buf), "48m");
        assert_string_equal(config_format_size(1025, buf), "1025");
        assert_string_equal(config_format_duration(180000, buf), "3m");
        assert_string_equal(config_format_duration(1500, buf), "1500ms");
        assert_string_equal(config_format_cpus(10000000, buf), "0.01");
        assert_string_equal(config_format_cpus(UINT64_C(100000000000), buf), "100");
}

static void images(void **state) {
        static const char *const good[] = {
                "debian",
                "debian:bookworm-slim",
                "library/debian",
                "ghcr.io/a/b_c/d__e/f--g:V1.0_x",
                "nikolaik/python-nodejs:python3.11-nodejs20",
                "docker.io/nikolaik/python-nodejs:python3.11-nodejs20",
                "localhost/x",
                "localhost:5000/x:1",
                "127.0.0.1:5000/a/b",
                "Registry.Example/x",
                "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "a:b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "cafe",
                "a/sha256:1",
        };
        static const char *const bad[] = {
                "",
                ":",
                "a:",
                ":a",
                "a/",
                "/a",
                "a//b",
                "a/../b",
                "A",
                "-a",
                "a b",
                "a\n",
                "a?x=1",
                "a%2f",
                "a:b:c",
                "a@sha256:0",
                "a@md5:0123",
                "a:-b",
                "a___b",
                "a..b",
                "a._b",
                "a-",
                "x:5000x/a",
                "a#b",
                "..",
                "a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
                "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
                "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0",
                "a@sha512:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                /* Ids that are none, and names that an engine takes for ids. */
                "sha256:",
                "sha256:0123",
                "sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
                "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
                "sha256",
                "sha256@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef:1",
                "sha512:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef@x",
        };
        char big[300];

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                if (!config_image_ok(good[i]))
                        fail_msg("refused: %s", good[i]);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (config_image_ok(bad[i]))
                        fail_msg("accepted: %s", bad[i]);
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                enum image_pin pin = config_image_pin(good[i]);

                if (strncmp(good[i], "sha256:", 7) == 0)
                        assert_int_equal(pin, IMAGE_PIN_ID);
                else
                        assert_int_equal(pin, strchr(good[i], '@') ? IMAGE_PIN_DIGEST : IMAGE_PIN_NONE);
        }
        memset(big, 'a', sizeof(big));
        big[255] = 0;
        assert_true(config_image_ok(big));
        big[255] = 'a';
        big[256] = 0;
        assert_false(config_image_ok(big));
}

static void names(void **state) {
        (void)state;
        assert_true(config_docker_name_ok("my_net.1-x"));
        assert_false(config_docker_name_ok("_net"));
        assert_false(config_docker_name_ok("a:b"));
        assert_false(config_docker_name_ok(""));
        assert_true(config_profile_name_ok("0dev_x-1"));
        assert_true(config_profile_name_ok("abcdefghijabcdefghijabcdefghij12"));
        assert_false(config_profile_name_ok("abcdefghijabcdefghijabcdefghij123"));
        assert_false(config_profile_name_ok("Dev"));
        assert_false(config_profile_name_ok("-dev"));
        assert_true(config_env_key_ok("_A1"));
        assert_false(config_env_key_ok("1A"));
        assert_false(config_env_key_ok("A-B"));
        assert_false(config_env_key_ok("A=B"));
        assert_true(config_account_ok("hermes"));
        assert_true(config_account_ok("DOM\\user"));
        assert_true(config_account_ok("user@example.org"));
        assert_false(config_account_ok("-x"));
        assert_false(config_account_ok("a:b"));
        assert_false(config_account_ok("a b"));
        assert_true(config_ulimit_ok("nofile"));
        assert_false(config_ulimit_ok("nproc"));
        assert_false(config_ulimit_ok("NOFILE"));
        assert_true(config_file_name_ok("a b.log"));
        assert_false(config_file_name_ok(".."));
        assert_false(config_file_name_ok("a/b"));
        assert_false(config_file_name_ok("a\x01"));
}

static void check_path(const char *in, const char *out) {
        char *s = config_path_normalise(in);

        if (out) {
                assert_non_null(s);
                assert_string_equal(s, out);
        } else {
                assert_null(s);
        }
        free(s);
}

static void paths(void **state) {
        char big[4200];

        (void)state;
        check_path("/", "/");
        check_path("//", "/");
        check_path("/a//b/./c/", "/a/b/c");
        check_path("/...", "/...");
        check_path("/..a", "/..a");
        check_path("/a/..", NULL);
        check_path("/../a", NULL);
        check_path("a", NULL);
        check_path("", NULL);
        check_path("/a\nb", NULL);
        check_path("/a\x7f", NULL);
        memset(big, 'a', sizeof(big));
        big[0] = '/';
        big[4095] = 0;
        check_path(big, big);
        big[4095] = 'a';
        big[4096] = 0;
        check_path(big, NULL);

        assert_true(config_tmpfs_path_ok("/tmp"));
        assert_true(config_tmpfs_path_ok("/process"));
        assert_true(config_tmpfs_path_ok("/devel"));
        assert_false(config_tmpfs_path_ok("/"));
        assert_false(config_tmpfs_path_ok("/proc"));
        assert_false(config_tmpfs_path_ok("/proc/x"));
        assert_false(config_tmpfs_path_ok("/sys"));
        assert_false(config_tmpfs_path_ok("/dev/shm"));
        assert_false(config_tmpfs_path_ok("/.hermes-sandbox/agent"));
        assert_false(config_tmpfs_path_ok("/a:b"));
        assert_false(config_tmpfs_path_ok("/a,size=1"));
}

static void users(void **state) {
        static const char *const bad[] = {
                "",        "1:0",          "65535",      "1:65535",
                "65535:1", "2147483648",   "1:",         "0:1900000000",
                ":1",      "1:2:3",        "root",       "auto",
                "-1",      "1:1900000000", "1900065535", "00000000000000001"
        };
        uint32_t uid, gid;

        (void)state;
        assert_int_equal(config_parse_user("1000", &uid, &gid), 0);
        assert_int_equal(uid, 1000);
        assert_int_equal(gid, 1000);
        assert_int_equal(config_parse_user("1900000000:2147483647", &uid, &gid), 0);
        assert_int_equal(uid, 1900000000);
        assert_int_equal(gid, 2147483647);
        assert_int_equal(config_parse_user("1:1900065536", &uid, &gid), 0);
        assert_int_equal(config_parse_user("1:1899999999", &uid, &gid), 0);
        assert_int_equal(config_parse_user("0:5", &uid, &gid), 0);
        assert_int_equal(uid, 0);
        assert_int_equal(gid, 5);
        assert_int_equal(config_parse_user("0", &uid, &gid), 0);
        assert_int_equal(gid, 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (config_parse_user(bad[i], &uid, &gid) != -EINVAL)
                        fail_msg("accepted: %s", bad[i]);
}

static void capabilities(void **state) {
        static const char *const bad[] = { "",     "CAP_", "SETUID", "CAP_SETGID",
                                           "KILL", "ALL",  "CHOWN ", "SYS_ADMIN" };

        (void)state;
        assert_int_equal(config_parse_capability("CHOWN"), CAP_CHOWN);
        assert_int_equal(config_parse_capability("cap_chown"), CAP_CHOWN);
        assert_int_equal(config_parse_capability("Cap_Net_Bind_Service"), CAP_NET_BIND_SERVICE);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(config_parse_capability(bad[i]), -EINVAL);
        /* Each bit has a name, and no other has one. */
        for (int cap = 0; cap < 64; cap++) {
                const char *name = config_capability_name(cap);

                assert_int_equal(name != NULL, CONFIG_CAPABILITIES >> cap & 1);
                if (name)
                        assert_int_equal(config_parse_capability(name), cap);
        }
}

static void utf8(void **state) {
        static const char *const bad[] = { "\x80",
                                           "\xc0\x80",
                                           "\xc3",
                                           "\xe0\x80\x80",
                                           "\xed\xa0\x80",
                                           "\xf0\x80\x80\x80",
                                           "\xf4\x90\x80\x80",
                                           "\xff",
                                           "\xf8\x88\x80\x80" };
        unsigned line, column;
        uint32_t c;

        (void)state;
        assert_int_equal(utf8_decode((const unsigned char *)"\xc3\xa4", 2, &c), 2);
        assert_int_equal(c, 0xe4);
        assert_int_equal(utf8_decode((const unsigned char *)"\xf4\x8f\xbf\xbf", 4, &c), 4);
        assert_int_equal(c, 0x10ffff);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(utf8_decode((const unsigned char *)bad[i], strlen(bad[i]), &c), 0);
        assert_null(config_utf8_problem("a\tb\r\n\xc3\xa4", 7, &line, &column));
        assert_string_equal(config_utf8_problem("a\n\xc3\xa4\x00", 5, &line, &column), "a NUL byte");
        assert_int_equal(line, 2);
        assert_int_equal(column, 2);
        assert_string_equal(config_utf8_problem("\x1b", 1, &line, &column), "a control character");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(integers),
                cmocka_unit_test(sizes),
                cmocka_unit_test(durations),
                cmocka_unit_test(cpus),
                cmocka_unit_test(formats_read_back),
                cmocka_unit_test(images),
                cmocka_unit_test(names),
                cmocka_unit_test(paths),
                cmocka_unit_test(users),
                cmocka_unit_test(capabilities),
                cmocka_unit_test(utf8),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
