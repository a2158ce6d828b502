/*
 * Give up what is not needed, look who calls, record the attempt, act. To act is a loop around a look at the files:
 * success is what they say, not what the tool says. So a hundred at once end well, and one of them does the work.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper/helper.h"

struct caller {
        uid_t uid;
        gid_t gid, groups[NGROUPS_MAX];
        int n;
};

/* The groups are the process's own, by which the kernel let it execute us: what a login was given, whoever gave it.
 * The file tells only the group's number. */
static int allowed(const struct helper *h, int etc, const struct caller *who) {
        gid_t want;
        int r;

        if (who->uid == 0)
                return 1;
        r = accounts_look(etc, "group", h->owner, h->caller_group, NULL, &want);
        if (r <= 0)
                return r;
        for (int i = 0; i < who->n; i++)
                if (who->groups[i] == want)
                        return 1;
        return who->gid == want;
}

/* @ret_file: the last one looked at. A member only where gshadow, if it has the group, says so too: a tool killed between the two is run again. */
static int membership(const struct helper *h, int etc, const char **ret_file) {
        int r = accounts_look(etc, *ret_file = "group", h->owner, h->group, h->account, NULL), shadow;

        if (r != ACCOUNTS_MEMBER)
                return r;
        *ret_file = "gshadow";
        shadow = accounts_look(etc, "gshadow", h->owner, h->group, h->account, NULL);
        return shadow == ACCOUNTS_NONE || shadow == -ENOENT ? ACCOUNTS_MEMBER : shadow;
}

static int bad_file(const struct report *r, const char *file, int error) {
        const char *why = error == -EPERM ? "it must be a plain file of root that only root can write"
                                          : strerror(-error);

        return report_end(r, EX_OSERR, "bad-file", "%s/%s: %s", r->h->etc, file, why);
}

/* The tool has run, and the membership is not there. */
static int failed(const struct report *r, int status) {
        const char *tool = r->h->tool;

        if (status == -ETIME)
                return report_end(r, EX_TEMPFAIL, "deadline", "%s did not end in time: try again", tool);
        if (status < 0)
                return report_end(r, EX_OSERR, "no-process", "cannot run %s: %s", tool,
                                  strerror(-status));
        if (WIFSIGNALED(status))
                return report_end(r, EX_OSERR, "killed", "signal %d killed %s: try again",
                                  WTERMSIG(status), tool);
        if (WEXITSTATUS(status) == 127)
                return report_end(r, EX_UNAVAILABLE, "no-tool", "cannot execute %s: apt install passwd",
                                  tool);
        return report_end(r, EX_OSERR, "tool-failed",
                          "%s left with status %d and without a new member in group %s", tool,
                          WEXITSTATUS(status), r->h->group);
}

/* Not that it could not lock the files: those of accounts, or those of groups. usermod(8). */
static bool final(int status) {
        return status < 0 || !WIFEXITED(status) ||
               (WEXITSTATUS(status) != 1 && WEXITSTATUS(status) != 10);
}

static int enable(const struct report *r, int etc, int64_t until) {
        const struct helper *h = r->h;
        const char *file;
        int status = 0, found;

        for (bool ran = false;; ran = true) {
                found = membership(h, etc, &file);
                if (found < 0)
                        return bad_file(r, file, found);
                if (found == ACCOUNTS_NONE)
                        return report_end(r, EX_UNAVAILABLE, "no-group",
                                          "no group %s: install the engine", h->group);
                if (found == ACCOUNTS_MEMBER)
                        return report_end(r, EX_OK, ran ? "added" : "already", "%s is in group %s%s",
                                          h->account, h->group, ran ? " now" : " already");
                if (ran && final(status))
                        return failed(r, status);
                if (tool_clock_ms() >= until)
                        return report_end(r, EX_TEMPFAIL, "locked",
                                          "%s cannot lock or write %s/{passwd,group}: try again",
                                          h->tool, h->etc);
                if (faccessat(etc, ".", W_OK, 0) < 0)
                        return report_end(r, EX_OSERR, "not-writable", "cannot write in %s: %s", h->etc,
                                          strerror(errno));
                if (ran)
                        nanosleep(&(struct timespec){ .tv_nsec = h->retry_ms * 1000000L }, NULL);
                status = tool_run(h, etc, until);
        }
}

int helper_run(const struct helper *h, int argc) {
        static struct caller who; /* before this process becomes root */
        int64_t until = tool_clock_ms() + h->deadline_ms;
        struct report r;
        int etc, k;

        who.uid = getuid();
        who.gid = getgid();
        who.n = getgroups(NGROUPS_MAX, who.groups);
        report_begin(&r, h, who.uid);
        if (geteuid() != 0)
                return report_end(&r, EX_NOPERM, "not-root", "it does not run as root here: use sudo");
        if (privs_become_root() < 0 || privs_drop() < 0)
                return report_end(&r, EX_OSERR, "privileges",
                                  "cannot be root with CAP_CHOWN alone in this container");
        if (argc != 1)
                return report_end(&r, EX_USAGE, "arguments", "it takes no argument");
        etc = open(h->etc, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        k = etc < 0 ? -errno : allowed(h, etc, &who);
        if (k < 0)
                return bad_file(&r, "group", k);
        if (k == 0)
                return report_end(&r, EX_NOPERM, "not-in-group", "only root and group %s may run it",
                                  h->caller_group);
        if (report_record(&r, "docker-enable-attempt", "called", true) < 0)
                return report_end(&r, EX_OSERR, "unrecorded", "nothing was done");
        k = accounts_look(etc, "passwd", h->owner, h->account, NULL, NULL);
        if (k < 0)
                return bad_file(&r, "passwd", k);
        if (k == ACCOUNTS_NONE)
                return report_end(&r, EX_UNAVAILABLE, "no-account",
                                  "no account %s: dpkg-reconfigure hermes-sandbox", h->account);
        return enable(&r, etc, until);
}
