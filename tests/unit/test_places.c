/* Where the pair of a single user has its files, and what the config says of them when no file does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/load.h"
#include "config/places.h"

static char dir[] = "/tmp/test-places.XXXXXX";

static const char *in_dir(const char *name) {
        static char path[4][128];
        static int n;

        n = (n + 1) % 4;
        snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
        return path[n];
}

static int begin(void **state) {
        (void)state;
        clearenv();
        setenv("HOME", dir, 1);
        setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
        return 0;
}

static void defaults(void **state) {
        struct config_places p;
        struct config *c;
        struct errmsg e;

        (void)state;
        assert_int_equal(config_places_user(&p, &e), 0);
        assert_string_equal(p.config_path, CONFIG_PATH); /* the user has none */
        assert_string_equal(p.config_dir, in_dir(".config/hermes-sandbox/sandbox.d"));
        assert_string_equal(p.manager_run, "/run/user/7/hermes-sandbox");
        assert_string_equal(p.engine_run, "/run/user/7/hermes-sandbox-engine");
        assert_string_equal(p.engine_socket, "/run/user/7/hermes-sandbox-engine/engine.sock");
        assert_string_equal(p.manager_state, in_dir(".local/state/hermes-sandbox"));
        assert_string_equal(p.engine_state, in_dir(".local/state/hermes-sandbox-engine"));
        assert_int_equal(config_load_memory("x", "pool: {}\n", 9, &c, &e), 0);
        assert_string_equal(c->engine_socket, "/run/user/7/docker.sock");
        assert_string_equal(c->audit_file, in_dir(".local/state/hermes-sandbox/sandbox-audit.log"));
        config_free(c);
}

static void named(void **state) {
        static const char yaml[] = "engine: { socket: /run/docker.sock }\n";
        struct config_places p;
        struct config *c;
        struct errmsg e;
        FILE *f;

        (void)state;
        setenv("XDG_CONFIG_HOME", in_dir("c"), 1);
        setenv("XDG_STATE_HOME", "relative", 1); /* is none */
        assert_int_equal(config_places_make(in_dir("c/hermes-sandbox"), 0700, &e), 0);
        f = fopen(in_dir("c/hermes-sandbox/sandbox.yaml"), "we");
        assert_non_null(f);
        fclose(f);
        assert_int_equal(config_places_user(&p, &e), 0);
        assert_string_equal(p.config_path, in_dir("c/hermes-sandbox/sandbox.yaml"));
        assert_string_equal(p.config_dir, in_dir("c/hermes-sandbox/sandbox.d"));
        assert_string_equal(p.manager_state, in_dir(".local/state/hermes-sandbox"));
        /* What a file says holds. */
        assert_int_equal(config_load_memory("x", yaml, sizeof(yaml) - 1, &c, &e), 0);
        assert_string_equal(c->engine_socket, "/run/docker.sock");
        config_free(c);
}

static void missing(void **state) {
        struct config_places p;
        struct errmsg e;

        (void)state;
        unsetenv("HOME");
        assert_int_equal(config_places_user(&p, &e), -ENOENT);
        assert_non_null(strstr(e.text, "HOME is not set"));
        begin(NULL);
        setenv("XDG_RUNTIME_DIR", "run", 1);
        assert_int_equal(config_places_user(&p, &e), -ENOENT);
        assert_non_null(strstr(e.text, "XDG_RUNTIME_DIR is not set"));
}

static void made(void **state) {
        struct errmsg e;
        struct stat st;

        (void)state;
        umask(0022);
        assert_int_equal(config_places_make(in_dir("a/b"), 0750, &e), 0);
        assert_int_equal(config_places_make(in_dir("a/b"), 0750, &e), 0);
        assert_int_equal(stat(in_dir("a"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(stat(in_dir("a/b"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0750);
        assert_int_equal(config_places_make(in_dir("c/hermes-sandbox/sandbox.yaml/x"), 0700, &e),
                         -ENOTDIR);
        assert_non_null(strstr(e.text, "sandbox.yaml/x: cannot make it"));
}

static int remove_dir(void **state) {
        static const char *const names[] = {
                "a/b", "a", "c/hermes-sandbox/sandbox.yaml", "c/hermes-sandbox", "c", ""
        };

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                remove(in_dir(names[i]));
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(defaults, begin),
                cmocka_unit_test_setup(named, begin),
                cmocka_unit_test_setup(missing, begin),
                cmocka_unit_test_setup(made, begin),
        };

        return mkdtemp(dir) ? cmocka_run_group_tests(tests, NULL, remove_dir) : 1;
}
