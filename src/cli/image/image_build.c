/*
 * From packages to a tagged image. What is made on the way is a folder below /var/tmp that mmdebstrap works in, a file
 * without a name for the layer, and an image without a tag: each is gone again wherever this ends.
 *
 * The engine's call for a tag moves one that exists. So it is looked for before, and after the call the tag is looked at
 * again. Of two builds at a time the second is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/image/image.h"
#include "cli/image/image_layer.h"
#include "cli/image/image_place.h"
#include "cli/image/image_run.h"
#include "cli/image/image_sources.h"
#include "common/cleanup.h"

#define ARGS_MAX (24 + IMAGE_MIRRORS_MAX)

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "Debian's name of this architecture is missing"
#endif

struct build {
        const struct image_paths *paths;
        const struct image_options *options;
        struct image_engine *engine;
        int signal_fd;
        FILE *err;
        struct image_place place;
        struct image_layer *layer;
        struct image_packages packages;
        struct image_facts facts;
        char id[IMAGE_ID_MAX + 1];
        bool loaded; /* by us: it was not there before */
        uint64_t size;
};

static void step(const struct build *b, const char *what) {
        if (isatty(fileno(b->err)))
                fprintf(b->err, "==> %s\n", what);
}

/* --- mmdebstrap --------------------------------------------------------------------------------- */

struct args {
        char *v[ARGS_MAX];
        size_t n;
        bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct args *a, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        if (a->n == ARGS_MAX - 1 || vasprintf(&a->v[a->n], fmt, ap) < 0)
                a->failed = true;
        else
                a->n++;
        va_end(ap);
}

static void args_done(struct args *a) {
        for (size_t i = 0; i < a->n; i++)
                free(a->v[i]);
}

static void add_packages(struct args *a, const struct image_options *o) {
        if (o->flavour->packages[0])
                add(a, "--include=%s", o->flavour->packages);
        for (size_t i = 0; i < o->n_packages; i++) {
                char *before = a->n > 0 && i > 0 ? a->v[--a->n] : NULL;

                add(a, "%s%s%s", before ? before : "--include=", before ? "," : "", o->packages[i]);
                free(before);
        }
}

/* The hooks are mmdebstrap's own special ones: no shell runs. */
static void set_arguments(const struct build *b, struct args *a) {
        const struct image_options *o = b->options;

        add(a, "%s", b->paths->mmdebstrap);
        add(a, "--mode=root");
        add(a, "--format=tar");
        add(a, "--variant=minbase");
        add(a, "--components=main");
        add(a, "--aptopt=Acquire::Languages \"none\"");
        /* The machine's own sources say what they are signed by; for a mirror mmdebstrap finds that out. */
        add(a, "--skip=essential/unlink%s", o->n_mirrors == 0 ? ",check/signed-by" : "");
        add(a, "--setup-hook=copy-in %s /var/cache/apt", b->place.archives);
        add(a, "--customize-hook=sync-out /var/cache/apt/archives %s", b->place.archives);
        add_packages(a, o);
        add(a, "%s", o->suite->name);
        add(a, "-");
        for (size_t i = 0; i < o->n_mirrors; i++)
                add(a, "%s", o->mirrors[i]);
        if (o->n_mirrors == 0)
                add(a, "-");
}

/* What maintainer scripts see. A proxy's place is all that the environment may say. */
static void set_environment(const struct build *b, struct args *a) {
        static const char *const proxies[] = { "http_proxy", "https_proxy", "no_proxy" };

        add(a, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
        add(a, "HOME=/root");
        add(a, "LC_ALL=C.UTF-8");
        add(a, "TMPDIR=%s", b->place.folder);
        add(a, "SOURCE_DATE_EPOCH=%lld", (long long)b->options->suite->epoch);
        for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
                const char *value = getenv(proxies[i]);

                if (value)
                        add(a, "%s=%s", proxies[i], value);
        }
}

