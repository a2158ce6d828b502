#include "manager/top.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonw.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

/* One sandbox, as both forms show it. */
struct row {
        const struct sandbox *sb;
        const char *state, *session;
        bool owned;
        unsigned commands;
        uint64_t cpu_per_mille, age_s;
        struct usage u;
};

/* Is it somebody's? One that was never used is nobody's. */
static bool is_owned(const struct sandbox *sb) {
        return sb->uses > 0 || sb->state == SANDBOX_LEASED;
}

static unsigned commands_in(const struct manager *m, const struct sandbox *sb) {
        const struct exec *x;
        unsigned n = 0;

        LIST_FOREACH(x, &m->execs, link)
        n += x->state == EXEC_RUNNING && !x->attach && x->sandbox == sb;
        return n;
}

static void look(const struct manager *m, struct sandbox *sb, struct row *ret) {
        *ret = (struct row){
                .sb = sb,
                .state = sb->session && sb->session->state == SESSION_STOPPED
                                 ? "stopped"
                                 : stats_state_name(sb->state),
                .session = sb->session ? sb->session->name : "",
                .owned = is_owned(sb),
                .commands = commands_in(m, sb),
                .age_s = (now_ms() - sb->born_ms) / 1000,
        };
        usage_read(&usage_roots_system, sb->pid, sb->id, &ret->u);
        ret->cpu_per_mille = usage_cpu_per_mille(&sb->usage, ret->u.cpu_us, now_us());
}

/* --- text --------------------------------------------------------------------------------------- */

#define CELL 24

/* At most four characters and the unit: "512K", "1.5M", "128M". */
static const char *size_cell(uint64_t bytes, char cell[CELL]) {
        static const char units[] = "BKMGTP";
        uint64_t tenths = bytes * 10;
        size_t i = 0;

        if (bytes == USAGE_UNKNOWN || bytes == USAGE_NO_LIMIT)
                return bytes == USAGE_UNKNOWN ? "?" : "-";
        if (bytes >> 50)
                return "huge";
        for (; tenths >= 10240 && i + 2 < sizeof(units); i++)
                tenths = (tenths + 512) / 1024;
        if (tenths < 100 && i > 0 && tenths % 10)
                snprintf(cell, CELL, "%" PRIu64 ".%" PRIu64 "%c", tenths / 10, tenths % 10, units[i]);
        else
                snprintf(cell, CELL, "%" PRIu64 "%c", tenths / 10, units[i]);
        return cell;
}

/* "45s", "12m", "3h", "9d". */
static const char *age_cell(uint64_t s, char cell[CELL]) {
        if (s < 100)
                snprintf(cell, CELL, "%" PRIu64 "s", s);
        else if (s < 100 * 60)
                snprintf(cell, CELL, "%" PRIu64 "m", s / 60);
        else if (s < 48 * 3600)
                snprintf(cell, CELL, "%" PRIu64 "h", s / 3600);
        else
                snprintf(cell, CELL, "%" PRIu64 "d", s / 86400);
        return cell;
}

