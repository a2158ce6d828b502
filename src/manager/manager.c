/*
 * Start, signals, reload; the end is in stop.c.
 *
 * Start: config, the sessions of an earlier life, both trails (what it left open is closed in them, but for what may
 * go on in a session), the socket, then the broker (sweep.c).
 */
#include "manager/manager.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/log.h"
#include "manager/session.h"

#define TICK_US 1000000
/* After so long without one the manager itself was not there to hear. */
#define STALL_MS 4000

uint64_t now_us(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t now_ms(void) {
        return now_us() / 1000;
}

/* --- the socket ---------------------------------------------------------------------------------- */

static int on_listen(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct manager *m = userdata;
        bool took = client_accept(m);

        (void)fd;
        (void)revents;
        if (took == m->accept_paced) {
                sd_event_source_set_ratelimit(s, took ? 0 : ACCEPT_PACE_US, 1);
                m->accept_paced = !took;
        }
        return 0;
}

/* The group comes from the folder's setgid bit, the mode from @mask: nothing is changed afterwards. */
static int bind_socket(const char *dir, mode_t mask, struct errmsg *e) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        mode_t old;
        int r;

        if (fd < 0)
                return errmsg_set(e, -errno, "socket: %s", strerror(errno));
        if (snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/pool.sock", dir) >= (int)sizeof(sa.sun_path))
                return errmsg_set(e, -ENAMETOOLONG, "%s/pool.sock: longer than a socket's path may be",
                                  dir);
        unlink(sa.sun_path);
        old = umask(mask);
        r = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
        umask(old);
        if (r < 0 || listen(fd, SOMAXCONN) < 0)
                return errmsg_set(e, r ? r : -errno, "%s: %s: is the folder there and %s's?",
                                  sa.sun_path, strerror(r ? -r : errno), "_hermes-sandbox");
        return take_fd(&fd);
}

/* What systemd passes. */
static int take_socket(struct manager *m, struct errmsg *e) {
        int n = sd_listen_fds(1);

        m->own_socket = n == 0;
        if (n < 0 || n > 1 ||
            (n == 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0))
                return errmsg_set(e, -EINVAL,
                                  "the service manager passed something else than one listening socket");
        if (n == 1)
                m->listen_fd = SD_LISTEN_FDS_START;
        return 0;
}

static int open_socket(struct manager *m, struct errmsg *e) {
        if (m->own_socket)
                m->listen_fd = bind_socket(m->options.runtime_dir, m->options.single_user ? 0177 : 0117,
                                           e);
        if (m->listen_fd < 0)
                return m->listen_fd;
        return sd_event_add_io(m->event, &m->listen_source, m->listen_fd, EPOLLIN, on_listen, m);
}

/* --- time ---------------------------------------------------------------------------------------- */

/* What is late. */
static void check_all(struct manager *m, uint64_t now) {
        struct sandbox *sb, *next;
        struct pool *p;

        clients_check(m, now);
        LIST_FOREACH(p, &m->pools, link) {
                for (sb = TAILQ_FIRST(&p->sandboxes); sb; sb = next) {
                        next = TAILQ_NEXT(sb, link);
                        sandbox_check(sb, now);
                }
                pool_check(p, now);
        }
        image_check(m, now);
        sessions_check(m, now);
}

/* We have stood still: what seems late may wait in its socket. It is read before the next tick, and judged then. */
static void pass_over(struct manager *m, uint64_t now) {
        struct sandbox *sb;
        struct pool *p;

        log_line(
                LOG_P_WARNING,
                "nothing was done for %llu s: the disk, the kernel's audit or an account service did not answer, or this "
                "process was stopped",
                (unsigned long long)(now - m->ticked_ms) / 1000);
        LIST_FOREACH(p, &m->pools, link)
        TAILQ_FOREACH(sb, &p->sandboxes, link)
        sb->alive_ms = now;
}

static int on_tick(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        uint64_t now = now_ms();

        (void)usec;
        if (m->ticked_ms && now - m->ticked_ms > STALL_MS)
                pass_over(m, now);
        else
                check_all(m, now);
        m->ticked_ms = now;
        if (m->n_adopting > 0 && m->broker.welcomed && m->broker.state == ENGINE_UP)
                adopt_ask(m);
        rate_check(m->rate, now_us());
        status_notify(m);
        sd_event_source_set_time_relative(s, TICK_US);
        sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

/* --- reload -------------------------------------------------------------------------------------- */

static int on_reload(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        struct manager *m = userdata;
        struct config *c, *old = m->config;
        struct errmsg e;

        (void)s;
        (void)si;
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)now_us());
        if (config_load(m->options.config_path, m->options.config_dir, &c, &e) < 0)
                log_line(LOG_P_ERROR, "reload refused, the config in force stays: %s", e.text);
        else {
                m->config = c;
                /* The gateway's account may have come since. */
                if (!m->options.single_user)
                        peer_policy_init(&m->policy, m->options.gateway_account);
                logfile_set(&m->logfile, m->options.log_dir, c);
                pools_update(m);
                config_free(old);
                log_line(LOG_P_INFO, "the config was read again");
        }
        sd_notify(0, "READY=1");
        return 0;
}

