/* Accounts and groups, as the files below /etc have them; and the groups that the caller's own login has. */
#include "cli/doctor/doctor.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define DOCKER "docker"
/* Accounts of people, by default (login.defs(5)). */
#define PEOPLE_MIN 1000u
#define PEOPLE_MAX 60000u
#define TO_REINSTALL "sudo apt-get install --reinstall hermes-sandbox"

struct entry {
        uid_t uid;
        gid_t gid;
};

static bool find_account(struct doctor *d, const char *name, struct entry *ret) {
        FILE *f = doctor_open(d, "/etc/passwd");
        struct passwd *pw;
        bool found = false;

        while (f && !found && (pw = fgetpwent(f))) {
                found = strcmp(pw->pw_name, name) == 0;
                if (found)
                        *ret = (struct entry){ .uid = pw->pw_uid, .gid = pw->pw_gid };
        }
        if (f)
                fclose(f);
        return found;
}

/* Who is in a group: by its list, or as the account's own group. */
struct members {
        gid_t gid;
        char *list; /* ",a,b,", as no name has a comma */
};

static void members_done(struct members *m) {
        free(m->list);
}

/* False: there is no such group. To be members_done() in any case. */
static bool members_read(struct doctor *d, const char *group, struct members *ret) {
        FILE *f = doctor_open(d, "/etc/group");
        struct group *g = NULL;
        size_t len;
        FILE *list;

        *ret = (struct members){ .gid = (gid_t)-1 };
        while (f && (g = fgetgrent(f)) && strcmp(g->gr_name, group) != 0)
                ;
        list = g ? open_memstream(&ret->list, &len) : NULL;
        if (list) {
                ret->gid = g->gr_gid;
                fputc(',', list);
                for (char **m = g->gr_mem; *m; m++)
                        fprintf(list, "%s,", *m);
                fclose(list);
        }
        if (f)
                fclose(f);
        return ret->list != NULL;
}

static bool has(const struct members *m, const char *name, gid_t own) {
        char word[300];

        snprintf(word, sizeof(word), ",%s,", name);
        return own == m->gid || (m->list && strstr(m->list, word));
}

void check_accounts(struct doctor *d) {
        static const char *const names[] = { DOCTOR_BROKER, DOCTOR_MANAGER };
        struct members users;
        unsigned missing = 0;
        struct entry e;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                if (!find_account(d, names[i], &e))
                        doctor_say(d, DOCTOR_FAILURE, TO_REINSTALL, "there is no account %s", names[i]);
                else if (e.uid == 0)
                        doctor_say(d, DOCTOR_FAILURE, TO_REINSTALL, "the account %s has uid 0",
                                   names[i]);
                else
                        continue;
                missing++;
        }
        if (!members_read(d, DOCTOR_GROUP, &users)) {
                doctor_say(d, DOCTOR_FAILURE, TO_REINSTALL, "there is no group " DOCTOR_GROUP);
                missing++;
        }
        members_done(&users);
        if (missing == 0)
                doctor_say(d, DOCTOR_OK, NULL,
                           DOCTOR_BROKER ", " DOCTOR_MANAGER " and the group " DOCTOR_GROUP
                                         " are there");
}

/* --- who is in the group docker -------------------------------------------------------------------- */

static void daemons(struct doctor *d, const struct members *docker) {
        struct entry e;

        if (find_account(d, DOCTOR_BROKER, &e) && has(docker, DOCTOR_BROKER, e.gid))
                doctor_say(d, DOCTOR_OK, NULL, DOCTOR_BROKER " is in group " DOCKER);
        else
                doctor_say(d, DOCTOR_FAILURE, "sudo hermes-docker-enable",
                           DOCTOR_BROKER " is not in group " DOCKER ": no sandbox can be made");
        if (find_account(d, DOCTOR_MANAGER, &e) && has(docker, DOCTOR_MANAGER, e.gid))
                doctor_say(d, DOCTOR_FAILURE, "sudo gpasswd -d " DOCTOR_MANAGER " " DOCKER,
                           DOCTOR_MANAGER " is in group " DOCKER
                                          ": what takes the manager over is root then");
}

/* Of an account that is in the group docker; 1 if something was said. */
static unsigned person(struct doctor *d, const struct passwd *pw, bool uses_sandbox) {
        char mend[400];

        if (strcmp(pw->pw_name, DOCTOR_BROKER) == 0 || strcmp(pw->pw_name, DOCTOR_MANAGER) == 0 ||
            pw->pw_uid == 0)
                return 0;
        snprintf(mend, sizeof(mend), "sudo gpasswd -d %.300s " DOCKER " # then log in anew",
                 pw->pw_name);
        if (uses_sandbox)
                doctor_say(
                        d, DOCTOR_WARNING, mend,
                        "%s uses the sandbox and is in group " DOCKER
                        ": whoever reaches the engine's socket is root, so what its agent runs needs no "
                        "hole to be root here",
                        pw->pw_name);
        else if (pw->pw_uid >= PEOPLE_MIN && pw->pw_uid <= PEOPLE_MAX)
                doctor_say(d, DOCTOR_WARNING, mend,
                           "%s is in group " DOCKER ", which is to be root without a password",
                           pw->pw_name);
        else
                return 0;
        return 1;
}

/* A login keeps the groups that it was given, whatever the files say now. */
static bool login_has(struct doctor *d, gid_t gid) {
        int n = d->probes->groups(0, NULL);
        gid_t *groups = n > 0 ? calloc((size_t)n, sizeof(*groups)) : NULL;
        bool found = false;

        n = groups ? d->probes->groups(n, groups) : 0;
        for (int i = 0; i < n; i++)
                found |= groups[i] == gid;
        free(groups);
        return found;
}

static unsigned people(struct doctor *d, const struct members *docker) {
        FILE *f = doctor_open(d, "/etc/passwd");
        bool stale = d->uid != 0 && login_has(d, docker->gid);
        struct members users;
        struct passwd *pw;
        unsigned n = 0;

        members_read(d, DOCTOR_GROUP, &users);
        while (f && (pw = fgetpwent(f))) {
                if (!has(docker, pw->pw_name, pw->pw_gid))
                        continue;
                /* The caller is about to use it, whatever groups say. */
                n += person(d, pw, pw->pw_uid == d->uid || has(&users, pw->pw_name, pw->pw_gid));
                stale &= pw->pw_uid != d->uid;
        }
        members_done(&users);
        if (f)
                fclose(f);
        if (stale)
                doctor_say(d, DOCTOR_WARNING, "logout # and in again; then restart the agent",
                           "this login still has group " DOCKER ", and with it root");
        return n + stale;
}

void check_docker_group(struct doctor *d) {
        struct members docker;

        if (!members_read(d, DOCKER, &docker)) {
                doctor_say(d, DOCTOR_FAILURE, "sudo apt-get install docker.io",
                           "there is no group " DOCKER ": is an engine installed?");
        } else {
                daemons(d, &docker);
                if (people(d, &docker) == 0)
                        doctor_say(d, DOCTOR_OK, NULL,
                                   "nobody who uses the sandbox is in group " DOCKER);
        }
        members_done(&docker);
}
