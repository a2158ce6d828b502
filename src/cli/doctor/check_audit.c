/*
 * The kernel's audit trail, from end to end: a record is written and found again in auditd's log. Then what could make
 * the trail worthless: no rules, no auditd, a log that a flood of records washes away.
 */
#include "cli/doctor/doctor.h"

#include <auparse.h>
#include <errno.h>
#include <libaudit.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#define AUDITD_CONF "/etc/audit/auditd.conf"
#define AUDIT_LOG "/var/log/audit/audit.log"
#define FOUND_MS 600
#define STEP_US 5000
#define TO_INSTALL "sudo apt-get install auditd # without systemd: sudo auditd"

#define TO_KEEP                                                                                \
        "sudo sed -i 's/^max_log_file_action.*/max_log_file_action = KEEP_LOGS/' " AUDITD_CONF \
        " && sudo pkill -HUP -x auditd # and see space_left_action"

/* Without a kernel trail no command runs only where the config says so. */
static enum doctor_result severity(const struct doctor *d) {
        return d->config && d->config->audit_required == TRI_TRUE ? DOCTOR_FAILURE : DOCTOR_WARNING;
}

/* The value of "key = value" in auditd.conf into @buf, "" where there is none. 0, or -errno of opening it. */
static int setting(struct doctor *d, const char *key, char *buf, size_t cap) {
        FILE *f = doctor_open(d, AUDITD_CONF);
        char line[PATH_MAX + 64], *save, *word;

        buf[0] = '\0';
        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f)) {
                word = strtok_r(line, " \t=\r\n", &save);
                if (!word || strcasecmp(word, key) != 0)
                        continue;
                word = strtok_r(NULL, " \t=\r\n", &save);
                snprintf(buf, cap, "%s", word ? word : "");
        }
        fclose(f);
        return 0;
}

static bool state(struct doctor *d, struct doctor_audit *ret) {
        struct errmsg e;

        if (d->uid != 0) {
                doctor_say_needs_root(d, strcmp(d->check, "auditd") == 0 ? "auditd" : "the audit rules");
                return false;
        }
        if (d->probes->audit_state(doctor_until(d, FOUND_MS), ret, &e) == 0)
                return true;
        doctor_say(d, severity(d), DOCTOR_AS_ROOT " # outside of a container, on a kernel with audit",
                   "%s", e.text);
        return false;
}

void check_auditd(struct doctor *d) {
        struct doctor_audit a;

        if (!state(d, &a))
                return;
        if (a.pid == 0)
                doctor_say(d, severity(d), TO_INSTALL,
                           "no auditd runs: nobody keeps the kernel's records");
        else if (!a.enabled)
                doctor_say(d, severity(d), "sudo auditctl -e 1", "auditing is off in the kernel");
        else
                doctor_say(d, DOCTOR_OK, NULL, "auditd runs, pid %u", a.pid);
}

void check_audit_rules(struct doctor *d) {
        struct doctor_audit a;
        char missing[80] = "";

        if (!state(d, &a))
                return;
        if (a.n_helper == 0)
                strcat(missing, " hermes-helper");
        if (a.n_socket == 0)
                strcat(missing, " hermes-docker-sock");
        if (a.n_config == 0)
                strcat(missing, " hermes-config");
        if (missing[0])
                doctor_say(d, DOCTOR_WARNING, "sudo augenrules --load",
                           "no rules with these keys are loaded:%s", missing);
        else
                doctor_say(d, DOCTOR_OK, NULL, "the package's rules are loaded: %u",
                           a.n_helper + a.n_socket + a.n_config);
}

void check_audit_log(struct doctor *d) {
        char action[32], size[16], logs[16];
        int r = setting(d, "max_log_file_action", action, sizeof(action));

        if (r == -EACCES) {
                doctor_say_needs_root(d, AUDITD_CONF);
                return;
        }
        if (r < 0) {
                doctor_say(d, severity(d), TO_INSTALL, "%s: %s", AUDITD_CONF, strerror(-r));
                return;
        }
        setting(d, "max_log_file", size, sizeof(size));
        setting(d, "num_logs", logs, sizeof(logs));
        /* auditd.conf(5): ROTATE where nothing is said. */
        if (!action[0] || strcasecmp(action, "rotate") == 0)
                doctor_say(d, DOCTOR_WARNING, TO_KEEP,
                           "max_log_file_action is ROTATE: a flood of records washes older ones away, "
                           "behind %s files of %s MiB",
                           logs[0] ? logs : "5", size[0] ? size : "8");
        else
                doctor_say(d, DOCTOR_OK, NULL, "max_log_file_action is %s", action);
}