static unsigned wanted_sandboxes(const struct config *c) {
        unsigned n = 0;

        for (size_t i = 0; i < c->n_profiles; i++)
                n += c->profiles[i].size;
        return n;
}

static void suppressed(void *userdata, uid_t uid, uint64_t requests, uint64_t duration_ms) {
        struct manager *m = userdata;

        log_line(LOG_P_WARNING, "uid %u: %llu commands over limits.exec_rate were refused",
                 (unsigned)uid, (unsigned long long)requests);
        if (audit_suppressed(m->audit, uid, requests, duration_ms) < 0)
                log_line(LOG_P_ERROR, "a burst that was suppressed could not be recorded");
}

static void serve(struct manager *m) {
        while (!stop_over(m))
                if (sd_event_run(m->event, m->draining ? 100000 : UINT64_MAX) < 0)
                        return;
}

static int add_signals(struct manager *m) {
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGHUP);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        r = sd_event_add_signal(m->event, NULL, SIGTERM, stop_signal, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGINT, stop_signal, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGHUP, on_reload, m);
        return r;
}

/* The system's pair has CAP_AUDIT_WRITE, a single user's has not: recording in the kernel's trail can be
 * required of the first alone. */
static bool may_audit(void) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct caps[2];

        return syscall(SYS_capget, &head, caps) == 0 && caps[0].effective & 1u << CAP_AUDIT_WRITE;
}

/* In another user namespace the kernel would report callers under other uids than the machine's. */
static bool is_identity(void) {
        unsigned long inside = 1, outside = 1, count = 0;
        FILE *f = fopen("/proc/self/uid_map", "re");
        int n = f ? fscanf(f, "%lu %lu %lu", &inside, &outside, &count) : 0;

        if (f)
                fclose(f);
        return n == 3 && inside == 0 && outside == 0 && count == UINT32_MAX;
}

/* What is wrong up to here no restart mends. */
static int read_config(struct manager *m, struct errmsg *e) {
        if (!m->options.single_user && !is_identity()) {
                errmsg_set(
                        e, 0,
                        "/proc/self/uid_map is not the identity, so the uids of callers would be wrong: take "
                        "PrivateUsers= out of the unit, or use the pair of a single user (--user)");
                return -EPERM;
        }
        return config_load(m->options.config_path, m->options.config_dir, &m->config, e);
}

