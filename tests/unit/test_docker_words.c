/* The docker shim's words: flags as docker takes them, and templates as it prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/docker/docker_list.h"
#include "cli/docker/docker_template.h"
#include "cli/docker/docker_words.h"

static const struct docker_flag flags[] = {
        { "all", 'a', false, 0 }, { "env", 'e', true, 1 }, { "tty", 't', false, 2 }, { .name = "" }
};

/* "NAME=VALUE …" of what the words say, then "| OPERAND …"; or the error. */
static const char *parsed(bool any, char **argv) {
        static char line[512];
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int argc = 0, i;

        while (argv[argc])
                argc++;
        line[0] = '\0';
        docker_words_init(&w, argc, argv, any);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s=%s ", flags[i].name,
                         value ? value : "+");
        if (i == DOCKER_WORDS_BAD)
                return strcpy(line, e.text);
        if (i == DOCKER_WORDS_HELP)
                return "help";
        strcat(line, "|");
        for (i = any ? 1 : w.next; i < (any ? 1 + w.n_operands : argc); i++)
                snprintf(line + strlen(line), sizeof(line) - strlen(line), " %s", argv[i]);
        return line;
}

#define W(s) ((char[]){ s })
#define PARSED(any, ...) parsed(any, (char *[]){ W("docker"), __VA_ARGS__, NULL })

static void flags_stand_before_operands(void **state) {
        (void)state;
        assert_string_equal(PARSED(false, W("-at"), W("x"), W("-e"), W("y")), "all=+ tty=+ | x -e y");
        assert_string_equal(PARSED(false, W("-e"), W("A=1"), W("-eB=2"), W("-e=C=3"), W("--env=D=4"),
                                   W("--env"), W("E=5"), W("x")),
                            "env=A=1 env=B=2 env=C=3 env=D=4 env=E=5 | x");
        assert_string_equal(PARSED(false, W("-taeX=1"), W("-"), W("-a")), "tty=+ all=+ env=X=1 | - -a");
        assert_string_equal(PARSED(false, W("--all=false"), W("-t=TRUE"), W("--"), W("-a")),
                            "all=false tty=+ | -a");
        assert_string_equal(PARSED(false, W("-e"), W("")), "env= |");
}

static void flags_stand_anywhere(void **state) {
        (void)state;
        assert_string_equal(PARSED(true, W("x"), W("-a"), W("y"), W("--env"), W("K"), W("--"), W("-t")),
                            "all=+ env=K | x y -t");
        assert_string_equal(PARSED(true, W("x"), W("--help")), "help");
}

static void bad_words(void **state) {
        (void)state;
        assert_string_equal(PARSED(false, W("--nosuch=1")), "unknown flag: --nosuch");
        assert_string_equal(PARSED(false, W("-az")), "unknown shorthand flag: 'z' in -z");
        assert_string_equal(PARSED(false, W("--env")), "flag needs an argument: --env");
        assert_string_equal(PARSED(false, W("-ae")), "flag needs an argument: 'e' in -e");
        assert_string_equal(PARSED(false, W("--all=maybe")),
                            "invalid argument \"maybe\" for \"--all\" flag: expected true or false");
}

/* --- templates ------------------------------------------------------------------------------------------ */

static const char *const labels[] = { "b=2", "a=x y", "c=" };

static void fill(struct doc *d) {
        static const char *const list[] = { "sleep", "infinity" };

        doc_init(d);
        doc_string(d, "Id", "0123");
        doc_bool(d, "State.Running", true);
        doc_time(d, "State.FinishedAt", 0);
        doc_time(d, "State.StartedAt", 1796033001);
        doc_number(d, "HostConfig.Memory", UINT64_C(5368709120));
        doc_list(d, "Config.Cmd", list, 2);
        doc_labels(d, "Config.Labels", labels, 3);
        doc_raw(d, "Config.Entrypoint", "null");
        doc_labels(d, "Labels", labels, 3);
}

static const char *rendered(const char *format) {
        static char out[2048];
        static struct doc d;
        struct errmsg e;
        FILE *f = fmemopen(out, sizeof(out), "w");
        int r;

        fill(&d);
        memset(out, 0, sizeof(out));
        assert_non_null(f);
        r = docker_template(format, &d, f, &e);
        fclose(f);
        return r < 0 ? strcpy(out, e.text) : out;
}