/* --- a record there and back ----------------------------------------------------------------------- */

struct search {
        const char *id;
        bool found;
};

static void on_event(auparse_state_t *au, auparse_cb_event_t event, void *userdata) {
        struct search *s = userdata;
        const char *v;

        if (event != AUPARSE_CB_EVENT_READY || auparse_first_record(au) <= 0)
                return;
        if (auparse_get_type(au) != AUDIT_TRUSTED_APP || !auparse_find_field(au, "doctor"))
                return;
        v = auparse_get_field_str(au);
        s->found |= v && strcmp(v, s->id) == 0;
}

/* Lines that hold the id go through libauparse, which says whether the record is whole. */
static bool parse_line(const char *line, const char *id) {
        struct search s = { .id = id };
        auparse_state_t *au;

        if (!strstr(line, id))
                return false;
        au = auparse_init(AUSOURCE_FEED, NULL);
        if (!au)
                return false;
        auparse_add_callback(au, on_event, &s, NULL);
        auparse_feed(au, line, strlen(line));
        auparse_flush_feed(au);
        auparse_destroy(au);
        return s.found;
}

/* Does the rest of @f, from *at on, have it? *at moves on over whole lines. */
static bool in_rest(FILE *f, off_t *at, const char *id) {
        char *line = NULL;
        bool found = false;
        size_t cap = 0;
        ssize_t n;

        clearerr(f);
        if (fseeko(f, *at, SEEK_SET) == 0)
                while (!found && (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n') {
                        found = parse_line(line, id);
                        *at += n;
                }
        free(line);
        return found;
}

/* Waits for it behind @at in the log at @path, and from its start in a log that auditd has begun meanwhile. */
static bool wait_for(struct doctor *d, const char *path, FILE **f, off_t at, const char *id) {
        int64_t end = doctor_until(d, FOUND_MS);

        for (;;) {
                struct stat now, open;

                if (in_rest(*f, &at, id))
                        return true;
                if (doctor_now_ms() >= end)
                        return false;
                if (stat(path, &now) == 0 && fstat(fileno(*f), &open) == 0 &&
                    now.st_ino != open.st_ino) {
                        FILE *next = fopen(path, "re");

                        if (next) {
                                fclose(*f);
                                *f = next;
                                at = 0;
                                continue;
                        }
                }
                usleep(STEP_US);
        }
}

static void there_and_back(struct doctor *d, const char *path, const char *shown, FILE **f) {
        char fields[64], id[17];
        uint64_t random;
        struct errmsg e;
        int64_t begin;
        off_t at;

        if (getrandom(&random, sizeof(random), 0) != sizeof(random) || fseeko(*f, 0, SEEK_END) < 0) {
                doctor_say(d, DOCTOR_WARNING, DOCTOR_AS_ROOT, "%s: %s", shown, strerror(errno));
                return;
        }
        at = ftello(*f);
        snprintf(id, sizeof(id), "%016llx", (unsigned long long)random);
        snprintf(fields, sizeof(fields), "op=doctor doctor=%s", id);
        begin = doctor_now_ms();
        if (d->probes->audit_write(fields, &e) < 0)
                doctor_say(d, severity(d), DOCTOR_AS_ROOT " # outside of a container", "%s", e.text);
        else if (wait_for(d, path, f, at, id))
                doctor_say(d, DOCTOR_OK, NULL, "a record was written, and found in %s after %d ms",
                           shown, (int)(doctor_now_ms() - begin));
        else
                doctor_say(d, severity(d),
                           "sudo auditctl -s && sudo grep -E 'write_logs|log_file' " AUDITD_CONF,
                           "a record was written, and is not in %s", shown);
}

void check_audit_record(struct doctor *d) {
        char shown[PATH_MAX], path[PATH_MAX];
        FILE *f;

        if (d->uid != 0) {
                doctor_say_needs_root(d, "whether a record arrives");
                return;
        }
        setting(d, "log_file", shown, sizeof(shown));
        if (!shown[0])
                strcpy(shown, AUDIT_LOG);
        f = fopen(doctor_path(d, shown, path), "re");
        if (!f) {
                doctor_say(d, severity(d), TO_INSTALL, "no audit log: %s: %s", shown, strerror(errno));
                return;
        }
        there_and_back(d, path, shown, &f);
        fclose(f);
}
