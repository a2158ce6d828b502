/* The helper's reader of group, gshadow and passwd. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "helper/helper.h"

static char dir[] = "/tmp/hst-accounts-XXXXXX", path[64];
static int etc = -1;

static int make_dir(void **state) {
        (void)state;
        if (!mkdtemp(dir))
                return -1;
        snprintf(path, sizeof(path), "%s/group", dir);
        etc = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return etc < 0 ? -1 : 0;
}

static int remove_dir(void **state) {
        (void)state;
        unlinkat(etc, "group", 0);
        unlinkat(etc, "real", 0);
        close(etc);
        return rmdir(dir);
}

static void put(const char *text, size_t n) {
        int fd;

        unlinkat(etc, "group", 0);
        fd = openat(etc, "group", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, n), (ssize_t)n);
        assert_int_equal(fchmod(fd, 0644), 0);
        close(fd);
}

static int look(const char *text) {
        put(text, strlen(text));
        return accounts_look(path, getuid(), "docker", "engine", NULL);
}

static void finds_the_member(void **state) {
        (void)state;
        assert_int_equal(look("docker:x:7:engine\n"), ACCOUNTS_MEMBER);
        assert_int_equal(look("docker:x:7:engine"), ACCOUNTS_MEMBER);
        assert_int_equal(look("root:x:0:\ndocker:x:7:a,engine,b\nz:x:9:\n"), ACCOUNTS_MEMBER);
        assert_int_equal(look("docker:!:root:a,engine\n"), ACCOUNTS_MEMBER); /* as in gshadow */
        assert_int_equal(look("docker:x:7:a,engine:more\n"), ACCOUNTS_MEMBER);
}

/* Each is near to it. */
static void finds_the_group_alone(void **state) {
        static const char *const lines[] = { "docker:x:7:\n",
                                             "docker:x:7:engin\n",
                                             "docker:x:7:engines\n",
                                             "docker:x:7:xengine\n",
                                             "docker:x:7:a engine\n",
                                             "docker:engine:7:\n",
                                             "docker:x:engine:\n",
                                             "docker:x:7:a:engine\n",
                                             "docker:x:7\n",
                                             "docker\n",
                                             "docker",
                                             "docker:x:7:,,\n",
                                             "docker:a,engine:7:\n" };

        (void)state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                assert_int_equal(look(lines[i]), ACCOUNTS_THERE);
}

static void finds_no_group(void **state) {
        static const char *const lines[] = { "",
                                             "\n\n",
                                             "dockers:x:7:engine\n",
                                             "docke:x:7:engine\n",
                                             "xdocker:x:7:engine\n",
                                             "#docker:x:7:engine\n",
                                             "a:docker:7:engine\n",
                                             "a:x:1:docker\nengine:x:2:docker,engine\n",
                                             "a:x:1:b,docker:x:7:engine\n",
                                             ":x:7:engine\n",
                                             "DOCKER:x:7:engine\n" };

        (void)state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                assert_int_equal(look(lines[i]), ACCOUNTS_NONE);
}

/* The C library takes the first one, and so does the tool. */
static void the_first_line_counts(void **state) {
        (void)state;
        assert_int_equal(look("docker:x:7:\ndocker:x:7:engine\n"), ACCOUNTS_THERE);
        assert_int_equal(look("docker:x:7:engine\ndocker:x:7:\n"), ACCOUNTS_MEMBER);
}

static void a_nul_is_no_end_of_a_name(void **state) {
        static const char group[] = "docker\0:x:7:engine\n", member[] = "docker:x:7:engine\0\n";

        (void)state;
        put(group, sizeof(group) - 1);
        assert_int_equal(accounts_look(path, getuid(), "docker", "engine", NULL), ACCOUNTS_NONE);
        put(member, sizeof(member) - 1);
        assert_int_equal(accounts_look(path, getuid(), "docker", "engine", NULL), ACCOUNTS_THERE);
}