static int set_up(struct manager *m, struct errmsg *e) {
        char state_file[4096];
        int r;

        logfile_set(&m->logfile, m->options.log_dir, m->config);
        snprintf(state_file, sizeof(state_file), "%s/execs", m->options.state_dir);
        r = audit_new(m->config, may_audit(), state_file, &m->audit, e);
        if (r < 0)
                return r;
        if (m->options.single_user)
                audit_single_user(m->audit);
        r = adopt_begin(m, e);
        if (r < 0)
                return r;
        r = sd_event_default(&m->event);
        if (r >= 0)
                r = add_signals(m);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->tick, CLOCK_MONOTONIC, TICK_US, 100000,
                                               on_tick, m);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->announce, CLOCK_MONOTONIC, 0, 1000,
                                               client_announce, m);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->retire, CLOCK_MONOTONIC, 0, 1000,
                                               sandbox_retire, m);
        if (r >= 0)
                r = pools_attach(m);
        if (r < 0)
                return errmsg_set(e, r, "event loop: %s", strerror(-r));
        m->rate = rate_new(suppressed, m);
        sd_event_set_watchdog(m->event, true);
        if (!m->options.single_user)
                peer_policy_init(&m->policy, m->options.gateway_account);
        r = open_socket(m, e);
        if (r < 0)
                return r;
        r = broker_init(&m->broker, m->event, m->options.engine_socket, &sweep_broker_events, m);
        if (r < 0)
                return errmsg_set(e, r, "event loop: %s", strerror(-r));
        pools_update(m);
        r = audit_pool(m->audit, true, wanted_sandboxes(m->config));
        return r < 0 ? errmsg_set(e, r, "the pool's start could not be recorded: %s", strerror(-r)) : 0;
}

static void tear_down(struct manager *m) {
        broker_done(&m->broker);
        rate_free(m->rate);
        image_free_all(m);
        sessions_free(m);
        pools_free(m);
        m->tick = sd_event_source_disable_unref(m->tick);
        m->announce = sd_event_source_disable_unref(m->announce);
        m->retire = sd_event_source_disable_unref(m->retire);
        m->settle = sd_event_source_disable_unref(m->settle);
        m->listen_source = sd_event_source_disable_unref(m->listen_source);
        close_fd(m->listen_fd);
        audit_free(m->audit);
        free(m->logins);
        config_free(m->config);
        logfile_done(&m->logfile);
        m->event = sd_event_unref(m->event);
}

/* 0, or the exit status and a line in *e. */
static int start(struct manager *m, struct errmsg *e) {
        if (take_socket(m, e) < 0)
                return 1;
        if (read_config(m, e) < 0)
                return EXIT_CONFIG;
        return set_up(m, e) < 0 ? 1 : 0;
}

static void fail(struct manager *m, int code, const char *why) {
        char line[PROTO_LINE_MAX];

        log_line(LOG_P_ERROR, "%s", why);
        sd_notifyf(0, "STATUS=%s", why);
        if (code == EXIT_CONFIG)
                snprintf(line, sizeof(line), "bad config: %s (see hermes-sandbox config check)", why);
        else
                snprintf(line, sizeof(line), "hermes-sandboxd cannot start: %s", why);
        if (!m->own_socket && m->listen_fd >= 0)
                lastword_callers(m->listen_fd, code == EXIT_CONFIG ? EXIT_CONFIG : EXIT_NO_MANAGER,
                                 line);
}

int manager_run(const struct manager_options *o) {
        struct rlimit files;
        struct manager m = { .options = *o, .listen_fd = -1, .started_ms = now_ms() };
        struct errmsg e = { "" };
        int code;

        LIST_INIT(&m.clients);
        LIST_INIT(&m.execs);
        LIST_INIT(&m.pools);
        LIST_INIT(&m.image_jobs);
        TAILQ_INIT(&m.image_looks);
        TAILQ_INIT(&m.sessions);
        if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files);
        }
        code = start(&m, &e);
        if (code == 0) {
                sd_notify(0, "READY=1");
                status_notify(&m);
                serve(&m);
        } else
                fail(&m, code, e.text);
        tear_down(&m);
        return code;
}
