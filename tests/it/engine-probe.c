/*
 * Plays the manager against a real broker, for the integration tests. Commands are taken from the
 * arguments in order; each prints one line a message that it sees, the final answer last.
 *
 *     engine-probe SOCKET CONFIG COMMAND...
 *
 *     hello | hello:VERSION   create:PROFILE   stale:PROFILE   remove:ID|last   inspect:ID|last
 *     list   image:PROFILE    info             accept (the agent of the last sandbox, its pid printed)
 *     many:N:PROFILE (N creates at once)       watch:MS (print what comes)     raw:HEX (bytes as they
 * stand)     sleep:MS (without reading)               until:WORD (print until a line holds WORD, at most
 * 60 s)
 *
 * Exit status: 0; 1: a request FAILED, or nothing came in time; 2: the connection ended.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/engine_msg.h"
#include "config/config.h"
#include "engine/agenthash.h"

struct probe {
        int sock;
        struct config *config;
        uint8_t agent[ENGINE_RECIPE];
        uint32_t next_id;
        char last[ENGINE_ID_LEN + 1];
        uint32_t last_pid;
        int last_fd;
        int status;
        char line[ENGINE_MSG_MAX + 256];
        uint32_t answered; /* id of the last final answer */
};

static void die(const char *what) {
        fprintf(stderr, "engine-probe: %s\n", what);
        exit(2);
}

static long now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void ask(struct probe *p, struct engine_msg *m) {
        uint8_t buf[ENGINE_MSG_MAX];
        ssize_t n;

        m->id = ++p->next_id;
        n = engine_msg_encode(m, buf, sizeof(buf));
        if (n < 0 || engine_msg_send(p->sock, buf, (size_t)n, -1) < 0)
                die("cannot send");
}

static void show_listed(struct probe *p, const struct engine_msg *m) {
        size_t n = (size_t)snprintf(p->line, sizeof(p->line), "listed %u more=%d", m->n_listed, m->more);

        for (uint16_t i = 0; i < m->n_listed && n < sizeof(p->line); i++)
                n += (size_t)snprintf(p->line + n, sizeof(p->line) - n, "\n  %s %s %s",
                                      m->listed[i].container, m->listed[i].profile, m->listed[i].state);
}

static void show(struct probe *p, const struct engine_msg *m, int fd) {
        size_t cap = sizeof(p->line);

        switch (m->type) {
        case ENGINE_WELCOME:
                memcpy(p->agent, m->hash, sizeof(p->agent));
                snprintf(p->line, cap, "welcome %u %s", m->version, m->installation);
                break;
        case ENGINE_CREATED:
                snprintf(p->last, sizeof(p->last), "%s", m->container);
                p->last_pid = m->pid;
                close_fd(p->last_fd);
                p->last_fd = fd;
                snprintf(p->line, cap, "created %s pid=%u fd=%s", m->container, m->pid,
                         fd >= 0 ? "yes" : "no");
                break;
        case ENGINE_DONE:
                snprintf(p->line, cap, "done");
                break;
        case ENGINE_LISTED:
                show_listed(p, m);
                break;
        case ENGINE_INSPECTED:
                snprintf(p->line, cap, "inspected %s pid=%u exit=%u oom=%d", m->status, m->pid,
                         m->exit_code, m->oom_killed);
                break;
        case ENGINE_IMAGE_READY:
                snprintf(p->line, cap, "image %s", m->image);
                break;
        case ENGINE_INFO_IS:
                snprintf(p->line, cap, "info\n%s", m->text);
                break;
        case ENGINE_FAILED:
                p->status = 1;
                snprintf(p->line, cap, "failed %u %s", m->error, m->text);
                break;
        case ENGINE_PROGRESS:
                snprintf(p->line, cap, "progress %s", m->text);
                break;
        case ENGINE_STATE:
                snprintf(p->line, cap, "state %u %s", m->state, m->text);
                break;
        default:
                snprintf(p->line, cap, "died %s exit=%d oom=%d", m->container, (int)m->exit_code,
                         m->oom_killed);
        }
        puts(p->line);
        fflush(stdout);
        if (m->id && m->type != ENGINE_PROGRESS)
                p->answered = m->id;
}

/* One message, at most until @deadline. False: none came. */
static bool next(struct probe *p, long deadline) {
        struct pollfd pfd = { .fd = p->sock, .events = POLLIN };
        uint8_t buf[ENGINE_MSG_MAX];
        struct engine_msg m;
        long left = deadline - now_ms();
        int fd = -1;
        ssize_t n;

        if (left < 0 || poll(&pfd, 1, (int)left) <= 0)
                return false;
        n = engine_msg_recv(p->sock, buf, sizeof(buf), &fd);
        if (n <= 0)
                die("the connection ended");
        if (engine_msg_decode(buf, (size_t)n, ENGINE_FROM_BROKER, &m) < 0)
                die("a malformed message came");
        show(p, &m, fd);
        if (m.type != ENGINE_CREATED)
                close_fd(fd);
        return true;
}

