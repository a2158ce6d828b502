/* Files on disk: drop-ins and their order, who may be believed, and the shipped file. */
#include <errno.h>
#include <fcntl.h>
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

#include "config/load.h"

static char dir[64], file[96], dropins[96];

static void put(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
}

static const char *dropin(const char *name) {
        static char path[160];

        snprintf(path, sizeof(path), "%s/%s", dropins, name);
        return path;
}

static int setup(void **state) {
        (void)state;
        umask(022);
        strcpy(dir, "/tmp/test_config.XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(file, sizeof(file), "%s/sandbox.yaml", dir);
        snprintf(dropins, sizeof(dropins), "%s/sandbox.d", dir);
        put(file, "pool: {size: 1}\n");
        return mkdir(dropins, 0755);
}

static int teardown(void **state) {
        char command[96];

        (void)state;
        snprintf(command, sizeof(command), "rm -rf '%s'", dir);
        return system(command) == 0 ? 0 : -1;
}

/* Loads, expects @r and, when it is a failure, a line that is @format with the folder in it. */
static struct config *load(int want, const char *line) {
        struct config *c = NULL;
        struct errmsg e = { "" };
        int r = config_load(file, dropins, &c, &e);
        char expected[512] = "";

        if (line)
                snprintf(expected, sizeof(expected), "%s/%s", dir, line);
        if (r != want || strcmp(e.text, expected) != 0)
                fail_msg("got %d: %s\nwant %d: %s", r, e.text, want, expected);
        return r < 0 ? NULL : c;
}

static void merged_in_order(void **state) {
        struct config *c;

        (void)state;
        put(file, "pool:\n  size: 1\n  tmpfs: {/tmp: 40m}\n  allow_users: [a, b]\nprofiles: {dev: "
                  "{size: 2}}\n");
        put(dropin("10-b.yaml"), "pool: {size: 5, cpus: 2}\nprofiles: {dev: {cpus: 3}, two: {}}\n");
        put(dropin("9.yaml"), "pool: {size: 9, tmpfs: {/home/sandbox: 20m}}\n");
        put(dropin("A.yaml"), "pool: {allow_users: [c]}\n");
        put(dropin("empty.yaml"), "# nothing\n");
        put(dropin("no.yml"), "{{{\n");
        put(dropin(".hidden.yaml"), "{{{\n");
        put(dropin("x.yaml~"), "{{{\n");
        c = load(0, NULL);
        assert_int_equal(c->profiles[0].size, 9);
        assert_int_equal(c->profiles[0].cpu_nano, 2000000000);
        assert_int_equal(c->profiles[0].tmpfs[0].bytes, 20 << 20);
        assert_int_equal(c->profiles[0].tmpfs[1].bytes, 40 << 20);
        assert_string_equal(c->profiles[0].allow_users[0], "c");
        assert_null(c->profiles[0].allow_users[1]);
        assert_int_equal(c->n_profiles, 3);
        assert_int_equal(c->profiles[1].size, 2);
        assert_int_equal(c->profiles[1].cpu_nano, 3000000000);
        config_free(c);
}

static void complaints_name_the_file(void **state) {
        (void)state;
        put(dropin("a.yaml"), "pool:\n  sise: 1\n");
        put(file, "pool: {size: 1001}\n");
        load(-EINVAL,
             "sandbox.yaml:1:14: pool.size: found \"1001\", expected a whole number from 0 to 1000");
        /* also where a later file would replace the bad value */
        put(dropin("a.yaml"), "pool: {size: 3}\n");
        load(-EINVAL,
             "sandbox.yaml:1:14: pool.size: found \"1001\", expected a whole number from 0 to 1000");
        put(file, "pool: {max_sandboxes: 4}\n");
        put(dropin("a.yaml"), "\n\npool: {size: 5}\n");
        load(-EINVAL, "sandbox.d/a.yaml:3:14: pool.size: found size 5 with max_sandboxes 4, expected a "
                      "size of at "
                      "most max_sandboxes");
        put(dropin("a.yaml"), "pool: {}\npool: {}\n");
        load(-EINVAL, "sandbox.d/a.yaml:2:1: pool: found a repeated key, expected each key once");
}

static void missing(void **state) {
        struct config *c = NULL;
        struct errmsg e;

        (void)state;
        rmdir(dropins);
        config_free(load(0, NULL));
        assert_int_equal(config_load(file, NULL, &c, &e), 0);
        config_free(c);
        unlink(file);
        load(-ENOENT, "sandbox.yaml: cannot be read: No such file or directory");
}

static void not_believed(void **state) {
        char other[512];

        (void)state;
        chmod(file, 0664);
        snprintf(other, sizeof(other),
                 "sandbox.yaml: found mode 0664, expected one that lets only the owner write: chmod "
                 "go-w %s",
                 file);
        load(-EPERM, other);
        chmod(file, 0646);
        snprintf(other, sizeof(other),
                 "sandbox.yaml: found mode 0646, expected one that lets only the owner write: chmod "
                 "go-w %s",
                 file);
        load(-EPERM, other);
        chmod(file, 0600);
        config_free(load(0, NULL));

        chmod(dropins, 0775);
        snprintf(
                other, sizeof(other),
                "sandbox.d: found mode 0775, expected one that lets only the owner write: chmod go-w %s",
                dropins);
        load(-EPERM, other);
        chmod(dropins, 0755);

        put(dropin("a.yaml"), "");
        chmod(dropin("a.yaml"), 0666);
        snprintf(other, sizeof(other),
                 "sandbox.d/a.yaml: found mode 0666, expected one that lets only the owner write: chmod "
                 "go-w %s",
                 dropin("a.yaml"));
        load(-EPERM, other);
        unlink(dropin("a.yaml"));
        assert_int_equal(symlink(file, dropin("a.yaml")), 0);
        load(-ELOOP, "sandbox.d/a.yaml: found a symbolic link, expected the file itself");
        unlink(dropin("a.yaml"));
        assert_int_equal(mkfifo(dropin("a.yaml"), 0600), 0);
        load(-EPERM, "sandbox.d/a.yaml: found a special file, expected a regular file");
        unlink(dropin("a.yaml"));

        snprintf(other, sizeof(other), "%s/other", dir);
        assert_int_equal(rename(file, other), 0);
        assert_int_equal(symlink(other, file), 0);
        load(-ELOOP, "sandbox.yaml: found a symbolic link, expected the file itself");
        unlink(file);
        assert_int_equal(mkdir(file, 0755), 0);
        load(-EPERM, "sandbox.yaml: found a special file, expected a regular file");
}

static void other_owner(void **state) {
        char line[512];
        struct config *c;

        (void)state;
        if (geteuid() != 0) {
                print_message("only root can give a file away\n");
                skip();
        }
        assert_int_equal(chown(file, 65534, 65534), 0);
        snprintf(line, sizeof(line),
                 "sandbox.yaml: found the owner uid 65534, expected root: chown root %s", file);
        load(-EPERM, line);
        /* by name, as `config check FILE` reads it, anyone's file is read */
        assert_int_equal(config_load_files(file, NULL, false, &c, NULL), 0);
        config_free(c);
        /* and its owner may load it */
        assert_int_equal(chmod(dir, 0755), 0);
        assert_int_equal(seteuid(65534), 0);
        config_free(load(0, NULL));
        assert_int_equal(seteuid(0), 0);
}

static void too_large(void **state) {
        (void)state;
        assert_int_equal(truncate(file, 1 << 30), 0);
        load(-EINVAL, "sandbox.yaml:1:1: file: found more than 1 MiB, expected a smaller file");
}

static void too_many(void **state) {
        char name[32], line[64];

        (void)state;
        for (int i = 0; i < 257; i++) {
                snprintf(name, sizeof(name), "%03d.yaml", i);
                put(dropin(name), "");
        }
        snprintf(line, sizeof(line), "sandbox.d: found more than 256 files, expected fewer");
        load(-E2BIG, line);
        unlink(dropin("000.yaml"));
        config_free(load(0, NULL));
}

static void shipped_file(void **state) {
        struct config *c;
        struct errmsg e = { "" };

        (void)state;
        if (access("etc/sandbox.yaml", R_OK) < 0) {
                print_message("not started in the project's folder\n");
                skip();
        }
        if (config_load_files("etc/sandbox.yaml", NULL, false, &c, &e) < 0)
                fail_msg("%s", e.text);
        assert_int_equal(c->n_profiles, 1);
        config_free(c);
}

/* What the shipped file shows as comments is valid too, and says the defaults. */
static void shipped_comments(void **state) {
        struct config *c, *plain;
        char line[256], uncommented[128];
        FILE *in = fopen("etc/sandbox.yaml", "re"), *out;
        struct errmsg e = { "" };

        (void)state;
        if (!in) {
                print_message("not started in the project's folder\n");
                skip();
        }
        snprintf(uncommented, sizeof(uncommented), "%s/uncommented.yaml", dir);
        out = fopen(uncommented, "we");
        assert_non_null(out);
        while (fgets(line, sizeof(line), in)) {
                size_t indent = strspn(line, " ");
                char *p = line + indent, *word = p + 2 + strspn(p + 1, " ") - 1;
                /* a comment whose first word ends in a colon, or is a path in quotes, is a key */
                bool key = p[0] == '#' && p[1] == ' ' &&
                           (word[0] == '"' ||
                            word[strspn(word, "abcdefghijklmnopqrstuvwxyz_")] == ':') &&
                           strchr(word, '.') != word && strncmp(word, "auto:", 5) != 0;

                if (key)
                        memmove(p, p + 2, strlen(p + 2) + 1);
                fputs(line, out);
        }
        fclose(in);
        fclose(out);
        if (config_load_files(uncommented, NULL, false, &c, &e) < 0)
                fail_msg("%s", e.text);
        assert_int_equal(config_load_files("etc/sandbox.yaml", NULL, false, &plain, &e), 0);
        assert_int_equal(c->n_profiles, 2);
        assert_string_equal(c->profiles[1].name, "dev");
        assert_string_equal(c->profiles[1].network, "bridge");
        assert_int_equal(c->profiles[1].memory_bytes, UINT64_C(1) << 30);
        assert_memory_equal(c->profiles[0].recipe, plain->profiles[0].recipe, CONFIG_RECIPE);
        assert_int_equal(c->profiles[0].limits.command_bytes, plain->profiles[0].limits.command_bytes);
        assert_int_equal(c->profiles[0].limits.timeout_ms, plain->profiles[0].limits.timeout_ms);
        assert_int_equal(c->profiles[0].limits.timeout_max_ms, plain->profiles[0].limits.timeout_max_ms);
        assert_int_equal(c->profiles[0].limits.output_bytes, plain->profiles[0].limits.output_bytes);
        assert_int_equal(c->profiles[0].limits.grace_ms, plain->profiles[0].limits.grace_ms);
        assert_int_equal(c->profiles[0].limits.exec_rate, plain->profiles[0].limits.exec_rate);
        assert_int_equal(c->profiles[0].reuse, plain->profiles[0].reuse);
        assert_int_equal(c->profiles[0].max_uses, plain->profiles[0].max_uses);
        assert_int_equal(c->profiles[0].max_age_ms, plain->profiles[0].max_age_ms);
        assert_int_equal(c->profiles[0].on_empty, plain->profiles[0].on_empty);
        assert_int_equal(c->profiles[0].cold_after_ms, plain->profiles[0].cold_after_ms);
        assert_int_equal(c->profiles[0].max_sandboxes, plain->profiles[0].max_sandboxes);
        assert_string_equal(c->audit_file, plain->audit_file);
        assert_string_equal(c->engine_socket, plain->engine_socket);
        config_free(c);
        config_free(plain);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                ON_DISK(merged_in_order),  ON_DISK(complaints_name_the_file),
                ON_DISK(missing),          ON_DISK(not_believed),
                ON_DISK(other_owner),      ON_DISK(too_large),
                ON_DISK(too_many),         ON_DISK(shipped_file),
                ON_DISK(shipped_comments),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
