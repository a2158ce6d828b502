/*
 * getgrnam() would load the modules that nsswitch.conf names into a setuid program, and take a directory server's
 * word. So the files are read here, as a stream: a line may have any length, and nothing is allocated.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/helper.h"

#define GID 2
#define MEMBERS 3

struct look {
        const char *entry, *member;
        int field;
        size_t at;    /* how much of the word was seen */
        bool differs; /* it is not the wanted one */
        bool here;    /* this is the line of the entry */
        bool found;   /* and the member stands in it */
        int64_t gid;  /* -1: none, too large: none either */
};

/* false: the entry's line is read. */
static bool next_byte(struct look *l, char c) {
        const char *want = l->field == 0 ? l->entry : l->field == MEMBERS ? l->member : NULL;

        if (c == '\n' || c == ':' || (c == ',' && l->field == MEMBERS)) {
                bool same = want && !l->differs && want[l->at] == 0;

                if (l->field == 0)
                        l->here = same;
                else if (l->here && same)
                        l->found = true;
                if (c == '\n' && l->here)
                        return false;
                l->field = c == '\n' ? 0 : l->field + (c == ':');
                l->at = 0;
                l->differs = false;
                return true;
        }
        if (want && !l->differs)
                l->differs = c == 0 || want[l->at++] != c;
        if (l->here && l->field == GID)
                l->gid = c >= '0' && c <= '9' && l->gid < UINT32_MAX
                                 ? (l->gid < 0 ? 0 : l->gid * 10) + c - '0'
                                 : INT64_MAX;
        return true;
}

/* By its descriptor: what a path names may change between two looks. */
static int open_trusted(int etc, const char *file, uid_t owner) {
        int fd = openat(etc, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return errno == ELOOP ? -EPERM : -errno;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == owner && !(st.st_mode & 022))
                return fd;
        close(fd);
        return -EPERM;
}

int accounts_look(int etc, const char *file, uid_t owner, const char *entry, const char *member,
                  gid_t *ret_gid) {
        struct look l = { .entry = entry, .member = member, .gid = -1 };
        int fd = open_trusted(etc, file, owner);
        bool more = true;
        char block[16384];
        ssize_t n;

        if (fd < 0)
                return fd;
        while ((n = read(fd, block, sizeof(block))) > 0 && more)
                for (ssize_t i = 0; i < n && more; i++)
                        more = next_byte(&l, block[i]);
        n = n < 0 ? -errno : 0;
        close(fd);
        if (n < 0)
                return (int)n;
        if (more)
                next_byte(&l, '\n'); /* which the last line may lack */
        if (!l.here)
                return ACCOUNTS_NONE;
        if (ret_gid && (l.gid < 0 || l.gid >= UINT32_MAX)) /* (gid_t)-1 is nobody's */
                return -EBADMSG;
        if (ret_gid)
                *ret_gid = (gid_t)l.gid;
        return l.found ? ACCOUNTS_MEMBER : ACCOUNTS_THERE;
}