/* CPU time: "0:07.3", "12:05", "3:20h". */
static const char *time_cell(uint64_t us, char cell[CELL]) {
        uint64_t s = us / 1000000;

        if (us == USAGE_UNKNOWN)
                return "?";
        if (s < 600)
                snprintf(cell, CELL, "%" PRIu64 ":%02" PRIu64 ".%" PRIu64, s / 60, s % 60,
                         us / 100000 % 10);
        else if (s < 6000)
                snprintf(cell, CELL, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
        else
                snprintf(cell, CELL, "%" PRIu64 ":%02" PRIu64 "h", s / 3600, s / 60 % 60);
        return cell;
}

static const char *count_cell(uint64_t n, char cell[CELL]) {
        if (n == USAGE_UNKNOWN)
                return "?";
        snprintf(cell, CELL, "%" PRIu64, n);
        return cell;
}

static const char *owner_cell(const struct row *r, char cell[CELL]) {
        struct passwd *pw = r->owned ? getpwuid(r->sb->owner) : NULL;

        if (!r->owned)
                return "-";
        if (pw && strlen(pw->pw_name) <= 10)
                snprintf(cell, CELL, "%s", pw->pw_name);
        else
                snprintf(cell, CELL, "%u", (unsigned)r->sb->owner);
        return cell;
}

static const char *cpu_cell(const struct row *r, char cell[CELL]) {
        if (r->u.cpu_us == USAGE_UNKNOWN)
                return "?";
        if (r->cpu_per_mille == USAGE_UNKNOWN)
                return "-";
        snprintf(cell, CELL, "%" PRIu64, (r->cpu_per_mille + 5) / 10);
        return cell;
}

static void text_row(FILE *f, const struct row *r) {
        char c[7][CELL];

        fprintf(f, "%-8.8s %-9s %-10.10s %-10.10s %3u %4s %7s %5s/%-5s %4s %4s\n", r->sb->pool->name,
                r->state, r->session[0] ? r->session : "-", owner_cell(r, c[0]), r->commands,
                cpu_cell(r, c[1]), time_cell(r->u.cpu_us, c[2]), size_cell(r->u.memory_bytes, c[3]),
                size_cell(r->u.memory_max_bytes, c[4]), count_cell(r->u.pids, c[5]),
                age_cell(r->age_s, c[6]));
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void json_row(struct jsonw *j, const struct row *r) {
        const struct usage *u = &r->u;

        jsonw_object(j);
        jsonw_key_str(j, "profile", r->sb->pool->name);
        jsonw_key_str(j, "state", r->state);
        jsonw_key_str(j, "session", r->session[0] ? r->session : NULL);
        jsonw_key_uint(j, "uid", r->owned, r->sb->owner);
        jsonw_key_str(j, "container", r->sb->id);
        jsonw_key_uint(j, "commands", true, r->commands);
        jsonw_key_uint(j, "uses", true, r->sb->uses);
        jsonw_key_uint(j, "cpu_per_mille", r->cpu_per_mille != USAGE_UNKNOWN, r->cpu_per_mille);
        jsonw_key_uint(j, "cpu_us", u->cpu_us != USAGE_UNKNOWN, u->cpu_us);
        jsonw_key_uint(j, "memory_bytes", u->memory_bytes != USAGE_UNKNOWN, u->memory_bytes);
        jsonw_key_uint(j, "memory_max_bytes", u->memory_max_bytes < USAGE_NO_LIMIT, u->memory_max_bytes);
        jsonw_key_uint(j, "pids", u->pids != USAGE_UNKNOWN, u->pids);
        jsonw_key_uint(j, "pids_max", u->pids_max < USAGE_NO_LIMIT, u->pids_max);
        jsonw_key_uint(j, "age_seconds", true, r->age_s);
        jsonw_object_end(j);
}

/* --- both --------------------------------------------------------------------------------------- */

static bool may_see(const struct sandbox *sb, const struct peer *who) {
        if (sb->session)
                return peer_is(who, &sb->session->owner);
        if (sb->exec)
                return peer_is(who, &sb->exec->audit.caller);
        return is_owned(sb) && sb->owner == who->uid;
}

/* Calls one of @f and @j for each sandbox that @who may see. */
static void rows(struct manager *m, const struct peer *who, bool all, FILE *f, struct jsonw *j) {
        struct sandbox *sb;
        struct pool *p;
        struct row r;

        LIST_FOREACH(p, &m->pools, link)
        TAILQ_FOREACH(sb, &p->sandboxes, link) {
                if (!all && !may_see(sb, who))
                        continue;
                look(m, sb, &r);
                if (j)
                        json_row(j, &r);
                else
                        text_row(f, &r);
        }
}

char *top_text(struct manager *m, const struct peer *who, bool all, bool json, size_t *ret_len) {
        char *buf = NULL;
        struct jsonw j;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        if (json) {
                jsonw_init_file(&j, f);
                jsonw_array(&j);
                rows(m, who, all, NULL, &j);
                jsonw_array_end(&j);
                jsonw_done(&j);
                fputc('\n', f);
        } else {
                fprintf(f, "%-8s %-9s %-10s %-10s %3s %4s %7s %11s %4s %4s\n", "PROFILE", "STATE",
                        "SESSION", "OWNER", "CMD", "CPU%", "TIME", "MEM/LIMIT  ", "PIDS", "AGE");
                rows(m, who, all, f, NULL);
        }
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
