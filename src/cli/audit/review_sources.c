/* Debian's auditd.conf can be read by root alone, its log also by the group adm: the latter find the log
 * where auditd's own default has it. */
#include "cli/audit/review_sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of "log_file = PATH" into @buf; false: no such file, or no such line. */
static bool configured(const char *conf, char *buf, size_t cap) {
        FILE *f = fopen(conf, "re");
        char line[PATH_MAX + 64], *save, *word;
        bool found = false;

        if (!f)
                return false;
        while (!found && fgets(line, sizeof(line), f)) {
                word = strtok_r(line, " \t=\n", &save);
                if (!word || strcasecmp(word, "log_file") != 0)
                        continue;
                word = strtok_r(NULL, " \t=\n", &save);
                found = word && snprintf(buf, cap, "%s", word) < (int)cap;
        }
        fclose(f);
        return found;
}

static int opened(struct review_files *files, int r, const char *what, const char *mend,
                  struct errmsg *e) {
        char problem[ERRMSG_MAX];

        if (r == 0)
                return 0;
        review_files_done(files);
        snprintf(problem, sizeof(problem), "%s", e->text);
        return errmsg_set(e, r, "cannot read %s: %.300s: %s", what, problem, mend);
}

static const char *to_mend(int r) {
        return r == -EACCES || r == -EPERM
                       ? "run it as root, or as a member of the group adm (sudo usermod -aG adm USER, log in anew; "
                         "auditd.conf: log_group = adm)"
                       : "see --log FILE";
}

int review_sources_log(const struct review_options *o, const struct review_paths *p,
                       struct review_files *files, struct errmsg *e) {
        char path[PATH_MAX];
        int r = 0;

        for (size_t i = 0; i < o->n_logs && r == 0; i++)
                r = review_files_add(files, o->logs[i], true, e);
        if (o->n_logs > 0)
                return opened(files, r, "the log", to_mend(r), e);
        if (!configured(p->auditd_conf, path, sizeof(path)))
                snprintf(path, sizeof(path), "%s", p->audit_log);
        r = review_files_add_rotated(files, path, e);
        if (r == -ENOENT) {
                review_files_done(files);
                return errmsg_set(
                        e, 1,
                        "no kernel audit trail: %.200s does not exist: is auditd installed and "
                        "running? (apt install auditd; --log FILE for a log from elsewhere)",
                        path);
        }
        return opened(files, r, "the kernel's audit trail", to_mend(r), e);
}

int review_sources_trail(const struct review_options *o, const struct review_paths *p,
                         struct review_files *files, struct errmsg *e) {
        const char *path = o->trail ? o->trail : p->trail;
        int r = review_files_add_rotated(files, path, e);

        if (r == -ENOENT)
                return errmsg_set(e, 1, "no readable trail: %.200s does not exist", path);
        return opened(files, r, "the readable trail", r == -EACCES ? to_mend(r) : "see --trail FILE", e);
}

int review_sources_whose(const struct review_options *o, const struct review_paths *p,
                         struct review_source *ret, struct errmsg *e) {
        const char *account = o->account ? o->account : p->account;

        *ret = (struct review_source){ .manager = o->manager ? o->manager : p->manager,
                                       .helper = p->helper };
        if (review_uid(account, &ret->account) < 0)
                return errmsg_set(
                        e, -ENOENT,
                        "no account %.100s, so none of the log's records counts as the manager's: "
                        "give its uid in the log's machine as --account",
                        account);
        return 0;
}
