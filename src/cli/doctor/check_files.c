/* Owners and modes: of the three sockets, of the helper, and of the configuration. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define HELPER "/usr/sbin/hermes-docker-enable"
#define RESTART "sudo hermes-sandbox stop && sudo hermes-sandbox start"

/* The names that belong to a file's ids, as the files below /etc have them; "?" where there is none. */
struct owner {
        char user[64], group[64];
};

static void owner_of(struct doctor *d, const struct stat *st, struct owner *ret) {
        FILE *f = doctor_open(d, "/etc/passwd");
        struct passwd *pw;
        struct group *g;

        strcpy(ret->user, "?");
        strcpy(ret->group, "?");
        while (f && (pw = fgetpwent(f)) && strcmp(ret->user, "?") == 0)
                if (pw->pw_uid == st->st_uid)
                        snprintf(ret->user, sizeof(ret->user), "%s", pw->pw_name);
        if (f)
                fclose(f);
        f = doctor_open(d, "/etc/group");
        while (f && (g = fgetgrent(f)) && strcmp(ret->group, "?") == 0)
                if (g->gr_gid == st->st_gid)
                        snprintf(ret->group, sizeof(ret->group), "%s", g->gr_name);
        if (f)
                fclose(f);
}

/* --- sockets --------------------------------------------------------------------------------------- */

struct socket {
        const char *path;
        const char *user, *other_user; /* either; systemd's own sockets may be root's */
        const char *group;
        const char *mend;
};

static void judge_socket(struct doctor *d, const struct socket *s) {
        char path[PATH_MAX];
        struct owner o;
        struct stat st;
        int r = d->probes->stat(doctor_path(d, s->path, path), &st);

        if (r == -EACCES) {
                doctor_say_needs_root(d, s->path);
                return;
        }
        if (r < 0) {
                doctor_say(d, DOCTOR_FAILURE, s->mend, "%s: %s", s->path, strerror(-r));
                return;
        }
        owner_of(d, &st, &o);
        if (!S_ISSOCK(st.st_mode))
                doctor_say(d, DOCTOR_FAILURE, s->mend, "%s is no socket", s->path);
        else if (st.st_mode & 0007)
                doctor_say(d, DOCTOR_FAILURE, s->mend,
                           "%s has mode %04o: everybody may use it, expected 0660", s->path,
                           (unsigned)st.st_mode & 07777);
        else if ((st.st_mode & 0777) != 0660)
                doctor_say(d, DOCTOR_FAILURE, s->mend, "%s has mode %04o, expected 0660", s->path,
                           (unsigned)st.st_mode & 07777);
        else if ((strcmp(o.user, s->user) != 0 && strcmp(o.user, s->other_user) != 0) ||
                 strcmp(o.group, s->group) != 0)
                doctor_say(d, DOCTOR_FAILURE, s->mend, "%s belongs to %s:%s, expected %s:%s", s->path,
                           o.user, o.group, s->user, s->group);
        else
                doctor_say(d, DOCTOR_OK, NULL, "%s %s:%s %04o", s->path, o.user, o.group,
                           (unsigned)st.st_mode & 07777);
}

void check_sockets(struct doctor *d) {
        const struct socket sockets[] = {
                { "/run/hermes-sandbox/pool.sock", DOCTOR_MANAGER, "root", DOCTOR_GROUP, RESTART },
                { "/run/hermes-sandbox-engine/engine.sock", DOCTOR_BROKER, DOCTOR_BROKER, DOCTOR_MANAGER,
                  RESTART },
                { doctor_engine_socket(d), "root", "root", "docker",
                  "sudo systemctl restart docker.socket docker # see hosts and group in /etc/docker/daemon.json" },
        };

        for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++)
                judge_socket(d, &sockets[i]);
}

/* --- the helper ------------------------------------------------------------------------------------ */