/* A file without a name that has the apt sources, at its start. */
static int sources_file(const struct build *b, struct errmsg *e) {
        _cleanup_fd_ int fd = memfd_create("sources", MFD_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        char codename[32];
        int r = 0;

        if (fd < 0)
                return errmsg_set(e, -errno, "no memfd: %s", strerror(errno));
        if (b->options->n_mirrors > 0)
                return take_fd(&fd);
        image_sources_codename(b->paths->os_release, codename, sizeof(codename));
        r = image_sources_read(b->paths->apt, codename, b->options->suite->name, &text, e);
        if (r < 0)
                return r;
        if (dprintf(fd, "%s", text) < 0 || lseek(fd, 0, SEEK_SET) < 0)
                return errmsg_set(e, -errno, "cannot write: %s", strerror(errno));
        return take_fd(&fd);
}

static int on_output(void *userdata, const uint8_t *p, size_t len, struct errmsg *e) {
        struct build *b = userdata;
        struct errmsg why;
        int r = image_layer_put(b->layer, p, len, &why);

        if (r == -ENOSPC)
                return errmsg_set(e, r,
                                  "no space left in %s: free some, or say where there is with --tmp DIR",
                                  b->place.tmp);
        return r < 0 ? errmsg_set(e, r, "cannot write the layer in %s: %s", b->place.tmp, why.text) : 0;
}

static int run_mmdebstrap(struct build *b, struct errmsg *e) {
        struct args argv = { .n = 0 }, envp = { .n = 0 };
        _cleanup_fd_ int sources = sources_file(b, e);
        struct image_run_setup s = {
                .argv = argv.v,
                .envp = envp.v,
                .stdin_fd = sources,
                .folder = b->place.folder,
                .signal_fd = b->signal_fd,
                .verbose = b->options->verbose,
                .output = on_output,
                .userdata = b,
        };
        int r = sources;

        if (sources < 0)
                return sources;
        set_arguments(b, &argv);
        set_environment(b, &envp);
        r = argv.failed || envp.failed ? errmsg_set(e, -ENOMEM, "out of memory") : image_run(&s, e);
        args_done(&argv);
        args_done(&envp);
        if (r == -ENOSPC && !strstr(e->text, "--tmp"))
                return errmsg_set(
                        e, r,
                        "no space left for mmdebstrap in %s or %s: free some, or say where there is "
                        "with --tmp DIR",
                        b->place.tmp, b->place.cache);
        return r;
}

static int make_layer(struct build *b, struct errmsg *e) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct errmsg why;
        int r = run_mmdebstrap(b, e);

        if (r != 0)
                return r;
        r = image_layer_end(b->layer, digest, &why);
        if (r < 0)
                return errmsg_set(e, r, "what mmdebstrap made is no image's layer: %s", why.text);
        image_hex(digest, b->facts.layer);
        r = image_packages_parse(&b->packages, b->layer->status, b->layer->status_len);
        if (r < 0)
                return errmsg_set(e, r,
                                  "what mmdebstrap made has a list of packages that cannot be read");
        image_packages_hash(&b->packages, b->facts.packages);
        image_place_prune(&b->place, &b->packages);
        return 0;
}

/* --- the engine --------------------------------------------------------------------------------- */

static int load(struct build *b, const char *config, struct errmsg *e) {
        char id[IMAGE_ID_MAX + 1];
        struct image_found found;
        struct image_archive a;
        int r = image_engine_inspect(b->engine, b->id, &found, e);

        if (r == IMAGE_E_MISSING) {
                step(b, "into the engine");
                r = image_archive_init(&a, config, b->place.layer_fd, b->layer->size);
                if (r < 0)
                        errmsg_set(e, r, "the image is larger than 8 GiB, or there is no memory for it");
                else
                        r = image_engine_load(b->engine, &a, id, e);
                image_archive_done(&a);
                if (r != 0)
                        return r;
                /* An engine that keeps images in containerd's own store has ids of another kind. */
                if (id[0])
                        strcpy(b->id, id);
                b->loaded = true;
                r = image_engine_inspect(b->engine, b->id, &found, e);
        }
        if (r == 0)
                b->size = found.size;
        return r;
}