static void gids(void **state) {
        static const struct {
                const char *line;
                int r;
                gid_t gid;
        } cases[] = {
                { "docker:x:0:\n", ACCOUNTS_THERE, 0 },
                { "docker:x:4294967294:\n", ACCOUNTS_THERE, 4294967294U },
                { "docker:x:007", ACCOUNTS_THERE, 7 },
                { "docker:x:4294967295:\n", -EBADMSG, 0 },
                { "docker:x:4294967296:\n", -EBADMSG, 0 },
                { "docker:x:18446744073709551623:\n", -EBADMSG, 0 },
                { "docker:x:99999999999999999999999999999999999999999999:\n", -EBADMSG, 0 },
                { "docker:x::\n", -EBADMSG, 0 },
                { "docker:x:-1:\n", -EBADMSG, 0 },
                { "docker:x: 7:\n", -EBADMSG, 0 },
                { "docker:x:7a:\n", -EBADMSG, 0 },
                { "docker:x:a7:\n", -EBADMSG, 0 },
                { "docker:x:7,8:\n", -EBADMSG, 0 },
                { "docker:x:"
                  "0000000000000000000000000000000000000000000000000000000000000000000000000007:\n",
                  -EBADMSG, 0 },
                { "docker\n", -EBADMSG, 0 },
                { "a:x:7:\n", ACCOUNTS_NONE, 0 }
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                gid_t gid = 12345;

                put(cases[i].line, strlen(cases[i].line));
                assert_int_equal(accounts_look(path, getuid(), "docker", NULL, &gid), cases[i].r);
                assert_int_equal(gid, cases[i].r == ACCOUNTS_THERE ? cases[i].gid : 12345);
        }
}

/* Over the end of a block that stdio reads in every position. */
static void long_lines(void **state) {
        enum { MOST = 3 * 16384 };
        char *text = malloc(MOST + 64);

        (void)state;
        assert_non_null(text);
        for (size_t n = 4050; n < 4150; n++) {
                size_t head = (size_t)sprintf(text, "docker:x:7:");

                memset(text + head, 'a', n);
                strcpy(text + head + n, ",engine\n");
                put(text, strlen(text));
                assert_int_equal(accounts_look(path, getuid(), "docker", "engine", NULL),
                                 ACCOUNTS_MEMBER);
        }
        free(text);
}

static int looked(void) {
        return accounts_look(path, getuid(), "docker", "engine", NULL);
}

/* What the start of a longer word is, the word is not. */
static void long_words(void **state) {
        char name[100] = "", line[256];

        (void)state;
        for (size_t n = 0; n < sizeof(name) - 1; n++) {
                name[n] = 'a';
                snprintf(line, sizeof(line), "docker:x:7:%saaa,engine\n", name);
                put(line, strlen(line));
                assert_int_equal(accounts_look(path, getuid(), "docker", name, NULL), ACCOUNTS_THERE);
                assert_int_equal(looked(), ACCOUNTS_MEMBER);
        }
}

static void files_that_are_not_trusted(void **state) {
        (void)state;
        assert_int_equal(look("docker:x:7:engine\n"), ACCOUNTS_MEMBER);
        assert_int_equal(accounts_look(path, getuid() + 1, "docker", "engine", NULL), -EPERM);
        for (mode_t bad = 0020; bad >= 0002; bad /= 8) {
                assert_int_equal(fchmodat(etc, "group", 0644 | bad, 0), 0);
                assert_int_equal(looked(), -EPERM);
        }
        assert_int_equal(fchmodat(etc, "group", 0600, 0), 0);
        assert_int_equal(looked(), ACCOUNTS_MEMBER);
        assert_int_equal(renameat(etc, "group", etc, "real"), 0);
        assert_int_equal(looked(), ACCOUNTS_NONE);
        assert_int_equal(symlinkat("real", etc, "group"), 0);
        assert_int_equal(looked(), -EPERM);
        assert_int_equal(unlinkat(etc, "group", 0), 0);
        assert_int_equal(mkfifoat(etc, "group", 0644), 0);
        assert_int_equal(looked(), -EPERM);
        assert_int_equal(unlinkat(etc, "group", 0), 0);
        assert_int_equal(mkdirat(etc, "group", 0755), 0);
        assert_int_equal(looked(), -EPERM);
        assert_int_equal(unlinkat(etc, "group", AT_REMOVEDIR), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_the_member),
                cmocka_unit_test(finds_the_group_alone),
                cmocka_unit_test(finds_no_group),
                cmocka_unit_test(the_first_line_counts),
                cmocka_unit_test(a_nul_is_no_end_of_a_name),
                cmocka_unit_test(gids),
                cmocka_unit_test(long_lines),
                cmocka_unit_test(long_words),
                cmocka_unit_test(files_that_are_not_trusted),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
