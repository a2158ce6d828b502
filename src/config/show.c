/*
 * Prints a config so that the reader takes it back as the same one. Every text stands in double quotes,
 * with all escaped that YAML or a terminal could take for something else; every key of every profile is
 * written, so that nothing is left to inheritance, and what a profile has taken away from the pool's
 * tmpfs stands there as 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "config/config.h"
#include "config/profile.h"
#include "config/schema.h"
#include "config/units.h"
#include "config/values.h"

/* Code points that show as themselves: no controls, no line or direction marks, nothing private. */
static bool shows(uint32_t c) {
        return (c >= 0x20 && c < 0x7f) || (c >= 0xa1 && c < 0x600 && c != 0xad) ||
               (c >= 0x3040 && c < 0xd800);
}

static void put_text(FILE *f, const char *s) {
        const unsigned char *p = (const unsigned char *)s;
        size_t left = strlen(s);

        fputc('"', f);
        while (left > 0) {
                uint32_t c = 0xfffd;
                size_t n = utf8_decode(p, left, &c);

                if (n == 0)
                        n = 1;
                if (c == '"' || c == '\\')
                        fprintf(f, "\\%c", (char)c);
                else if (c == '\n')
                        fputs("\\n", f);
                else if (shows(c))
                        fwrite(p, 1, n, f);
                else if (c < 0x100)
                        fprintf(f, "\\x%02" PRIx32, c);
                else if (c < 0x10000)
                        fprintf(f, "\\u%04" PRIx32, c);
                else
                        fprintf(f, "\\U%08" PRIx32, c);
                p += n;
                left -= n;
        }
        fputc('"', f);
}

static void put_key(FILE *f, const char *indent, const char *key) {
        fprintf(f, "%s%s: ", indent, key);
}

static void show_text(FILE *f, const char *indent, const char *key, const char *s) {
        put_key(f, indent, key);
        put_text(f, s);
        fputc('\n', f);
}

static void show_u64(FILE *f, const char *indent, const char *key, uint64_t v) {
        fprintf(f, "%s%s: %" PRIu64 "\n", indent, key, v);
}

static void show_word(FILE *f, const char *indent, const char *key, const char *word) {
        fprintf(f, "%s%s: %s\n", indent, key, word);
}

static void show_size(FILE *f, const char *indent, const char *key, uint64_t bytes) {
        char buf[CONFIG_UNIT_TEXT];

        show_word(f, indent, key, config_format_size(bytes, buf));
}

static void show_duration(FILE *f, const char *indent, const char *key, uint64_t ms) {
        char buf[CONFIG_UNIT_TEXT];

        show_word(f, indent, key, config_format_duration(ms, buf));
}

static void show_list(FILE *f, const char *indent, const char *key, char *const *v) {
        fprintf(f, "%s%s:%s\n", indent, key, v[0] ? "" : " []");
        for (; *v; v++) {
                fprintf(f, "%s  - ", indent);
                put_text(f, *v);
                fputc('\n', f);
        }
}

static void show_tmpfs(FILE *f, const char *indent, const struct config_profile *p,
                       const struct config_profile *base) {
        char buf[CONFIG_UNIT_TEXT];
        size_t shown = 0;

        fprintf(f, "%stmpfs:", indent);
        for (size_t i = 0; i < p->n_tmpfs; i++, shown++) {
                fprintf(f, "\n%s  ", indent);
                put_text(f, p->tmpfs[i].path);
                fprintf(f, ": %s", config_format_size(p->tmpfs[i].bytes, buf));
        }
        for (size_t i = 0; i < base->n_tmpfs; i++) {
                if (config_profile_tmpfs(p, base->tmpfs[i].path) > 0)
                        continue;
                fprintf(f, "\n%s  ", indent);
                put_text(f, base->tmpfs[i].path);
                fputs(": 0", f);
                shown++;
        }
        fputs(shown ? "\n" : " {}\n", f);
}

static void show_env(FILE *f, const char *indent, char *const *env) {
        fprintf(f, "%senv:%s\n", indent, env[0] ? "" : " {}");
        for (; *env; env++) {
                const char *value = strchr(*env, '=') + 1;

                fprintf(f, "%s  %.*s: ", indent, (int)(value - *env - 1), *env);
                put_text(f, value);
                fputc('\n', f);
        }
}

static void show_users(FILE *f, const char *indent, const struct config_profile *p) {
        fprintf(f, "%suser: \"%" PRIu32 ":%" PRIu32 "\"\n", indent, p->uid, p->gid);
        fprintf(f, "%susers:%s\n", indent, p->n_users ? "" : " []");
        for (size_t i = 0; i < p->n_users; i++)
                fprintf(f, "%s  - \"%" PRIu32 ":%" PRIu32 "\"\n", indent, p->users[i].uid,
                        p->users[i].gid);
        fprintf(f, "%scapabilities:%s\n", indent, p->capabilities ? "" : " []");
        for (int cap = 0; cap < 64; cap++)
                if (p->capabilities >> cap & 1)
                        fprintf(f, "%s  - %s\n", indent, config_capability_name(cap));
}

