/* image_options.h: what is taken from the command line, and what is no name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/image/image_options.h"

static struct image_options o;
static struct errmsg e;

#define PARSE(...)                                      \
        parse((const char *[]){ "image", __VA_ARGS__ }, \
              sizeof((const char *[]){ "image", __VA_ARGS__ }) / sizeof(const char *))

static int parse(const char **words, size_t n) {
        char *argv[32] = { NULL };

        for (size_t i = 0; i < n; i++)
                argv[i] = (char *)words[i];
        return image_options_parse(&o, (int)n, argv, &e);
}

static void test_build(void **state) {
        (void)state;
        assert_int_equal(PARSE("build"), 0);
        assert_int_equal(o.verb, IMAGE_BUILD);
        assert_string_equal(o.name, "hermes-sandbox/base:bookworm");
        assert_int_equal(PARSE("build", "--flavour", "dev", "--suite=trixie", "--package", "socat",
                               "--package", "jq", "--package", "socat", "--mirror", "http://m/debian",
                               "--mirror", "deb [signed-by=/k] http://s/ trixie-security main"),
                         0);
        assert_string_equal(o.name, "hermes-sandbox/dev:trixie");
        assert_int_equal(o.n_packages, 2);
        assert_string_equal(o.packages[0], "jq");
        assert_string_equal(o.packages[1], "socat");
        assert_int_equal(o.n_mirrors, 2);
        assert_int_equal(PARSE("--name", "debian:bookworm-slim", "build"), 0);
        assert_string_equal(o.name, "debian:bookworm-slim");
        assert_int_equal(PARSE("build", "--help"), 0);
        assert_true(o.help);
}

static void test_remove(void **state) {
        (void)state;
        assert_int_equal(PARSE("remove", "debian:bookworm-slim", "--engine-socket", "/run/x.sock"), 0);
        assert_int_equal(o.verb, IMAGE_REMOVE);
        assert_string_equal(o.name, "debian:bookworm-slim");
        assert_string_equal(o.engine_socket, "/run/x.sock");
        assert_int_equal(PARSE("remove", "sha256:0123456789ab"), 0);
        assert_int_equal(PARSE("remove"), -EINVAL);
        assert_int_equal(PARSE("remove", "a", "b"), -EINVAL);
        assert_int_equal(PARSE("remove", "../containers/x"), -EINVAL);
        assert_int_equal(PARSE("remove", "x", "--package", "jq"), -EINVAL);
}

static void test_usage(void **state) {
        static const char *const bad[][2] = {
                { "--flavour", "x" },
                { "--suite", "sid" },
                { "--name", "debian" },
                { "--name", "Debian:x" },
                { "--name", "a@sha256:0" },
                { "--package", "jq-" },
                { "--package", "-x" },
                { "--package", "a,b" },
                { "--package", "./x.deb" },
                { "--package", "?all" },
                { "--package", "a b" },
                { "--mirror", "nowhere" },
                { "--mirror", "http://a b" },
                { "--mirror", "--x://" },
                { "--mirror", "deb x\ndeb y" },
                { "--tmp", "x" },
                { "--cache", "/a b" },
                { "--engine-socket", "x" },
                { "--nope", "x" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (PARSE("build", bad[i][0], bad[i][1]) != -EINVAL)
                        fail_msg("taken: %s %s", bad[i][0], bad[i][1]);
        assert_int_equal(PARSE("build", "x"), -EINVAL);
        assert_int_equal(PARSE("list"), -EINVAL);
        assert_int_equal(PARSE("build", "--name"), -EINVAL);
        assert_string_equal(e.text, "a value is missing behind --name");
        assert_int_equal(image_options_parse(&o, 1, (char *[]){ (char *)"image", NULL }, &e), -EINVAL);
}

static void test_names(void **state) {
        static const char *const good[] = { "a:b",
                                            "debian:bookworm-slim",
                                            "hermes-sandbox/dev:1.0_x",
                                            "registry.example.org:5000/a/b:c",
                                            "localhost:5000/a:c",
                                            "a__b/c---d:E",
                                            "Upper.example/a:b" };
        static const char *const bad[] = { "",       ":b",     "a:",       "a/:b",  "/a:b",    "a//b:c",
                                           "../a:b", "a/..:b", "a/../b:c", ".a:b",  "a_:b",    "a___b:c",
                                           "a..b:c", "A:b",    "a:b/c",    "a:b c", "a?x=y:z", "a#b:c",
                                           "a%2f:b", "a:.b",   "a:b:c",    "-a:b",  "a&b:c",   "a:b\n" };

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                if (!image_name_ok(good[i], true))
                        fail_msg("refused: %s", good[i]);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (image_name_ok(bad[i], true) || image_name_ok(bad[i], false))
                        fail_msg("taken: %s", bad[i]);
        assert_false(image_name_ok("debian", true));
        assert_true(image_name_ok("debian", false));
        assert_true(image_name_ok("localhost:5000/a", false));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_build),
                cmocka_unit_test(test_remove),
                cmocka_unit_test(test_usage),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
