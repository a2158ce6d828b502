/*
 * The proof. The manager is asked until it says what the configuration says; a command that runs then has run in a
 * sandbox of it, as the manager gives out none of an older recipe.
 */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/setup/setup_service.h"
#include "cli/cli_spawn.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define PROOF "id; uname -sr; echo hello from a sandbox"
#define DEADLINE_MS 60000
/* How long a limit may look unenforced, as the manager compares it with a sandbox of before; and how long a broker may be
 * without its group, as one that has just got it is started again. */
#define SETTLE_MS 5000
#define NAP_MS 100

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void nap(void) {
        const struct timespec ts = { .tv_nsec = NAP_MS * 1000000L };

        nanosleep(&ts, NULL);
}

/* The last line of what a program said, for one line of ours. */
static const char *last_line(char *text) {
        size_t len = strlen(text);
        char *nl;

        while (len > 0 && text[len - 1] == '\n')
                text[--len] = '\0';
        nl = strrchr(text, '\n');
        nl = nl ? nl + 1 : text;
        return strncmp(nl, "hermes-sandbox: ", 16) == 0 ? nl + 16 : nl;
}

static const char *text_of(const json_t *o, const char *key) {
        const char *s = json_string_value(json_object_get(o, key));

        return s ? s : "";
}

static void free_json(json_t **j) {
        json_decref(*j);
}

/* The pool of that profile in what status says; NULL: it has none, or there is no answer. *ret_status owns it; *ret_why
 * is what the CLI said instead (free()d by the caller). */
static json_t *look(const struct setup_places *p, const char *profile, json_t **ret_status,
                    char **ret_why) {
        char cli[4352];
        const char *const argv[] = { cli, "--socket", p->socket, "status", "--json", NULL };
        _cleanup_free_ char *out = NULL;
        json_t *pool;
        size_t i;
        int r;

        snprintf(cli, sizeof(cli), "%s/hermes-sandbox", p->bin_dir);
        r = spawn_read(argv, &out);
        if (r == 0)
                *ret_status = json_loads(out, 0, NULL);
        if (!*ret_status && out) {
                free(*ret_why);
                *ret_why = out;
                out = NULL;
        }
        json_array_foreach(json_object_get(*ret_status, "pools"), i, pool) {
                if (strcmp(text_of(pool, "profile"), profile) == 0)
                        return pool;
        }
        return NULL;
}

static int wait_in_force(const struct setup_places *p, const struct config_profile *c) {
        uint64_t deadline = now_ms() + DEADLINE_MS, settled = now_ms() + SETTLE_MS;
        _cleanup_free_ char *why = NULL;
        char engine[256] = "";

        do {
                _cleanup_(free_json) json_t *status = NULL;
                const json_t *pool = look(p, c->name, &status, &why),
                             *e = json_object_get(status, "engine");

                snprintf(engine, sizeof(engine), "%s %s", text_of(e, "state"), text_of(e, "why"));
                if (pool && json_integer_value(json_object_get(pool, "size")) == c->size &&
                    strcmp(text_of(pool, "image"), c->image) == 0 &&
                    strcmp(text_of(e, "state"), "up") == 0)
                        return 0;
                if (strcmp(text_of(e, "state"), "not enabled") == 0 && now_ms() >= settled)
                        return setup_fail(EXIT_SANDBOX,
                                          "not proved, the broker may not reach the engine: run "
                                          "sudo hermes-docker-enable, then try again");
                nap();
        } while (now_ms() < deadline);
        if (why)
                return setup_fail(EXIT_NO_MANAGER, "not proved, the manager does not answer: %s",
                                  last_line(why));
        return setup_fail(
                EXIT_NO_MANAGER,
                "not proved: after %d s the manager has not taken the profile %s (engine: %s): see "
                "hermes-sandbox status",
                DEADLINE_MS / 1000, c->name, engine);
}

/* Manager and broker may have read the configuration a moment apart: what fails for that is tried again. */
static int run_proof(const struct setup_places *p, const struct config_profile *c) {
        char cli[4352];
        const char *const argv[] = { cli,         "--socket", p->socket, "exec",
                                     "--profile", c->name,    PROOF,     NULL };
        uint64_t deadline = now_ms() + DEADLINE_MS;
        _cleanup_free_ char *out = NULL;
        int r;

        snprintf(cli, sizeof(cli), "%s/hermes-sandbox", p->bin_dir);
        for (;;) {
                free(out);
                out = NULL;
                r = spawn_read(argv, &out);
                if ((r != EXIT_SANDBOX && r != EXIT_NO_MANAGER) || now_ms() >= deadline)
                        break;
                nap();
        }
        if (r < 0)
                return setup_fail(EXIT_OS, "cannot run %s: %s", cli, strerror(-r));
        if (r != 0)
                return setup_fail(r == EXIT_NOT_ALLOWED ? r : EXIT_SANDBOX,
                                  "not proved, the command failed (status %d): %s", r, last_line(out));
        setup_say("proof:   $ hermes-sandbox exec%s%s '" PROOF "'",
                  strcmp(c->name, "default") == 0 ? "" : " --profile ",
                  strcmp(c->name, "default") == 0 ? "" : c->name);
        for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"))
                setup_say("         %s", line);
        return 0;
}

static void show(const json_t *pool, const char *profile) {
        const char *name;
        json_t *layer;

        setup_say("enforced in the profile %s:", profile);
        json_object_foreach(json_object_get(pool, "layers"), name, layer) {
                setup_say("  %-13s %-12s %s", name, text_of(layer, "state"), text_of(layer, "why"));
        }
}

static int show_layers(const struct setup_places *p, const struct config_profile *c) {
        uint64_t settled = now_ms() + SETTLE_MS, deadline = now_ms() + DEADLINE_MS;
        _cleanup_free_ char *why = NULL;

        do {
                _cleanup_(free_json) json_t *status = NULL;
                const json_t *pool = look(p, c->name, &status, &why);
                const json_t *limits = json_object_get(json_object_get(pool, "layers"), "limits");

                if (limits && (strcmp(text_of(limits, "state"), "active") == 0 || now_ms() >= settled)) {
                        show(pool, c->name);
                        return 0;
                }
                nap();
        } while (now_ms() < deadline);
        return setup_fail(EXIT_NO_MANAGER,
                          "the manager does not say what is enforced: see hermes-sandbox status");
}

int setup_service_prove(const struct setup_places *p, const struct config_profile *profile) {
        int r;

        fflush(stdout);
        r = wait_in_force(p, profile);
        if (r == 0)
                r = run_proof(p, profile);
        return r == 0 ? show_layers(p, profile) : r;
}
