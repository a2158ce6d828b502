/*
 * Give up what is not needed, look who calls, record the attempt, act. To act is a loop around a look at the files:
 * success is what they say, not what the tool says. So a hundred at once end well, and one of them does the work.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper/helper.h"

#define CALLERS "hermes-sandbox" /* the group whose members may call, beside root */
#define TOOL "/usr/sbin/usermod"

static const char *const tool_argv[] = { "usermod", "-aG", GROUP, ACCOUNT, NULL };
static struct helper h = { "/etc", TOOL, tool_argv, "/dev/log", 0 };

/* As accounts_look(), for files of root. What it cannot look at is the end. */
static int look(const char *path, const char *entry, const char *member, gid_t *ret_gid) {
        int r = accounts_look(path, 0, entry, member, ret_gid);

        if (r < 0)
                exit(report(&h, EX_OSERR, "bad-file", "%s: %s", path,
                            r == -EPERM ? "it must be a plain file of root that only root can write"
                                        : strerror(-r)));
        return r;
}

/* The groups are the process's own, by which the kernel let it execute us: what a login was given, whoever gave it.
 * The file tells only the group's number. */
static bool allowed(const gid_t *groups, int n) {
        gid_t want;

        if (h.caller == 0)
                return true;
        if (look("/etc/group", CALLERS, NULL, &want) == ACCOUNTS_NONE)
                return false;
        while (n > 0)
                if (groups[--n] == want)
                        return true;
        return false;
}

/* The tool has run, and the membership is not there. */
static int failed(int status) {
        if (status == -ETIME)
                return report(&h, EX_TEMPFAIL, "deadline", TOOL " did not end in time: try again");
        if (status == -EBUSY)
                return report(&h, EX_TEMPFAIL, "locked",
                              TOOL " cannot lock or write /etc/{passwd,group}: try again");
        if (status < 0)
                return report(&h, EX_OSERR, "no-process", "cannot run " TOOL ": %s", strerror(-status));
        if (WIFSIGNALED(status))
                return report(&h, EX_OSERR, "killed", "signal %d killed " TOOL ": try again",
                              WTERMSIG(status));
        if (WEXITSTATUS(status) == 127)
                return report(&h, EX_UNAVAILABLE, "no-tool",
                              "cannot execute " TOOL ": apt install passwd");
        return report(&h, EX_OSERR, "tool-failed",
                      TOOL " left with status %d and without a new member in group " GROUP,
                      WEXITSTATUS(status));
}

/* Seconds on a clock that nobody sets. */
static time_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec;
}

static int enable(void) {
        time_t until = now() + 30; /* usermod itself waits up to 15 s for the lock */
        int status = 0;

        for (bool ran = false;; ran = true) {
                int found = look("/etc/group", GROUP, ACCOUNT, NULL);
                int left = (int)(until - now());

                if (found == ACCOUNTS_NONE)
                        return report(&h, EX_UNAVAILABLE, "no-group",
                                      "no group " GROUP ": install the engine");
                /* A member in one file alone is half a member: that tool was killed between the two. */
                if (found == ACCOUNTS_MEMBER &&
                    look("/etc/gshadow", GROUP, ACCOUNT, NULL) != ACCOUNTS_THERE)
                        return report(&h, EX_OK, ran ? "added" : "already",
                                      ACCOUNT " is in group " GROUP " %s", ran ? "now" : "already");
                if (ran && (status != -EBUSY || left <= 0))
                        return failed(status);
                if (access("/etc", W_OK) < 0)
                        return report(&h, EX_OSERR, "not-writable", "cannot write in /etc: %s",
                                      strerror(errno));
                if (ran)
                        usleep(200000);
                status = accounts_change(&h, left * 1000);
        }
}

int main(int argc, char **argv) {
        static gid_t groups[1 + NGROUPS_MAX];
        int n;

        (void)argv; /* never read: argv[0], too, is the caller's */
        if (argc < 1)
                return EX_USAGE;
        privs_prologue();
        h.caller = getuid();
        groups[0] = getgid();
        n = 1 + getgroups(NGROUPS_MAX, groups + 1);
        if (geteuid() != 0)
                return report(&h, EX_NOPERM, "not-root", "it does not run as root here: use sudo");
        if (!privs_drop())
                return report(&h, EX_OSERR, "privileges",
                              "cannot be root with CAP_CHOWN alone in this container");
        if (argc != 1)
                return report(&h, EX_USAGE, "arguments", "it takes no argument");
        if (!allowed(groups, n))
                return report(&h, EX_NOPERM, "not-in-group",
                              "only root and group " CALLERS " may run it");
        if (!report_record(&h, "docker-enable-attempt", "called", true))
                return report(&h, EX_OSERR, "unrecorded", "nothing was done");
        if (look("/etc/passwd", ACCOUNT, NULL, NULL) == ACCOUNTS_NONE)
                return report(&h, EX_UNAVAILABLE, "no-account",
                              "no account " ACCOUNT ": dpkg-reconfigure hermes-sandbox");
        return enable();
}
