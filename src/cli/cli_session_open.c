/*
 * What a session shall be: what the profile gives, or less. Nothing that stands here can make it more; the manager says
 * what was too much.
 */
#include "cli/cli_session_open.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_ask.h"
#include "cli/cli_words.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/frame.h"

#define WHAT "session open"

enum {
        OPT_HELP,
        OPT_PROFILE,
        OPT_TTL,
        OPT_LABEL,
        OPT_MOUNT,
        OPT_MEMORY,
        OPT_CPUS,
        OPT_PIDS,
        OPT_SHM,
        OPT_TMPFS,
        OPT_NO_NETWORK,
        OPT_USER,
        OPT_ENV,
        OPT_WORKDIR,
        OPT_JSON
};

const struct cli_opt cli_session_open_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "profile", 0, true, OPT_PROFILE },
        { "ttl", 0, true, OPT_TTL },
        { "label", 0, true, OPT_LABEL },
        { "mount", 0, true, OPT_MOUNT },
        { "memory", 0, true, OPT_MEMORY },
        { "cpus", 0, true, OPT_CPUS },
        { "pids-limit", 0, true, OPT_PIDS },
        { "shm-size", 0, true, OPT_SHM },
        { "tmpfs", 0, true, OPT_TMPFS },
        { "no-network", 0, false, OPT_NO_NETWORK },
        { "user", 'u', true, OPT_USER },
        { "env", 'e', true, OPT_ENV },
        { "workdir", 'w', true, OPT_WORKDIR },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static int add_label(struct open_request *r, const char *value, struct errmsg *e) {
        if (r->n_labels == PROTO_LABELS_MAX)
                return errmsg_set(e, -EINVAL, WHAT ": more than %d times --label", PROTO_LABELS_MAX);
        r->labels[r->n_labels++] = value;
        return cli_check_label(WHAT, value, e);
}

static int add_env(struct cli_session_open *o, const char *value, char **environ_list,
                   struct errmsg *e) {
        const char *entry;
        int r = cli_parse_env(WHAT, value, environ_list, &entry, e);

        if (r < 0 || !entry)
                return r;
        if (o->request.n_env == PROTO_OPEN_ENV_MAX)
                return errmsg_set(e, -EINVAL, WHAT ": more than %d times -e", PROTO_OPEN_ENV_MAX);
        o->env[o->request.n_env++] = entry;
        return 0;
}

/* "PATH=SIZE"; @value is cut there. */
static int add_tmpfs(struct narrow *n, char *value, struct errmsg *e) {
        char *equals = strrchr(value, '=');

        if (n->n_tmpfs == NARROW_TMPFS_MAX)
                return errmsg_set(e, -EINVAL, WHAT ": more than %d times --tmpfs", NARROW_TMPFS_MAX);
        if (value[0] != '/' || !equals || equals - value > NARROW_PATH_MAX)
                return errmsg_set(e, -EINVAL,
                                  WHAT ": --tmpfs '%.80s': expected PATH=SIZE, such as /tmp=64m", value);
        *equals = '\0';
        n->tmpfs[n->n_tmpfs].path = value;
        return cli_parse_size(WHAT, "--tmpfs", equals + 1, &n->tmpfs[n->n_tmpfs++].bytes, e);
}

static int take_user(struct narrow *n, const char *value, struct errmsg *e) {
        int r = cli_parse_user(WHAT, "--user", value, &n->uid, &n->gid, e);

        if (r == 0 && n->gid == UINT32_MAX)
                return errmsg_set(e, -EINVAL, WHAT ": --user '%.80s': expected UID:GID", value);
        n->user = true;
        return r;
}

static int take_limit(struct narrow *n, int id, char *value, struct errmsg *e) {
        switch (id) {
        case OPT_MEMORY:
                return cli_parse_size(WHAT, "--memory", value, &n->memory_bytes, e);
        case OPT_CPUS:
                return cli_parse_cpus(WHAT, "--cpus", value, &n->cpu_nano, e);
        case OPT_PIDS:
                return cli_parse_count(WHAT, "--pids-limit", value, INT_MAX, &n->pids_limit, e);
        case OPT_SHM:
                return cli_parse_size(WHAT, "--shm-size", value, &n->shm_bytes, e);
        case OPT_TMPFS:
                return add_tmpfs(n, value, e);
        case OPT_USER:
                return take_user(n, value, e);
        default:
                n->no_network = true;
                return 0;
        }
}

static int take(struct cli_session_open *o, int id, char *value, char **environ_list, struct errmsg *e) {
        struct open_request *r = &o->request;

        switch (id) {
        case OPT_HELP:
                o->help = true;
                return 0;
        case OPT_PROFILE:
                r->profile = value;
                return cli_check_profile(WHAT, value, e);
        case OPT_TTL:
                return cli_parse_time(WHAT, "--ttl", value, &r->ttl_ms, e);
        case OPT_LABEL:
                return add_label(r, value, e);
        case OPT_MOUNT:
                return cli_mounts_add(&o->mounts, WHAT ": --mount", value, e);
        case OPT_ENV:
                return add_env(o, value, environ_list, e);
        case OPT_WORKDIR:
                r->workdir = value;
                return cli_check_workdir(WHAT, value, e);
        case OPT_JSON:
                r->form = ANSWER_JSON;
                return 0;
        default:
                return take_limit(&r->narrow, id, value, e);
        }
}

int cli_session_open_parse(struct cli_session_open *o, int argc, char **argv, char **environ_list,
                           struct errmsg *e) {
        struct cli_opts opts;
        struct errmsg why;
        const char *value;
        int id, r;

        *o = (struct cli_session_open){ .help = false };
        o->request.env = o->env;
        cli_opts_init(&opts, argc, argv);
        while ((id = cli_opts_any(&opts, cli_session_open_opts, &value, &why)) >= 0) {
                r = take(o, id, (char *)value, environ_list, e);
                if (r < 0 || o->help)
                        return r;
        }
        if (id != CLI_OPTS_END)
                return errmsg_set(e, -EINVAL, WHAT ": %s: see hermes-sandbox session --help", why.text);
        if (opts.n_operands > 1)
                return errmsg_set(e, -EINVAL, WHAT ": unexpected argument '%.80s'", argv[2]);
        if (opts.n_operands == 0)
                return 0;
        o->request.name = argv[1];
        return cli_check_session(WHAT, argv[1], e);
}

int cli_session_open_run(const struct cli *c, struct cli_session_open *o, struct errmsg *e) {
        static uint8_t payload[FRAME_PAYLOAD_MAX];
        _cleanup_fd_ int fd = -1;
        ssize_t len;
        int r;

        if (o->mounts.n > 0) {
                r = cli_mounts_open(&o->mounts, WHAT ": --mount", &fd, e);
                if (r != 0)
                        return r;
        }
        o->request.mounts = fd >= 0;
        len = open_request_encode(&o->request, payload, sizeof(payload));
        if (len < 0)
                return errmsg_set(e, EXIT_USAGE, WHAT ": the request is longer than %zu bytes",
                                  sizeof(payload));
        return cli_ask_frame(c, FRAME_OPEN, payload, (size_t)len, fd, cli_take_say, NULL, e);
}
