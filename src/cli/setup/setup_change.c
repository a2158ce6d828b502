#include "cli/setup/setup_change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/setup/setup_draft.h"
#include "cli/setup/setup_options.h"
#include "cli/cli_spawn.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/utf8.h"
#include "config/load.h"

#define DIFF "/usr/bin/diff"
#define NOTHING "; nothing is changed"

static int fail_as(int r, const struct errmsg *e) {
        return setup_fail(r == -EINVAL                  ? EXIT_CONFIG
                          : r == -EACCES || r == -EPERM ? EXIT_NOT_ALLOWED
                                                        : EXIT_OS,
                          "%s" NOTHING, e->text);
}

int change_open(struct change *ret, const struct setup_places *p, bool write) {
        struct change c = { .places = p };
        struct errmsg e;
        int r = setup_file_open(&c.file, p->config_dir, write, &e);

        if (r < 0)
                return fail_as(r, &e);
        r = setup_file_read(&c.file, &c.have, &c.have_len, &e);
        if (r < 0) {
                setup_file_done(&c.file);
                return fail_as(r, &e);
        }
        *ret = c;
        return 0;
}

void change_done(struct change *c) {
        setup_file_done(&c->file);
        free(c->have);
        free(c->want);
        config_free(c->config);
}

static int check_text(const struct setup_options *o) {
        for (size_t i = 0; i < N_SETTINGS; i++)
                if (o->values[i] && !utf8_valid(o->values[i], strlen(o->values[i])))
                        return setup_fail(EXIT_CONFIG, "--%s: found bytes that are no UTF-8" NOTHING,
                                          setup_settings[i].option);
        if (o->profile && !utf8_valid(o->profile, strlen(o->profile)))
                return setup_fail(EXIT_CONFIG, "--profile: found bytes that are no UTF-8" NOTHING);
        return 0;
}

/* What is asked for into @root. Returns whether that changed it. */
static bool apply(struct config_node *root, const struct setup_options *o) {
        bool changed = false;

        for (size_t i = 0; i < N_SETTINGS; i++)
                if (o->values[i])
                        changed |= draft_set(root, o->profile ? o->profile : "default",
                                             setup_settings[i].key, o->values[i]);
        return changed;
}

/* A later file may say otherwise: that is its right, and is said. */
static void say_overruled(const struct config *config, const struct setup_options *o) {
        const struct config_profile *p = config_profile_find(config,
                                                             o->profile ? o->profile : "default");
        char buf[SETTING_TEXT];

        for (enum setting s = 0; p && s < N_SETTINGS; s++)
                if (o->values[s] && !setup_is_in_force(p, s, o->values[s]))
                        setup_warn("warning: --%s %s is overruled by a file behind " SETUP_DROPIN
                                   ", which says %s",
                                   setup_settings[s].option, o->values[s], setup_in_force(p, s, buf));
}

int change_prepare(struct change *c, const struct setup_options *o) {
        _cleanup_(config_node_freep) struct config_node *root = NULL;
        struct config_draft draft = { .name = SETUP_DROPIN, .shown = "the new " SETUP_DROPIN };
        struct config *config;
        struct errmsg e;
        char *text = NULL;
        size_t len = 0;
        int r = check_text(o);

        if (r != 0)
                return r;
        r = draft_read(SETUP_DROPIN, c->have, c->have_len, &root, &e);
        if (r < 0)
                return setup_fail(EXIT_CONFIG, "%s/%s" NOTHING, c->file.dir, e.text);
        if (apply(root, o))
                text = draft_write(root, &len);
        draft.data = text;
        draft.len = len;
        r = text ? config_load_draft(c->places->config_path, c->file.dir, &draft, &config, &e)
                 : config_load(c->places->config_path, c->file.dir, &config, &e);
        if (r < 0) {
                free(text);
                return setup_fail(EXIT_CONFIG, "%s" NOTHING, e.text);
        }
        if (!config_profile_find(config, o->profile ? o->profile : "default")) {
                free(text);
                config_free(config);
                return setup_fail(
                        EXIT_CONFIG,
                        "there is no profile %s: an option such as --image or --pool-size makes it" NOTHING,
                        o->profile);
        }
        say_overruled(config, o);
        free(c->want);
        c->want = text;
        c->want_len = len;
        config_free(c->config);
        c->config = config;
        return 0;
}

/* A file of these bytes that has no name. */
static int file_of(const char *data, size_t len) {
        _cleanup_fd_ int fd = memfd_create("setup", MFD_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (len > 0 && write(fd, data, len) != (ssize_t)len)
                return -EIO;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        return take_fd(&fd);
}

int change_show(const struct change *c) {
        char path[4352];
        const char *const argv[] = { DIFF,      "-u", "--label",         c->have ? path : "/dev/null",
                                     "--label", path, "/proc/self/fd/3", "-",
                                     NULL };
        _cleanup_fd_ int old = file_of(c->have, c->have_len), new = file_of(c->want, c->want_len);
        int r;

        if (old < 0 || new < 0)
                return setup_fail(EXIT_OS, "cannot show the change: %s" NOTHING,
                                  strerror(old < 0 ? -old : -new));
        snprintf(path, sizeof(path), "%s/" SETUP_DROPIN, c->file.dir);
        fflush(stdout);
        r = spawn_run(argv, new, old);
        /* 1 is its word for "they differ". */
        if (r == 0 || r == 1)
                return 0;
        return setup_fail(EXIT_OS, "cannot show the change: " DIFF " failed (%s)" NOTHING,
                          r < 0 ? strerror(-r) : "its status is not 1");
}

int change_make(struct change *c) {
        struct errmsg e;
        int r = setup_file_replace(&c->file, c->want, c->want_len, &e);

        if (r < 0)
                return fail_as(r, &e);
        setup_say("config:  %s/" SETUP_DROPIN " is written", c->file.dir);
        return 0;
}

int change_undo(struct change *c) {
        struct errmsg e;
        int r = setup_file_replace(&c->file, c->have, c->have_len, &e);

        if (r < 0)
                return setup_fail(EXIT_OS, "%s: the new one stays", e.text);
        return 0;
}
