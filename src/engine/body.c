/*
 * The create body, built from the root-owned config and from nothing else. Read this file to know what a
 * sandbox's container may do; tests/unit/golden holds whole bodies as they are sent.
 *
 * Whatever an image's metadata could decide (user, entrypoint, command, working directory, health check,
 * stop signal) is set here, and every switch that would open something is written out as closed. What is
 * left out stays as the engine has it by default: its seccomp and AppArmor profiles, its masked paths.
 *
 * API: https://docs.docker.com/reference/api/engine/version/v1.41/#operation/ContainerCreate
 */
#include "engine/body.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/agent_args.h"
#include "config/narrow.h"
#include "config/values.h"
#include "engine/apijson.h"

/* Steals @value; a NULL anywhere (out of memory) makes the whole body NULL. */
static bool put(json_t *object, const char *key, json_t *value) {
        return json_object_set_new(object, key, value) == 0;
}

static bool add(json_t *array, json_t *value) {
        return json_array_append_new(array, value) == 0;
}

static bool add_number(json_t *array, uint32_t v) {
        return add(array, json_sprintf("%" PRIu32, v));
}

static json_t *whole(json_t *j, bool ok) {
        if (ok)
                return j;
        json_decref(j);
        return NULL;
}

static json_t *pair(const char *key, json_t *value) {
        json_t *o = json_object();

        return whole(o, put(o, key, value));
}

/* The command's user. */
static uint32_t uid_of(const struct config_profile *p, const struct body_context *ctx) {
        return ctx->caller ? ctx->caller->uid : p->uid;
}

static uint32_t gid_of(const struct config_profile *p, const struct body_context *ctx) {
        return ctx->caller ? ctx->caller->gid : p->gid;
}

/* Of commands as uid 0, where there can be one; never beside a host folder. */
static uint64_t capabilities_of(const struct config_profile *p, const struct body_context *ctx) {
        return !ctx->caller && config_profile_has_user(p, 0, UINT32_MAX, NULL) ? p->capabilities : 0;
}

/* The agent takes the ids and capabilities that it may use from here alone (common/agent_args.h). One that is the caller
 * itself can take no others: it gets none. */
static json_t *entrypoint(const struct config_profile *p, const struct body_context *ctx) {
        uint32_t first = ctx->rootless ? AGENT_EXEC_GID_ROOTLESS_FIRST : AGENT_EXEC_GID_FIRST;
        uint32_t count = ctx->rootless ? AGENT_EXEC_GID_ROOTLESS_COUNT : AGENT_EXEC_GID_COUNT;
        json_t *a = json_array();
        bool ok = add(a, json_string(AGENT_PATH));

        ok = ok && add_number(a, uid_of(p, ctx)) && add_number(a, gid_of(p, ctx));
        ok = ok && add_number(a, ctx->caller ? 0 : first) && add_number(a, ctx->caller ? 0 : count);
        ok = ok && add_number(a, (uint32_t)p->reconnect_grace_ms);
        ok = ok &&
             add(a, json_sprintf("%08" PRIx32 "%08" PRIx32, (uint32_t)(capabilities_of(p, ctx) >> 32),
                                 (uint32_t)capabilities_of(p, ctx)));
        for (size_t i = 0; ok && !ctx->caller && i < p->n_users; i++)
                if (p->users[i].uid != p->uid || p->users[i].gid != p->gid)
                        ok = add(a,
                                 json_sprintf("%" PRIu32 ":%" PRIu32, p->users[i].uid, p->users[i].gid));
        return whole(a, ok);
}

static json_t *labels(const struct config_profile *p, const struct body_context *ctx) {
        char hex[2 * CONFIG_RECIPE + 1];
        json_t *o = json_object();
        bool ok;

        for (size_t i = 0; i < CONFIG_RECIPE; i++)
                sprintf(hex + 2 * i, "%02x", ctx->recipe[i]);
        ok = put(o, LABEL_INSTALLATION, json_string(ctx->installation));
        ok = ok && put(o, LABEL_PROFILE, json_string(p->name));
        ok = ok && put(o, LABEL_RECIPE, json_string(hex));
        /* Always there: an image's own would become the container's. */
        ok = ok && put(o, LABEL_CALLER,
                       ctx->caller ? json_sprintf("%" PRIu32, ctx->caller->uid) : json_string(""));
        return whole(o, ok);
}

/* Type "bind" of Mounts, unlike Binds, fails where the source is missing instead of creating it. */
static json_t *mount(const char *source, const char *target) {
        json_t *o = json_object(), *options = json_object();
        bool ok = put(options, "Propagation", json_string("rprivate"));

        ok = ok && put(options, "NonRecursive", json_true());
        ok = put(o, "BindOptions", whole(options, ok));
        ok = ok && put(o, "Type", json_string("bind"));
        ok = ok && put(o, "Source", json_string(source));
        ok = ok && put(o, "Target", json_string(target));
        ok = ok && put(o, "ReadOnly", json_true());
        return whole(o, ok);
}

