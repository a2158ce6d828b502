/*
 * A broker as it is, between a manager's end of engine.sock and an engine that this file plays, all in one thread and
 * one event loop. The engine looks at every call: a container is only created as the config says, and only such a one
 * is ever started or removed. Other people's containers stand in its list, one with our labels.
 */
#pragma once

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/agent_args.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/mount_proto.h"
#include "config/load.h"
#include "config/narrow.h"
#include "config/profile.h"
#include "engine/apijson.h"
#include "engine/body.h"
#include "engine/elink.h"
#include "engine/engined.h"
#include "engine/mounts.h"
#include "engine/removal.h"
#include "engine/serve.h"
#include "fuzz/decoders.h"

#define CONNS 32
#define CONTAINERS 64
#define IDS 16 /* of requests: few, so that they meet */
#define CALLER_UID 1234
#define CALLER_GID 1235
#define AGENT "/usr/libexec/hermes-sandbox/agent"
#define FOREIGN "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define FORGED "aaaaaaaaaaaaaaaa5555555555555555aaaaaaaaaaaaaaaa5555555555555555"
#define IMAGE_ID "sha256:1" /* of every image */

/* What the engine does with a call. */
enum mood { GOOD, REFUSES, NONSENSE, GONE, CUT, HALF, SILENT, MOODS };

struct engine_conn {
        struct rig *rig;
        int fd;
        sd_event_source *source;
        size_t len;
        bool events;
        char buf[32768];
};

struct rig_container {
        char id[ENGINE_ID_LEN + 1], name[RECORD_NAME_LEN + 1];
        bool there, running;
        bool other_image; /* the engine made it from another one than it was told */
};

struct rig {
        struct broker b;
        int listen_fd;
        sd_event_source *listen_source;
        struct engine_conn conns[CONNS];
        struct rig_container containers[CONTAINERS];
        unsigned n_containers;
        uint8_t mood;
        int manager;         /* its end, or -1 */
        bool raw;            /* any bytes were sent on this connection: any id may be answered */
        unsigned asked[IDS]; /* requests without their answer */
        int callers[IDS];    /* ends of callers' pairs that are still open */
        int low_fds;
};

static struct config *rig_config;
static char rig_dir[64], rig_allowed[80];

static inline const char *rig_path(const char *name) {
        static char path[4][128];
        static unsigned next;

        next = (next + 1) % 4;
        snprintf(path[next], sizeof(path[0]), "%s/%s", rig_dir, name);
        return path[next];
}

static inline int rig_wipe(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void)st;
        (void)type;
        return ftw->level == 0 ? 0 : remove(path);
}

static inline void rig_end_program(void) {
        nftw(rig_dir, rig_wipe, 16, FTW_DEPTH | FTW_PHYS);
        rmdir(rig_dir);
        config_free(rig_config);
        curl_global_cleanup();
}

static inline void rig_init(void) {
        static const char text[] =
                "pool: {image: \"one:1\"}\n"
                "profiles:\n"
                "  other: {image: \"two:2\", network: bridge, memory_limit: 256m}\n"
                "  root: {user: 0, users: [3, \"0:2\"], capabilities: [CHOWN], home: /tmp}\n"
                "allowed_file_paths: [\"%s\"]\n";
        char yaml[512];
        struct errmsg e;

        log_set_level((enum log_priority)0);
        curl_global_init(CURL_GLOBAL_NOTHING);
        snprintf(rig_dir, sizeof(rig_dir), "/dev/shm/fuzz-broker-XXXXXX");
        check(mkdtemp(rig_dir));
        snprintf(rig_allowed, sizeof(rig_allowed), "%s/allowed", rig_dir);
        snprintf(yaml, sizeof(yaml), text, rig_allowed);
        if (config_load_memory("rig", yaml, strlen(yaml), &rig_config, &e) < 0) {
                fprintf(stderr, "%s\n", e.text);
                abort();
        }
        atexit(rig_end_program);
}

/* --- the engine
 * -------------------------------------------------------------------------------------- */

static inline struct rig_container *rig_find(struct rig *r, const char *id_or_name, size_t len) {
        for (unsigned i = 0; i < r->n_containers; i++) {
                struct rig_container *c = &r->containers[i];

                if ((strlen(c->id) == len && memcmp(c->id, id_or_name, len) == 0) ||
                    (strlen(c->name) == len && memcmp(c->name, id_or_name, len) == 0))
                        return c;
        }
        return NULL;
}

