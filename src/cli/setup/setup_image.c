/*
 * One question to the engine, before anything is changed: GET /images/NAME/json, of whose answer the first line is
 * enough. What a name may hold (config_image_ok()) needs no escape in a path.
 */
#include "cli/setup/setup_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli_spawn.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define ENGINE_TIMEOUT_S 20

static int connect_to(const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        const struct timeval limit = { .tv_sec = ENGINE_TIMEOUT_S };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        if (strlen(path) >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, path);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
            connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                return -errno;
        return take_fd(&fd);
}

/* The status of the answer to GET @path, or -errno. */
static int get_status(const char *socket, const char *path) {
        _cleanup_fd_ int fd = connect_to(socket);
        char text[1024];
        size_t len = 0;
        int status;

        if (fd < 0)
                return fd;
        len = (size_t)snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\nHost: engine\r\n\r\n", path);
        if (len >= sizeof(text))
                return -ENAMETOOLONG;
        if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
                return errno ? -errno : -EIO;
        len = 0;
        while (len < sizeof(text) - 1 && !memchr(text, '\n', len)) {
                ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        text[len] = '\0';
        return sscanf(text, "HTTP/1.%*1[01] %3d", &status) == 1 ? status : -EPROTO;
}

int setup_image_look(const char *socket, const char *image, enum image_state *ret) {
        char path[512];
        int status;

        snprintf(path, sizeof(path), "/images/%s/json", image);
        status = get_status(socket, path);
        if (status < 0)
                return setup_fail(
                        EXIT_SANDBOX,
                        "the engine at %s does not answer (%s): start it (systemctl start docker), then try "
                        "again",
                        socket, strerror(-status));
        if (status != 200 && status != 404)
                return setup_fail(
                        EXIT_SANDBOX,
                        "the engine at %s answers %d when asked for the image %s: see its log; nothing is "
                        "changed",
                        socket, status, image);
        *ret = status == 200 ? IMAGE_THERE : IMAGE_MISSING;
        return 0;
}

/* What `image build` can make: Debian's own slim images, and those that it names itself. */
static const struct buildable {
        const char *image, *flavour, *suite;
} buildables[] = {
        { "debian:bookworm-slim", "base", "bookworm" },
        { "debian:trixie-slim", "base", "trixie" },
        { "hermes-sandbox/base:bookworm", "base", "bookworm" },
        { "hermes-sandbox/base:trixie", "base", "trixie" },
        { "hermes-sandbox/dev:bookworm", "dev", "bookworm" },
        { "hermes-sandbox/dev:trixie", "dev", "trixie" },
        { "hermes-sandbox/hermes:bookworm", "hermes", "bookworm" },
        { "hermes-sandbox/hermes:trixie", "hermes", "trixie" },
};

static const struct buildable *find_buildable(const char *image) {
        for (size_t i = 0; i < sizeof(buildables) / sizeof(buildables[0]); i++)
                if (strcmp(buildables[i].image, image) == 0)
                        return &buildables[i];
        return NULL;
}

static int pull(const char *cli, const struct setup_places *p, const char *profile) {
        const char *const argv[] = { cli, "--socket", p->socket, "image", "pull", profile, NULL };

        setup_say("image:   $ hermes-sandbox image pull %s", profile);
        return spawn_run(argv, -1, -1);
}

static int build(const char *cli, const char *engine_socket, const struct buildable *b) {
        const char *const argv[] = { cli,      "image",           "build",       "--name",
                                     b->image, "--flavour",       b->flavour,    "--suite",
                                     b->suite, "--engine-socket", engine_socket, NULL };

        setup_say("image:   $ hermes-sandbox image build --name %s --flavour %s --suite %s", b->image,
                  b->flavour, b->suite);
        return spawn_run(argv, -1, -1);
}

int setup_image_get(const struct setup_places *p, const char *profile, const char *engine_socket,
                    const char *image) {
        const struct buildable *b = find_buildable(image);
        enum image_state state = IMAGE_MISSING;
        char cli[4352];
        int r = EXIT_SANDBOX;

        snprintf(cli, sizeof(cli), "%s/hermes-sandbox", p->bin_dir);
        setup_say("image:   %s is not there yet", image);
        /* No registry has our own names. */
        if (p->socket && strncmp(image, "hermes-sandbox/", strlen("hermes-sandbox/")) != 0)
                r = pull(cli, p, profile);
        if (r != 0 && b && geteuid() == 0)
                r = build(cli, engine_socket, b);
        if (r != 0)
                return EXIT_SANDBOX;
        r = setup_image_look(engine_socket, image, &state);
        return r == 0 && state == IMAGE_MISSING ? EXIT_SANDBOX : r;
}
