/* What is not known is left out, so that asking for it is an error and no wrong answer. */
#include "cli/docker/docker_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define ID_SHORT 12

static const char *const command[] = { "sleep", "infinity" };

void docker_out_init(struct docker_out *o) {
        o->p = NULL;
        o->len = 0;
        o->f = open_memstream(&o->p, &o->len);
        if (!o->f)
                abort();
}

int docker_out_done(struct docker_out *o) {
        int r;

        if (fclose(o->f) != 0)
                abort();
        if (isatty(STDOUT_FILENO))
                cli_disarm(o->p, o->len);
        r = cli_write_all(STDOUT_FILENO, o->p, o->len);
        free(o->p);
        return r < 0 ? cli_write_failed("to stdout", r) : 0;
}

const char *docker_state(const struct session_info *s) {
        return s->status == SESSION_IS_RUNNING   ? "running"
               : s->status == SESSION_IS_STOPPED ? "exited"
                                                 : "created";
}

const char *docker_id(const struct session_info *s) {
        return s->id[0] ? s->id : s->name;
}

const char *docker_span(uint64_t seconds, char *buf, size_t cap) {
        uint64_t minutes = seconds / 60, hours = (seconds + 1800) / 3600, days = hours / 24;

        if (seconds < 1)
                return "Less than a second";
        if (seconds == 1)
                return "1 second";
        if (minutes == 1)
                return "About a minute";
        if (minutes >= 1 && minutes < 60)
                snprintf(buf, cap, "%u minutes", (unsigned)minutes);
        else if (minutes < 1)
                snprintf(buf, cap, "%u seconds", (unsigned)seconds);
        else if (hours == 1)
                return "About an hour";
        else if (hours < 48)
                snprintf(buf, cap, "%u hours", (unsigned)hours);
        else if (days < 14)
                snprintf(buf, cap, "%u days", (unsigned)days);
        else if (days < 60)
                snprintf(buf, cap, "%u weeks", (unsigned)(days / 7));
        else if (days < 730)
                snprintf(buf, cap, "%u months", (unsigned)(days / 30));
        else
                snprintf(buf, cap, "%u years", (unsigned)(days / 365));
        return buf;
}

/* --- ps ----------------------------------------------------------------------------------------------- */

static uint64_t since(uint64_t now, uint64_t then) {
        return now > then ? now - then : 0;
}

static void put_status(struct doc *d, const struct session_info *s, uint64_t now) {
        char span[32];

        if (s->status == SESSION_IS_RUNNING)
                doc_stringf(d, "Status", "Up %s",
                            docker_span(since(now, s->started), span, sizeof(span)));
        else if (s->status == SESSION_IS_STOPPED)
                doc_stringf(d, "Status", "Exited (0) %s ago",
                            docker_span(since(now, s->finished), span, sizeof(span)));
        else
                doc_string(d, "Status", "Created");
}

void docker_doc_row(struct doc *d, const struct session_info *s, bool whole_id, uint64_t now) {
        uint64_t created = s->created ? s->created : now;
        char span[32];

        doc_init(d);
        doc_stringf(d, "ID", "%.*s", whole_id || !s->id[0] ? PROTO_NAME_MAX : ID_SHORT, docker_id(s));
        doc_string(d, "Image", s->image);
        doc_string(d, "Command", "\"sleep infinity\"");
        doc_time(d, "CreatedAt", created);
        doc_stringf(d, "RunningFor", "%s ago", docker_span(since(now, created), span, sizeof(span)));
        doc_string(d, "Ports", "");
        doc_string(d, "State", docker_state(s));
        put_status(d, s, now);
        doc_string(d, "Names", s->name);
        doc_string(d, "Networks", s->network);
        doc_labels(d, "Labels", s->labels, s->n_labels);
}

/* --- inspect ------------------------------------------------------------------------------------------ */

void docker_doc_container(struct doc *d, const struct session_info *s, const char *image_id) {
        bool running = s->status == SESSION_IS_RUNNING;

        doc_init(d);
        doc_string(d, "Id", docker_id(s));
        doc_time(d, "Created", s->created);
        doc_string(d, "Path", command[0]);
        doc_list(d, "Args", command + 1, 1);
        doc_string(d, "State.Status", docker_state(s));
        doc_bool(d, "State.Running", running);
        doc_bool(d, "State.Paused", false);
        doc_bool(d, "State.Restarting", false);
        doc_bool(d, "State.Dead", false);
        doc_number(d, "State.ExitCode", 0);
        doc_string(d, "State.Error", "");
        doc_time(d, "State.StartedAt", s->started);
        doc_time(d, "State.FinishedAt", s->finished);
        if (image_id)
                doc_string(d, "Image", image_id);
        doc_stringf(d, "Name", "/%s", s->name);
        doc_number(d, "RestartCount", 0);
        doc_string(d, "Driver", "hermes-sandbox");
        doc_string(d, "Platform", "linux");
        doc_string(d, "HostConfig.NetworkMode", s->network);
        doc_bool(d, "HostConfig.AutoRemove", false);
        doc_bool(d, "HostConfig.Privileged", false);
        doc_number(d, "HostConfig.ShmSize", s->shm_bytes);
        doc_number(d, "HostConfig.Memory", s->memory_bytes);
        doc_number(d, "HostConfig.MemorySwap", s->memory_bytes);
        doc_number(d, "HostConfig.NanoCpus", s->cpu_nano);
        doc_number(d, "HostConfig.PidsLimit", s->pids_limit);
        doc_string(d, "HostConfig.RestartPolicy.Name", "no");
        doc_stringf(d, "Config.User", "%u:%u", s->uid, s->gid);
        doc_bool(d, "Config.Tty", false);
        doc_list(d, "Config.Cmd", command, 2);
        doc_string(d, "Config.Image", s->image);
        doc_string(d, "Config.WorkingDir", s->workdir);
        doc_raw(d, "Config.Entrypoint", "null");
        doc_labels(d, "Config.Labels", s->labels, s->n_labels);
        doc_string(d, "Sandbox.Profile", s->profile);
        doc_bool(d, "Sandbox.Mounts", s->mounts);
        doc_number(d, "Sandbox.RunningCommands", s->running);
        doc_number(d, "Sandbox.TimeToLiveSeconds", s->ttl_ms / 1000);
}

void docker_doc_image(struct doc *d, const struct image_info *i) {
        doc_init(d);
        doc_string(d, "Id", i->id);
        doc_list(d, "RepoTags", &i->name, 1);
        doc_list(d, "RepoDigests", &i->digest, i->digest[0] ? 1 : 0);
        doc_string(d, "Created", i->created);
        doc_number(d, "Size", i->bytes);
        doc_string(d, "Os", "linux");
        doc_raw(d, "Config.Entrypoint", i->entrypoint[0] ? i->entrypoint : "null");
        doc_string(d, "Sandbox.Profile", i->profile);
}
