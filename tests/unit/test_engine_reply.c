/* The engine's replies: what is taken from them, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api.h"
#include "engine/apijson.h"
#include "engine/pull.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INSTALLATION "00112233445566778899aabbccddeeff"
#define S(text) text, sizeof(text) - 1

static void created(void **state) {
        char id[ENGINE_ID_LEN + 1];
        struct errmsg e = { "" };

        (void)state;
        assert_int_equal(apijson_created(S("{\"Id\":\"" ID "\",\"Warnings\":[]}"), id, &e), 0);
        assert_string_equal(id, ID);
        assert_int_equal(apijson_created(S("{\"Id\":\"short\"}"), id, &e), -EPROTO);
        assert_int_equal(apijson_created(S("{\"Id\":7}"), id, &e), -EPROTO);
        assert_int_equal(apijson_created(S("[]"), id, &e), -EPROTO);
        assert_int_equal(apijson_created(S("{\"Id\":"), id, &e), -EPROTO);
        assert_non_null(strstr(e.text, "not JSON"));
        assert_int_equal(apijson_created(S(""), id, &e), -EPROTO);
}

static void message(void **state) {
        char words[64];

        (void)state;
        apijson_message(S("{\"message\":\"no\\nsuch\\u001b[1m thing\"}"), words, sizeof(words));
        assert_string_equal(words, "no?such?[1m thing");
        apijson_message(S("page not found\n"), words, sizeof(words));
        assert_string_equal(words, "page not found");
        apijson_message(S(""), words, sizeof(words));
        assert_string_equal(words, "(it gave no reason)");
        apijson_message(
                S("{\"message\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}"),
                words, sizeof(words));
        assert_int_equal(strlen(words), sizeof(words) - 1);
}

static void inspect(void **state) {
        struct apijson_container c;
        struct errmsg e = { "" };

        (void)state;
        assert_int_equal(
                apijson_inspect(
                        S("{\"Id\":\"" ID
                          "\",\"Name\":\"/hermes-sandbox-x\",\"State\":{\"Status\":\"running\","
                          "\"Running\":true,\"Pid\":4711,\"ExitCode\":0,\"OOMKilled\":false},"
                          "\"Config\":{\"Labels\":{\"hermes-sandbox.installation\":\"" INSTALLATION
                          "\",\"hermes-sandbox.profile\":\"dev\"}}}"),
                        &c, &e),
                0);
        assert_string_equal(c.name, "hermes-sandbox-x");
        assert_string_equal(c.state, "running");
        assert_string_equal(c.installation, INSTALLATION);
        assert_string_equal(c.profile, "dev");
        assert_true(c.running);
        assert_int_equal(c.pid, 4711);
        /* Fields of a wrong kind are as if missing; without State there is nothing to say. */
        assert_int_equal(apijson_inspect(S("{\"Id\":\"" ID
                                           "\",\"Name\":3,\"State\":{\"Running\":\"yes\",\"Pid\":-4,"
                                           "\"ExitCode\":99999999999},\"Config\":null}"),
                                         &c, &e),
                         0);
        assert_false(c.running);
        assert_int_equal(c.pid, 0);
        assert_int_equal(c.exit_code, ENGINE_EXIT_UNKNOWN);
        assert_string_equal(c.installation, "");
        assert_int_equal(apijson_inspect(S("{\"Id\":\"" ID "\"}"), &c, &e), -EPROTO);
}

static void list(void **state) {
        struct apijson_container *l = NULL;
        struct errmsg e = { "" };
        size_t n;

        (void)state;
        assert_int_equal(apijson_list(S("[]"), &l, &n, &e), 0);
        assert_int_equal(n, 0);
        free(l);
        assert_int_equal(
                apijson_list(S("[{\"Id\":\"" ID "\",\"Names\":[\"/a\",\"/b\"],\"State\":\"exited\","
                               "\"Labels\":{\"hermes-sandbox.installation\":\"forged\"}},"
                               "{\"Id\":\"" ID "\",\"Names\":null,\"Labels\":null}]"),
                             &l, &n, &e),
                0);
        assert_int_equal(n, 2);
        assert_string_equal(l[0].name, "a");
        assert_string_equal(l[0].state, "exited");
        assert_string_equal(l[0].installation, "");
        assert_string_equal(l[1].name, "");
        free(l);
        assert_int_equal(apijson_list(S("{}"), &l, &n, &e), -EPROTO);
        assert_int_equal(apijson_list(S("[{}]"), &l, &n, &e), -EPROTO);
}

