/*
 * The order of things. What can refuse comes before what changes anything: the words, who asks, the configuration as
 * a whole, the engine. The change is one rename. What comes after it looks at what is there and does what is missing,
 * so that whatever was interrupted is ended by saying it again.
 */
#include "cli/setup/setup.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/setup/setup_ask.h"
#include "cli/setup/setup_change.h"
#include "cli/setup/setup_image.h"
#include "cli/setup/setup_options.h"
#include "cli/setup/setup_service.h"
#include "cli/setup/setup_user.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "config/load.h"
#include "config/places.h"

/* Not one of ours. */
#define GO_ON (-1)
/* A person said no, or went away. */
#define EXIT_NO 1

static char *joined(const char *folder, const char *rest) {
        char *s;

        if (asprintf(&s, "%s/%s", folder, rest) < 0)
                abort();
        return s;
}

/* The folder that we are in: what we run is beside us. */
static const char *own_folder(void) {
        static char path[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

        path[n > 0 ? n : 0] = '\0';
        return n > 0 ? dirname(path) : "/usr/bin";
}

int setup_places_find(const struct setup_options *o, struct setup_places *ret) {
        struct config_places c;
        struct errmsg e;

        if (config_places_find(o->single_user, &c, &e) < 0)
                return setup_fail(EXIT_USAGE, "%s", e.text);
        *ret = (struct setup_places){
                .config_path = o->config_dir ? joined(o->config_dir, "sandbox.yaml") : c.config_path,
                .config_dir = o->config_dir ? joined(o->config_dir, "sandbox.d") : c.config_dir,
                .socket = o->socket       ? o->socket
                          : o->config_dir ? NULL
                                          : joined(c.manager_run, "pool.sock"),
                .pid_file = o->pid_file                       ? o->pid_file
                            : o->config_dir || o->single_user ? NULL
                                                              : "/run/hermes-sandbox.pid",
                .bin_dir = own_folder(),
                .systemd_dir = "/run/systemd/system",
                .own_pair = o->config_dir != NULL,
        };
        ret->scripts_dir = joined(ret->bin_dir, "../share/hermes-sandbox/scripts");
        return 0;
}

static bool on_terminal(void) {
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Root, or of one's own things alone? */
static bool allowed(const struct setup_options *o) {
        bool scripts_alone = o->install_scripts && !setup_asks(o) && !o->add_user && !o->profile;

        return geteuid() == 0 || o->single_user || o->dry_run || scripts_alone;
}

static int no_such_user(const char *name) {
        return setup_fail(EXIT_USAGE, "--add-user: there is no user %s: adduser makes one", name);
}

/* Who asks, and whether enough is said. GO_ON, or an exit code. */
static int may_go_on(const struct setup_options *o) {
        bool nothing = !setup_asks(o) && !o->install_scripts && !o->add_user && !o->profile;

        if (!allowed(o))
                return setup_fail(
                        EXIT_NOT_ALLOWED,
                        "setup is root's: sudo hermes-sandbox setup, or --user with a rootless engine");
        if (o->yes || o->dry_run || on_terminal())
                return o->add_user && !setup_user_exists(o->add_user) ? no_such_user(o->add_user)
                                                                      : GO_ON;
        return setup_fail(EXIT_USAGE, "%s: this is no terminal, so that nothing can be asked%s",
                          nothing ? "say what to set up, such as --pool-size 3, and --yes"
                                  : "say --yes to do it, or --dry-run to see it",
                          nothing ? ": see " SETUP_PROGRAM " --help" : "");
}

static bool check_answers(void *userdata, const struct setup_options *o) {
        return change_prepare(userdata, o) == 0;
}

/* On a terminal, with nothing said of the configuration: the questions. GO_ON, or an exit code. */
static int ask(struct setup_options *o, struct change *c) {
        const struct config_profile *now;
        struct config *config;
        struct errmsg e;
        int r;

        if (o->yes || o->dry_run || setup_asks(o) || o->add_user || o->install_scripts)
                return GO_ON;
        if (config_load(c->places->config_path, c->places->config_dir, &config, &e) < 0)
                return setup_fail(EXIT_CONFIG, "%s; nothing is changed", e.text);
        now = config_profile_find(config, o->profile ? o->profile : "default");
        if (!now)
                now = &config->profiles[0];
        r = setup_ask_settings(o, now, check_answers, c, stdin, stdout);
        if (r == 0 && !o->single_user && !c->places->own_pair)
                r = setup_ask_user(o, setup_user_exists, stdin, stdout);
        config_free(config);
        return r < 0 ? setup_fail(EXIT_NO, "no more answers; nothing is changed") : GO_ON;
}

/* Shows the change, and asks where somebody can answer. GO_ON, or an exit code. */
static int confirm(const struct setup_options *o, const struct change *c) {
        int r;

        if (!c->want) {
                setup_say("config:  nothing to change");
                return GO_ON;
        }
        if (o->yes && !o->dry_run)
                return GO_ON;
        r = change_show(c);
        if (r != 0 || o->dry_run)
                return r != 0 ? r : GO_ON;
        return setup_ask_yes("Write this?", stdin, stdout)
                       ? GO_ON
                       : setup_fail(EXIT_NO, "as you wish; nothing is changed");
}

/* The image that is not there is had, or the change is taken back: what ran before goes on. */
static int bring_image(const struct setup_options *o, struct change *c,
                       const struct config_profile *profile) {
        int r = setup_image_get(c->places, profile->name, c->config->engine_socket, profile->image);

        if (r == 0)
                return 0;
        if (c->want) {
                if (change_undo(c) != 0)
                        return r;
                setup_service_up(o, c->places);
        }
        return setup_fail(
                r,
                "the image %s could not be had: docker pull %s, then try again; the configuration "
                "is as it was",
                profile->image, profile->image);
}

/* From the change on. */
static int carry_out(const struct setup_options *o, struct change *c) {
        const struct config_profile *profile = config_profile_find(c->config,
                                                                   o->profile ? o->profile : "default");
        enum image_state image = IMAGE_THERE;
        int r = o->no_start ? 0 : setup_image_look(c->config->engine_socket, profile->image, &image);

        if (r == 0 && c->want)
                r = change_make(c);
        if (r == 0 && o->add_user)
                r = setup_user_add(o->add_user, false);
        if (r == 0 && !o->no_start)
                r = setup_service_up(o, c->places);
        if (r == 0 && image == IMAGE_MISSING)
                r = bring_image(o, c, profile);
        else if (r == 0 && !o->no_start)
                setup_say("image:   %s is there", profile->image);
        if (r == 0 && !o->no_start && c->places->socket)
                r = setup_service_prove(c->places, profile);
        return r;
}

static int configure(struct setup_options *o, const struct setup_places *p) {
        struct change c;
        int r = change_open(&c, p, !o->dry_run);

        if (r != 0)
                return r;
        r = ask(o, &c);
        if (r == GO_ON) {
                r = change_prepare(&c, o);
                r = r == 0 ? confirm(o, &c) : r;
        }
        if (r == GO_ON && o->dry_run)
                r = o->add_user ? setup_user_add(o->add_user, true) : 0;
        else if (r == GO_ON)
                r = carry_out(o, &c);
        change_done(&c);
        return r;
}

int setup_main(int argc, char **argv) {
        struct setup_options o;
        struct setup_places p;
        int r = setup_options_parse(argc, argv, &o);

        if (r < 0)
                r = may_go_on(&o);
        if (r != GO_ON)
                return r;
        r = setup_places_find(&o, &p);
        if (r == 0 && (geteuid() == 0 || o.single_user || o.dry_run))
                r = configure(&o, &p);
        if (r == 0 && o.install_scripts)
                r = setup_scripts_install(p.scripts_dir, o.dry_run);
        return r;
}