static void show_limits(FILE *f, const char *indent, const struct config_limits *l) {
        char deeper[16];

        snprintf(deeper, sizeof(deeper), "%s  ", indent);
        fprintf(f, "%slimits:\n", indent);
        show_size(f, deeper, "command_bytes", l->command_bytes);
        show_duration(f, deeper, "timeout", l->timeout_ms);
        show_duration(f, deeper, "timeout_max", l->timeout_max_ms);
        show_size(f, deeper, "output_bytes", l->output_bytes);
        show_duration(f, deeper, "grace", l->grace_ms);
        show_u64(f, deeper, "exec_rate", l->exec_rate);
        show_u64(f, deeper, "sessions", l->sessions);
        show_u64(f, deeper, "execs", l->execs);
        show_u64(f, deeper, "queued", l->queued);
}

static void show_recipe(FILE *f, const char *in, const struct config_profile *p,
                        const struct config_profile *base) {
        char buf[CONFIG_UNIT_TEXT];

        show_text(f, in, "image", p->image);
        show_size(f, in, "memory_limit", p->memory_bytes);
        show_size(f, in, "memory_reserve", p->memory_reserve_bytes);
        show_word(f, in, "cpus", config_format_cpus(p->cpu_nano, buf));
        show_text(f, in, "network", p->network);
        show_word(f, in, "read_only", p->read_only ? "true" : "false");
        show_u64(f, in, "pids_limit", p->pids_limit);
        show_duration(f, in, "reconnect_grace", p->reconnect_grace_ms);
        show_tmpfs(f, in, p, base);
        show_size(f, in, "shm_size", p->shm_bytes);
        show_text(f, in, "runtime", p->runtime);
        show_users(f, in, p);
        show_text(f, in, "workdir", p->workdir);
        show_text(f, in, "home", p->home);
        show_env(f, in, p->env);
        fprintf(f, "%sulimits:%s\n", in, p->n_ulimits ? "" : " {}");
        for (size_t i = 0; i < p->n_ulimits; i++)
                fprintf(f, "%s  %s: \"%" PRIu64 ":%" PRIu64 "\"\n", in, p->ulimits[i].name,
                        p->ulimits[i].soft, p->ulimits[i].hard);
}

static void show_profile(FILE *f, const char *in, const struct config_profile *p,
                         const struct config_profile *base) {
        show_u64(f, in, "size", p->size);
        show_recipe(f, in, p, base);
        show_word(f, in, "reuse", config_words_reuse[p->reuse]);
        show_u64(f, in, "max_uses", p->max_uses);
        show_duration(f, in, "max_age", p->max_age_ms);
        show_word(f, in, "on_empty", config_words_on_empty[p->on_empty]);
        show_duration(f, in, "cold_after", p->cold_after_ms);
        show_u64(f, in, "max_sandboxes", p->max_sandboxes);
        show_u64(f, in, "queue_limit", p->queue_limit);
        show_duration(f, in, "queue_timeout", p->queue_timeout_ms);
        show_duration(f, in, "session_ttl", p->session_ttl_ms);
        show_duration(f, in, "session_ttl_max", p->session_ttl_max_ms);
        show_list(f, in, "allow_users", p->allow_users);
        show_list(f, in, "allow_groups", p->allow_groups);
        show_limits(f, in, &p->limits);
}

int config_show(const struct config *c, FILE *f) {
        struct config_profile defaults;

        config_profile_init(&defaults, "");
        fputs("pool:\n", f);
        show_profile(f, "  ", &c->profiles[0], &defaults);
        config_profile_done(&defaults);
        fprintf(f, "profiles:%s\n", c->n_profiles > 1 ? "" : " {}");
        for (size_t i = 1; i < c->n_profiles; i++) {
                fputs("  ", f);
                put_text(f, c->profiles[i].name);
                fputs(":\n", f);
                show_profile(f, "    ", &c->profiles[i], &c->profiles[0]);
        }
        show_text(f, "", "waf_mode", c->waf_mode);
        show_list(f, "", "allowed_file_paths", c->allowed_file_paths);
        fputs("logging:\n", f);
        show_word(f, "  ", "level", config_words_log_level[c->log_level]);
        show_u64(f, "  ", "backup_count", c->log_backup_count);
        show_u64(f, "  ", "max_size_mb", c->log_max_bytes >> 20);
        show_text(f, "  ", "file", c->log_file);
        fputs("audit:\n", f);
        show_word(f, "  ", "required", config_words_tristate[c->audit_required]);
        show_text(f, "  ", "file", c->audit_file);
        fputs("engine:\n", f);
        show_text(f, "  ", "socket", c->engine_socket);
        return fflush(f) != 0 || ferror(f) ? -EIO : 0;
}
