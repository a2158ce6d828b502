/* The machine: who else has the sandboxes' uid, room on the disks, the clock. */
#include "cli/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* --- the sandboxes' uid ---------------------------------------------------------------------------- */

/* What /proc/PID/status says of a process. In a container it has a pid there as well. */
struct process {
        uid_t uid;
        bool contained;
        char name[64];
};

static bool read_process(struct doctor *d, const char *pid, struct process *ret) {
        char path[64], line[512];
        bool known = false;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
        f = doctor_open(d, path);
        *ret = (struct process){ 0 };
        while (f && fgets(line, sizeof(line), f)) {
                unsigned uid, inner;

                if (sscanf(line, "Name: %63[^\n]", ret->name) == 1)
                        continue;
                if (sscanf(line, "Uid: %u", &uid) == 1) {
                        ret->uid = uid;
                        known = true;
                } else if (sscanf(line, "NSpid: %*u %u", &inner) == 1) {
                        ret->contained = true;
                }
        }
        if (f)
                fclose(f);
        return known;
}

/* Says it of the first process outside of a container; true if there is one. */
static bool process_of(struct doctor *d, uid_t uid, const char *mend) {
        char path[PATH_MAX];
        DIR *dir = opendir(doctor_path(d, "/proc", path));
        struct dirent *entry;
        struct process p;
        bool found = false;

        while (dir && !found && (entry = readdir(dir))) {
                if (!isdigit((unsigned char)entry->d_name[0]) || !read_process(d, entry->d_name, &p) ||
                    p.uid != uid || p.contained)
                        continue;
                found = true;
                doctor_say(d, DOCTOR_WARNING, mend,
                           "process %s (%s) of this machine has uid %u, as commands in sandboxes have: "
                           "they share the kernel's limits of it, and it can signal them",
                           entry->d_name, p.name, (unsigned)uid);
        }
        if (dir)
                closedir(dir);
        return found;
}

static bool account_of(struct doctor *d, uid_t uid, const char *mend) {
        FILE *f = doctor_open(d, "/etc/passwd");
        struct passwd *pw;
        bool found = false;

        while (f && !found && (pw = fgetpwent(f))) {
                found = pw->pw_uid == uid;
                if (found)
                        doctor_say(
                                d, DOCTOR_WARNING, mend,
                                "account %s of this machine has uid %u, as commands in sandboxes have",
                                pw->pw_name, (unsigned)uid);
        }
        if (f)
                fclose(f);
        return found;
}

void check_uid(struct doctor *d) {
        static const char mend[] =
                "sudoedit /etc/hermes-sandbox/sandbox.yaml # user: a uid and gid that nobody has";

        for (size_t i = 0; d->config && i < d->config->n_profiles; i++) {
                uid_t uid = d->config->profiles[i].uid;
                bool again = false, found;

                for (size_t j = 0; j < i; j++)
                        again |= d->config->profiles[j].uid == uid;
                if (again)
                        continue;
                found = account_of(d, uid, mend);
                found |= process_of(d, uid, mend);
                if (!found)
                        doctor_say(d, DOCTOR_OK, NULL, "nobody on this machine has uid %u",
                                   (unsigned)uid);
        }
        if (!d->config)
                doctor_say(d, DOCTOR_WARNING, "hermes-sandbox config check",
                           "which uids commands have is not known without a configuration");
}

/* --- disks ----------------------------------------------------------------------------------------- */

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static void disk(struct doctor *d, const char *path, const char *what, const char *mend) {
        char buf[PATH_MAX];
        struct statvfs v;
        uint64_t total, left;
        enum doctor_result result;
        int r = d->probes->disk(doctor_path(d, path, buf), &v);

        if (r == -EACCES) {
                doctor_say_needs_root(d, path);
                return;
        }
        if (r < 0) {
                doctor_say(d, DOCTOR_WARNING, NULL, "%s (%s): %s", path, what, strerror(-r));
                return;
        }
        total = (uint64_t)v.f_blocks * v.f_frsize;
        left = (uint64_t)v.f_bavail * v.f_frsize;
        result = left < 16 * MIB || left < total / 200           ? DOCTOR_FAILURE
                 : left < GIB || left < total / 20               ? DOCTOR_WARNING
                 : v.f_files != 0 && v.f_favail < v.f_files / 20 ? DOCTOR_WARNING
                                                                 : DOCTOR_OK;
        doctor_say(d, result, result == DOCTOR_OK ? NULL : mend,
                   "%s (%s): %" PRIu64 " MiB of %" PRIu64 " MiB are free%s", path, what, left / MIB,
                   total / MIB,
                   result == DOCTOR_WARNING && left >= GIB && left >= total / 20 ? ", but few inodes"
                                                                                 : "");
}

void check_disk(struct doctor *d) {
        const char *root = doctor_json_str(d->info, "DockerRootDir");

        disk(d, *root == '/' ? root : "/var/lib/docker", "the engine's images and containers",
             "sudo docker system prune");
        disk(d, "/var/log/hermes-sandbox", "the readable trail",
             "sudoedit /etc/hermes-sandbox/sandbox.yaml # logging.backup_count, logging.max_size_mb");
        disk(d, "/var/log/audit", "the kernel's trail",
             "sudo ls -l /var/log/audit # move older logs to another machine");
}

/* --- clock ----------------------------------------------------------------------------------------- */

void check_clock(struct doctor *d) {
        static const char mend[] =
                "sudo apt-get install systemd-timesyncd && sudo timedatectl set-ntp true";
        bool synchronized;
        struct tm tm;
        time_t now;
        int r = d->probes->clock(&synchronized, &now);

        if (r < 0 || !gmtime_r(&now, &tm))
                doctor_say(d, DOCTOR_WARNING, NULL, "the clock is not known: %s",
                           strerror(r < 0 ? -r : ERANGE));
        else if (tm.tm_year + 1900 < d->build_year)
                doctor_say(
                        d, DOCTOR_FAILURE, mend,
                        "the clock says %d, and this version is of %d: the audit trail's times are wrong",
                        tm.tm_year + 1900, d->build_year);
        else if (!synchronized)
                doctor_say(d, DOCTOR_WARNING, mend,
                           "nothing keeps the clock: NTP has not synchronized it");
        else
                doctor_say(d, DOCTOR_OK, NULL, "NTP keeps the clock");
}
