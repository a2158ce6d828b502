#include "common/image_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define A "sha256:aaaa"
#define B "sha256:bbbb"

static void names_that_mean_the_same(void **state) {
        static const struct {
                const char *asked, *ours;
                bool same;
        } of[] = {
                { "debian", "docker.io/library/debian:latest", true },
                { "index.docker.io/library/debian", "debian", true },
                { "library/debian:latest", "debian", true },
                { "a/b:c", "docker.io/a/b:c", true },
                { "host:5000/x", "host:5000/x:latest", true },
                { "debian", "debian:12", false },
                { "debian:1:latest", "debian:1", false },
                { "debian", "debianx", false },
                { "", "debian", false },
                { "debian:12", "debian:12@" A, true },
                { "debian:12@" A, "debian:12@" A, true },
                { "debian@" A, "debian:12@" A, true },
                { "debian:12@" B, "debian:12@" A, false },
                { "debian:12@" A, "debian:12", false },
                { "debian:13", "debian:12@" A, false },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
                if (image_name_means(of[i].asked, of[i].ours) != of[i].same)
                        fail_msg("%s and %s", of[i].asked, of[i].ours);
}

static void parts(void **state) {
        static const struct {
                const char *name, *repository, *tag, *digest;
        } of[] = {
                { "debian", "debian", "latest", "" },
                { "docker.io/library/debian:12", "debian", "12", "" },
                { "host:5000/a/b", "host:5000/a/b", "latest", "" },
                { "a/b@" A, "a/b", "", A },
                { "a/b:c@" A, "a/b", "c", A },
        };
        struct image_name n;
        char buf[64];

        (void)state;
        for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
                image_name_parse(of[i].name, &n);
                snprintf(buf, sizeof(buf), "%.*s", n.repository_len, n.repository);
                assert_string_equal(buf, of[i].repository);
                snprintf(buf, sizeof(buf), "%.*s", n.tag_len, n.tag);
                assert_string_equal(buf, of[i].tag);
                assert_string_equal(n.digest, of[i].digest);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_that_mean_the_same),
                cmocka_unit_test(parts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