static void events(void **state) {
        struct apijson_event v;

        (void)state;
        assert_int_equal(
                apijson_event(S("{\"Type\":\"container\",\"Action\":\"die\",\"Actor\":{\"ID\":\"" ID
                                "\",\"Attributes\":{\"exitCode\":\"137\"}}}"),
                              &v),
                0);
        assert_int_equal(v.kind, EVENT_DIE);
        assert_int_equal(v.exit_code, 137);
        assert_int_equal(
                apijson_event(
                        S("{\"Type\":\"container\",\"Action\":\"die\",\"Actor\":{\"ID\":\"" ID "\"}}"),
                        &v),
                0);
        assert_int_equal(v.exit_code, ENGINE_EXIT_UNKNOWN);
        assert_int_equal(apijson_event(S("{\"Type\":\"image\",\"Action\":\"die\"}"), &v), 0);
        assert_int_equal(v.kind, EVENT_OTHER);
        assert_int_equal(
                apijson_event(S("{\"Type\":\"container\",\"Action\":\"oom\",\"Actor\":{}}"), &v),
                -EPROTO);
        assert_int_equal(apijson_event(S("x"), &v), -EPROTO);
}

static void progress(void **state) {
        struct apijson_progress p;

        (void)state;
        assert_int_equal(
                apijson_progress(S("{\"status\":\"Downloading\",\"progressDetail\":{\"current\":2000,"
                                   "\"total\":9000},\"id\":\"0123456789ab\"}"),
                                 &p),
                0);
        assert_string_equal(p.layer, "0123456789ab");
        assert_string_equal(p.text, "Downloading");
        assert_true(p.done == 2000 && p.total == 9000);
        assert_string_equal(p.error, "");
        /* A tag is no layer; what an engine without shame says is still one line. */
        assert_int_equal(
                apijson_progress(S("{\"status\":\"Pulling\\u001b[2Jfrom a\\n\",\"id\":\"bookworm\","
                                   "\"progressDetail\":{\"current\":9,\"total\":2}}"),
                                 &p),
                0);
        assert_string_equal(p.layer, "");
        assert_string_equal(p.text, "bookworm: Pulling?[2Jfrom a");
        assert_true(p.done == 0 && p.total == 0);
        assert_int_equal(apijson_progress(S("{\"error\":\"manifest unknown\"}"), &p), 0);
        assert_string_equal(p.error, "manifest unknown");
        assert_string_equal(p.text, "");
        assert_int_equal(apijson_progress(S("[]"), &p), -EPROTO);
}

/* What is too long ends in front of a character that does not fit. */
static void cut_words(void **state) {
        char s[8];

        (void)state;
        apijson_message(S("{\"message\":\"12345\303\244\"}"), s, sizeof(s));
        assert_string_equal(s, "12345\303\244");
        apijson_message(S("{\"message\":\"123456\303\244\"}"), s, sizeof(s));
        assert_string_equal(s, "123456");
}

