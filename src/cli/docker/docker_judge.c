/* The manager and the broker judge it all again: this is so that each flag gets its own word. */
#include "cli/docker/docker_judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/docker/docker_ask.h"
#include "common/image_name.h"

static const char drop_in[] = "in a file of /etc/hermes-sandbox/sandbox.d";

/* What the profile has, or less: 0 where there is nothing to be said. */
static uint64_t less(uint64_t asked, uint64_t profiles) {
        return asked > 0 && asked < profiles ? asked : 0;
}

static const char *tmpfs_path(const struct run_words *r, int i, char *buf, size_t cap) {
        snprintf(buf, cap, "%.*s", r->tmpfs[i].path_len, r->tmpfs[i].path);
        return buf;
}

/* The profile's own tmpfs of that path, or -1. */
static int find_tmpfs(const struct run_words *r, int i, const struct image_info *p) {
        for (int k = 0; k < p->n_tmpfs; k++)
                if (strlen(p->tmpfs[k].path) == (size_t)r->tmpfs[i].path_len &&
                    memcmp(p->tmpfs[k].path, r->tmpfs[i].path, (size_t)r->tmpfs[i].path_len) == 0)
                        return k;
        return -1;
}

static int judge_tmpfs(const struct run_words *r, const struct image_info *p, struct narrow *n,
                       const char **ret_flag, struct errmsg *e) {
        char path[NARROW_PATH_MAX + 1];

        for (int i = 0; i < r->n_tmpfs; i++) {
                int k = find_tmpfs(r, i, p);
                uint64_t bytes = k < 0 ? 0 : less(r->tmpfs[i].bytes, p->tmpfs[k].bytes);

                if (k < 0) {
                        *ret_flag = "--tmpfs";
                        return errmsg_set(
                                e, -EPERM,
                                "--tmpfs %s: refused: profile \"%.64s\" has none there: give it "
                                "one under tmpfs, %s",
                                tmpfs_path(r, i, path, sizeof(path)), p->profile, drop_in);
                }
                if (bytes == 0)
                        continue;
                n->tmpfs[n->n_tmpfs].path = p->tmpfs[k].path;
                n->tmpfs[n->n_tmpfs++].bytes = bytes;
        }
        return 0;
}

/* For copies of files that are meant for a place in a folder of this machine. Here nobody but root makes such a place, so
 * that a link to it, which stays in that folder, never leads to another's file. */
#define ASIDE_TMPFS "/.hermes-files"
#define ASIDE ASIDE_TMPFS "/"

static const struct cli_mount *mount_around(const struct run_words *r, const char *path) {
        char target[MOUNT_DST_MAX + 1];

        for (int i = 0; i < r->mounts.n; i++) {
                const struct cli_mount *m = &r->mounts.of[i];

                snprintf(target, sizeof(target), "%.*s", m->target_len, m->text + m->target);
                if (mount_path_below(path, target))
                        return m;
        }
        return NULL;
}

static bool has_aside(const struct run_words *r, const struct image_info *p) {
        for (int k = 0; k < p->n_tmpfs; k++)
                if (strcmp(p->tmpfs[k].path, ASIDE_TMPFS) == 0)
                        return !mount_around(r, ASIDE);
        return false;
}

/* What is copied to below a folder of this machine would be written there: a link is, and leads to the copy. */
static int judge_files(struct run_words *r, const struct image_info *p, const char **ret_flag,
                       struct errmsg *e) {
        char at[MOUNT_DST_MAX + 1];

        for (int i = 0; i < r->n_files; i++) {
                struct run_file *f = &r->files[i];
                const struct cli_mount *m = mount_around(r, f->dst);

                if (!m)
                        continue;
                *ret_flag = "--volume";
                if (strlen(f->dst) == (size_t)m->target_len)
                        return errmsg_set(e, -EINVAL, "--%s: duplicate mount point: %.200s",
                                          f->flag->f.name, f->dst);
                if (!has_aside(r, p))
                        return errmsg_set(
                                e, -EPERM,
                                "--%s %.120s: refused: a file is copied, and at %.120s it would be "
                                "written into the folder %.*s: give profile \"%.64s\" a tmpfs at " ASIDE_TMPFS
                                ", %s, or put the file there yourself",
                                f->flag->f.name, f->src, f->dst,
                                m->source_len > 120 ? 120 : m->source_len, m->text, p->profile, drop_in);
                if (!cli_mount_aside(ASIDE, f->dst, (int)strlen(f->dst), at))
                        return errmsg_set(e, -EINVAL,
                                          "--%s %.120s: in another folder its place is too long",
                                          f->flag->f.name, f->src);
                /* For as long as the program runs. */
                f->at = strdup(at);
                if (!f->at)
                        abort();
        }
        return 0;
}

