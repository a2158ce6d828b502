/*
 * The link's life:
 *
 *     WAITING -> PINGING -> ASKING -> OPENING -> COMPARING -> UP
 *        ^___________|__________|__________|___________|______|   any failure
 *
 * PINGING learns the API version, ASKING the cgroup version, OPENING the event stream, COMPARING what
 * the engine has of ours. The stream is open before the comparison starts, so no death falls between
 * them. In WAITING connect() itself is tried first: its errno is the clear word on "not there" and "not
 * allowed", which libcurl does not pass on.
 */
#include "engine/elink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "common/cleanup.h"
#include "common/engine_info.h"
#include "common/log.h"
#include "engine/apijson.h"
#include "engine/listing.h"
#include "engine/membership.h"
#include "engine/removal.h"
#include "engine/serve.h"

#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 5000
/* Orphan records (a create whose end nobody saw) are looked at again while up. */
#define RECHECK_MS 60000
#define RECHECK_SOON_MS 5000

enum phase { WAITING, PINGING, ASKING, OPENING, COMPARING, UP };

static const uint8_t allowed[] = {
        [WAITING] = 1 << WAITING | 1 << PINGING, [PINGING] = 1 << WAITING | 1 << ASKING,
        [ASKING] = 1 << WAITING | 1 << OPENING,  [OPENING] = 1 << WAITING | 1 << COMPARING,
        [COMPARING] = 1 << WAITING | 1 << UP,    [UP] = 1 << WAITING,
};

struct elink {
        struct broker *broker;
        enum phase phase;
        enum engine_state state;
        char text[ENGINE_TEXT_MAX + 1];
        bool cgroup_v2, rootless, userns, known;
        unsigned retry_ms;
        sd_event_source *timer;  /* the next try, or while up the next recheck */
        struct api_call *step;   /* the phase's call */
        struct api_call *events; /* the event stream */
        struct reconcile reconcile;
        sd_event_source *group; /* the watch on /etc/group, or NULL */
        bool was_member;        /* of the group docker */
};

const char *elink_systemctl(const struct broker *b) {
        return b->options.single_user ? " --user" : "";
}

static void set_phase(struct elink *l, enum phase to) {
        if (!(allowed[l->phase] & 1 << to))
                abort();
        l->phase = to;
}

static void tell_systemd(const struct elink *l) {
        if (l->state == ENGINE_UP)
                sd_notifyf(0, "STATUS=engine %s is up, API version %s", api_socket(l->broker->api),
                           api_version(l->broker->api));
        else
                sd_notifyf(0, "STATUS=%s", l->text);
}

static void set_state(struct elink *l, enum engine_state state, const char *text) {
        if (l->state == state && strcmp(l->text, text) == 0)
                return;
        l->known = true;
        l->state = state;
        snprintf(l->text, sizeof(l->text), "%s", text);
        if (state == ENGINE_UP)
                log_line(LOG_P_INFO, "engine at %s is up, API version %s", api_socket(l->broker->api),
                         api_version(l->broker->api));
        else
                log_line(LOG_P_WARNING, "%s", text);
        serve_state(l->broker->serve, state, l->text);
        tell_systemd(l);
}

