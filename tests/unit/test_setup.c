/* hermes-sandbox-setup without daemons: its words, the drop-in it writes, the questions, the scripts' folder. */
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/setup/setup_ask.h"
#include "cli/setup/setup_change.h"
#include "cli/setup/setup_draft.h"
#include "cli/setup/setup_file.h"
#include "cli/setup/setup_options.h"
#include "cli/setup/setup_user.h"
#include "common/cleanup.h"
#include "config/load.h"
#include "config/tree.h"

static char dir[64], dropins[96], yaml[96];

static const char *in_dir(const char *name) {
        static char path[2][192];
        static int turn;

        turn = !turn;
        snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
        return path[turn];
}

static void put(const char *path, const char *text) {
        _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What the file holds; "" where there is none. */
static const char *get(const char *path) {
        static char buf[8192];
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

        assert_true(n >= 0);
        buf[n] = '\0';
        return buf;
}

static int setup(void **state) {
        (void)state;
        umask(022);
        strcpy(dir, "/tmp/test_setup.XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(yaml, sizeof(yaml), "%s/sandbox.yaml", dir);
        snprintf(dropins, sizeof(dropins), "%s/sandbox.d", dir);
        put(yaml, "pool: {size: 1}\nprofiles: {dev: {cpus: 2}}\n");
        return mkdir(dropins, 0755);
}

static int teardown(void **state) {
        char command[96];

        (void)state;
        snprintf(command, sizeof(command), "rm -rf '%s'", dir);
        return system(command) == 0 ? 0 : -1;
}

/* --- words ----------------------------------------------------------------------------------------- */

static int parse(struct setup_options *o, const char *const *words) {
        char *argv[16] = { (char *)(uintptr_t) "hermes-sandbox-setup" };
        int argc = 1;

        for (; words[argc - 1]; argc++)
                argv[argc] = (char *)(uintptr_t)words[argc - 1];
        return setup_options_parse(argc, argv, o);
}
#define PARSE(o, ...) parse(o, (const char *const[]){ __VA_ARGS__, NULL })

static void every_option(void **state) {
        struct setup_options o;

        (void)state;
        assert_int_equal(PARSE(&o, "--pool-size", "3", "--memory=128m", "--memory-reserve", "16m",
                               "--cpus", "1", "--network=none", "--read-only", "true"),
                         -1);
        assert_string_equal(o.values[SETTING_SIZE], "3");
        assert_string_equal(o.values[SETTING_MEMORY], "128m");
        assert_string_equal(o.values[SETTING_RESERVE], "16m");
        assert_string_equal(o.values[SETTING_CPUS], "1");
        assert_string_equal(o.values[SETTING_NETWORK], "none");
        assert_string_equal(o.values[SETTING_READ_ONLY], "true");
        assert_null(o.values[SETTING_IMAGE]);
        assert_true(setup_asks(&o));
        assert_int_equal(PARSE(&o, "--image", "x:1", "--profile", "dev", "--no-systemd", "--no-start",
                               "--dry-run", "--yes", "--install-scripts", "--add-user", "me"),
                         -1);
        assert_string_equal(o.values[SETTING_IMAGE], "x:1");
        assert_string_equal(o.profile, "dev");
        assert_string_equal(o.add_user, "me");
        assert_true(o.no_systemd && o.no_start && o.dry_run && o.yes && o.install_scripts &&
                    !o.single_user);
        assert_int_equal(PARSE(&o, "--user", "--socket", "/s"), -1);
        assert_true(o.single_user && !setup_asks(&o));
        assert_string_equal(o.socket, "/s");
}

static void bad_words(void **state) {
        struct setup_options o = { .profile = "kept" };

        (void)state;
        assert_int_equal(PARSE(&o, "--nonsense"), 64);
        assert_int_equal(PARSE(&o, "--pool-size"), 64);
        assert_int_equal(PARSE(&o, "--yes=1"), 64);
        assert_int_equal(PARSE(&o, "operand"), 64);
        assert_int_equal(PARSE(&o, "--profile", ""), 64);
        assert_int_equal(PARSE(&o, "--user", "--add-user", "me"), 64);
        assert_int_equal(PARSE(&o, "--user", "--config-dir", "/x"), 64);
        assert_int_equal(PARSE(&o, "--pid-file", "/x"), 64);
        assert_string_equal(o.profile, "kept");
}

/* --- the drop-in ------------------------------------------------------------------------------------- */

/* Sets @value, writes, and reads it back as the config's reader does. */
static void there_and_back(const char *profile, const char *value) {
        struct config_node *root, *again;
        const struct config_node *n;
        struct errmsg e;
        char *text;
        size_t len;

        assert_int_equal(draft_read("old", NULL, 0, &root, &e), 0);
        assert_true(draft_set(root, profile, "image", value));
        assert_false(draft_set(root, profile, "image", value));
        text = draft_write(root, &len);
        assert_int_equal(strlen(text), len);
        if (config_tree_read("new", text, len, &again, &e) < 0)
                fail_msg("%s: %s", e.text, text);
        assert_int_equal(again->n, 1);
        n = strcmp(profile, "default") == 0
                    ? config_node_get(config_node_get(again, "pool"), "image")
                    : config_node_get(config_node_get(config_node_get(again, "profiles"), profile),
                                      "image");
        assert_non_null(n);
        assert_int_equal(n->type, CONFIG_SCALAR);
        assert_false(n->null);
        assert_string_equal(n->text, value);
        free(text);
        config_node_free(root);
        config_node_free(again);
}

static void hostile_text(void **state) {
        static const char *const texts[] = {
                "debian:bookworm-slim",
                "",
                "~",
                "null",
                "true",
                "no",
                "0x10",
                "1:30",
                "3",
                "0.5",
                ".5",
                "128m",
                "- a",
                "a: b",
                "a #b",
                "\"",
                "'",
                "\\",
                "a\\",
                "a\"\n  read_only: false\n  x: \"",
                "\n",
                "\t",
                "{a: b}",
                "[a]",
                "*a",
                "&a",
                "!a",
                "%a",
                "@a",
                "`a",
                "---",
                "...",
                "\x1b[31m",
                "\xc2\x85",
                "\xe2\x80\xa8",
                "\xef\xbb\xbf",
                "\xf0\x9f\x90\xb3",
                "? a",
                "|",
                ">",
                " a ",
                "a ",
        };
        char word[300];

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                there_and_back("default", texts[i]);
                there_and_back(texts[i][0] ? texts[i] : "x", "debian");
        }
        memset(word, 'a', 255);
        word[255] = '\0';
        there_and_back(word, word);
}

static void merged(void **state) {
        static const char old[] =
                "profiles:\n  dev: {size: 7, tmpfs: {/tmp: 1m}, allow_users: [a, 'b c']}\n"
                "pool:\n  cpus: 2 # a word\n  size: 9\nlogging: {file: ~}\n";
        struct config_node *root, *again;
        struct errmsg e;
        char *text;
        size_t len;

        (void)state;
        assert_int_equal(draft_read("old", old, strlen(old), &root, &e), 0);
        assert_true(draft_set(root, "default", "size", "4"));
        assert_true(draft_set(root, "web", "image", "nginx:1"));
        assert_false(draft_set(root, "dev", "size", "7"));
        text = draft_write(root, &len);
        assert_string_equal(
                strchr(strchr(text, '\n') + 1, '\n') + 1,
                "profiles:\n  dev:\n    size: 7\n    tmpfs:\n      \"/tmp\": 1m\n    allow_users:\n"
                "    - \"a\"\n    - \"b c\"\n  web:\n    image: \"nginx:1\"\n"
                "pool:\n  cpus: 2\n  size: 4\nlogging:\n  file: null\n");
        assert_int_equal(config_tree_read("new", text, len, &again, &e), 0);
        config_node_free(again);
        config_node_free(root);
        free(text);
}

static void places_of(struct setup_places *p) {
        *p = (struct setup_places){ .config_path = yaml, .config_dir = dropins, .own_pair = true };
}

static int change(const struct setup_options *o) {
        struct setup_places p;
        struct change c;
        int r;

        places_of(&p);
        assert_int_equal(change_open(&c, &p, true), 0);
        r = change_prepare(&c, o);
        if (r == 0 && c.want)
                r = change_make(&c);
        else if (r == 0)
                r = -1; /* nothing to change */
        change_done(&c);
        return r;
}

static void changed_once(void **state) {
        struct setup_options o = { .values = { [SETTING_SIZE] = "5", [SETTING_IMAGE] = "x:1" } };
        struct config *c;
        struct errmsg e;
        struct stat st;

        (void)state;
        assert_int_equal(change(&o), 0);
        assert_int_equal(change(&o), -1);
        o = (struct setup_options){ .profile = "dev", .values = { [SETTING_MEMORY] = "1g" } };
        assert_int_equal(change(&o), 0);
        assert_int_equal(stat(in_dir("sandbox.d/" SETUP_DROPIN), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_int_equal(config_load(yaml, dropins, &c, &e), 0);
        assert_int_equal(c->profiles[0].size, 5);
        assert_string_equal(c->profiles[0].image, "x:1");
        assert_string_equal(c->profiles[1].name, "dev");
        assert_int_equal(c->profiles[1].memory_bytes, 1 << 30);
        assert_int_equal(c->profiles[1].cpu_nano, 2000000000);
        config_free(c);
        assert_int_equal(access(in_dir("sandbox.d/." SETUP_DROPIN ".new"), F_OK), -1);
}

/* Each is refused, and the file is as it was. */
static void bad_values(void **state) {
        static const struct setup_options bad[] = {
                { .values = { [SETTING_SIZE] = "many" } },
                { .values = { [SETTING_SIZE] = "-1" } },
                { .values = { [SETTING_MEMORY] = "64m" } }, /* the tmpfs do not fit */
                { .values = { [SETTING_RESERVE] = "1g" } },
                { .values = { [SETTING_CPUS] = ".5" } },
                { .values = { [SETTING_NETWORK] = "host" } },
                { .values = { [SETTING_READ_ONLY] = "yes" } },
                { .values = { [SETTING_IMAGE] = "a\"\n  size: 9\n  x: \"" } },
                { .values = { [SETTING_IMAGE] = "\xff" } },
                { .profile = "\xff", .values = { [SETTING_SIZE] = "1" } },
                { .profile = "Dev", .values = { [SETTING_SIZE] = "1" } },
                { .profile = "nowhere" },
        };
        struct setup_options good = { .values = { [SETTING_CPUS] = "3" } };
        char before[8192];

        (void)state;
        assert_int_equal(change(&good), 0);
        strcpy(before, get(in_dir("sandbox.d/" SETUP_DROPIN)));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(change(&bad[i]), 78);
                assert_string_equal(get(in_dir("sandbox.d/" SETUP_DROPIN)), before);
        }
        put(in_dir("sandbox.d/60-bad.yaml"), "pool: {size: many}\n");
        good.values[SETTING_CPUS] = "4";
        assert_int_equal(change(&good), 78);
        assert_string_equal(get(in_dir("sandbox.d/" SETUP_DROPIN)), before);
}

/* The new one has the place in the order that its name gives it. */
static void in_order(void **state) {
        struct setup_options o = { .values = { [SETTING_SIZE] = "5", [SETTING_CPUS] = "2" } };
        struct setup_places p;
        struct change c;

        (void)state;
        put(in_dir("sandbox.d/10-a.yaml"), "pool: {size: 1, cpus: 1}\n");
        put(in_dir("sandbox.d/90-z.yaml"), "pool: {size: 9}\n");
        places_of(&p);
        assert_int_equal(change_open(&c, &p, true), 0);
        assert_int_equal(change_prepare(&c, &o), 0);
        assert_int_equal(c.config->profiles[0].size, 9);
        assert_int_equal(c.config->profiles[0].cpu_nano, 2000000000);
        change_done(&c);
        assert_int_equal(access(in_dir("sandbox.d/" SETUP_DROPIN), F_OK), -1);
}

static void taken_back(void **state) {
        struct setup_options o = { .values = { [SETTING_SIZE] = "5" } };
        struct setup_places p;
        struct change c;
        char before[8192];

        (void)state;
        places_of(&p);
        for (int round = 0; round < 2; round++) {
                strcpy(before, get(in_dir("sandbox.d/" SETUP_DROPIN)));
                o.values[SETTING_SIZE] = round ? "6" : "5";
                assert_int_equal(change_open(&c, &p, true), 0);
                assert_int_equal(change_prepare(&c, &o), 0);
                assert_int_equal(change_make(&c), 0);
                assert_string_not_equal(get(in_dir("sandbox.d/" SETUP_DROPIN)), before);
                assert_int_equal(change_undo(&c), 0);
                change_done(&c);
                assert_string_equal(get(in_dir("sandbox.d/" SETUP_DROPIN)), before);
                assert_int_equal(access(in_dir("sandbox.d/" SETUP_DROPIN), F_OK), round ? 0 : -1);
                assert_int_equal(change(&(struct setup_options){ .values = { [SETTING_CPUS] = "2" } }),
                                 round ? -1 : 0);
        }
}

static void one_at_a_time(void **state) {
        struct setup_file a, b;
        struct errmsg e;

        (void)state;
        assert_int_equal(setup_file_open(&a, dropins, true, &e), 0);
        assert_int_equal(setup_file_open(&b, dropins, true, &e), -EBUSY);
        /* Also behind the change, whose rename took the first lock's file away. */
        assert_int_equal(setup_file_replace(&a, "pool: {}\n", 9, &e), 0);
        assert_int_equal(setup_file_open(&b, dropins, true, &e), -EBUSY);
        assert_int_equal(setup_file_open(&b, dropins, false, &e), 0);
        setup_file_done(&b);
        setup_file_done(&a);
        assert_int_equal(setup_file_open(&b, dropins, true, &e), 0);
        setup_file_done(&b);
}

/* What a killed one left, and what somebody else put there. */
static void leftovers(void **state) {
        struct setup_options o = { .values = { [SETTING_SIZE] = "5" } };
        struct setup_file f;
        struct errmsg e;

        (void)state;
        put(in_dir("sandbox.d/." SETUP_DROPIN ".new"),
            "{{{ half of one, and longer than what comes in its place "
            "................................................................"
            "................................................................"
            "................................................................");
        assert_int_equal(change(&o), 0);
        assert_null(strstr(get(in_dir("sandbox.d/" SETUP_DROPIN)), ".."));
        assert_int_equal(symlink(in_dir("elsewhere"), in_dir("sandbox.d/." SETUP_DROPIN ".new")), 0);
        assert_int_equal(setup_file_open(&f, dropins, true, &e), -ELOOP);
        assert_int_equal(access(in_dir("elsewhere"), F_OK), -1);
        assert_int_equal(unlink(in_dir("sandbox.d/." SETUP_DROPIN ".new")), 0);
        assert_int_equal(mkfifo(in_dir("sandbox.d/." SETUP_DROPIN ".new"), 0600), 0);
        assert_int_equal(setup_file_open(&f, dropins, true, &e), -EPERM);
}

/* --- questions --------------------------------------------------------------------------------------- */

static bool refuse_host(void *userdata, const struct setup_options *o) {
        ++*(int *)userdata;
        return !o->values[SETTING_NETWORK] || strcmp(o->values[SETTING_NETWORK], "host") != 0;
}

static void questions(void **state) {
        static char answers[] = "\n 256m \n16m\n0.5\nhost\nbridge\n\n\n";
        struct setup_options o = { 0 };
        struct config *c;
        struct errmsg e;
        char *said = NULL;
        size_t len;
        int checks = 0;
        FILE *in = fmemopen(answers, strlen(answers), "r"), *out = open_memstream(&said, &len);

        (void)state;
        assert_int_equal(config_load(yaml, dropins, &c, &e), 0);
        assert_int_equal(setup_ask_settings(&o, &c->profiles[0], refuse_host, &checks, in, out), 0);
        fclose(out);
        assert_null(o.values[SETTING_SIZE]);
        assert_string_equal(o.values[SETTING_MEMORY], "256m");
        assert_null(o.values[SETTING_RESERVE]); /* what is in force, said again */
        assert_string_equal(o.values[SETTING_CPUS], "0.5");
        assert_string_equal(o.values[SETTING_NETWORK], "bridge");
        assert_null(o.values[SETTING_READ_ONLY]);
        assert_null(o.values[SETTING_IMAGE]);
        assert_int_equal(checks, 4);
        for (size_t i = 0; i < N_SETTINGS; i++)
                free((char *)(uintptr_t)o.values[i]);
        assert_non_null(strstr(said, "Warm sandboxes [1]: "));
        assert_non_null(strstr(said, "Image [debian:bookworm-slim]: "));
        /* The input ends in the middle. */
        rewind(in);
        o = (struct setup_options){ 0 };
        answers[1] = '\0';
        fclose(in);
        in = fmemopen(answers, 1, "r");
        out = fopen("/dev/null", "w");
        assert_int_equal(setup_ask_settings(&o, &c->profiles[0], refuse_host, &checks, in, out),
                         -ENODATA);
        fclose(in);
        in = fmemopen((char[]){ "x\nYES\n" }, 6, "r");
        assert_int_equal(setup_ask_yes("?", in, out), 1);
        assert_int_equal(setup_ask_yes("?", in, out), 0);
        fclose(in);
        fclose(out);
        free(said);
        config_free(c);
}

/* --- scripts ----------------------------------------------------------------------------------------- */

/* In a child, as it changes the umask. */
static int copy(void) {
        int status;
        pid_t pid = fork();

        if (pid == 0)
                _exit(setup_scripts_copy(in_dir("from"), in_dir("home")));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void scripts_copied(void **state) {
        struct stat st;

        (void)state;
        mkdir(in_dir("from"), 0755);
        mkdir(in_dir("home"), 0700);
        put(in_dir("from/sandbox-daemon.sh"), "daemon\n");
        put(in_dir("from/sandbox-exec.sh"), "exec\n");
        assert_int_equal(copy(), 0);
        assert_int_equal(copy(), 0);
        assert_string_equal(get(in_dir("home/.hermes/scripts/sandbox-exec.sh")), "exec\n");
        assert_int_equal(stat(in_dir("home/.hermes/scripts/sandbox-exec.sh"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_int_equal(access(in_dir("home/.hermes/scripts/sandbox-exec.sh.old"), F_OK), -1);
        /* What was there before is kept, once. */
        put(in_dir("home/.hermes/scripts/sandbox-daemon.sh"), "his own\n");
        assert_int_equal(copy(), 0);
        put(in_dir("home/.hermes/scripts/sandbox-daemon.sh"), "an older one of ours\n");
        assert_int_equal(copy(), 0);
        assert_string_equal(get(in_dir("home/.hermes/scripts/sandbox-daemon.sh")), "daemon\n");
        assert_string_equal(get(in_dir("home/.hermes/scripts/sandbox-daemon.sh.old")), "his own\n");
}

static void no_link_followed(void **state) {
        (void)state;
        mkdir(in_dir("from"), 0755);
        put(in_dir("from/sandbox-daemon.sh"), "daemon\n");
        put(in_dir("from/sandbox-exec.sh"), "exec\n");
        mkdir(in_dir("home"), 0700);
        mkdir(in_dir("target"), 0700);
        put(in_dir("victim"), "victim\n");
        assert_int_equal(symlink("../target", in_dir("home/.hermes")), 0);
        assert_int_equal(copy(), 71);
        assert_int_equal(unlink(in_dir("home/.hermes")), 0);
        mkdir(in_dir("home/.hermes"), 0700);
        assert_int_equal(symlink("../../target", in_dir("home/.hermes/scripts")), 0);
        assert_int_equal(copy(), 71);
        assert_int_equal(rmdir(in_dir("target")), 0); /* still empty */
        assert_int_equal(unlink(in_dir("home/.hermes/scripts")), 0);
        mkdir(in_dir("home/.hermes/scripts"), 0700);
        assert_int_equal(symlink("../../../victim", in_dir("home/.hermes/scripts/sandbox-exec.sh")), 0);
        assert_int_equal(copy(), 71);
        assert_int_equal(unlink(in_dir("home/.hermes/scripts/sandbox-exec.sh")), 0);
        assert_int_equal(symlink("../../../victim", in_dir("home/.hermes/scripts/.sandbox-exec.sh.new")),
                         0);
        assert_int_equal(copy(), 0);
        assert_string_equal(get(in_dir("victim")), "victim\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_option),
                cmocka_unit_test(bad_words),
                cmocka_unit_test(hostile_text),
                cmocka_unit_test(merged),
                cmocka_unit_test_setup_teardown(changed_once, setup, teardown),
                cmocka_unit_test_setup_teardown(bad_values, setup, teardown),
                cmocka_unit_test_setup_teardown(in_order, setup, teardown),
                cmocka_unit_test_setup_teardown(taken_back, setup, teardown),
                cmocka_unit_test_setup_teardown(one_at_a_time, setup, teardown),
                cmocka_unit_test_setup_teardown(leftovers, setup, teardown),
                cmocka_unit_test_setup_teardown(questions, setup, teardown),
                cmocka_unit_test_setup_teardown(scripts_copied, setup, teardown),
                cmocka_unit_test_setup_teardown(no_link_followed, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