static void info(void **state) {
        static const char body[] =
                "{\"ServerVersion\":\"20.10.24\",\"KernelVersion\":\"6.1\",\"CgroupVersion\":\"2\","
                "\"CgroupDriver\":\"systemd\",\"Driver\":\"overlay2\",\"SecurityOptions\":[\"name=seccomp,"
                "profile=default\",\"name=apparmorish\",7],\"Warnings\":[\"WARNING: No swap\\nlimit support\"]}";
        struct errmsg e = { "" };
        char text[1024];
        bool v2 = false;

        (void)state;
        assert_int_equal(apijson_info(body, sizeof(body) - 1, "1.41", &v2, text, sizeof(text), &e), 0);
        assert_true(v2);
        assert_string_equal(text,
                            "engine_version=20.10.24\napi_version=1.41\nkernel=6.1\ncgroup_version=2\n"
                            "cgroup_driver=systemd\nstorage_driver=overlay2\nseccomp=yes\napparmor=no\n"
                            "userns=no\nrootless=no\nsecurity=name=seccomp,profile=default\n"
                            "security=name=apparmorish\nwarning=WARNING: No swap?limit support\n");
        /* What does not fit is left out line by line. */
        assert_int_equal(apijson_info(body, sizeof(body) - 1, "1.41", &v2, text, 30, &e), 0);
        assert_string_equal(text, "engine_version=20.10.24\n");
        assert_int_equal(apijson_info(S("{}"), "1.41", &v2, text, sizeof(text), &e), 0);
        assert_false(v2);
        assert_int_equal(apijson_info(S("3"), "1.41", &v2, text, sizeof(text), &e), -EPROTO);
}

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void image(void **state) {
        static const char body[] = "{\"Id\":\"sha256:00ff\",\"RepoDigests\":[\"evil\\u001b@sha256:" HEX_A
                                   "\",\"x/y@sha256:" HEX_A "\",7,\"localhost:5000/a@sha256:" HEX_B
                                   "\",\"a@md5:00\",\"a@sha256:00\"],\"Size\":6000000000,"
                                   "\"Created\":\"2026-11-29T18:12:43.876860898Z\"}";
        struct errmsg e = { "" };
        struct apijson_image m;

        (void)state;
        assert_int_equal(apijson_image(S(body), "localhost:5000/a:1", &m, &e), 0);
        assert_string_equal(m.id, "sha256:00ff");
        assert_string_equal(m.digest, "localhost:5000/a@sha256:" HEX_B);
        assert_false(m.has_digest);
        assert_true(m.bytes == UINT64_C(6000000000));
        assert_string_equal(m.created, "2026-11-29T18:12:43.876860898Z");
        /* Of another name: the first that is one. */
        assert_int_equal(apijson_image(S(body), "z", &m, &e), 0);
        assert_string_equal(m.digest, "x/y@sha256:" HEX_A);
        /* The digest says which image it is, and under which name does not matter. */
        assert_int_equal(apijson_image(S(body), "q:2@sha256:" HEX_B, &m, &e), 0);
        assert_true(m.has_digest);
        assert_string_equal(m.digest, "localhost:5000/a@sha256:" HEX_B);
        assert_int_equal(apijson_image(S(body), "a@sha256:00", &m, &e), 0);
        assert_false(m.has_digest);
        assert_int_equal(apijson_image(S("{\"Id\":\"00ff\",\"Size\":-1,\"Created\":\"\\u001b[31m\"}"),
                                       "a", &m, &e),
                         0);
        assert_string_equal(m.entrypoint, "null");
        assert_string_equal(m.created, "");
        assert_string_equal(m.digest, "");
        assert_true(m.bytes == 0);
        assert_int_equal(apijson_image(S("{\"Id\":\"a b\"}"), "a", &m, &e), -EPROTO);
        assert_int_equal(apijson_image(S("{}"), "a", &m, &e), -EPROTO);
}

static void check_entrypoint(const char *json, const char *want) {
        struct errmsg e = { "" };
        struct apijson_image m;
        char *body = malloc(strlen(json) + 64);

        sprintf(body, "{\"Id\":\"sha256:00ff\",\"Config\":{\"Entrypoint\":%s}}", json);
        assert_int_equal(apijson_image(body, strlen(body), "a", &m, &e), 0);
        assert_string_equal(m.entrypoint, want);
        free(body);
}

