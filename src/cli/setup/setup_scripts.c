/*
 * Root in a user's folder is what every symbolic link there waits for. So the work is a child's, which is the user by
 * then, for good: what he could not do himself is not done. And no component below the home folder may be a link.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_fork.h"
#include "cli/setup/setup_user.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define SCRIPT_MAX 65536

static const char *const folders[] = { ".hermes", ".hermes/scripts" };
static const char *const scripts[] = { "sandbox-daemon.sh", "sandbox-exec.sh" };

static int cannot(const char *what, const char *home, const char *name) {
        int error = errno;

        return setup_fail(EXIT_OS, "scripts: cannot %s %s/%s: %s", what, home, name,
                          error == ELOOP ? "it is a symbolic link, and none is followed there"
                                         : strerror(error));
}

static int open_beneath(int dirfd, const char *path, int flags) {
        struct open_how how = {
                .flags = (unsigned)flags | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
        };

        return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* The folder of the scripts, made where it is missing. -1 with errno; *ret_which is where it failed. */
static int open_folder(int home, const char **ret_which) {
        int fd = -1;

        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
                *ret_which = folders[i];
                fd = close_fd(fd);
                /* Its last component is never followed; those before have just been opened without a link. */
                if (mkdirat(home, folders[i], 0755) < 0 && errno != EEXIST)
                        return -1;
                fd = open_beneath(home, folders[i], O_RDONLY | O_DIRECTORY);
                if (fd < 0)
                        return -1;
        }
        return fd;
}

/* At most SCRIPT_MAX bytes of a regular file into @buf. How many, or -1 with errno. */
static ssize_t read_file(int dirfd, const char *name, char *buf) {
        _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;
        size_t len = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -1;
        if (!S_ISREG(st.st_mode)) {
                errno = EINVAL;
                return -1;
        }
        while (len < SCRIPT_MAX) {
                ssize_t n = read(fd, buf + len, SCRIPT_MAX - len);

                if (n < 0)
                        return -1;
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        return (ssize_t)len;
}

static int write_new(int dirfd, const char *name, const char *data, size_t len) {
        _cleanup_fd_ int fd = -1;

        if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
                return -1;
        fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
        if (fd < 0 || fchmod(fd, 0755) < 0 || write(fd, data, len) != (ssize_t)len || fsync(fd) < 0)
                return -1;
        return 0;
}

/* @source and @target are the folders for messages. */
static int copy_one(int from, int to, const char *name, const char *source, const char *target) {
        static char ours[SCRIPT_MAX], theirs[SCRIPT_MAX];
        char tmp[64], old[64];
        ssize_t len = read_file(from, name, ours), there;

        if (len < 0)
                return cannot("read", source, name);
        there = read_file(to, name, theirs);
        if (there < 0 && errno != ENOENT)
                return cannot("replace", target, name);
        if (there == len && memcmp(ours, theirs, (size_t)len) == 0)
                return 0;
        snprintf(tmp, sizeof(tmp), ".%s.new", name);
        snprintf(old, sizeof(old), "%s.old", name);
        if (write_new(to, tmp, ours, (size_t)len) < 0)
                return cannot("write", target, tmp);
        /* The first one that was not ours is kept; what stands there under that name already is it. */
        if (there >= 0 && linkat(to, name, to, old, 0) < 0 && errno != EEXIST)
                return cannot("keep", target, old);
        if (renameat(to, tmp, to, name) < 0)
                return cannot("replace", target, name);
        setup_say("scripts: %s/%s is there%s", target, name,
                  there >= 0 ? "; the old one is beside it" : "");
        return 0;
}

int setup_scripts_copy(const char *from, const char *home) {
        _cleanup_fd_ int from_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), home_fd = -1, to = -1;
        const char *which = "";
        char shown[4352];
        int r = 0;

        if (from_fd < 0)
                return cannot("open", from, "");
        home_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (home_fd < 0)
                return cannot("open", home, "");
        umask(022);
        to = open_folder(home_fd, &which);
        if (to < 0)
                return cannot("open", home, which);
        snprintf(shown, sizeof(shown), "%s/.hermes/scripts", home);
        for (size_t i = 0; r == 0 && i < sizeof(scripts) / sizeof(scripts[0]); i++)
                r = copy_one(from_fd, to, scripts[i], from, shown);
        return r;
}

/* Becomes the user, and proves that there is no way back. */
static int become(const struct passwd *pw) {
        if (pw->pw_uid == geteuid())
                return 0;
        if (initgroups(pw->pw_name, pw->pw_gid) < 0 ||
            setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
            setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
                return setup_fail(EXIT_OS, "scripts: cannot become %s: %s", pw->pw_name,
                                  strerror(errno));
        if (pw->pw_uid != 0 &&
            (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0 || getegid() != pw->pw_gid))
                return setup_fail(EXIT_OS, "scripts: still root: not done");
        return 0;
}

/* Who called: $SUDO_UID where root did not log in himself. */
static const struct passwd *caller(void) {
        const char *text = getenv("SUDO_UID");
        unsigned long uid;
        char *end;

        if (geteuid() != 0 || !text || !*text)
                return getpwuid(geteuid());
        errno = 0;
        uid = strtoul(text, &end, 10);
        if (errno || *end || text[0] < '0' || text[0] > '9' || uid >= (uid_t)-1)
                return NULL;
        return getpwuid((uid_t)uid);
}

int setup_scripts_install(const char *from, bool dry_run) {
        const struct passwd *pw = caller();
        int status, r;
        pid_t pid;

        if (!pw || pw->pw_dir[0] != '/')
                return setup_fail(
                        EXIT_OS,
                        "scripts: nobody knows the home folder of who called: copy them from %s", from);
        if (dry_run) {
                setup_say("scripts: would be in %s/.hermes/scripts", pw->pw_dir);
                return 0;
        }
        fflush(stdout);
        pid = cli_fork();
        if (pid == 0) {
                r = become(pw);
                _exit(r != 0 ? r : setup_scripts_copy(from, pw->pw_dir));
        }
        if (pid < 0)
                return setup_fail(EXIT_OS, "scripts: cannot fork: %s", strerror(errno));
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return setup_fail(EXIT_OS, "scripts: %s", strerror(errno));
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_OS;
}