/* 0: the name is the image's. */
static int tag(struct build *b, struct errmsg *e) {
        const char *name = b->options->name;
        struct image_found found;
        int r = image_engine_inspect(b->engine, name, &found, e), sig;

        if (r == IMAGE_E_MISSING) {
                sig = image_run_signal(b->signal_fd);
                if (sig > 0)
                        return sig;
                r = image_engine_tag(b->engine, b->id, name, e);
                if (r == 0)
                        r = image_engine_inspect(b->engine, name, &found, e);
        }
        if (r == 0 && strcmp(found.id, b->id) != 0)
                return errmsg_set(
                        e, -EEXIST,
                        "%s is another image (%.19s) and stays it; what was built is %.19s: first run "
                        "hermes-sandbox image remove %s",
                        name, found.id, b->id, name);
        return r > 0 ? -EIO : r;
}

/* What was loaded and got no name goes. */
static void unload(struct build *b) {
        struct image_found found;

        if (b->loaded && image_engine_inspect(b->engine, b->id, &found, NULL) == 0 && found.n_tags == 0)
                image_engine_remove(b->engine, b->id, NULL, NULL, NULL);
}

static int make_image(struct build *b, struct errmsg *e) {
        _cleanup_free_ char *config = image_archive_config(&b->facts);
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx c;
        int r;

        if (!config)
                return errmsg_set(e, -ENOMEM, "out of memory");
        sha256_init(&c);
        sha256_update(&c, strlen(config), (const uint8_t *)config);
        sha256_digest(&c, sizeof(digest), digest);
        strcpy(b->id, "sha256:");
        image_hex(digest, b->id + strlen(b->id));
        r = load(b, config, e);
        if (r == 0)
                r = tag(b, e);
        else if (r > 0)
                r = -EIO;
        if (r != 0)
                unload(b);
        return r;
}

/* --- all of it ---------------------------------------------------------------------------------- */

static int build(struct build *b, struct errmsg *e) {
        const struct image_options *o = b->options;
        int r;

        if (access(b->paths->mmdebstrap, X_OK) < 0)
                return errmsg_set(e, -ENOENT, "%s is missing: run apt install mmdebstrap",
                                  b->paths->mmdebstrap);
        r = image_place_init(&b->place, o->tmp ? o->tmp : b->paths->tmp,
                             o->cache ? o->cache : b->paths->cache, o->suite->name, e);
        if (r < 0)
                return r;
        image_layer_init(b->layer, b->place.layer_fd, o->suite->epoch);
        step(b, "the packages (mmdebstrap)");
        r = make_layer(b, e);
        return r != 0 ? r : make_image(b, e);
}

int image_build(const struct image_paths *p, const struct image_options *o, struct image_engine *g,
                int signal_fd, FILE *out, FILE *err, struct errmsg *e) {
        struct build b = {
                .paths = p,
                .options = o,
                .engine = g,
                .signal_fd = signal_fd,
                .err = err,
                .place = IMAGE_PLACE_NONE,
                .layer = calloc(1, sizeof(*b.layer)),
                .facts = { .architecture = ARCHITECTURE,
                           .suite = o->suite,
                           .flavour = o->flavour,
                           .extra = o->packages,
                           .n_extra = o->n_packages },
        };
        int r = b.layer ? build(&b, e) : errmsg_set(e, -ENOMEM, "out of memory");

        if (r == 0)
                fprintf(out, "name      %s\nid        %s\nsize      %llu.%llu MB\npackages  %zu\n",
                        o->name, b.id, (unsigned long long)(b.size / 1000000),
                        (unsigned long long)(b.size / 100000 % 10), b.packages.n);
        image_place_done(&b.place);
        image_packages_done(&b.packages);
        if (b.layer)
                image_layer_done(b.layer);
        free(b.layer);
        return r;
}