static void timer_in(struct elink *l, unsigned ms) {
        sd_event_source_set_time_relative(l->timer, (uint64_t)ms * 1000);
        sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

__attribute__((format(printf, 3, 4))) static void down(struct elink *l, enum engine_state state,
                                                       const char *fmt, ...) {
        char text[ENGINE_TEXT_MAX + 1];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        api_cancel(l->step);
        api_cancel(l->events);
        l->step = l->events = NULL;
        if (l->phase == UP)
                l->retry_ms = RETRY_FIRST_MS;
        set_phase(l, WAITING);
        set_state(l, state, text);
        timer_in(l, l->retry_ms);
        l->retry_ms = l->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : l->retry_ms * 2;
}

/* A phase's call failed: says so and returns true. */
static bool failed(struct elink *l, const struct api_reply *reply, const char *what) {
        const char *path = api_socket(l->broker->api);
        char words[256];

        l->step = NULL;
        if (reply->error == 0 && reply->status == 200)
                return false;
        if (reply->error == -ECANCELED)
                return true;
        if (reply->error) {
                down(l, ENGINE_DOWN,
                     "the engine at %s does not answer %s (%s): restart docker "
                     "(systemctl%s restart docker)",
                     path, what, reply->why, elink_systemctl(l->broker));
        } else {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                down(l, ENGINE_DOWN,
                     "the engine at %s refuses %s: HTTP %ld: %s: look at docker's log "
                     "(journalctl -u docker)",
                     path, what, reply->status, words);
        }
        return true;
}

static void step(struct elink *l, const char *path, bool unversioned,
                 const struct api_handler *handler) {
        struct api_request q = {
                .method = "GET",
                .path = path,
                .unversioned = unversioned,
                .urgent = true,
                .timeout_ms = API_CALL_MS,
        };

        if (api_start(l->broker->api, &q, handler, l, &l->step) < 0)
                down(l, ENGINE_DOWN, "out of memory");
}

/* --- UP
 * ---------------------------------------------------------------------------------------------- */

static void compared(void *userdata, const struct api_reply *reply) {
        struct elink *l = userdata;

        l->step = NULL;
        if (reply) {
                failed(l, reply, "a list of our containers");
                return;
        }
        if (l->phase == COMPARING) {
                set_phase(l, UP);
                l->retry_ms = RETRY_FIRST_MS;
                set_state(l, ENGINE_UP, "");
        }
        timer_in(l, RECHECK_MS);
}

static void compare(struct elink *l) {
        l->reconcile = (struct reconcile){ l->broker, compared, l };
        if (listing_reconcile(&l->reconcile, &l->step) < 0)
                down(l, ENGINE_DOWN, "out of memory");
}

static void events_open(void *userdata) {
        struct elink *l = userdata;

        if (l->phase != OPENING)
                return;
        set_phase(l, COMPARING);
        compare(l);
}

static void event_line(void *userdata, const char *line, size_t len) {
        struct elink *l = userdata;
        struct apijson_event event;
        struct record *rec;

        if (apijson_event(line, len, &event) < 0 || event.kind == EVENT_OTHER)
                return;
        rec = records_by_id(&l->broker->records, event.id);
        if (!rec)
                return;
        switch (event.kind) {
        case EVENT_OOM:
                rec->oom = true;
                break;
        case EVENT_DIE:
                rec->died = true;
                rec->exit_code = event.exit_code;
                /* Of one that is being created nobody knows yet; create.c looks at died itself. */
                if (!rec->busy)
                        serve_died(l->broker->serve, rec->id, event.exit_code, rec->oom);
                break;
        default:
                if (!rec->busy)
                        removal_forget(l->broker, rec);
        }
}

static void events_done(void *userdata, const struct api_reply *reply) {
        struct elink *l = userdata;

        l->events = NULL;
        if (reply->error == -ECANCELED)
                return;
        down(l, ENGINE_DOWN, "the engine at %s went away%s%s: start docker (systemctl%s start docker)",
             api_socket(l->broker->api), reply->error ? ": " : "", reply->error ? reply->why : "",
             elink_systemctl(l->broker));
}

static const struct api_handler events_handler = { events_open, event_line, events_done };

static void open_events(struct elink *l) {
        struct api_request q = { .method = "GET", .endless = true };
        char filters[256];
        _cleanup_free_ char *escaped = NULL, *path = NULL;

        snprintf(
                filters, sizeof(filters),
                "{\"type\":[\"container\"],\"event\":[\"die\",\"oom\",\"destroy\"],\"label\":[\"%s=%s\"]}",
                LABEL_INSTALLATION, l->broker->records.installation);
        escaped = api_escape(filters, "");
        path = escaped ? api_path("/events?filters=%s", escaped) : NULL;
        if (!path) {
                down(l, ENGINE_DOWN, "out of memory");
                return;
        }
        q.path = path;
        set_phase(l, OPENING);
        if (api_start(l->broker->api, &q, &events_handler, l, &l->events) < 0)
                down(l, ENGINE_DOWN, "out of memory");
}

/* --- the way up
 * -------------------------------------------------------------------------------------- */

static void info_done(void *userdata, const struct api_reply *reply) {
        char text[ENGINE_INFO_MAX + 1];
        struct elink *l = userdata;
        struct errmsg e;

        if (failed(l, reply, "its info"))
                return;
        if (apijson_info(reply->body, reply->len, "", &l->cgroup_v2, text, sizeof(text), &e) < 0) {
                down(l, ENGINE_DOWN, "the engine at %s: %s", api_socket(l->broker->api), e.text);
                return;
        }
        l->rootless = strstr(text, ENGINE_INFO_ROOTLESS "=yes\n");
        l->userns = strstr(text, ENGINE_INFO_USERNS "=yes\n");
        open_events(l);
}

static const struct api_handler info_handler = { .on_done = info_done };

static void ping_done(void *userdata, const struct api_reply *reply) {
        struct elink *l = userdata;
        char version[API_VERSION_LEN];

        if (failed(l, reply, "a ping"))
                return;
        if (api_choose_version(reply->api_version, version) < 0) {
                down(l, ENGINE_DOWN,
                     "the engine at %s speaks API version \"%.20s\", at least 1.40 is needed: "
                     "install a newer docker",
                     api_socket(l->broker->api), reply->api_version);
                return;
        }
        api_set_version(l->broker->api, version);
        set_phase(l, ASKING);
        step(l, "/info", false, &info_handler);
}

static const struct api_handler ping_handler = { .on_done = ping_done };

/* What connect() says. 0 or -errno. */
static int try_connect(const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        if (strlen(path) >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, path);
        if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno != EAGAIN)
                return -errno;
        return 0;
}

