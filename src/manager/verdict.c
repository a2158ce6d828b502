#include "manager/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/exitcode.h"
#include "common/wire.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

static uint8_t own_code(const struct exited *e) {
        return e->signaled ? (uint8_t)(EXIT_SIGNAL + e->code) : e->code;
}

/* What a stopped session's commands exit with, whether they died of its TERM or of its KILL: as in a container that is
 * stopped. */
#define EXIT_STOPPED (EXIT_SIGNAL + SIGKILL)

static uint8_t exit_code(const struct exec *x, const struct exited *e) {
        switch (e->cause) {
        case CAUSE_EXITED:
        case CAUSE_SIGNALED:
        case CAUSE_OOM:
                return own_code(e);
        case CAUSE_CANCELLED:
                if (x->stopped && e->signaled)
                        return EXIT_STOPPED;
                return e->signaled ? own_code(e) : EXIT_SANDBOX;
        case CAUSE_PIDS_LIMIT:
                return e->error ? EXIT_SANDBOX : own_code(e);
        case CAUSE_TIMEOUT:
                return EXIT_TIMED_OUT;
        case CAUSE_NOT_FOUND:
                return EXIT_NOT_FOUND;
        case CAUSE_NOT_EXECUTABLE:
                return EXIT_CANNOT_EXEC;
        default:
                return EXIT_SANDBOX;
        }
}

static const char *workdir(const struct exec *x) {
        const struct session *s = x->session;

        if (x->request.workdir[0])
                return x->request.workdir;
        if (s && s->workdir && s->workdir[0])
                return s->workdir;
        return x->pool->profile ? x->pool->profile->workdir : "";
}

static void explain_start(const struct exec *x, const struct exited *e, char *s, size_t cap) {
        const struct config_profile *p = x->pool->profile;
        const char *image = p ? p->image : "of its sandbox";
        struct wire_in in;
        const char *program;

        wire_in_init(&in, x->request.args_wire, x->request.strings_len);
        program = x->request.shell ? "/bin/sh" : wire_get_str(&in, PROTO_EXEC_MAX);
        if (!program)
                program = "?";
        if (e->code == START_WORKDIR)
                snprintf(s, cap, "exec: working directory \"%.200s\": %s", workdir(x),
                         strerror(e->error));
        else if (e->code != START_PROGRAM)
                snprintf(s, cap, "exec: the agent could not start the command: %s", strerror(e->error));
        else if (e->cause == CAUSE_NOT_FOUND)
                snprintf(
                        s, cap,
                        "exec: \"%.200s\": no such program in image %.200s (profile %s): the default image "
                        "has neither curl nor a network; a profile such as dev has: see " CONFIG_PATH,
                        program, image, x->profile);
        else
                snprintf(s, cap, "exec: \"%.200s\": %s", program, strerror(e->error));
}

/* A session's sandbox may have less than its profile's have. */
static const char *see(uint64_t limit, uint64_t of_profile) {
        return limit < of_profile ? "what its session was opened with, and " : "";
}

static void explain(const struct exec *x, const struct exited *e, char *s, size_t cap) {
        static const struct config_profile gone;
        const struct config_profile *p = x->pool->profile ? x->pool->profile : &gone;
        const struct session_shape *own = x->session && x->session->shape.n_users > 0
                                                  ? &x->session->shape
                                                  : NULL;
        uint64_t memory = own ? own->memory_bytes : p->memory_bytes;
        uint32_t pids = own ? own->pids_limit : p->pids_limit;

        switch (e->cause) {
        case CAUSE_TIMEOUT:
                snprintf(s, cap,
                         "exec: timed out after %" PRIu64 " ms: see --timeout and limits.timeout",
                         x->request.timeout_ms ? x->request.timeout_ms : p->limits.timeout_ms);
                break;
        case CAUSE_OOM:
                snprintf(s, cap,
                         "exec: the memory limit of %" PRIu64 " MiB was reached (peak %" PRIu64
                         " KiB): see %smemory_limit of profile %s",
                         memory >> 20, e->sandbox_peak_bytes >> 10, see(memory, p->memory_bytes),
                         x->profile);
                break;
        case CAUSE_PIDS_LIMIT:
                snprintf(s, cap,
                         "exec: the limit of %u processes was reached: see %spids_limit of profile %s",
                         pids, see(pids, p->pids_limit), x->profile);
                break;
        case CAUSE_SANDBOX_LOST:
                snprintf(s, cap, "exec: sandbox %.12s ended under the command: nothing is known of it",
                         x->container);
                break;
        case CAUSE_CANCELLED:
                /* A detached command has no caller that could go. */
                snprintf(s, cap, "exec: cancelled, %s",
                         x->cancelled ? x->cancelled
                         : x->attach  ? "by hermes-sandbox kill"
                                      : "as its caller has gone");
                break;
        case CAUSE_NOT_FOUND:
        case CAUSE_NOT_EXECUTABLE:
                explain_start(x, e, s, cap);
                break;
        default:
                if (e->cause == CAUSE_EXITED && e->code == EXIT_NOT_FOUND && x->request.shell)
                        snprintf(
                                s, cap,
                                "exec: 127: a program was not found in image %.200s (profile %s): the "
                                "default image has neither curl nor a network; a profile such as dev has: see " CONFIG_PATH,
                                p->image ? p->image : "of its sandbox", x->profile);
                else if (e->truncated)
                        snprintf(s, cap,
                                 "exec: output beyond %" PRIu64
                                 " bytes was dropped: see limits.output_bytes",
                                 x->bytes[0] + x->bytes[1]);
        }
}

void verdict(const struct exec *x, const struct exited *e, struct result *ret, char *message,
             size_t cap) {
        message[0] = '\0';
        explain(x, e, message, cap);
        for (char *p = message; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        *ret = (struct result){
                .cause = e->cause,
                .exit_code = exit_code(x, e),
                .code = e->error ? 0 : e->code,
                .signaled = e->signaled,
                .truncated = e->truncated,
                .pool_hit = x->pool_hit,
                .reused = x->sandbox->uses > 1,
                .error = e->error,
                .wall_us = now_us() - x->begun_us,
                .user_us = e->user_us,
                .system_us = e->system_us,
                .maxrss_bytes = e->maxrss_bytes,
                .sandbox_peak_bytes = e->sandbox_peak_bytes,
                .background_left = e->background_left,
                .exec_id = x->id,
                .container_id = x->container,
                .profile = x->profile,
                .session = x->session ? x->session->name : "",
                .message = message,
        };
        for (int i = 0; i < 2; i++) {
                ret->bytes[i] = x->bytes[i] + e->dropped_bytes[i];
                ret->lines[i] = x->lines[i] + e->dropped_lines[i];
        }
}