/* One host folder of a body: an open folder of the broker's below the allowed one, where it may be. */
static inline void rig_check_mount(const json_t *j, struct body_mount *m) {
        const json_t *driver = json_object_get(json_object_get(j, "VolumeOptions"), "DriverConfig");
        const char *device = json_string_value(
                json_object_get(json_object_get(driver, "Options"), "device"));
        const char *o = json_string_value(json_object_get(json_object_get(driver, "Options"), "o"));
        char path[PATH_MAX];
        int pid = 0, end = 0;
        struct stat st;
        ssize_t n;

        check(o && device && sscanf(device, "/proc/%d/fd/%d%n", &pid, &m->fd, &end) == 2 &&
              !device[end]);
        check(pid == getpid() && fstat(m->fd, &st) == 0 && S_ISDIR(st.st_mode));
        n = readlink(device, path, sizeof(path) - 1);
        check(n > 0);
        path[n] = '\0';
        check(mount_path_below(path, rig_allowed));
        m->dst = json_string_value(json_object_get(j, "Target"));
        check(m->dst && !mount_dst_fault(m->dst) && !mount_path_below(m->dst, "/proc") &&
              !mount_path_below(m->dst, "/etc/hosts") && !mount_path_below(m->dst, "/.hermes-sandbox") &&
              !(mount_path_below("/home/sandbox", m->dst) && strcmp(m->dst, "/home/sandbox") != 0) &&
              strcmp(m->dst, "/etc") != 0);
        m->read_only = strcmp(o, "bind,private") != 0;
}

static inline uint64_t rig_number(const json_t *host, const char *key) {
        json_int_t v = json_integer_value(json_object_get(host, key));

        check(v > 0);
        return (uint64_t)v;
}

/* What of @j is less than @p has: laid over @p, it must make that very body, so nothing in it is more. */
static inline void rig_narrow(const json_t *j, const struct config_profile *p, bool mounts,
                              struct config_profile *ret) {
        const json_t *host = json_object_get(j, "HostConfig"), *tmpfs = json_object_get(host, "Tmpfs");
        const json_t *words = json_object_get(j, "Entrypoint");
        struct narrow n = { .memory_bytes = rig_number(host, "Memory"),
                            .cpu_nano = rig_number(host, "NanoCpus"),
                            .pids_limit = (uint32_t)rig_number(host, "PidsLimit"),
                            .shm_bytes = rig_number(host, "ShmSize"),
                            .no_network = json_is_true(json_object_get(j, "NetworkDisabled")),
                            .user = !mounts };
        struct errmsg e;

        n.uid = (uint32_t)atoi(json_string_value(json_array_get(words, 1)));
        n.gid = (uint32_t)atoi(json_string_value(json_array_get(words, 2)));
        if (mounts)
                n.uid = n.gid = 0;
        for (size_t i = 0; i < p->n_tmpfs; i++) {
                const char *options = json_string_value(json_object_get(tmpfs, p->tmpfs[i].path));
                const char *size = options ? strstr(options, "size=") : NULL;

                /* One that a folder has the place of takes no memory. */
                n.tmpfs[n.n_tmpfs].path = p->tmpfs[i].path;
                n.tmpfs[n.n_tmpfs++].bytes = size ? strtoull(size + 5, NULL, 10) : CONFIG_TMPFS_MIN;
        }
        check(config_narrow(p, &n, ret, &e) == 0);
}

/* The body is the very one that body.c makes of one of the profiles and of what may differ. */
static inline void rig_check_body(struct rig *r, const char *body, const char *name) {
        json_t *j = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
        json_t *mounts = json_object_get(json_object_get(j, "HostConfig"), "Mounts");
        const char *profile = json_string_value(
                json_object_get(json_object_get(j, "Labels"), LABEL_PROFILE));
        const struct config_profile *p = config_profile_find(rig_config, profile ? profile : "?");
        struct body_mount of[MOUNT_MAX];
        struct body_caller caller = { CALLER_UID, CALLER_GID, getpid(), 0, of };
        uint8_t recipe[CONFIG_RECIPE];
        struct config_profile own;
        char folder[160], *want;
        struct body_context ctx = { IMAGE_ID, r->b.records.installation, recipe, AGENT,
                                    folder,   r->b.manager_gid,          false,  false,
                                    NULL };

        check(p && record_tag_valid(name + strlen(RECORD_PREFIX)));
        snprintf(folder, sizeof(folder), "%s/%s", r->b.sockdir.path, name + strlen(RECORD_PREFIX));
        config_recipe_with_agent(p, r->b.agent_hash, recipe);
        for (size_t i = 2; i < json_array_size(mounts); i++) {
                check(i - 2 < MOUNT_MAX);
                rig_check_mount(json_array_get(mounts, i), &of[caller.n++]);
        }
        if (caller.n > 0)
                ctx.caller = &caller;
        if (geteuid() != 0) {
                caller.uid = geteuid();
                caller.gid = getegid();
        }
        rig_narrow(j, p, caller.n > 0, &own);
        want = body_create(&own, &ctx);
        check(want && strcmp(want, body) == 0);
        check(caller.n == 0 || strstr(body, "\"CapAdd\":[]"));
        check((caller.n == 0 && p->capabilities) || !strstr(body, "CHOWN"));
        free(want);
        config_profile_done(&own);
        json_decref(j);
}