static void known_templates(void **state) {
        (void)state;
        assert_string_equal(rendered(""), "");
        assert_string_equal(rendered("id {{.Id}}, {{ .State.Running }}\n"), "id 0123, true\n");
        assert_string_equal(rendered("{{.State.FinishedAt}} {{.State.StartedAt}}"),
                            "0001-01-01T00:00:00Z 2026-11-30T10:03:21Z");
        assert_string_equal(rendered("{{.HostConfig.Memory}} {{.Config.Cmd}} {{.Config.Labels}}"),
                            "5368709120 [sleep infinity] map[b:2 a:x y c:]");
        assert_string_equal(rendered("{{json .Config.Entrypoint}} {{json .Id}} {{json .Config.Cmd}}"),
                            "null \"0123\" [\"sleep\",\"infinity\"]");
        assert_string_equal(rendered("{{json .State}}"),
                            "{\"Running\":true,\"FinishedAt\":\"0001-01-01T00:00:00Z\","
                            "\"StartedAt\":\"2026-11-30T10:03:21Z\"}");
        assert_string_equal(rendered("{{json .Labels}}"), "{\"a\":\"x y\",\"b\":\"2\",\"c\":\"\"}");
        assert_string_equal(
                rendered("[{{.Label \"a\"}}|{{.Label \"no\"}}|{{index .Config.Labels `b`}}]"),
                "[x y||2]");
}

static void unknown_templates(void **state) {
        static const char *const bad[] = {
                "{{.Nosuch}}",
                "{{.State.Nosuch}}",
                "{{.State}}",
                "{{range .X}}{{end}}",
                "{{json}}",
                "{{json Id}}",
                "{{.Id .Id}}",
                "{{.Label}}",
                "{{.Label \"a}}",
                "{{index .Id \"a\"}}",
                "{{index Labels \"a\"}}",
                "{{}}",
                "{{.Config.Entrypoint}}",
                "{{.Id",
                "{{printf \"%s\" .Id}}",
                "{{.Label \"a\\\"b\"}}",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (strncmp(rendered(bad[i]), "template parsing error: ", 24) != 0)
                        fail_msg("%s: %s", bad[i], rendered(bad[i]));
}

static void formats_of_lists(void **state) {
        char *s = docker_template_of_list("  {{.ID}}\\t{{.State}}\t\\n\\x ");

        (void)state;
        assert_string_equal(s, "{{.ID}}\t{{.State}}\t\n\\x");
        free(s);
}

static void json_is_indented(void **state) {
        char out[1024] = "";
        static struct doc d;
        FILE *f = fmemopen(out, sizeof(out), "w");

        (void)state;
        doc_init(&d);
        doc_string(&d, "Id", "a\"b");
        doc_list(&d, "Args", labels, 0);
        doc_labels(&d, "Config.Labels", labels, 2);
        doc_json_object(&d, "", 0, f, 4, 0);
        fclose(f);
        assert_string_equal(out, "{\n    \"Id\": \"a\\\"b\",\n    \"Args\": [],\n    \"Config\": {\n"
                                 "        \"Labels\": {\n            \"a\": \"x y\",\n"
                                 "            \"b\": \"2\"\n        }\n    }\n}");
}

static void spans(void **state) {
        static const struct {
                uint64_t seconds;
                const char *words;
        } of[] = {
                { 0, "Less than a second" }, { 1, "1 second" },         { 59, "59 seconds" },
                { 60, "About a minute" },    { 119, "About a minute" }, { 120, "2 minutes" },
                { 3599, "59 minutes" },      { 3600, "About an hour" }, { 7200, "2 hours" },
                { 172800, "2 days" },        { 1209600, "2 weeks" },    { 6000000, "2 months" },
                { 70000000, "2 years" },
        };
        char buf[32];

        (void)state;
        for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
                assert_string_equal(docker_span(of[i].seconds, buf, sizeof(buf)), of[i].words);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(flags_stand_before_operands),
                cmocka_unit_test(flags_stand_anywhere),
                cmocka_unit_test(bad_words),
                cmocka_unit_test(known_templates),
                cmocka_unit_test(unknown_templates),
                cmocka_unit_test(formats_of_lists),
                cmocka_unit_test(json_is_indented),
                cmocka_unit_test(spans),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
