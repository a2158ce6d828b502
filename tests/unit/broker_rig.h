/*
 * A whole broker in a child process, a scripted engine on a Unix socket in this one, and the manager's messages. The
 * program that includes it calls broker_main() first in its main().
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <ftw.h>
#include <jansson.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/engine_msg.h"
#include "config/config.h"
#include "engine/agenthash.h"
#include "engine/engined.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define IMAGE_ID "sha256:" ID
#define PEERS 16
#define DEADLINE_MS 20000

struct peer {
        int fd;
        size_t len;
        char buf[65536];
};

static struct {
        char dir[64];
        pid_t broker;
        int listen_fd, manager;
        struct peer peers[PEERS];
        char create_line[512], create_body[65536], last_line[512];
        char name[64], installation[64];
        const char *create_reply; /* status line's tail and body; NULL: a good one */
        const char *create_message;
        void (*on_create)(void);  /* while the broker waits for the answer */
        const char *image_reply;  /* the inspection of whatever image; NULL: there is none */
        const char *made_from;    /* the id of the image of the container; NULL: IMAGE_ID */
        bool no_start, no_delete; /* these calls are refused */
        bool listed;              /* the engine's list has our container, which runs */
        bool removed, stopped;
        pid_t pid; /* of the container's init process; 0: 4711, which is nobody's */
} t;

/* More of the config, of the next setup. */
static const char *rig_pool = "";

static long now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static const char *in_dir(const char *name) {
        static char path[4][128];
        static unsigned next;

        next = (next + 1) % 4;
        snprintf(path[next], sizeof(path[0]), "%s/%s", t.dir, name);
        return path[next];
}

/* --- the engine
 * -------------------------------------------------------------------------------------- */

static void reply(struct peer *p, const char *status, const char *body) {
        char out[4096];
        int n = snprintf(out, sizeof(out),
                         "HTTP/1.1 %s\r\nApi-Version: 1.41\r\nContent-Length: %zu\r\n\r\n%s", status,
                         strlen(body), body);

        assert_int_equal(send(p->fd, out, (size_t)n, MSG_NOSIGNAL), n);
}

static void reply_create(struct peer *p, const char *line, const char *body) {
        const char *name = strstr(line, "?name=");

        snprintf(t.create_line, sizeof(t.create_line), "%s", line);
        snprintf(t.create_body, sizeof(t.create_body), "%s", body);
        assert_non_null(name);
        snprintf(t.name, sizeof(t.name), "%.*s", (int)strcspn(name + 6, " "), name + 6);
        if (t.on_create)
                t.on_create();
        if (t.create_reply)
                reply(p, t.create_reply,
                      t.create_message ? t.create_message : "{\"message\":\"no thanks\"}");
        else
                reply(p, "201 Created", "{\"Id\":\"" ID "\",\"Warnings\":[]}");
}

static void reply_inspect(struct peer *p) {
        char body[1024];

        if (t.removed) {
                reply(p, "404 Not Found", "{\"message\":\"No such container\"}");
                return;
        }
        snprintf(
                body, sizeof(body),
                "{\"Id\":\"" ID
                "\",\"Name\":\"/%s\",\"State\":{\"Status\":\"%s\",\"Running\":%s,\"Pid\":%d,"
                "\"ExitCode\":0},\"Image\":\"%s\",\"Config\":{\"Labels\":{\"hermes-sandbox.installation\":\"%s\"}}}",
                t.name, t.stopped ? "exited" : "running", t.stopped ? "false" : "true",
                t.pid ? (int)t.pid : 4711, t.made_from ? t.made_from : IMAGE_ID, t.installation);
        reply(p, "200 OK", body);
}

static void reply_list(struct peer *p) {
        char body[512];

        snprintf(body, sizeof(body),
                 "[{\"Id\":\"" ID "\",\"Names\":[\"/%s\"],\"State\":\"running\",\"Labels\":{"
                 "\"hermes-sandbox.installation\":\"%s\"}}]",
                 t.name, t.installation);
        reply(p, "200 OK", t.listed && !t.removed ? body : "[]");
}