static inline void rig_reply(struct engine_conn *c, const char *status, const char *body) {
        char out[16384];
        int n = snprintf(out, sizeof(out),
                         "HTTP/1.1 %s\r\nApi-Version: 1.41\r\nContent-Length: %zu\r\n\r\n%s", status,
                         strlen(body), body);

        check(n > 0 && (size_t)n < sizeof(out));
        if (c->rig->mood == HALF)
                n /= 2;
        if (send(c->fd, out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n || c->rig->mood == HALF)
                shutdown(c->fd, SHUT_RDWR);
}

static inline void rig_create(struct engine_conn *c, const char *name, const char *body) {
        struct rig *r = c->rig;
        struct rig_container *n;
        char text[256];

        rig_check_body(r, body, name);
        check(!rig_find(r, name, strlen(name)));
        if (r->n_containers == CONTAINERS) {
                rig_reply(c, "500 Full", "{\"message\":\"no space left on device\"}");
                return;
        }
        n = &r->containers[r->n_containers++];
        *n = (struct rig_container){ .there = true };
        snprintf(n->name, sizeof(n->name), "%s", name);
        snprintf(n->id, sizeof(n->id), "%064x", r->n_containers);
        n->other_image = r->n_containers % 8 == 7;
        snprintf(text, sizeof(text), "{\"Id\":\"%s\"}", n->id);
        rig_reply(c, "201 Created", text);
}

static inline void rig_list(struct engine_conn *c) {
        struct rig *r = c->rig;
        char text[12288];
        size_t len = (size_t)snprintf(
                text, sizeof(text),
                "[{\"Id\":\"" FOREIGN "\",\"Names\":[\"/x\"],\"State\":\"exited\",\"Labels\":{}},"
                "{\"Id\":\"" FORGED
                "\",\"Names\":[\"/%s%032d\"],\"State\":\"exited\",\"Labels\":{\"%s\":\"%s\"}}",
                RECORD_PREFIX, 7, LABEL_INSTALLATION, r->b.records.installation);

        for (unsigned i = 0; i < r->n_containers && len < sizeof(text) - 400; i++)
                if (r->containers[i].there)
                        len += (size_t)snprintf(
                                text + len, sizeof(text) - len,
                                ",{\"Id\":\"%s\",\"Names\":[\"/%s\"],\"State\":\"%s\",\"Labels\":{\"%s\":\"%s\"}}",
                                r->containers[i].id, r->containers[i].name,
                                r->containers[i].running ? "running" : "exited", LABEL_INSTALLATION,
                                r->b.records.installation);
        snprintf(text + len, sizeof(text) - len, "]");
        rig_reply(c, "200 OK", text);
}

static inline void rig_inspect(struct engine_conn *c, const struct rig_container *n) {
        char text[512];

        snprintf(
                text, sizeof(text),
                "{\"Id\":\"%s\",\"Name\":\"/%s\",\"State\":{\"Status\":\"%s\",\"Running\":%s,\"Pid\":%d},"
                "\"Image\":\"%s\",\"Config\":{\"Labels\":{\"%s\":\"%s\"}}}",
                n->id, n->name, n->running ? "running" : "exited", n->running ? "true" : "false",
                (int)getpid(), n->other_image ? "sha256:2" : IMAGE_ID, LABEL_INSTALLATION,
                c->rig->b.records.installation);
        rig_reply(c, "200 OK", text);
}

/* "/containers/WHICH…": only what this broker has created may be changed. */
static inline void rig_container_call(struct engine_conn *c, const char *method, const char *which) {
        size_t len = strcspn(which, "/? ");
        struct rig_container *n = rig_find(c->rig, which, len);
        const char *what = which + len;

        if (strcmp(method, "GET") == 0) {
                check(strncmp(what, "/json ", 6) == 0);
                if (n && n->there)
                        rig_inspect(c, n);
                else if (len == ENGINE_ID_LEN && memcmp(which, FOREIGN, len) == 0)
                        rig_reply(c, "200 OK", "{\"Id\":\"" FOREIGN "\",\"State\":{}}");
                else
                        rig_reply(c, "404 Not Found", "{\"message\":\"No such container\"}");
                return;
        }
        if (strcmp(method, "POST") == 0) {
                check(n && strncmp(what, "/start ", 7) == 0);
                n->running = n->there;
                rig_reply(c, n->there ? "204 No Content" : "404 Not Found", "");
                return;
        }
        check(strcmp(method, "DELETE") == 0 && strncmp(what, "?force=1&v=1 ", 13) == 0);
        /* By a name of its own records where it has not learnt the id: one that never came to be. */
        if (!n) {
                check(len == RECORD_NAME_LEN &&
                      memcmp(which, RECORD_PREFIX, strlen(RECORD_PREFIX)) == 0);
                rig_reply(c, "404 Not Found", "{\"message\":\"No such container\"}");
                return;
        }
        rig_reply(c, n->there ? "204 No Content" : "404 Not Found", "");
        n->there = n->running = false;
}

/* Ill-tempered? Then not another word. The call counts or not, as with a real one. */
static inline bool rig_in_a_mood(struct engine_conn *c) {
        switch (c->rig->mood) {
        case REFUSES:
                rig_reply(c, "500 Internal Server Error", "{\"message\":\"not today\"}");
                return true;
        case NONSENSE:
                rig_reply(c, "200 OK", "<html>");
                return true;
        case GONE:
                rig_reply(c, "404 Not Found", "{\"message\":\"No such image: x\"}");
                return true;
        case CUT:
                shutdown(c->fd, SHUT_RDWR);
                return true;
        case SILENT:
                return true;
        default:
                return false;
        }
}

static inline void rig_call(struct engine_conn *c, const char *line, const char *body) {
        static const char events[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        char method[8], name[128];
        const char *path = strchr(line, ' ') + 1;

        snprintf(method, sizeof(method), "%.*s", (int)strcspn(line, " "), line);
        if (strncmp(path, "/v1.41", 6) == 0)
                path += 6;
        /* What must hold of a create holds also where the engine does nothing. */
        if (sscanf(path, "/containers/create?name=%100s", name) == 1) {
                if (c->rig->mood == GOOD || c->rig->mood == HALF)
                        rig_create(c, name, body);
                else {
                        rig_check_body(c->rig, body, name);
                        rig_in_a_mood(c);
                }
                return;
        }
        if (rig_in_a_mood(c))
                return;
        if (strncmp(path, "/_ping ", 7) == 0) {
                rig_reply(c, "200 OK", "OK");
        } else if (strncmp(path, "/info ", 6) == 0) {
                rig_reply(c, "200 OK", "{\"CgroupVersion\":\"1\"}");
        } else if (strncmp(path, "/events?", 8) == 0) {
                c->events = true;
                check(send(c->fd, events, sizeof(events) - 1, MSG_NOSIGNAL) > 0);
        } else if (strncmp(path, "/containers/json?", 17) == 0) {
                rig_list(c);
        } else if (strncmp(path, "/containers/", 12) == 0) {
                rig_container_call(c, method, path + 12);
        } else {
                check(strncmp(path, "/images/", 8) == 0);
                rig_reply(c, "200 OK", "{\"Id\":\"" IMAGE_ID "\"}");
        }
}

static inline void rig_hang_up(struct engine_conn *c) {
        c->source = sd_event_source_disable_unref(c->source);
        c->fd = close_fd(c->fd);
        c->len = 0;
        c->events = false;
}

static inline int rig_on_call(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct engine_conn *c = userdata;
        ssize_t n = recv(fd, c->buf + c->len, sizeof(c->buf) - 1 - c->len, MSG_DONTWAIT);
        char *end, *length;

        (void)s;
        (void)revents;
        if (n <= 0) {
                rig_hang_up(c);
                return 0;
        }
        c->len += (size_t)n;
        c->buf[c->len] = '\0';
        while ((end = strstr(c->buf, "\r\n\r\n"))) {
                size_t head = (size_t)(end - c->buf) + 4, more = 0;
                char *body;

                length = strcasestr(c->buf, "content-length:");
                if (length && length < end)
                        more = strtoul(length + 15, NULL, 10);
                check(head + more < sizeof(c->buf));
                if (c->len < head + more)
                        return 0;
                body = strndup(c->buf + head, more);
                check(body);
                rig_call(c, c->buf, body);
                free(body);
                c->len -= head + more;
                memmove(c->buf, c->buf + head + more, c->len + 1);
        }
        return 0;
}

static inline int rig_on_connect(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct rig *r = userdata;
        int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        (void)s;
        (void)revents;
        for (unsigned i = 0; i < CONNS; i++)
                if (r->conns[i].fd < 0) {
                        r->conns[i].fd = got;
                        check(sd_event_add_io(r->b.event, &r->conns[i].source, got, EPOLLIN, rig_on_call,
                                              &r->conns[i]) >= 0);
                        return 0;
                }
        close(got);
        return 0;
}

/* Tells of a container on the event stream. */
static inline void rig_event(struct rig *r, const char *id, const char *action) {
        char line[512], chunk[600];

        snprintf(
                line, sizeof(line),
                "{\"Type\":\"container\",\"Action\":\"%s\",\"Actor\":{\"ID\":\"%s\",\"Attributes\":{\"exitCode\":"
                "\"137\"}}}\n",
                action, id);
        snprintf(chunk, sizeof(chunk), "%zx\r\n%s\r\n", strlen(line), line);
        for (unsigned i = 0; i < CONNS; i++)
                if (r->conns[i].events &&
                    send(r->conns[i].fd, chunk, strlen(chunk), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                        shutdown(r->conns[i].fd, SHUT_RDWR);
}

/* --- the stage
 * --------------------------------------------------------------------------------------- */

static inline int rig_count_fds(void) {
        DIR *d = opendir("/proc/self/fd");
        int n = 0;

        check(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* Everything that can happen without time going by. */
static inline void rig_settle(struct rig *r) {
        for (int i = 0; i < 2000; i++)
                if (sd_event_run(r->b.event, 0) == 0)
                        return;
}

static inline int rig_listen(const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
        check(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, CONNS) == 0);
        return fd;
}

static inline struct rig *rig_begin(void) {
        struct rig *r = calloc(1, sizeof(*r));
        struct broker *b = &r->b;
        const char *text;
        struct errmsg e;

        check(r);
        if (!rig_config)
                rig_init();
        nftw(rig_dir, rig_wipe, 16, FTW_DEPTH | FTW_PHYS);
        check(mkdir(rig_path("run"), 0750) == 0 && mkdir(rig_path("state"), 0700) == 0 &&
              mkdir(rig_allowed, 0755) == 0 && mkdir(rig_path("allowed/a"), 0755) == 0 &&
              mkdir(rig_path("secret"), 0755) == 0);
        r->low_fds = rig_count_fds();
        r->manager = -1;
        for (unsigned i = 0; i < CONNS; i++)
                r->conns[i] = (struct engine_conn){ .rig = r, .fd = -1 };
        for (unsigned i = 0; i < IDS; i++)
                r->callers[i] = -1;
        b->options = (struct engined_options){ .config_path = "rig",
                                               .agent_path = AGENT,
                                               .state_dir = "state",
                                               .manager_user = "rig",
                                               .single_user = geteuid() != 0 };
        b->config = rig_config;
        b->manager_uid = geteuid();
        b->manager_gid = getegid();
        check(records_init(&b->records, rig_path("state"), &e) == 0);
        check(sockdir_init(&b->sockdir, rig_path("run")) == 0);
        check(sd_event_new(&b->event) >= 0);
        r->listen_fd = rig_listen(rig_path("docker.sock"));
        check(sd_event_add_io(b->event, &r->listen_source, r->listen_fd, EPOLLIN, rig_on_connect, r) >=
              0);
        check(api_new(b->event, rig_path("docker.sock"), &b->api) == 0 && elink_new(b, &b->link) == 0 &&
              serve_new(b, &b->serve) == 0);
        while (elink_state(b->link, &text) != ENGINE_UP)
                check(sd_event_run(b->event, 5000000) > 0);
        return r;
}

static inline void rig_finish(struct rig *r) {
        struct broker *b = &r->b;
        int low = r->low_fds;

        close_fd(r->manager);
        for (unsigned i = 0; i < IDS; i++)
                close_fd(r->callers[i]);
        for (unsigned i = 0; i < CONNS; i++)
                rig_hang_up(&r->conns[i]);
        sd_event_source_disable_unref(r->listen_source);
        close(r->listen_fd);
        mounts_drop_all(b);
        api_shutdown(b->api);
        removal_drop_all(b);
        elink_free(b->link);
        serve_free(b->serve);
        api_free(b->api);
        sd_event_unref(b->event);
        sockdir_done(&b->sockdir);
        records_done(&b->records);
        free(r);
        check(rig_count_fds() == low);
}