/* Is it root who runs the commands? */
static bool as_root(const struct run_words *r, const struct image_info *p) {
        return r->mounts.n == 0 && (r->user ? r->uid : p->uid) == 0;
}

static int judge_rights(const struct run_words *r, const struct image_info *p, const char **ret_flag,
                        struct errmsg *e) {
        for (unsigned c = 0; c < 64; c++) {
                if (!(r->capabilities >> c & 1) || p->capabilities >> c & 1 || !as_root(r, p))
                        continue;
                *ret_flag = "--cap-add";
                return errmsg_set(e, -EACCES,
                                  "--cap-add %s: refused: profile \"%.64s\" does not have it: add it to "
                                  "capabilities, %s",
                                  run_capability_name(c), p->profile, drop_in);
        }
        if (r->network && strcmp(r->network, "none") != 0 && strcmp(r->network, p->network) != 0) {
                *ret_flag = "--network";
                return errmsg_set(e, -EPERM,
                                  "--network %.64s: refused: profile \"%.64s\" has network \"%s\": set "
                                  "network, %s",
                                  r->network, p->profile, p->network, drop_in);
        }
        if (r->image && !image_name_means(r->image, p->name)) {
                *ret_flag = "IMAGE";
                return errmsg_set(
                        e, -EPERM,
                        "image %.200s is not that of profile \"%.64s\", which has \"%.200s\": set "
                        "image, %s, or name another profile in $HERMES_SANDBOX_PROFILE",
                        r->image, p->profile, p->name, drop_in);
        }
        return 0;
}

/* Without a group it is the one that goes with that user, as far as it is known here. */
static void judge_user(const struct run_words *r, const struct image_info *p, struct narrow *n) {
        uint32_t gid = r->gid;

        if (!r->user)
                return;
        if (gid == UINT32_MAX)
                gid = r->uid == p->uid ? p->gid : r->uid == getuid() ? getgid() : r->uid;
        if (r->uid == p->uid && gid == p->gid)
                return;
        n->user = true;
        n->uid = r->uid;
        n->gid = gid;
}

/* Is that place there for certain? A slash at its end is none of its name. */
static bool is_there(const char *path, const struct run_words *r, const struct image_info *p) {
        size_t len = strlen(path);

        while (len > 1 && path[len - 1] == '/')
                len--;
        if (len == 1 || (strlen(p->workdir) == len && memcmp(p->workdir, path, len) == 0))
                return true;
        for (int k = 0; k < p->n_tmpfs; k++)
                if (strlen(p->tmpfs[k].path) == len && memcmp(p->tmpfs[k].path, path, len) == 0)
                        return true;
        for (int i = 0; i < r->mounts.n; i++)
                if ((size_t)r->mounts.of[i].target_len == len &&
                    memcmp(r->mounts.of[i].text + r->mounts.of[i].target, path, len) == 0)
                        return true;
        return false;
}

int run_judge(struct run_words *r, const struct image_info *p, struct open_request *ret,
              const char **ret_flag, struct errmsg *e) {
        struct open_request q = { .form = ANSWER_RECORDS };
        int code = judge_rights(r, p, ret_flag, e);

        if (code == 0)
                code = judge_files(r, p, ret_flag, e);
        if (code == 0)
                code = judge_tmpfs(r, p, &q.narrow, ret_flag, e);
        if (code < 0)
                return code;
        q.name = r->name;
        q.profile = p->profile;
        q.image = p->name;
        q.workdir = r->workdir;
        r->make_workdir = r->workdir[0] != '\0' && !is_there(r->workdir, r, p);
        q.narrow.memory_bytes = less(r->memory_bytes, p->memory_bytes);
        q.narrow.cpu_nano = less(r->cpu_nano, p->cpu_nano);
        q.narrow.pids_limit = (uint32_t)less(r->pids, p->pids_limit);
        q.narrow.shm_bytes = less(r->shm_bytes, p->shm_bytes);
        q.narrow.no_network = r->network && strcmp(r->network, "none") == 0 &&
                              strcmp(p->network, "none") != 0;
        judge_user(r, p, &q.narrow);
        q.n_labels = r->n_labels;
        memcpy(q.labels, r->labels, r->n_labels * sizeof(r->labels[0]));
        q.n_env = r->n_env;
        q.env = (const char **)(uintptr_t)r->env;
        *ret = q;
        return 0;
}

/* --- what is not given -------------------------------------------------------------------------------- */

static int warn_size(const char *flag, uint64_t asked, uint64_t has, const char *key,
                     const struct image_info *p) {
        if (asked <= has)
                return 0;
        cli_line("WARNING: %s: more than profile \"%s\" gives: %llum: raise %s, %s", flag, p->profile,
                 (unsigned long long)(has >> 20), key, drop_in);
        return 1;
}