static void serve(struct peer *p, const char *line, const char *body) {
        static const char events[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

        snprintf(t.last_line, sizeof(t.last_line), "%s", line);
        if (strncmp(line, "GET /_ping ", 11) == 0) {
                reply(p, "200 OK", "OK");
        } else if (strncmp(line, "GET /v1.41/info ", 16) == 0) {
                reply(p, "200 OK", "{\"CgroupVersion\":\"1\"}");
        } else if (strncmp(line, "GET /v1.41/events?filters=", 26) == 0) {
                assert_int_equal(send(p->fd, events, sizeof(events) - 1, MSG_NOSIGNAL),
                                 sizeof(events) - 1);
        } else if (strncmp(line, "GET /v1.41/containers/json?all=1&", 33) == 0) {
                reply_list(p);
        } else if (strncmp(line, "POST /v1.41/containers/create?", 30) == 0) {
                reply_create(p, line, body);
        } else if (strncmp(line, "POST /v1.41/containers/" ID "/start ", 94) == 0) {
                if (t.no_start)
                        reply(p, "500 Internal Server Error", "{\"message\":\"no start\"}");
                else
                        reply(p, "204 No Content", "");
        } else if (strncmp(line, "GET /v1.41/containers/" ID "/json ", 92) == 0) {
                reply_inspect(p);
        } else if (strncmp(line, "GET /v1.41/images/", 18) == 0) {
                reply(p, t.image_reply ? "200 OK" : "404 Not Found",
                      t.image_reply ? t.image_reply : "{\"message\":\"No such image: x\"}");
        } else if (strncmp(line, "DELETE /v1.41/containers/", 25) == 0) {
                t.removed = !t.no_delete;
                reply(p, t.no_delete ? "500 Internal Server Error" : "204 No Content", "");
        } else {
                reply(p, "404 Not Found", "{\"message\":\"No such container\"}");
        }
}

/* One whole request out of the front of the buffer. */
static bool take_request(struct peer *p) {
        char line[512], *end = memmem(p->buf, p->len, "\r\n\r\n", 4), *body, *length;
        size_t head, n = 0;

        if (!end)
                return false;
        *end = '\0';
        head = (size_t)(end - p->buf) + 4;
        length = strcasestr(p->buf, "content-length:");
        if (length)
                n = strtoul(length + 15, NULL, 10);
        if (p->len < head + n) {
                *end = '\r';
                return false;
        }
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(p->buf, "\r\n"), p->buf);
        body = strndup(p->buf + head, n);
        p->len -= head + n;
        memmove(p->buf, p->buf + head + n, p->len);
        serve(p, line, body);
        free(body);
        return true;
}

static void read_peer(struct peer *p) {
        ssize_t n = recv(p->fd, p->buf + p->len, sizeof(p->buf) - 1 - p->len, 0);

        if (n <= 0) {
                p->fd = close_fd(p->fd);
                p->len = 0;
                return;
        }
        p->len += (size_t)n;
        while (take_request(p))
                ;
}

static void accept_peer(void) {
        int fd = accept4(t.listen_fd, NULL, NULL, SOCK_CLOEXEC);

        for (size_t i = 0; i < PEERS; i++)
                if (t.peers[i].fd < 0) {
                        t.peers[i].fd = fd;
                        return;
                }
        fail_msg("too many connections to the engine");
}

/* Plays the engine until the manager's socket has a message. */
static void next_message(uint8_t buf[ENGINE_MSG_MAX], struct engine_msg *m, int *ret_fd) {
        long deadline = now_ms() + DEADLINE_MS;
        ssize_t n;

        for (;;) {
                struct pollfd p[PEERS + 2] = { { .fd = t.manager, .events = POLLIN },
                                               { .fd = t.listen_fd, .events = POLLIN } };

                for (size_t i = 0; i < PEERS; i++)
                        p[i + 2] = (struct pollfd){ .fd = t.peers[i].fd, .events = POLLIN };
                assert_true(now_ms() < deadline);
                assert_true(poll(p, PEERS + 2, DEADLINE_MS) > 0);
                for (size_t i = 0; i < PEERS; i++)
                        if (p[i + 2].revents)
                                read_peer(&t.peers[i]);
                if (p[1].revents)
                        accept_peer();
                if (p[0].revents)
                        break;
        }
        n = engine_msg_recv(t.manager, buf, ENGINE_MSG_MAX, ret_fd);
        assert_true(n > 0);
        assert_int_equal(engine_msg_decode(buf, (size_t)n, ENGINE_FROM_BROKER, m), 0);
}

static void tell_with(const struct engine_msg *m, int fd) {
        uint8_t buf[ENGINE_MSG_MAX];
        ssize_t n = engine_msg_encode(m, buf, sizeof(buf));

        assert_true(n > 0);
        assert_int_equal(engine_msg_send(t.manager, buf, (size_t)n, fd), 0);
}

static void tell(const struct engine_msg *m) {
        tell_with(m, -1);
}

/* --- the stage
 * --------------------------------------------------------------------------------------- */

