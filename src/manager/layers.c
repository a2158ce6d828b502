/*
 * What is really enforced, layer by layer. The words come from the sandbox's own agent (what its kernel
 * told it), compared with what the profile asked for: an engine that dropped a limit shows here.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/narrow.h"
#include "config/values.h"
#include "manager/manager.h"

/* CAP_KILL, CAP_SETGID, CAP_SETUID: bits 5 to 7 (linux/capability.h). */
#define AGENT_CAPS 0xe0ull

static const char *const state_names[] = {
        [LAYER_ACTIVE] = "active",
        [LAYER_DEGRADED] = "degraded",
        [LAYER_DISABLED] = "disabled",
        [LAYER_UNSUPPORTED] = "unsupported",
};

const char *layer_state_name(enum layer_state s) {
        return state_names[s];
}

/* The value of @key in the agent's lines, or "". */
static void value_of(const struct pool *p, const char *key, char *buf, size_t cap) {
        size_t n = strlen(key);

        buf[0] = '\0';
        for (const char *line = p->probe; line && *line; line = strchr(line, '\n'), line += line != NULL)
                if (strncmp(line, key, n) == 0 && line[n] == '=') {
                        size_t len = strcspn(line + n + 1, "\n");

                        snprintf(buf, cap, "%.*s", (int)len, line + n + 1);
                        break;
                }
        for (char *c = buf; *c; c++)
                if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
                        *c = '?';
}

__attribute__((format(printf, 4, 5))) static void put(struct layer *l, const char *name,
                                                      enum layer_state state, const char *fmt, ...) {
        va_list ap;

        l->name = name;
        l->state = state;
        va_start(ap, fmt);
        vsnprintf(l->why, sizeof(l->why), fmt, ap);
        va_end(ap);
}

static void seccomp_layer(const struct pool *p, struct layer *l) {
        char mode[16], filters[16];

        value_of(p, "seccomp", mode, sizeof(mode));
        value_of(p, "seccomp_filters", filters, sizeof(filters));
        if (strcmp(mode, "2") != 0)
                put(l, "seccomp", LAYER_DISABLED, "no filter is installed");
        else if (!filters[0])
                put(l, "seccomp", LAYER_DEGRADED,
                    "a filter is installed; this kernel does not say how many: "
                    "the engine's profile may be off");
        else if (strcmp(filters, "1") == 0)
                put(l, "seccomp", LAYER_DEGRADED,
                    "only the agent's own filter: the engine's profile is off");
        else
                put(l, "seccomp", LAYER_ACTIVE, "the engine's profile and the agent's filter");
}

static void apparmor_layer(const struct pool *p, struct layer *l) {
        char s[128];

        value_of(p, "apparmor", s, sizeof(s));
        if (strcmp(s, "absent") == 0 || s[0] == '\0')
                put(l, "apparmor", LAYER_UNSUPPORTED, "this kernel runs without AppArmor");
        else if (strcmp(s, "unconfined") == 0)
                put(l, "apparmor", LAYER_DISABLED, "the engine set no profile");
        else
                put(l, "apparmor", strstr(s, "(enforce)") ? LAYER_ACTIVE : LAYER_DEGRADED, "%s", s);
}

static void put_root(struct layer *l, uint64_t caps) {
        char names[96] = "";

        for (int cap = 0; cap < 64; cap++)
                if (caps >> cap & 1)
                        strcat(strcat(names, names[0] ? ", " : ""), config_capability_name(cap));
        put(l, "capabilities", LAYER_ACTIVE,
            "commands as root: %s; others: none; no-new-privileges; agent: SETUID, SETGID, KILL, too",
            names);
}

static void caps_layer(const struct pool *p, struct layer *l) {
        char s[32], nnp[8];
        unsigned long long caps, root = 0;

        if (config_profile_has_user(p->profile, 0, UINT32_MAX, NULL))
                root = p->profile->capabilities;
        value_of(p, "cap_bounding", s, sizeof(s));
        value_of(p, "no_new_privs", nnp, sizeof(nnp));
        caps = strtoull(s, NULL, 16);
        if (!s[0])
                put(l, "capabilities", LAYER_DEGRADED, "the bounding set is not known");
        else if ((caps & ~(AGENT_CAPS | root)) != 0)
                put(l, "capabilities", LAYER_DEGRADED,
                    "the bounding set is %s, more than the agent needs", s);
        else if (strcmp(nnp, "1") != 0)
                put(l, "capabilities", LAYER_DEGRADED, "no-new-privileges is not set");
        else if (root)
                put_root(l, root);
        else
                put(l, "capabilities", LAYER_ACTIVE,
                    "commands: none, no-new-privileges; agent: SETUID, SETGID, KILL");
}

