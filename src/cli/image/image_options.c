#include "cli/image/image_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char image_help[] =
        "usage: hermes-sandbox image build [OPTION]...\n"
        "       hermes-sandbox image remove NAME\n"
        "\n"
        "build makes an image from Debian's signed packages, without a registry; the same packages give\n"
        "the same image id. A tag that exists is never moved. Both are root's.\n"
        "\n"
        "  --flavour F      base (default): what Debian calls required\n"
        "                   dev: also bash, git, ripgrep, curl, tar, python3 and a C compiler\n"
        "                   hermes: also what Hermes Agent asks of a sandbox\n"
        "  --suite S        bookworm (default) or trixie\n"
        "  --name NAME:TAG  in place of hermes-sandbox/FLAVOUR:SUITE\n"
        "  --package P      a further package; may be given more than once\n"
        "  --mirror URL     packages from there, in place of this machine's own apt sources; also a line\n"
        "                   of sources.list(5); may be given more than once\n"
        "  --tmp DIR        where it is put together, in place of /var/tmp\n"
        "  --cache DIR      where packages are kept, in place of /var/cache/hermes-sandbox\n"
        "  --engine-socket PATH  in place of the configuration's engine.socket\n"
        "  --verbose        shows what mmdebstrap and apt say\n"
        "\n"
        "examples:\n"
        "  sudo hermes-sandbox image build --name debian:bookworm-slim\n"
        "  sudo hermes-sandbox image build --flavour hermes --suite trixie\n"
        "  sudo hermes-sandbox image build --flavour dev --package jq\n"
        "  sudo hermes-sandbox image remove hermes-sandbox/dev:bookworm\n";

/* The releases' days: https://wiki.debian.org/DebianReleases */
static const struct image_suite suites[] = {
        { "bookworm", 1686355200, "2023-06-10T00:00:00Z" },
        { "trixie", 1754697600, "2025-08-09T00:00:00Z" },
};

static const struct image_flavour flavours[] = {
        { .name = "base", .packages = "" },
        { .name = "dev",
          .packages = "bash,ca-certificates,curl,gcc,git,libc6-dev,make,python3,ripgrep,tar" },
        { .name = "hermes",
          .packages =
                  "bash,ca-certificates,coreutils,curl,findutils,git,grep,mawk,nodejs,openssh-sftp-server,python3,"
                  "ripgrep,rsync,sed,tar" },
};

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* --- names -------------------------------------------------------------------------------------- */

static bool lower_or_digit(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Words of small letters and digits, with one '.', one or two '_', or any number of '-' between them. */
static bool component_ok(const char *s, size_t len) {
        size_t i = 0;

        if (len == 0 || !lower_or_digit(s[0]) || !lower_or_digit(s[len - 1]))
                return false;
        while (i < len) {
                size_t run = 0;

                if (lower_or_digit(s[i])) {
                        i++;
                        continue;
                }
                while (s[i + run] == s[i])
                        run++;
                if (s[i] == '.' ? run > 1 : s[i] == '_' ? run > 2 : s[i] != '-')
                        return false;
                i += run;
                if (!lower_or_digit(s[i]))
                        return false;
        }
        return true;
}

/* HOST[:PORT], which a first component is if it could not be a name otherwise. */
static bool host_ok(const char *s, size_t len) {
        size_t colon = 0, i;

        while (colon < len && s[colon] != ':')
                colon++;
        for (i = 0; i < colon; i++)
                if (!isalnum((unsigned char)s[i]) &&
                    (i == 0 || (s[i] != '-' && (s[i] != '.' || s[i - 1] == '.'))))
                        return false;
        for (i = colon + 1; i < len; i++)
                if (!isdigit((unsigned char)s[i]))
                        return false;
        return colon > 0 && (isalnum((unsigned char)s[colon - 1])) && len != colon + 1;
}

static bool tag_ok(const char *s) {
        size_t len = strlen(s);

        if (len == 0 || len > 128 || *s == '.' || *s == '-')
                return false;
        for (; *s; s++)
                if (!isalnum((unsigned char)*s) && *s != '_' && *s != '.' && *s != '-')
                        return false;
        return true;
}

static bool id_ok(const char *s) {
        if (strncmp(s, "sha256:", 7) == 0)
                s += 7;
        return strlen(s) >= 12 && strlen(s) <= 64 && s[strspn(s, "0123456789abcdef")] == '\0';
}

bool image_name_ok(const char *name, bool tag_needed) {
        const char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':'), *at = name;
        size_t len;

        if (strlen(name) > IMAGE_NAME_MAX)
                return false;
        if (!tag_needed && id_ok(name))
                return true;
        if (colon ? !tag_ok(colon + 1) : tag_needed)
                return false;
        len = colon ? (size_t)(colon - name) : strlen(name);
        for (;;) {
                size_t n = 0;

                while (n < len && at[n] != '/')
                        n++;
                if (!component_ok(at, n) && !(at == name && n < len && host_ok(at, n)))
                        return false;
                if (n == len)
                        return true;
                at += n + 1;
                len -= n + 1;
        }
}