/* What dpkg puts back at every upgrade. False: nothing. */
static bool statoverride(struct doctor *d, struct owner *ret, unsigned *ret_mode) {
        FILE *f = doctor_open(d, "/var/lib/dpkg/statoverride");
        char line[PATH_MAX], path[PATH_MAX];
        bool found = false;

        while (f && !found && fgets(line, sizeof(line), f))
                found = sscanf(line, "%63s %63s %o %4095s", ret->user, ret->group, ret_mode, path) ==
                                4 &&
                        strcmp(path, HELPER) == 0;
        if (f)
                fclose(f);
        return found;
}

#define OVERRIDE                                                                            \
        "sudo dpkg-statoverride --force-statoverride-add --update --add root " DOCTOR_GROUP \
        " 4750 " HELPER

static void judge_override(struct doctor *d, const struct stat *st, const struct owner *o) {
        struct owner said;
        unsigned mode;

        if (!statoverride(d, &said, &mode))
                doctor_say(d, DOCTOR_WARNING, OVERRIDE,
                           "dpkg has no override for %s: an upgrade sets its mode anew", HELPER);
        else if (mode != (st->st_mode & 07777) || strcmp(said.user, o->user) != 0 ||
                 strcmp(said.group, o->group) != 0)
                doctor_say(d, DOCTOR_WARNING, OVERRIDE,
                           "%s is %s:%s %04o, and dpkg's override says %s:%s %04o", HELPER, o->user,
                           o->group, (unsigned)st->st_mode & 07777, said.user, said.group, mode);
        else
                doctor_say(d, DOCTOR_OK, NULL, "%s %s:%s %04o, as dpkg's override says%s", HELPER,
                           o->user, o->group, mode, mode & 04000 ? "" : ": members may not call it");
}

void check_helper(struct doctor *d) {
        char path[PATH_MAX];
        struct owner o;
        struct stat st;
        int r = d->probes->stat(doctor_path(d, HELPER, path), &st);

        if (r < 0) {
                doctor_say(d, DOCTOR_FAILURE, "sudo apt-get install --reinstall hermes-sandbox",
                           "%s: %s", HELPER, strerror(-r));
                return;
        }
        owner_of(d, &st, &o);
        if (!S_ISREG(st.st_mode) || st.st_uid != 0)
                doctor_say(d, DOCTOR_FAILURE, "sudo apt-get install --reinstall hermes-sandbox",
                           "%s belongs to %s, expected a plain file of root", HELPER, o.user);
        else if (st.st_mode & 0022)
                doctor_say(d, DOCTOR_FAILURE, OVERRIDE,
                           "%s has mode %04o: others than root may write what runs as root", HELPER,
                           (unsigned)st.st_mode & 07777);
        else if ((st.st_mode & S_ISUID) && (st.st_mode & 0001))
                doctor_say(d, DOCTOR_FAILURE, OVERRIDE,
                           "%s has mode %04o: everybody may run it as root, expected 4750", HELPER,
                           (unsigned)st.st_mode & 07777);
        else if ((st.st_mode & S_ISUID) && strcmp(o.group, DOCTOR_GROUP) != 0)
                doctor_say(d, DOCTOR_FAILURE, OVERRIDE,
                           "%s belongs to group %s, whose members may run it as root; expected %s",
                           HELPER, o.group, DOCTOR_GROUP);
        else
                judge_override(d, &st, &o);
}

/* --- the configuration ----------------------------------------------------------------------------- */

/* The reader itself asks whose the files are and who may write them. */
void check_config(struct doctor *d) {
        if (d->config)
                doctor_say(d, DOCTOR_OK, NULL, "%s is good: %zu profile%s, files of root alone",
                           CONFIG_PATH, d->config->n_profiles, d->config->n_profiles == 1 ? "" : "s");
        else
                doctor_say(d, DOCTOR_FAILURE, "hermes-sandbox config check", "%s", d->config_error.text);
}