static int warn_cpus(const struct run_words *r, const struct image_info *p) {
        if (r->cpu_nano <= p->cpu_nano)
                return 0;
        cli_line("WARNING: --cpus: more than profile \"%s\" gives: %llu.%02llu: raise cpus, %s",
                 p->profile, (unsigned long long)(p->cpu_nano / 1000000000),
                 (unsigned long long)(p->cpu_nano / 10000000 % 100), drop_in);
        return 1;
}

static int warn_pids(const struct run_words *r, const struct image_info *p) {
        if (r->pids <= p->pids_limit)
                return 0;
        cli_line("WARNING: --pids-limit: more than profile \"%s\" gives: %u: raise pids_limit, %s",
                 p->profile, p->pids_limit, drop_in);
        return 1;
}

static int warn_tmpfs(const struct run_words *r, const struct image_info *p) {
        char flag[NARROW_PATH_MAX + 16], path[NARROW_PATH_MAX + 1];
        int n = 0;

        for (int i = 0; i < r->n_tmpfs; i++) {
                int k = find_tmpfs(r, i, p);

                if (k < 0)
                        continue;
                snprintf(flag, sizeof(flag), "--tmpfs %s", tmpfs_path(r, i, path, sizeof(path)));
                n += warn_size(flag, r->tmpfs[i].bytes, p->tmpfs[k].bytes, "tmpfs", p);
                if (r->tmpfs[i].other[0] == '\0')
                        continue;
                cli_line(
                        "WARNING: %s: %s: not done: a tmpfs here is rw,exec,nosuid,nodev, with mode 1777, or "
                        "its user's own where it is the home",
                        flag, r->tmpfs[i].other);
                n++;
        }
        return n;
}

/* A capability that is dropped and added again is added. */
static int warn_dropped(const struct run_words *r, const struct image_info *p) {
        uint64_t kept = as_root(r, p) ? p->capabilities & r->dropped & ~r->capabilities : 0;
        char names[128] = "";

        if (kept == 0)
                return 0;
        for (unsigned c = 0; c < 64; c++)
                if (kept >> c & 1) {
                        size_t len = strlen(names);

                        snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
                                 run_capability_name(c));
                }
        cli_line(
                "WARNING: --cap-drop: not done: commands as root have %s, as profile \"%s\" does: take it "
                "from capabilities, %s",
                names, p->profile, drop_in);
        return 1;
}

static int warn_read_only(const struct run_words *r, const struct image_info *p) {
        if (p->read_only ? !r->writable : !r->read_only)
                return 0;
        cli_line("WARNING: --read-only%s: not done: profile \"%s\" has read_only: %s: change it, %s",
                 p->read_only ? "=false" : "", p->profile, p->read_only ? "true" : "false", drop_in);
        return 1;
}

static int warn_rights(const struct run_words *r, const struct image_info *p) {
        int n = 0;

        if (r->agents_own) {
                cli_line(
                        "WARNING: --cap-add SETUID, SETGID: not given: a command is started as its user, and "
                        "becomes no other");
                n++;
        }
        if (r->capabilities && !as_root(r, p)) {
                cli_line(
                        r->mounts.n > 0
                                ? "WARNING: --cap-add: not given: beside folders of this machine commands "
                                  "run as you, without capabilities"
                                : "WARNING: --cap-add: not given: commands that do not run as root have none");
                n++;
        }
        return n;
}

static int warn_files(const struct run_words *r) {
        for (int i = 0; i < r->n_files; i++)
                cli_line("WARNING: --%s %.200s: a file is copied as it is now, not mounted%s",
                         r->files[i].flag->f.name, r->files[i].src,
                         r->files[i].at == r->files[i].dst ? "" : "; a link in the folder leads to it");
        return r->n_files;
}

int run_warn(const struct run_words *r, const struct image_info *p) {
        int n = warn_size("--memory", r->memory_bytes, p->memory_bytes, "memory_limit", p) +
                warn_size("--shm-size", r->shm_bytes, p->shm_bytes, "shm_size", p) + warn_cpus(r, p) +
                warn_pids(r, p) + warn_tmpfs(r, p) + warn_dropped(r, p) + warn_rights(r, p) +
                warn_read_only(r, p) + warn_files(r);

        for (int i = 0; i < r->n_warnings; i++) {
                const char *value = r->warnings[i].value;

                cli_line("WARNING: --%s%s%.200s: not done: %s", r->warnings[i].flag->f.name,
                         !value                         ? ""
                         : r->warnings[i].flag->f.value ? " "
                                                        : "=",
                         value ? value : "", r->warnings[i].flag->text);
        }
        if (r->detach && r->remove) {
                cli_line(
                        "WARNING: --rm: not done: a session of run -d is kept until docker rm, or until "
                        "nothing ran in it for its time to live (session_ttl)");
                n++;
        }
        return n + r->n_warnings;
}
