/* Folders that are meant for a place in another one: the links to them, also where several runs make the same at once. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli_mount.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "filetree.h"

#define ROUNDS 300
#define RUNS 8

static char folder[64];
static struct errmsg e;

static int setup(void **state) {
        (void)state;
        strcpy(folder, "/tmp/cli-mount-XXXXXX");
        return mkdtemp(folder) && chdir(folder) == 0 && mkdir("home", 0755) == 0 &&
                               mkdir("skills", 0755) == 0
                       ? 0
                       : -1;
}

static int teardown(void **state) {
        (void)state;
        if (chdir("/") < 0)
                return -1;
        tree_remove(folder);
        return 0;
}

/* As docker run -v home:/root -v skills:/root/.hermes/skills:ro. 0, or an exit status. */
static int open_both(void) {
        char home[PATH_MAX], skills[PATH_MAX];
        struct cli_mounts m = { .n = 0 };
        _cleanup_fd_ int fd = -1;

        snprintf(home, sizeof(home), "%s/home:/root", folder);
        snprintf(skills, sizeof(skills), "%s/skills:/root/.hermes/skills:ro", folder);
        if (cli_mounts_add(&m, "--volume", home, &e) != 0 ||
            cli_mounts_add(&m, "--volume", skills, &e) != 0)
                return EXIT_USAGE;
        return cli_mounts_open(&m, "--volume", &fd, &e);
}

static void expect_link(void) {
        char to[256];
        ssize_t n = readlink("home/.hermes/skills", to, sizeof(to) - 1);

        assert_true(n > 0);
        to[n] = '\0';
        assert_string_equal(to, "/.hermes-folders/root+.hermes+skills");
}

static void a_link_is_made(void **state) {
        (void)state;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(open_both(), 0);
                expect_link();
        }
        /* An empty folder gives way, as the genuine docker leaves one. */
        assert_int_equal(unlink("home/.hermes/skills"), 0);
        assert_int_equal(mkdir("home/.hermes/skills", 0755), 0);
        assert_int_equal(open_both(), 0);
        expect_link();
}

static void what_is_somebodys_stays(void **state) {
        (void)state;
        assert_int_equal(mkdir("home/.hermes", 0755), 0);
        assert_int_equal(symlink("nowhere", "home/.hermes/skills"), 0);
        assert_int_equal(open_both(), EXIT_USAGE);
        assert_non_null(strstr(e.text, "home: skills: File exists"));
        assert_int_equal(unlink("home/.hermes/skills"), 0);
        tree_file("home/.hermes/skills", "", 0644);
        assert_int_equal(open_both(), EXIT_USAGE);
        assert_non_null(strstr(e.text, "File exists"));
        assert_int_equal(unlink("home/.hermes/skills"), 0);
        assert_int_equal(mkdir("home/.hermes/skills", 0755), 0);
        tree_file("home/.hermes/skills/one", "", 0644);
        assert_int_equal(open_both(), EXIT_USAGE);
        assert_non_null(strstr(e.text, "Directory not empty"));
}

/* As the genuine docker, which is root, leaves it. */
static void anothers_folder_is_named_with_its_mend(void **state) {
        char mend[256];
        pid_t pid;
        int status;

        (void)state;
        if (geteuid() != 0)
                skip();
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(chown("home", 4000, 4001), 0);
        assert_int_equal(mkdir("home/.hermes", 0755), 0);
        assert_int_equal(mkdir("home/.hermes/skills", 0755), 0);
        snprintf(mend, sizeof(mend),
                 "Permission denied: it is another user's: sudo chown -R 4000:4001 %s/home", folder);
        pid = fork();
        if (pid == 0)
                _exit(setgid(4001) < 0 || setuid(4000) < 0 || open_both() != EXIT_USAGE ? 1
                      : strstr(e.text, mend)                                            ? 0
                                                                                        : 2);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* All of them begin when the pipe's last writer is gone. */
static void start_together(pid_t pids[RUNS]) {
        int start[2];
        char byte;

        assert_int_equal(pipe(start), 0);
        for (int i = 0; i < RUNS; i++) {
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] > 0)
                        continue;
                close(start[1]);
                if (read(start[0], &byte, 1) != 0)
                        _exit(99);
                if (open_both() == 0)
                        _exit(0);
                dprintf(STDERR_FILENO, "%s\n", e.text);
                _exit(1);
        }
        close(start[0]);
        close(start[1]);
}

static void many_at_once(void **state) {
        pid_t pids[RUNS];
        int status;

        (void)state;
        for (int round = 0; round < ROUNDS; round++) {
                start_together(pids);
                for (int i = 0; i < RUNS; i++) {
                        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                        assert_int_equal(status, 0);
                }
                expect_link();
                assert_int_equal(unlink("home/.hermes/skills"), 0);
                /* Every other time a folder is there that has to give way. */
                if (round % 2)
                        assert_int_equal(mkdir("home/.hermes/skills", 0755), 0);
        }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(a_link_is_made),
                CASE(what_is_somebodys_stays),
                CASE(anothers_folder_is_named_with_its_mend),
                CASE(many_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
