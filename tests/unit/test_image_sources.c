/* image_sources.h: which of a machine's apt sources an image is made from. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/image/image_sources.h"

static char dir[] = "/tmp/test-image-sources.XXXXXX";
static char *text;
static struct errmsg e;

static void put(const char *name, const char *what) {
        char path[256];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(what, f);
        fclose(f);
}

static int setup(void **state) {
        char path[256];

        (void)state;
        if (!mkdtemp(dir))
                return -1;
        snprintf(path, sizeof(path), "%s/sources.list.d", dir);
        return mkdir(path, 0700);
}

static int teardown(void **state) {
        char command[256];

        (void)state;
        snprintf(command, sizeof(command), "rm -r '%s'", dir);
        return system(command);
}

static int wipe(void **state) {
        char command[256];

        (void)state;
        free(text);
        text = NULL;
        snprintf(command, sizeof(command), "rm -f '%s'/sources.list '%s'/sources.list.d/*", dir, dir);
        return system(command);
}

static int read_for(const char *suite) {
        free(text);
        text = NULL;
        return image_sources_read(dir, "bookworm", suite, &text, &e);
}

static const char debian[] = "# of the installer\n"
                             "Types: deb deb-src\n"
                             "URIs: http://mirror.example/debian\n"
                             "#Enabled: no\n"
                             "suites: bookworm\n"
                             " bookworm-updates bookworm-backports\n"
                             "Components: main contrib\n"
                             "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
                             "\n\n"
                             "Types: deb\n"
                             "URIs: http://mirror.example/security\n"
                             "Suites: bookworm-security\n"
                             "Components: main";

static void test_deb822(void **state) {
        (void)state;
        put("sources.list.d/debian.sources", debian);
        assert_int_equal(read_for("bookworm"), 0);
        assert_string_equal(text, "Types: deb\n"
                                  "URIs: http://mirror.example/debian\n"
                                  "Suites: bookworm bookworm-updates\n"
                                  "Components: main\n"
                                  "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
                                  "\n"
                                  "Types: deb\n"
                                  "URIs: http://mirror.example/security\n"
                                  "Suites: bookworm-security\n"
                                  "Components: main\n"
                                  "\n");
        /* Another suite is at the same places. */
        assert_int_equal(read_for("trixie"), 0);
        assert_non_null(strstr(text, "Suites: trixie trixie-updates\n"));
        assert_non_null(strstr(text, "Suites: trixie-security\n"));
}

static void test_one_line(void **state) {
        (void)state;
        put("sources.list", "# deb http://off.example/ bookworm main\n"
                            "deb cdrom:[x]/ bookworm main\n"
                            "deb-src http://mirror.example/debian bookworm main\n"
                            "  deb\thttp://mirror.example/debian  bookworm   contrib main # why\n"
                            "deb [ arch=amd64 signed-by=/k/debian-archive.gpg check-valid-until=no ] "
                            "http://mirror.example/debian bookworm-updates main\n");
        assert_int_equal(read_for("bookworm"), 0);
        assert_string_equal(text, "Types: deb\n"
                                  "URIs: http://mirror.example/debian\n"
                                  "Suites: bookworm\n"
                                  "Components: main\n"
                                  "\n"
                                  "Types: deb\n"
                                  "URIs: http://mirror.example/debian\n"
                                  "Suites: bookworm-updates\n"
                                  "Components: main\n"
                                  "Signed-By: /k/debian-archive.gpg\n"
                                  "Check-Valid-Until: no\n"
                                  "\n");
}

/* What is not Debian's own archive. */
static void test_others(void **state) {
        (void)state;
        put("sources.list", "deb [signed-by=/k/other.gpg] http://other.example/ bookworm main\n"
                            "deb http://other.example/ bookworm stable\n"
                            "deb http://other.example/ bookworm-other main\n"
                            "deb http://other.example/ ./\n"
                            "deb [broken http://other.example/ bookworm main\n"
                            "deb\n");
        put("sources.list.d/x.sources",
            "Types: deb\nURIs: http://off.example\nSuites: bookworm\nComponents: main\n"
            "Enabled: no\n\n"
            "Types: deb\nURIs: http://o.example\nSuites: bookworm\nComponents: main\n"
            "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n\n"
            ": x\nno colon\n\n");
        put("sources.list.d/x.list.save", "deb http://old.example/ bookworm main\n");
        assert_int_equal(read_for("bookworm"), -ENOENT);
        assert_non_null(strstr(e.text, "--mirror"));
}

/* A machine that has both is asked for each by its name. */
static void test_own_first(void **state) {
        (void)state;
        put("sources.list",
            "deb http://new.example/ trixie main\ndeb http://own.example/ bookworm main\n");
        assert_int_equal(read_for("trixie"), 0);
        assert_non_null(strstr(text, "new.example"));
        assert_null(strstr(text, "own.example"));
}

static void test_none(void **state) {
        (void)state;
        assert_int_equal(read_for("bookworm"), -ENOENT);
        put("sources.list", "");
        put("sources.list.d/a.sources", "\n \n#\n");
        assert_int_equal(read_for("bookworm"), -ENOENT);
}

static void test_codename(void **state) {
        char path[256], name[32];

        (void)state;
        put("sources.list", "ID=debian\nVERSION_CODENAME=\"bookworm\"\n");
        snprintf(path, sizeof(path), "%s/sources.list", dir);
        image_sources_codename(path, name, sizeof(name));
        assert_string_equal(name, "bookworm");
        image_sources_codename("/nonexistent", name, sizeof(name));
        assert_string_equal(name, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_deb822, NULL, wipe),
                cmocka_unit_test_setup_teardown(test_one_line, NULL, wipe),
                cmocka_unit_test_setup_teardown(test_others, NULL, wipe),
                cmocka_unit_test_setup_teardown(test_own_first, NULL, wipe),
                cmocka_unit_test_setup_teardown(test_none, NULL, wipe),
                cmocka_unit_test_setup_teardown(test_codename, NULL, wipe),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