static void entrypoint(void **state) {
        char many[4096] = "[\"/init\"", long_word[2048] = "[\"";

        (void)state;
        check_entrypoint("[ \"/init\", \"a \\\"b\\\" \\u001b[1m \u00e4\" ]",
                         "[\"/init\",\"a \\\"b\\\" \\u001B[1m \\u00E4\"]");
        check_entrypoint("[\"a\177b\"]", "[\"a\\u007fb\"]");
        check_entrypoint("[]", "null");
        check_entrypoint("null", "null");
        check_entrypoint("\"/init\"", "null");
        check_entrypoint("[7]", "null");
        /* Bounded: whole words, the first ones. */
        for (int i = 0; i < 300; i++)
                strcat(many, ",\"words\"");
        strcat(many, "]");
        {
                struct errmsg e = { "" };
                struct apijson_image m;
                char body[8192];

                snprintf(body, sizeof(body), "{\"Id\":\"00ff\",\"Config\":{\"Entrypoint\":%s}}", many);
                assert_int_equal(apijson_image(body, strlen(body), "a", &m, &e), 0);
                assert_ptr_equal(strstr(m.entrypoint, "[\"/init\",\"words\""), m.entrypoint);
                assert_in_range(strlen(m.entrypoint), ENGINE_ENTRYPOINT_MAX - 8, ENGINE_ENTRYPOINT_MAX);
                assert_string_equal(m.entrypoint + strlen(m.entrypoint) - 3, "s\"]");
        }
        memset(long_word + 2, 'x', 1500);
        strcat(long_word, "\"]");
        check_entrypoint(long_word, "null");
}

static void versions(void **state) {
        char v[API_VERSION_LEN];

        (void)state;
        assert_int_equal(api_choose_version("1.41", v), 0);
        assert_string_equal(v, "1.41");
        assert_int_equal(api_choose_version("1.52", v), 0);
        assert_string_equal(v, "1.47");
        assert_int_equal(api_choose_version("1.40", v), 0);
        assert_int_equal(api_choose_version("1.39", v), -EPROTONOSUPPORT);
        assert_int_equal(api_choose_version("2.0", v), -EPROTONOSUPPORT);
        assert_int_equal(api_choose_version("", v), -EPROTO);
        assert_int_equal(api_choose_version("1.41x", v), -EPROTO);
}

static void image_names(void **state) {
        static const struct {
                const char *image, *name, *tag;
        } rows[] = {
                { "debian", "debian", "latest" },
                { "debian:12", "debian", "12" },
                { "127.0.0.1:5000/a/b", "127.0.0.1:5000/a/b", "latest" },
                { "127.0.0.1:5000/a/b:c", "127.0.0.1:5000/a/b", "c" },
                { "a/b@sha256:00", "a/b", "sha256:00" },
        };
        const char *tag;
        char *name;

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                assert_int_equal(pull_split(rows[i].image, &name, &tag), 0);
                assert_string_equal(name, rows[i].name);
                assert_string_equal(tag, rows[i].tag);
                free(name);
        }
        assert_int_equal(pull_split("sha256:00ff", &name, &tag), -EINVAL);
        assert_int_equal(pull_split("a:", &name, &tag), -EINVAL);
        assert_int_equal(pull_split("", &name, &tag), -EINVAL);
}

static void escape(void **state) {
        char *s = api_escape("a/b:c?&=#%\xff \"", "/:");

        (void)state;
        assert_string_equal(s, "a/b:c%3F%26%3D%23%25%FF%20%22");
        free(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(created),    cmocka_unit_test(message),     cmocka_unit_test(inspect),
                cmocka_unit_test(list),       cmocka_unit_test(events),      cmocka_unit_test(progress),
                cmocka_unit_test(cut_words),  cmocka_unit_test(info),        cmocka_unit_test(image),
                cmocka_unit_test(versions),   cmocka_unit_test(image_names), cmocka_unit_test(escape),
                cmocka_unit_test(entrypoint),
        };

        return cmocka_run_group_tests_name("engine_reply", tests, NULL, NULL);
}
