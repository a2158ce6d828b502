/*
 * What the broker really sends: a whole broker in a child process, a scripted engine on a Unix socket in
 * this one, and the manager's messages. The create call that the engine gets is compared with the golden
 * body; then an engine that answers nonsense, and one that refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
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
        bool removed, stopped;
} t;

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
        if (t.create_reply)
                reply(p, t.create_reply, "{\"message\":\"no thanks\"}");
        else
                reply(p, "201 Created", "{\"Id\":\"" ID "\",\"Warnings\":[]}");
}

static void reply_inspect(struct peer *p) {
        char body[1024];

        if (t.removed) {
                reply(p, "404 Not Found", "{\"message\":\"No such container\"}");
                return;
        }
        snprintf(body, sizeof(body),
                 "{\"Id\":\"" ID
                 "\",\"Name\":\"/%s\",\"State\":{\"Status\":\"%s\",\"Running\":%s,\"Pid\":4711,"
                 "\"ExitCode\":0},\"Config\":{\"Labels\":{\"hermes-sandbox.installation\":\"%s\"}}}",
                 t.name, t.stopped ? "exited" : "running", t.stopped ? "false" : "true", t.installation);
        reply(p, "200 OK", body);
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
                reply(p, "200 OK", "[]");
        } else if (strncmp(line, "POST /v1.41/containers/create?", 30) == 0) {
                reply_create(p, line, body);
        } else if (strncmp(line, "POST /v1.41/containers/" ID "/start ", 94) == 0) {
                reply(p, "204 No Content", "");
        } else if (strncmp(line, "GET /v1.41/containers/" ID "/json ", 92) == 0) {
                reply_inspect(p);
        } else if (strncmp(line, "DELETE /v1.41/containers/", 25) == 0) {
                t.removed = true;
                reply(p, "204 No Content", "");
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

static void tell(const struct engine_msg *m) {
        uint8_t buf[ENGINE_MSG_MAX];
        ssize_t n = engine_msg_encode(m, buf, sizeof(buf));

        assert_true(n > 0);
        assert_int_equal(engine_msg_send(t.manager, buf, (size_t)n, -1), 0);
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
        char yaml[256];

        (void)state;
        memset(&t, 0, sizeof(t));
        for (size_t i = 0; i < PEERS; i++)
                t.peers[i].fd = -1;
        snprintf(t.dir, sizeof(t.dir), "/tmp/hst-sends-XXXXXX");
        if (!pw || !mkdtemp(t.dir))
                return -1;
        mkdir(in_dir("run"), 0750);
        mkdir(in_dir("state"), 0700);
        write_file(in_dir("agent"), "an agent");
        snprintf(yaml, sizeof(yaml), "engine:\n  socket: %s\nlogging:\n  level: ERROR\n",
                 in_dir("docker.sock"));
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

static void ask_create(void) {
        uint8_t agent[ENGINE_RECIPE], recipe[ENGINE_RECIPE];
        struct engine_msg m = { .id = 2, .type = ENGINE_CREATE, .profile = "", .hash = recipe };
        struct config *c;
        struct errmsg e;

        hello(agent);
        assert_int_equal(config_load(in_dir("sandbox.yaml"), NULL, &c, &e), 0);
        config_recipe_with_agent(config_profile_find(c, ""), agent, recipe);
        config_free(c);
        tell(&m);
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

/* What differs from one run to the next gets the golden file's values; the image's own are the
 * profile's. */
static void check_body(void) {
        json_t *sent = json_loads(t.create_body, JSON_REJECT_DUPLICATES, NULL), *host, *mounts, *golden;
        json_t *labels = json_object_get(sent, "Labels");
        char stream[256];

        assert_non_null(sent);
        host = json_object_get(sent, "HostConfig");
        mounts = json_object_get(host, "Mounts");
        snprintf(stream, sizeof(stream), "%s/run/%s", t.dir, t.name + strlen("hermes-sandbox-"));
        assert_string_equal(json_string_value(json_object_get(json_array_get(mounts, 0), "Source")),
                            in_dir("agent"));
        assert_string_equal(json_string_value(json_object_get(json_array_get(mounts, 1), "Source")),
                            stream);
        assert_string_equal(json_string_value(json_object_get(labels, "hermes-sandbox.installation")),
                            t.installation);
        golden = json_load_file("tests/unit/golden/create-default.json", 0, NULL);
        assert_non_null(golden);
        json_object_set(
                json_array_get(mounts, 0), "Source",
                json_object_get(
                        json_array_get(json_object_get(json_object_get(golden, "HostConfig"), "Mounts"),
                                       0),
                        "Source"));
        json_object_set(
                json_array_get(mounts, 1), "Source",
                json_object_get(
                        json_array_get(json_object_get(json_object_get(golden, "HostConfig"), "Mounts"),
                                       1),
                        "Source"));
        json_object_set(sent, "Labels", json_object_get(golden, "Labels"));
        json_object_set(sent, "User", json_object_get(golden, "User"));
        /* Sizes and places of the shipped profile are the config's, not this file's. */
        for (size_t i = 0; i < 3; i++) {
                static const char *const sized[] = { "Tmpfs", "ShmSize", "PidsLimit" };

                json_object_set(host, sized[i],
                                json_object_get(json_object_get(golden, "HostConfig"), sized[i]));
        }
        assert_true(json_equal(sent, golden));
        json_decref(golden);
        json_decref(sent);
}