static int wipe(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void connect_manager(void) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        long deadline = now_ms() + DEADLINE_MS;

        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/run/engine.sock", t.dir);
        t.manager = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        while (connect(t.manager, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
                assert_true(now_ms() < deadline);
                poll(NULL, 0, 10);
        }
}

static int setup(void **state) {
        struct passwd *pw = getpwuid(getuid());
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        struct engined_options o;
        char yaml[512];

        (void)state;
        memset(&t, 0, sizeof(t));
        t.image_reply = "{\"Id\":\"" IMAGE_ID "\"}";
        for (size_t i = 0; i < PEERS; i++)
                t.peers[i].fd = -1;
        snprintf(t.dir, sizeof(t.dir), "/tmp/hst-sends-XXXXXX");
        if (!pw || !mkdtemp(t.dir))
                return -1;
        mkdir(in_dir("run"), 0750);
        mkdir(in_dir("state"), 0700);
        write_file(in_dir("agent"), "an agent");
        snprintf(yaml, sizeof(yaml),
                 "engine:\n  socket: %s\nlogging:\n  level: ERROR\nallowed_file_paths:\n  - %s\n%s",
                 in_dir("docker.sock"), in_dir("allowed"), rig_pool);
        write_file(in_dir("sandbox.yaml"), yaml);
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/docker.sock", t.dir);
        t.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(t.listen_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(t.listen_fd, 16) < 0)
                return -1;
        o = (struct engined_options){ .config_path = strdup(in_dir("sandbox.yaml")),
                                      .runtime_dir = strdup(in_dir("run")),
                                      .state_dir = strdup(in_dir("state")),
                                      .agent_path = strdup(in_dir("agent")),
                                      .manager_user = pw->pw_name };
        t.broker = fork();
        if (t.broker == 0)
                execl("/proc/self/exe", "broker", o.config_path, o.runtime_dir, o.state_dir,
                      o.agent_path, o.manager_user, NULL);
        free((void *)o.config_path);
        free((void *)o.runtime_dir);
        free((void *)o.state_dir);
        free((void *)o.agent_path);
        connect_manager();
        return 0;
}

static int teardown(void **state) {
        int status;

        (void)state;
        close_fd(t.manager);
        close_fd(t.listen_fd);
        for (size_t i = 0; i < PEERS; i++)
                close_fd(t.peers[i].fd);
        kill(t.broker, SIGTERM);
        waitpid(t.broker, &status, 0);
        nftw(t.dir, wipe, 16, FTW_DEPTH | FTW_PHYS);
        /* Ends cleanly, also with requests under way; under a sanitizer without a leak. */
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static void hello(uint8_t agent[ENGINE_RECIPE]) {
        struct engine_msg m = { .id = 1, .type = ENGINE_HELLO, .version = ENGINE_PROTO_VERSION };
        uint8_t buf[ENGINE_MSG_MAX];

        tell(&m);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_WELCOME);
        memcpy(agent, m.hash, ENGINE_RECIPE);
        snprintf(t.installation, sizeof(t.installation), "%s", m.installation);
        do
                next_message(buf, &m, NULL);
        while (m.type == ENGINE_STATE && m.state != ENGINE_UP);
        assert_int_equal(m.type, ENGINE_STATE);
}

/* One sandbox of @profile, narrowed, and with what was written on @fd's other end where it is not -1. */
static void ask_create_for(const char *profile, const struct narrow *narrow, int fd) {
        uint8_t agent[ENGINE_RECIPE], recipe[ENGINE_RECIPE];
        struct engine_msg m = {
                .id = 2, .type = ENGINE_CREATE_FOR, .profile = profile, .hash = recipe, .mounts = fd >= 0
        };
        struct config *c;
        struct errmsg e;

        if (narrow)
                m.narrow = *narrow;
        else if (fd < 0)
                m.type = ENGINE_CREATE;
        hello(agent);
        assert_int_equal(config_load(in_dir("sandbox.yaml"), NULL, &c, &e), 0);
        config_recipe_with_agent(config_profile_find(c, profile), agent, recipe);
        config_free(c);
        tell_with(&m, fd);
}

/* @fd -1: a plain create. */
static inline void ask_create(int fd) {
        ask_create_for("", NULL, fd);
}

static unsigned entries(const char *name) {
        unsigned n = 0;
        struct dirent **list;
        int all = scandir(in_dir(name), &list, NULL, NULL);

        for (int i = 0; i < all; i++) {
                n += list[i]->d_name[0] != '.' && strcmp(list[i]->d_name, "engine.sock") != 0;
                free(list[i]);
        }
        free(list);
        return n;
}

/* In the child: the broker, and what main() returns then. -1 in the parent. */
static int broker_main(int argc, char **argv) {
        struct engined_options o;

        if (argc != 6)
                return -1;
        o = (struct engined_options){ .config_path = argv[1],
                                      .runtime_dir = argv[2],
                                      .state_dir = argv[3],
                                      .agent_path = argv[4],
                                      .manager_user = argv[5] };
        return engined_run(&o);
}
