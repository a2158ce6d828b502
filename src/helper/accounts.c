/*
 * The account files are read here: getgrnam() would load the modules that nsswitch.conf names into a setuid program,
 * and take a directory server's word. They are written by usermod -aG, which locks them all and then reads. gpasswd -a
 * reads the group's members before it locks: who joined in between is thrown out again (tried). Both need CAP_CHOWN.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/helper.h"

enum { NAME, PASSWORD, GID, MEMBERS };
#define WORD 64 /* what a name and a number fit in */

/* A whole field, or one of the members; empty if it is too long. Returns what ended it. */
static int next_word(FILE *f, int field, char word[WORD]) {
        size_t n = 0;
        int c;

        for (; (c = getc(f)) != EOF && c != ':' && c != '\n' && (c != ',' || field != MEMBERS); n++)
                if (n < WORD)
                        word[n] = c ? (char)c : ' '; /* a nul ends no name */
        word[n < WORD ? n : 0] = 0;
        return c;
}

int accounts_look(const char *path, uid_t owner, const char *entry, const char *member, gid_t *ret_gid) {
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r = ACCOUNTS_NONE, field = NAME, end = '\n';
        unsigned long long gid = (gid_t)-1; /* nobody's */
        char word[WORD];
        struct stat st;
        FILE *f;

        if (fd < 0)
                return errno == ENOENT ? ACCOUNTS_NONE : errno == ELOOP ? -EPERM : -errno;
        /* By its descriptor: what a path names may change between two looks. */
        f = fdopen(fd, "r");
        if (!f || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != owner || (st.st_mode & 022))
                r = -EPERM;
        while (r >= 0 && end != EOF && (end != '\n' || r == ACCOUNTS_NONE)) {
                field = end == '\n' ? NAME : field + (end == ':');
                end = next_word(f, field, word);
                if (field == NAME && strcmp(word, entry) == 0)
                        r = ACCOUNTS_THERE;
                else if (r && field == GID && *word && strspn(word, "0123456789") == strlen(word))
                        gid = strtoull(word, NULL, 10);
                else if (r && field == MEMBERS && member && strcmp(word, member) == 0)
                        r = ACCOUNTS_MEMBER;
        }
        if (ferror(f))
                r = -errno;
        else if (r > 0 && ret_gid && gid >= (gid_t)-1)
                r = -EBADMSG;
        else if (r > 0 && ret_gid)
                *ret_gid = (gid_t)gid;
        fclose(f);
        return r;
}

/* What a killed tool leaves. shadow's locks are files with their owner's pid: a dead owner's are in nobody's way until
 * another process gets that pid. Copies that it has just begun have mode 0, over which not even root can write without
 * CAP_DAC_OVERRIDE. The child is not yet reaped: its pid is its own, and to others it is alive. */
static void unlock(const char *etc, pid_t pid) {
        static const char *const files[] = { "gshadow", "group", "shadow", "passwd" };
        static const char *const left[] = { "+", "-", ".lock" }; /* the lock guards the others */

        for (int i = 0; i < 4; i++) {
                char path[64], holder[32] = "";
                struct stat st;
                int fd;

                snprintf(path, sizeof(path), "%s/%s.%d", etc, files[i], (int)pid);
                unlink(path);
                snprintf(path, sizeof(path), "%s/%s.lock", etc, files[i]);
                fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (read(fd, holder, sizeof(holder) - 1) > 0 && atol(holder) == pid)
                        for (int j = 0; j < 3; j++) {
                                snprintf(path, sizeof(path), "%s/%s%s", etc, files[i], left[j]);
                                /* A whole backup stays. */
                                if (j != 1 || (lstat(path, &st) == 0 && !(st.st_mode & 0777)))
                                        unlink(path);
                        }
                close(fd);
        }
}

int accounts_change(const struct helper *h, int ms) {
        struct pollfd end = { .events = POLLIN };
        pid_t pid = fork();
        bool in_time;
        int status;

        if (pid < 0)
                return -errno;
        if (pid == 0) {
                int null = open("/dev/null", O_RDWR | O_CLOEXEC);
                sigset_t none;

                sigemptyset(&none);
                if (dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2 && setsid() > 0 &&
                    sigprocmask(SIG_SETMASK, &none, NULL) == 0)
                        execv(h->tool, (char *const *)h->tool_argv);
                _exit(127);
        }
        end.fd = pidfd_open(pid, 0);
        in_time = poll(&end, 1, ms) > 0;
        if (!in_time) {
                kill(-pid, SIGKILL); /* with all that it has started */
                kill(pid, SIGKILL);  /* it may not be in its own session yet */
                waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
        }
        unlock(h->etc, pid);
        close(end.fd);
        if (waitpid(pid, &status, 0) < 0)
                return -errno;
        if (WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 10))
                return -EBUSY;
        return in_time ? status : -ETIME;
}