static void creates_and_removes(void **state) {
        struct engine_msg m, rm = { .id = 3, .type = ENGINE_REMOVE, .container = ID };
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        (void)state;
        ask_create();
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        assert_string_equal(m.container, ID);
        assert_int_equal(m.pid, 4711);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(strncmp(t.name, "hermes-sandbox-", 15), 0);
        check_body();
        assert_int_equal(entries("state/containers"), 1);
        assert_int_equal(entries("run"), 1);
        tell(&rm);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_DONE);
        assert_int_equal(entries("state/containers"), 0);
        assert_int_equal(entries("run"), 0);
}

/* One more socket for a sandbox that runs: whoever connects to its name from now on comes out at the new one. */
static void listens_anew(void **state) {
        struct engine_msg m, ask = { .id = 3, .type = ENGINE_LISTEN, .container = ID };
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        uint8_t buf[ENGINE_MSG_MAX];
        int first = -1, second = -1, agent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)state;
        ask_create();
        next_message(buf, &m, &first);
        assert_int_equal(m.type, ENGINE_CREATED);
        tell(&ask);
        next_message(buf, &m, &second);
        assert_int_equal(m.type, ENGINE_LISTENING);
        assert_int_equal(m.id, 3);
        assert_int_equal(m.pid, 4711);
        assert_true(second >= 0);
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%.40s/run/%.32s/agent.sock", t.dir,
                 t.name + strlen("hermes-sandbox-"));
        assert_int_equal(connect(agent, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(poll(&(struct pollfd){ .fd = first, .events = POLLIN }, 1, 0), 0);
        assert_int_equal(poll(&(struct pollfd){ .fd = second, .events = POLLIN }, 1, DEADLINE_MS), 1);
        close(agent);
        close(first);
        close(second);
}

static void refuses_to_listen(const char *container, const char *why) {
        struct engine_msg m, ask = { .id = 4, .type = ENGINE_LISTEN, .container = container };
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        tell(&ask);
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_NOT_OURS);
        assert_non_null(strstr(m.text, why));
        assert_int_equal(fd, -1);
}

/* Somebody else's, one that has ended, and one that is gone: no socket, and the old one stays as it is. */
static void listens_for_ours_alone(void **state) {
        static const char other[] = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
        uint8_t buf[ENGINE_MSG_MAX];
        struct engine_msg m;
        struct stat before, after;
        char path[160];
        int fd = -1;

        (void)state;
        ask_create();
        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_CREATED);
        snprintf(path, sizeof(path), "%.40s/run/%.32s/agent.sock", t.dir,
                 t.name + strlen("hermes-sandbox-"));
        assert_int_equal(stat(path, &before), 0);
        refuses_to_listen(other, "not one of ours");
        t.stopped = true;
        refuses_to_listen(ID, "does not run (state exited)");
        t.removed = true;
        refuses_to_listen(ID, "is gone");
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        close(fd);
}

/* Refused, or answered with nonsense: FAILED, and nothing stays. */
static void leaves_nothing(void **state) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        long deadline = now_ms() + DEADLINE_MS;

        t.create_reply = *state;
        ask_create();
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_REFUSED);
        assert_non_null(strstr(m.text, "sandbox of profile \"default\""));
        /* The removal goes on in the background. */
        while (entries("state/containers") + entries("run") > 0) {
                struct engine_msg list = { .id = (uint32_t)(now_ms() | 1 << 30),
                                           .type = ENGINE_LIST,
                                           .container = "" };

                assert_true(now_ms() < deadline);
                tell(&list);
                next_message(buf, &m, NULL);
        }
}

/* An engine that goes away is told once, and requests fail at once. */
static void engine_goes(void **state) {
        struct engine_msg m, image = { .id = 9, .type = ENGINE_IMAGE, .profile = "" };
        uint8_t buf[ENGINE_MSG_MAX], agent[ENGINE_RECIPE];

        (void)state;
        hello(agent);
        unlink(in_dir("docker.sock"));
        for (size_t i = 0; i < PEERS; i++)
                t.peers[i].fd = close_fd(t.peers[i].fd);
        next_message(buf, &m, NULL);
        assert_int_equal(m.type, ENGINE_STATE);
        assert_int_equal(m.state, ENGINE_DOWN);
        tell(&image);
        do
                next_message(buf, &m, NULL);
        while (m.type == ENGINE_STATE);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, ENGINE_E_UNREACHABLE);
}

/* Ends a request that is under way, without a leak: teardown looks at the exit. */
static void ends_under_way(void **state) {
        struct engine_msg list = { .id = 5, .type = ENGINE_LIST, .container = "" };
        struct engine_msg image = { .id = 6, .type = ENGINE_IMAGE, .profile = "" };
        uint8_t agent[ENGINE_RECIPE];

        (void)state;
        hello(agent);
        tell(&list);
        tell(&image);
        poll(&(struct pollfd){ .fd = t.peers[0].fd, .events = POLLIN }, 1, 200);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(creates_and_removes, setup, teardown),
                cmocka_unit_test_setup_teardown(listens_anew, setup, teardown),
                cmocka_unit_test_setup_teardown(listens_for_ours_alone, setup, teardown),
                { "refused", leaves_nothing, setup, teardown, (void *)"500 Internal Server Error" },
                { "no id", leaves_nothing, setup, teardown, (void *)"201 Created" },
                cmocka_unit_test_setup_teardown(engine_goes, setup, teardown),
                cmocka_unit_test_setup_teardown(ends_under_way, setup, teardown),
        };

        if (argc == 6) {
                struct engined_options o = { .config_path = argv[1],
                                             .runtime_dir = argv[2],
                                             .state_dir = argv[3],
                                             .agent_path = argv[4],
                                             .manager_user = argv[5] };

                return engined_run(&o);
        }
        return cmocka_run_group_tests_name("engine_sends", tests, NULL, NULL);
}