/*
 * A folder of the caller's. A bind would name its source by a path, and the engine would follow, as root, whatever the
 * folder's owner has put there by then. The engine's own volume driver takes any device that mount(2) takes: here the
 * open descriptor of this process, behind which stands the folder that was judged and no other. Without MS_REC
 * ("rbind"), so that nothing that is mounted below it comes along, and private. The volume has no name, and goes with
 * its container; what is mounted is unmounted first.
 */
static json_t *host_folder(const struct body_context *ctx, const struct body_mount *m) {
        json_t *o = json_object(), *volume = json_object(), *driver = json_object();
        json_t *options = json_object();
        bool ok = put(options, "type", json_string("none"));

        ok = ok && put(options, "o", json_string(m->read_only ? "bind,ro,private" : "bind,private"));
        ok = ok && put(options, "device", json_sprintf("/proc/%d/fd/%d", (int)ctx->caller->pid, m->fd));
        ok = put(driver, "Options", whole(options, ok)) && ok;
        ok = ok && put(driver, "Name", json_string("local"));
        ok = put(volume, "DriverConfig", whole(driver, ok)) && ok;
        ok = ok && put(volume, "NoCopy", json_true());
        ok = ok && put(volume, "Labels", pair(LABEL_INSTALLATION, json_string(ctx->installation)));
        ok = put(o, "VolumeOptions", whole(volume, ok)) && ok;
        ok = ok && put(o, "Type", json_string("volume"));
        ok = ok && put(o, "Target", json_string(m->dst));
        return whole(o, ok);
}

static json_t *mounts(const struct body_context *ctx) {
        json_t *a = json_array();
        bool ok = add(a, mount(ctx->agent_path, AGENT_PATH));

        ok = ok && add(a, mount(ctx->stream_folder, AGENT_STREAM_DIR));
        for (size_t i = 0; ok && ctx->caller && i < ctx->caller->n; i++)
                ok = add(a, host_folder(ctx, &ctx->caller->mounts[i]));
        return whole(a, ok);
}

/* A folder of the caller's takes the place of a tmpfs: the engine would not have both. */
static bool gives_way(const struct body_context *ctx, const char *path) {
        for (size_t i = 0; ctx->caller && i < ctx->caller->n; i++)
                if (strcmp(ctx->caller->mounts[i].dst, path) == 0)
                        return true;
        return false;
}

/* HOME belongs to the command's user alone, but for root's, which further users may enter as they may any other folder of
 * root's; every other place is as /tmp is. */
static json_t *tmpfs(const struct config_profile *p, const struct body_context *ctx) {
        json_t *o = json_object();
        bool ok = o;

        for (size_t i = 0; ok && i < p->n_tmpfs; i++) {
                const struct config_tmpfs *t = &p->tmpfs[i];
                json_t *options;

                if (gives_way(ctx, t->path))
                        continue;
                if (strcmp(t->path, p->home) == 0)
                        options = json_sprintf("rw,nosuid,nodev,exec,size=%" PRIu64
                                               ",mode=%s,uid=%" PRIu32 ",gid=%" PRIu32,
                                               t->bytes, uid_of(p, ctx) == 0 ? "0755" : "0700",
                                               uid_of(p, ctx), gid_of(p, ctx));
                else
                        options = json_sprintf("rw,nosuid,nodev,exec,size=%" PRIu64 ",mode=1777",
                                               t->bytes);
                ok = put(o, t->path, options);
        }
        return whole(o, ok);
}

static bool add_ulimit(json_t *array, const char *name, uint64_t soft, uint64_t hard) {
        json_t *o = json_object();
        bool ok = put(o, "Name", json_string(name));

        /* RLIM_INFINITY is -1 to the engine. */
        ok = ok && put(o, "Soft", json_integer((json_int_t)soft));
        ok = ok && put(o, "Hard", json_integer((json_int_t)hard));
        return add(array, whole(o, ok));
}

static json_t *ulimits(const struct config_profile *p) {
        json_t *a = json_array();
        bool ok = a, core = false;

        for (size_t i = 0; ok && i < p->n_ulimits; i++) {
                core = core || strcmp(p->ulimits[i].name, "core") == 0;
                ok = add_ulimit(a, p->ulimits[i].name, p->ulimits[i].soft, p->ulimits[i].hard);
        }
        if (ok && !core)
                ok = add_ulimit(a, "core", 0, 0);
        return whole(a, ok);
}

static json_t *words(const char *a, const char *b, const char *c) {
        json_t *j = json_array();
        bool ok = add(j, json_string(a));

        ok = ok && (!b || add(j, json_string(b)));
        ok = ok && (!c || add(j, json_string(c)));
        return whole(j, ok);
}

