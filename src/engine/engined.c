/*
 * Start and end of the broker, its signals, its config. The order of the start: account, config and
 * agent hash, records, folders, the engine's API, then the manager's socket, which is where others begin
 * to see it.
 */
#include "engine/engined.h"

#include <curl/curl.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "common/exitcode.h"
#include "common/log.h"
#include "engine/agenthash.h"
#include "engine/elink.h"
#include "engine/mounts.h"
#include "engine/removal.h"
#include "engine/serve.h"

static const enum log_priority levels[] = {
        [LOG_LEVEL_DEBUG] = LOG_P_DEBUG,
        [LOG_LEVEL_INFO] = LOG_P_INFO,
        [LOG_LEVEL_WARNING] = LOG_P_WARNING,
        [LOG_LEVEL_ERROR] = LOG_P_ERROR,
};

/* Config and agent belong together: both are read, and only then both are in force. */
static int load(struct broker *b, struct errmsg *e) {
        uint8_t hash[ENGINE_RECIPE];
        struct config *c = NULL;
        int r = config_load(b->options.config_path, b->options.config_dir, &c, e);

        if (r < 0)
                return r;
        r = agenthash_file(b->options.agent_path, hash, e);
        if (r < 0) {
                config_free(c);
                return r;
        }
        config_free(b->config);
        b->config = c;
        memcpy(b->agent_hash, hash, sizeof(hash));
        log_set_level(levels[c->log_level]);
        return 0;
}

static void reload(struct broker *b) {
        struct errmsg e = { "" };

        if (load(b, &e) < 0) {
                log_line(LOG_P_ERROR, "reload refused, the old config stays: %s", e.text);
                return;
        }
        log_line(LOG_P_INFO, "reloaded %s", b->options.config_path);
        if (strcmp(api_socket(b->api), b->config->engine_socket) != 0 &&
            api_set_socket(b->api, b->config->engine_socket) == 0)
                elink_restart(b->link);
}

static unsigned long long monotonic_us(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (unsigned long long)ts.tv_sec * 1000000 + (unsigned long long)ts.tv_nsec / 1000;
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        struct broker *b = userdata;

        (void)s;
        if (si->ssi_signo == SIGHUP) {
                sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", monotonic_us());
                reload(b);
                sd_notify(0, "READY=1");
        } else
                engined_stop(b);
        return 0;
}

void engined_stop(struct broker *b) {
        sd_event_exit(b->event, 0);
}

static int add_signals(struct broker *b) {
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
        sigset_t set;
        int r = 0;

        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                sigaddset(&set, signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; r >= 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
                r = sd_event_add_signal(b->event, NULL, signals[i], on_signal, b);
        return r;
}

static int find_manager(struct broker *b, struct errmsg *e) {
        struct passwd *pw;

        if (b->options.single_user) {
                b->manager_uid = geteuid();
                b->manager_gid = getegid();
                return 0;
        }
        errno = 0;
        pw = getpwnam(b->options.manager_user);
        if (!pw) {
                return errmsg_set(e, -ENOENT,
                                  "account %s: not there: install the package, or name another one with "
                                  "--manager-user",
                                  b->options.manager_user);
        }
        b->manager_uid = pw->pw_uid;
        b->manager_gid = pw->pw_gid;
        return 0;
}

static int start(struct broker *b, struct errmsg *e) {
        int r = records_init(&b->records, b->options.state_dir, e);

        if (r < 0)
                return r;
        r = sockdir_init(&b->sockdir, b->options.runtime_dir);
        if (r < 0)
                return errmsg_set(e, r, "runtime folder %s: %s", b->options.runtime_dir, strerror(-r));
        r = sd_event_new(&b->event);
        if (r >= 0)
                r = add_signals(b);
        if (r >= 0)
                r = api_new(b->event, b->config->engine_socket, &b->api);
        if (r >= 0)
                r = elink_new(b, &b->link);
        if (r >= 0)
                r = sd_event_set_watchdog(b->event, true);
        if (r < 0)
                return errmsg_set(e, r, "start: %s", strerror(-r));
        r = serve_new(b, &b->serve);
        if (r < 0)
                return errmsg_set(e, r, "socket %s/%s: %s", b->sockdir.path, SERVE_SOCKET, strerror(-r));
        return 0;
}

static void engined_done(struct broker *b) {
        mounts_drop_all(b);
        api_shutdown(b->api);
        removal_drop_all(b);
        elink_free(b->link);
        serve_free(b->serve);
        api_free(b->api);
        sd_event_unref(b->event);
        sockdir_done(&b->sockdir);
        records_done(&b->records);
        config_free(b->config);
}

static void fail(const struct errmsg *e) {
        log_line(LOG_P_ERROR, "%s", e->text);
        sd_notifyf(0, "STATUS=%s", e->text);
        serve_last_word(e->text);
}

int engined_run(const struct engined_options *options) {
        struct broker b = { .options = *options, .records.dir_fd = -1, .sockdir.fd = -1 };
        struct errmsg e = { "" };
        int r;

        if (find_manager(&b, &e) < 0) {
                fail(&e);
                return 1;
        }
        if (load(&b, &e) < 0) {
                fail(&e);
                config_free(b.config);
                return EXIT_CONFIG;
        }
        curl_global_init(CURL_GLOBAL_NOTHING);
        r = start(&b, &e);
        if (r < 0)
                fail(&e);
        else {
                sd_notify(0, "READY=1");
                log_line(LOG_P_INFO, "listening on %s/%s", b.sockdir.path, SERVE_SOCKET);
                r = sd_event_loop(b.event);
                sd_notify(0, "STOPPING=1");
        }
        engined_done(&b);
        curl_global_cleanup();
        return r < 0 ? 1 : 0;
}