/* apt-get's words for a package (NAME, NAME:ARCH, NAME=VERSION, NAME/SUITE), but no pattern, no file, and no "NAME-",
 * which removes. */
static bool package_ok(const char *s) {
        size_t len = strlen(s);

        if (len < 2 || len > 200 || !lower_or_digit(s[0]) || (s[len - 1] == '-' && !strchr(s, '=')))
                return false;
        for (; *s; s++)
                if (!isalnum((unsigned char)*s) && !strchr("+-.:=~/_", *s))
                        return false;
        return true;
}

/* --- options ------------------------------------------------------------------------------------ */

enum { FLAVOUR = 256, SUITE, NAME, PACKAGE, MIRROR, TMP, CACHE, ENGINE_SOCKET, VERBOSE };

static const struct option options[] = {
        { "flavour", required_argument, NULL, FLAVOUR },
        { "suite", required_argument, NULL, SUITE },
        { "name", required_argument, NULL, NAME },
        { "package", required_argument, NULL, PACKAGE },
        { "mirror", required_argument, NULL, MIRROR },
        { "tmp", required_argument, NULL, TMP },
        { "cache", required_argument, NULL, CACHE },
        { "engine-socket", required_argument, NULL, ENGINE_SOCKET },
        { "verbose", no_argument, NULL, VERBOSE },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
};

static int set_flavour(struct image_options *o, const char *s, struct errmsg *e) {
        for (size_t i = 0; i < LENGTH(flavours); i++)
                if (strcmp(s, flavours[i].name) == 0) {
                        o->flavour = &flavours[i];
                        return 0;
                }
        return errmsg_set(e, -EINVAL, "--flavour: no such flavour: '%.100s' (base, dev or hermes)", s);
}

static int set_suite(struct image_options *o, const char *s, struct errmsg *e) {
        for (size_t i = 0; i < LENGTH(suites); i++)
                if (strcmp(s, suites[i].name) == 0) {
                        o->suite = &suites[i];
                        return 0;
                }
        return errmsg_set(e, -EINVAL, "--suite: no such suite: '%.100s' (bookworm or trixie)", s);
}

/* Into its place among the others. */
static int add_package(struct image_options *o, const char *s, struct errmsg *e) {
        size_t at = 0;

        if (!package_ok(s))
                return errmsg_set(e, -EINVAL, "--package: not a package's name: '%.100s'", s);
        while (at < o->n_packages && strcmp(o->packages[at], s) < 0)
                at++;
        if (at < o->n_packages && strcmp(o->packages[at], s) == 0)
                return 0;
        if (o->n_packages == IMAGE_PACKAGES_MAX)
                return errmsg_set(e, -EINVAL, "--package: more than %d of them", IMAGE_PACKAGES_MAX);
        memmove(o->packages + at + 1, o->packages + at, (o->n_packages - at) * sizeof(*o->packages));
        o->packages[at] = s;
        o->n_packages++;
        return 0;
}