static bool put_limits(json_t *h, const struct config_profile *p) {
        bool ok = put(h, "Memory", json_integer((json_int_t)p->memory_bytes));

        /* Equal to Memory: no swap beyond it. */
        ok = ok && put(h, "MemorySwap", json_integer((json_int_t)p->memory_bytes));
        ok = ok && put(h, "MemoryReservation", json_integer((json_int_t)p->memory_reserve_bytes));
        ok = ok && put(h, "NanoCpus", json_integer((json_int_t)p->cpu_nano));
        ok = ok && put(h, "PidsLimit", json_integer((json_int_t)p->pids_limit));
        ok = ok && put(h, "ShmSize", json_integer((json_int_t)p->shm_bytes));
        ok = ok && put(h, "Ulimits", ulimits(p));
        ok = ok && put(h, "OomScoreAdj", json_integer(0));
        return ok && put(h, "OomKillDisable", json_false());
}

/* What the agent needs to become a command's user and to kill what that user left, and what it may leave to a command as
 * uid 0. One that is the caller itself gets nothing: whoever is root beside a host folder makes a setuid root shell in
 * it. */
static json_t *cap_add(const struct config_profile *p, const struct body_context *ctx) {
        uint64_t caps = capabilities_of(p, ctx);
        json_t *a = ctx->caller ? json_array() : words("SETUID", "SETGID", "KILL");
        bool ok = a;

        for (int cap = 0; ok && cap < 64; cap++)
                if (caps >> cap & 1)
                        ok = add(a, json_string(config_capability_name(cap)));
        return whole(a, ok);
}

static bool put_privileges(json_t *h, const struct config_profile *p, const struct body_context *ctx) {
        bool ok = put(h, "Privileged", json_false());

        ok = ok && put(h, "CapDrop", words("ALL", NULL, NULL));
        ok = ok && put(h, "CapAdd", cap_add(p, ctx));
        ok = ok && put(h, "SecurityOpt", words("no-new-privileges:true", NULL, NULL));
        ok = ok && put(h, "PublishAllPorts", json_false());
        ok = ok && put(h, "Devices", json_array());
        ok = ok && put(h, "IpcMode", json_string("private"));
        ok = ok && put(h, "PidMode", json_string(""));
        return ok && put(h, "UTSMode", json_string(""));
}

static json_t *host_config(const struct config_profile *p, const struct body_context *ctx) {
        json_t *h = json_object();
        bool ok = put_limits(h, p) && put_privileges(h, p, ctx);

        ok = ok && put(h, "Mounts", mounts(ctx));
        ok = ok && put(h, "Tmpfs", tmpfs(p, ctx));
        ok = ok && put(h, "ReadonlyRootfs", json_boolean(p->read_only));
        ok = ok && put(h, "NetworkMode", json_string(p->network));
        ok = ok && put(h, "AutoRemove", json_true());
        ok = ok && put(h, "RestartPolicy", pair("Name", json_string("")));
        ok = ok && put(h, "LogConfig", pair("Type", json_string("none")));
        ok = ok && put(h, "Init", json_false());
        if (ctx->cgroup_v2)
                ok = ok && put(h, "CgroupnsMode", json_string("private"));
        if (p->runtime[0])
                ok = ok && put(h, "Runtime", json_string(p->runtime));
        return whole(h, ok);
}

/* Root with the group of the stream's folder, and without a host folder; or the caller himself. */
static json_t *user(const struct body_context *ctx) {
        if (ctx->caller)
                return json_sprintf("%" PRIu32 ":%" PRIu32, (uint32_t)ctx->caller->uid,
                                    (uint32_t)ctx->caller->gid);
        return json_sprintf("0:%" PRIu32, (uint32_t)ctx->stream_gid);
}

char *body_create(const struct config_profile *p, const struct body_context *ctx) {
        json_t *b = json_object();
        char *text;
        bool ok = put(b, "Image", json_string(ctx->image));

        ok = ok && put(b, "User", user(ctx));
        ok = ok && put(b, "Entrypoint", entrypoint(p, ctx));
        ok = ok && put(b, "Cmd", json_array());
        ok = ok && put(b, "Env", json_array());
        ok = ok && put(b, "WorkingDir", json_string("/"));
        ok = ok && put(b, "Hostname", json_string("sandbox"));
        ok = ok && put(b, "Labels", labels(p, ctx));
        ok = ok && put(b, "Healthcheck", pair("Test", words("NONE", NULL, NULL)));
        ok = ok && put(b, "StopSignal", json_string("SIGKILL"));
        ok = ok && put(b, "Tty", json_false());
        ok = ok && put(b, "OpenStdin", json_false());
        ok = ok && put(b, "AttachStdin", json_false());
        ok = ok && put(b, "AttachStdout", json_false());
        ok = ok && put(b, "AttachStderr", json_false());
        if (strcmp(p->network, "none") == 0)
                ok = ok && put(b, "NetworkDisabled", json_true());
        ok = ok && put(b, "HostConfig", host_config(p, ctx));
        text = ok ? json_dumps(b, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        json_decref(b);
        return text;
}