static void namespace_layer(const struct pool *p, struct layer *l) {
        char s[16];

        value_of(p, "userns", s, sizeof(s));
        if (strcmp(s, "private") == 0)
                put(l, "namespaces", LAYER_ACTIVE, "pid, mount, network, ipc, uts, user");
        else
                put(l, "namespaces", LAYER_DEGRADED,
                    "pid, mount, network, ipc, uts; no user namespace: all sandboxes "
                    "share the kernel's limits of uid %u",
                    (unsigned)p->profile->uid);
}

static void rootfs_layer(const struct pool *p, struct layer *l) {
        char s[16];

        value_of(p, "rootfs", s, sizeof(s));
        if (strcmp(s, "read-only") == 0)
                put(l, "rootfs", LAYER_ACTIVE, "read-only; writable: %zu tmpfs of bounded size",
                    p->profile->n_tmpfs);
        else
                put(l, "rootfs", LAYER_DISABLED,
                    "writable%s; unenforced: any bound on what it takes of the engine's disk",
                    p->profile->read_only ? ", although read_only is true" : ": read_only is false");
}

static void network_layer(const struct pool *p, struct layer *l) {
        char s[128];

        value_of(p, "network", s, sizeof(s));
        if (strcmp(s, "none") == 0)
                put(l, "network", LAYER_ACTIVE, "no interface but lo");
        else
                put(l, "network", LAYER_DISABLED, "interfaces: %s (network: %s)", s,
                    p->profile->network);
}

/* cgroup v1 says a huge number, v2 "max", where there is no limit. */
static void limits_layer(const struct pool *p, struct layer *l) {
        char version[4], memory[32], reserve[32], swap[32], pids[32], cpu[32], missing[160] = "";
        const struct config_profile *c = p->profile;
        bool v2;

        value_of(p, "cgroup", version, sizeof(version));
        value_of(p, "memory_max", memory, sizeof(memory));
        value_of(p, "memory_reserve", reserve, sizeof(reserve));
        value_of(p, "swap_max", swap, sizeof(swap));
        value_of(p, "pids_max", pids, sizeof(pids));
        value_of(p, "cpu_max", cpu, sizeof(cpu));
        v2 = strcmp(version, "2") == 0;
        if (strcmp(version, "0") == 0) {
                put(l, "limits", LAYER_UNSUPPORTED, "unenforced: the sandbox sees no cgroup");
                return;
        }
        if (strtoull(memory, NULL, 10) != c->memory_bytes)
                strcat(missing, " memory_limit");
        if (c->memory_reserve_bytes && strtoull(reserve, NULL, 10) != c->memory_reserve_bytes)
                strcat(missing, " memory_reserve");
        if (v2 ? strcmp(swap, "0") != 0 : strtoull(swap, NULL, 10) != c->memory_bytes)
                strcat(missing, " swap");
        if (strtoul(pids, NULL, 10) != c->pids_limit)
                strcat(missing, " pids_limit");
        if (c->cpu_nano && (cpu[0] < '0' || cpu[0] > '9'))
                strcat(missing, " cpus");
        if (missing[0])
                put(l, "limits", LAYER_DEGRADED, "cgroup v%s; unenforced on this machine:%s", version,
                    missing);
        else
                put(l, "limits", LAYER_ACTIVE,
                    "cgroup v%s: memory %" PRIu64 " MiB, %u processes, %" PRIu64 ".%02" PRIu64 " CPUs",
                    version, c->memory_bytes >> 20, c->pids_limit, c->cpu_nano / 1000000000,
                    c->cpu_nano % 1000000000 / 10000000);
}

static void audit_layer(const struct pool *p, struct layer *l) {
        const char *why = "";
        const char *state = audit_kernel_state(p->m->audit, &why);

        if (strcmp(state, "acknowledged") == 0 || strcmp(state, "confirmed") == 0)
                put(l, "audit", LAYER_ACTIVE, "%s: kernel records and the readable trail", state);
        else
                put(l, "audit", strcmp(state, "unsupported") == 0 ? LAYER_UNSUPPORTED : LAYER_DISABLED,
                    "kernel trail %s%s%s; the readable trail is written", state, why && *why ? ": " : "",
                    why ? why : "");
}

size_t layers_of(const struct pool *p, struct layer ret[LAYERS_MAX]) {
        size_t n = 0;

        if (!p->probe[0] || !p->profile)
                return 0;
        namespace_layer(p, &ret[n++]);
        seccomp_layer(p, &ret[n++]);
        apparmor_layer(p, &ret[n++]);
        caps_layer(p, &ret[n++]);
        rootfs_layer(p, &ret[n++]);
        network_layer(p, &ret[n++]);
        limits_layer(p, &ret[n++]);
        audit_layer(p, &ret[n++]);
        return n;
}
