/*
 * From files to a struct config. Each file is read and checked on its own first, so that a bad value is
 * refused even where a later file would replace it; then the trees are merged, read once more as a
 * whole, and what must hold between values is checked last.
 */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "config/alloc.h"
#include "config/load.h"
#include "config/node.h"
#include "config/profile.h"
#include "config/schema.h"
#include "config/source.h"
#include "config/tree.h"

static void freep_strv(char ***v) {
        config_strv_free(*v);
}

/* Reads one file's bytes and merges them over *tree (NULL: the first one). @name outlives the tree. */
static int add_file(const char *name, const void *data, size_t len, struct config_node **tree,
                    struct errmsg *e) {
        struct config_node *one;
        struct config *alone;
        int r = config_tree_read(name, data, len, &one, e);

        if (r < 0)
                return r;
        r = config_from_tree(one, &alone, e);
        if (r < 0) {
                config_node_free(one);
                return r;
        }
        config_free(alone);
        if (*tree)
                config_node_merge(*tree, one);
        else
                *tree = one;
        return 0;
}

static int finish(const struct config_node *tree, struct config **ret, struct errmsg *e) {
        struct config *c;
        int r = config_from_tree(tree, &c, e);

        if (r < 0)
                return r;
        r = config_check(c, tree, e);
        if (r < 0) {
                config_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

static int add_path(int dirfd, const char *name, const char *shown, bool trusted,
                    struct config_node **tree, struct errmsg *e) {
        _cleanup_free_ char *data = NULL;
        size_t len;
        int r = config_source_read(dirfd, name, shown, trusted, &data, &len, e);

        if (r < 0)
                return r;
        return add_file(shown, data, len, tree, e);
}

/* Puts the draft's name where it belongs, unless a file of that name is there. */
static void insert_name(char ***names, size_t *n, const char *name) {
        size_t i = 0;

        while (i < *n && strcmp((*names)[i], name) < 0)
                i++;
        if (i < *n && strcmp((*names)[i], name) == 0)
                return;
        *names = config_grow(*names, *n + 2, sizeof(**names));
        memmove(*names + i + 1, *names + i, (*n + 1 - i) * sizeof(**names));
        (*names)[i] = config_strdup(name);
        ++*n;
}

static int load(const char *path, const char *dropin_dir, bool trusted, const struct config_draft *draft,
                struct config **ret, struct errmsg *e) {
        _cleanup_(freep_strv) char **names = NULL, **shown = NULL;
        _cleanup_(config_node_freep) struct config_node *tree = NULL;
        _cleanup_fd_ int dirfd = -1;
        size_t n = 0;
        int r = add_path(AT_FDCWD, path, path, trusted, &tree, e);

        if (r < 0)
                return r;
        if (!dropin_dir)
                return finish(tree, ret, e);
        r = config_source_list(dropin_dir, trusted, &dirfd, &names, e);
        if (r < 0)
                return r;
        while (names[n])
                n++;
        if (draft)
                insert_name(&names, &n, draft->name);
        shown = config_calloc(n + 1, sizeof(*shown));
        for (size_t i = 0; i < n; i++) {
                if (asprintf(&shown[i], "%s/%s", dropin_dir, names[i]) < 0)
                        abort();
                if (draft && strcmp(names[i], draft->name) == 0)
                        r = add_file(draft->shown, draft->data, draft->len, &tree, e);
                else
                        r = add_path(dirfd, names[i], shown[i], trusted, &tree, e);
                if (r < 0)
                        return r;
        }
        return finish(tree, ret, e);
}

int config_load_files(const char *path, const char *dropin_dir, bool trusted, struct config **ret,
                      struct errmsg *e) {
        return load(path, dropin_dir, trusted, NULL, ret, e);
}

int config_load_draft(const char *path, const char *dropin_dir, const struct config_draft *draft,
                      struct config **ret, struct errmsg *e) {
        return load(path, dropin_dir, true, draft, ret, e);
}

int config_load(const char *path, const char *dropin_dir, struct config **ret, struct errmsg *e) {
        return config_load_files(path, dropin_dir, true, ret, e);
}

int config_load_memory(const char *name, const void *data, size_t len, struct config **ret,
                       struct errmsg *e) {
        _cleanup_(config_node_freep) struct config_node *tree = NULL;
        int r = add_file(name, data, len, &tree, e);

        return r < 0 ? r : finish(tree, ret, e);
}

void config_free(struct config *c) {
        if (!c)
                return;
        for (size_t i = 0; i < c->n_profiles; i++)
                config_profile_done(&c->profiles[i]);
        free(c->profiles);
        free(c->waf_mode);
        config_strv_free(c->allowed_file_paths);
        free(c->log_file);
        free(c->audit_file);
        free(c->engine_socket);
        free(c);
}

const struct config_profile *config_profile_find(const struct config *c, const char *name) {
        if (!*name)
                name = "default";
        for (size_t i = 0; i < c->n_profiles; i++)
                if (strcmp(c->profiles[i].name, name) == 0)
                        return &c->profiles[i];
        return NULL;
}

/* Where commands can write to the root file system itself, no proof finds all that they left there. */
static bool scrub_in_vain(const struct config_profile *p) {
        return p->reuse == REUSE_SCRUB && !p->read_only;
}

void config_unenforced(const struct config *c, void (*say)(void *userdata, const char *line),
                       void *userdata) {
        if (strcmp(c->waf_mode, "off") != 0)
                say(userdata, "waf_mode: unenforced (no MCP server in this version)");
        for (size_t i = 0; i < c->n_profiles; i++) {
                char line[192];

                /* What a profile has from the pool is said there. */
                if (!scrub_in_vain(&c->profiles[i]) || (i > 0 && scrub_in_vain(&c->profiles[0])))
                        continue;
                snprintf(line, sizeof(line),
                         "%s%s.reuse: unenforced (scrub needs read_only: true; each sandbox is replaced "
                         "after one command)",
                         i ? "profiles." : "", i ? c->profiles[i].name : "pool");
                say(userdata, line);
        }
}