static void await_answer(struct probe *p) {
        long deadline = now_ms() + 120000;

        while (p->answered != p->next_id)
                if (!next(p, deadline)) {
                        puts("nothing came");
                        exit(1);
                }
}

static void create(struct probe *p, const char *profile, bool stale) {
        struct engine_msg m = { .type = ENGINE_CREATE, .profile = profile };
        const struct config_profile *c = config_profile_find(p->config, profile);
        uint8_t recipe[ENGINE_RECIPE] = { 0 };

        if (c && !stale)
                config_recipe_with_agent(c, p->agent, recipe);
        m.hash = recipe;
        ask(p, &m);
}

static void many(struct probe *p, const char *arg) {
        char *profile;
        unsigned long n = strtoul(arg, &profile, 10), seen = 0;
        long deadline = now_ms() + 120000;

        for (unsigned long i = 0; i < n; i++)
                create(p, profile + 1, false);
        for (uint32_t last = p->answered; seen < n; last = p->answered) {
                if (!next(p, deadline))
                        exit(1);
                seen += p->answered != last;
        }
        p->answered = p->next_id;
}

static void accept_agent(struct probe *p) {
        struct pollfd pfd = { .fd = p->last_fd, .events = POLLIN };
        struct ucred peer = { 0 };
        socklen_t len = sizeof(peer);
        int fd;

        if (p->last_fd < 0 || poll(&pfd, 1, 10000) <= 0) {
                puts("no agent came");
                exit(1);
        }
        fd = accept4(p->last_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
                die("accept");
        printf("agent pid=%d uid=%u gid=%u init=%s\n", peer.pid, peer.uid, peer.gid,
               peer.pid == (pid_t)p->last_pid ? "yes" : "no");
        close(fd);
}

static void until(struct probe *p, const char *word) {
        long deadline = now_ms() + 60000;

        do {
                if (!next(p, deadline)) {
                        puts("nothing came");
                        exit(1);
                }
        } while (!strstr(p->line, word));
}

static void raw(struct probe *p, const char *hex) {
        uint8_t buf[ENGINE_MSG_MAX * 2];
        size_t n = 0;

        for (; hex[0] && hex[1] && n < sizeof(buf); hex += 2) {
                unsigned v;

                if (sscanf(hex, "%2x", &v) != 1)
                        die("raw: not hex");
                buf[n++] = (uint8_t)v;
        }
        if (engine_msg_send(p->sock, buf, n, -1) < 0)
                die("cannot send");
        while (next(p, now_ms() + 5000))
                ;
}

static void simple(struct probe *p, uint16_t type, const char *arg) {
        struct engine_msg m = { .type = type, .version = ENGINE_PROTO_VERSION, .profile = arg };

        if (type == ENGINE_HELLO && *arg)
                m.version = (uint16_t)atoi(arg);
        m.container = strcmp(arg, "last") == 0 ? p->last : arg;
        ask(p, &m);
        await_answer(p);
}

static void command(struct probe *p, const char *word) {
        static const struct {
                const char *name;
                uint16_t type;
        } simples[] = { { "hello", ENGINE_HELLO }, { "remove", ENGINE_REMOVE },
                        { "list", ENGINE_LIST },   { "inspect", ENGINE_INSPECT },
                        { "image", ENGINE_IMAGE }, { "info", ENGINE_INFO } };
        const char *colon = strchr(word, ':'), *arg = colon ? colon + 1 : "";
        size_t n = colon ? (size_t)(colon - word) : strlen(word);

        for (size_t i = 0; i < sizeof(simples) / sizeof(simples[0]); i++)
                if (strlen(simples[i].name) == n && strncmp(word, simples[i].name, n) == 0) {
                        simple(p, simples[i].type, arg);
                        return;
                }
        if (strncmp(word, "create", n) == 0 || strncmp(word, "stale", n) == 0) {
                create(p, arg, word[0] == 's');
                await_answer(p);
        } else if (strncmp(word, "many", n) == 0) {
                many(p, arg);
        } else if (strncmp(word, "accept", n) == 0) {
                accept_agent(p);
        } else if (strncmp(word, "watch", n) == 0) {
                for (long end = now_ms() + atol(arg); next(p, end);)
                        ;
        } else if (strncmp(word, "until", n) == 0) {
                until(p, arg);
        } else if (strncmp(word, "raw", n) == 0) {
                raw(p, arg);
        } else if (strncmp(word, "sleep", n) == 0) {
                poll(NULL, 0, atoi(arg));
        } else {
                die("unknown command");
        }
}

int main(int argc, char **argv) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        struct probe p = { .last_fd = -1 };
        struct errmsg e = { "" };

        if (argc < 4)
                die("usage: engine-probe SOCKET CONFIG COMMAND...");
        if (config_load(argv[2], NULL, &p.config, &e) < 0)
                die(e.text);
        p.sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", argv[1]);
        if (p.sock < 0 || connect(p.sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                die(strerror(errno));
        for (int i = 3; i < argc; i++)
                command(&p, argv[i]);
        close_fd(p.last_fd);
        close(p.sock);
        config_free(p.config);
        return p.status;
}