static int add_mirror(struct image_options *o, const char *s, struct errmsg *e) {
        bool line = strncmp(s, "deb ", 4) == 0;

        if ((!line && !strstr(s, "://") && strncmp(s, "file:/", 6) != 0) || *s == '-' || strchr(s, '\n'))
                return errmsg_set(
                        e, -EINVAL,
                        "--mirror: neither an URL nor a line that begins with \"deb \": '%.100s'", s);
        if (!line && strpbrk(s, " \t"))
                return errmsg_set(e, -EINVAL, "--mirror: blanks in an URL: '%.100s'", s);
        if (o->n_mirrors == IMAGE_MIRRORS_MAX)
                return errmsg_set(e, -EINVAL, "--mirror: more than %d of them", IMAGE_MIRRORS_MAX);
        o->mirrors[o->n_mirrors++] = s;
        return 0;
}

/* mmdebstrap splits its hooks' words as a shell does. */
static int set_path(const char *name, const char *value, const char **ret, struct errmsg *e) {
        if (value[0] != '/')
                return errmsg_set(e, -EINVAL, "--%s: not an absolute path: '%.100s'", name, value);
        for (const char *s = value; *s; s++)
                if (!isalnum((unsigned char)*s) && !strchr("/._-+", *s))
                        return errmsg_set(
                                e, -EINVAL,
                                "--%s: a path of letters, digits, '.', '_', '+' and '-' alone: '%.100s'",
                                name, value);
        *ret = value;
        return 0;
}

static int take(struct image_options *o, int c, const char *value, struct errmsg *e) {
        switch (c) {
        case FLAVOUR:
                return set_flavour(o, value, e);
        case SUITE:
                return set_suite(o, value, e);
        case NAME:
                if (!image_name_ok(value, true))
                        return errmsg_set(e, -EINVAL,
                                          "--name: not a NAME:TAG in small letters: '%.100s'", value);
                strcpy(o->name, value);
                return 0;
        case PACKAGE:
                return add_package(o, value, e);
        case MIRROR:
                return add_mirror(o, value, e);
        case TMP:
                return set_path("tmp", value, &o->tmp, e);
        case CACHE:
                return set_path("cache", value, &o->cache, e);
        case ENGINE_SOCKET:
                return set_path("engine-socket", value, &o->engine_socket, e);
        case VERBOSE:
                o->verbose = true;
                return 0;
        default:
                o->help = true;
                return 0;
        }
}

static int operands(struct image_options *o, int argc, char **argv, bool of_build, struct errmsg *e) {
        const char *verb = argc > 0 ? argv[0] : NULL;

        if (!verb)
                return errmsg_set(e, -EINVAL, "build or remove is missing");
        if (strcmp(verb, "build") == 0) {
                if (argc > 1)
                        return errmsg_set(e, -EINVAL, "too many arguments: %.100s", argv[1]);
                o->verb = IMAGE_BUILD;
                if (!o->name[0])
                        snprintf(o->name, sizeof(o->name), "hermes-sandbox/%s:%s", o->flavour->name,
                                 o->suite->name);
                return 0;
        }
        if (strcmp(verb, "remove") != 0)
                return errmsg_set(e, -EINVAL, "no such command: %.100s", verb);
        o->verb = IMAGE_REMOVE;
        if (of_build)
                return errmsg_set(e, -EINVAL, "remove takes a NAME and --engine-socket alone");
        if (argc != 2)
                return argc < 2 ? errmsg_set(e, -EINVAL, "the NAME to remove is missing")
                                : errmsg_set(e, -EINVAL, "too many arguments: %.100s", argv[2]);
        if (!image_name_ok(argv[1], false))
                return errmsg_set(e, -EINVAL, "neither an image's name nor an id: '%.100s'", argv[1]);
        strcpy(o->name, argv[1]);
        return 0;
}

int image_options_parse(struct image_options *o, int argc, char **argv, struct errmsg *e) {
        bool of_build = false;
        int c, r;

        *o = (struct image_options){ .suite = &suites[0], .flavour = &flavours[0] };
        optind = 0; /* glibc: start anew, so that a test can call this twice */
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
                if (c == ':')
                        return errmsg_set(e, -EINVAL, "a value is missing behind %.100s",
                                          argv[optind - 1]);
                if (c == '?')
                        return errmsg_set(e, -EINVAL, "unknown option: %.100s", argv[optind - 1]);
                r = take(o, c, optarg, e);
                if (r < 0)
                        return r;
                of_build = of_build || (c != ENGINE_SOCKET && c != 'h');
        }
        return o->help ? 0 : operands(o, argc - optind, argv + optind, of_build, e);
}