/* --- the group docker
 * ------------------------------------------------------------------------------ */

static void start_again(struct elink *l, const char *why) {
        log_line(LOG_P_WARNING,
                 "%s group " DOCKER_GROUP ": ending, to be started again with the groups as they are",
                 why);
        engined_stop(l->broker);
}

/* Who takes the membership away expects that to hold from now on. A group that came from somewhere else (a unit's
 * SupplementaryGroups=) is none of this. */
static bool left_group(struct elink *l) {
        enum membership now = l->broker->options.single_user ? MEMBER_NO : membership_now();

        if (now == MEMBER_YES)
                l->was_member = true;
        if (now != MEMBER_LEFT || !l->was_member)
                return false;
        start_again(l, "taken out of");
        return true;
}

static void not_allowed(struct elink *l) {
        const char *path = api_socket(l->broker->api);
        enum membership now = l->broker->options.single_user ? MEMBER_YES : membership_now();

        if (now == MEMBER_JOINED)
                start_again(l, "joined");
        else if (now == MEMBER_NO)
                down(l, ENGINE_NOT_ENABLED, "not enabled: run sudo hermes-docker-enable");
        else
                down(l, ENGINE_DOWN,
                     "no engine at %s: its mode keeps us out: look at its owner and group, or set "
                     "engine: socket: in sandbox.yaml",
                     path);
}

static void group_changed(void *userdata) {
        struct elink *l = userdata;

        if (!left_group(l) && l->phase == WAITING)
                timer_in(l, 0);
}

/* Not being told is no reason not to serve: what the timer then sees is enough. */
static void watch_group(struct elink *l) {
        int r = membership_watch(l->broker->event, &l->group, group_changed, l);

        if (r < 0)
                log_line(LOG_P_WARNING, "/etc/group cannot be watched: %s: a new member is seen late",
                         strerror(-r));
}

static void try_now(struct elink *l) {
        const char *path = api_socket(l->broker->api);
        int r = try_connect(path);

        if (r == 0) {
                set_phase(l, PINGING);
                step(l, "/_ping", true, &ping_handler);
        } else if (r == -EACCES || r == -EPERM) {
                not_allowed(l);
        } else if (r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR) {
                down(l, ENGINE_DOWN, "no engine answers at %s: start docker (systemctl%s start docker)",
                     path, elink_systemctl(l->broker));
        } else {
                down(l, ENGINE_DOWN, "no engine at %s: %s: set engine: socket: in sandbox.yaml", path,
                     strerror(-r));
        }
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct elink *l = userdata;

        (void)s;
        (void)usec;
        if (left_group(l))
                return 0;
        if (l->phase == UP)
                compare(l);
        else if (l->phase == WAITING)
                try_now(l);
        return 0;
}

int elink_new(struct broker *b, struct elink **ret) {
        struct elink *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        l->broker = b;
        l->state = ENGINE_DOWN;
        snprintf(l->text, sizeof(l->text), "the broker has only just started");
        l->retry_ms = RETRY_FIRST_MS;
        r = sd_event_add_time_relative(b->event, &l->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, l);
        if (r < 0) {
                free(l);
                return r;
        }
        if (!b->options.single_user)
                watch_group(l);
        *ret = l;
        return 0;
}

void elink_free(struct elink *l) {
        if (!l)
                return;
        api_cancel(l->step);
        api_cancel(l->events);
        sd_event_source_disable_unref(l->timer);
        sd_event_source_disable_unref(l->group);
        free(l);
}

enum engine_state elink_state(const struct elink *l, const char **ret_text) {
        *ret_text = l->text;
        return l->state;
}

bool elink_known(const struct elink *l) {
        return l->known;
}

bool elink_cgroup_v2(const struct elink *l) {
        return l->cgroup_v2;
}

bool elink_rootless(const struct elink *l) {
        return l->rootless;
}

bool elink_userns(const struct elink *l) {
        return l->userns;
}

void elink_doubt(struct elink *l) {
        if (l->phase == UP && !l->step)
                timer_in(l, 0);
}

void elink_look_again(struct elink *l) {
        if (l->phase == UP && !l->step)
                timer_in(l, RECHECK_SOON_MS);
}

void elink_restart(struct elink *l) {
        down(l, ENGINE_DOWN, "the engine's socket has changed: trying %s", api_socket(l->broker->api));
        l->retry_ms = RETRY_FIRST_MS;
        timer_in(l, 0);
}
