#include "cli/cli_script.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/proto.h"

int cli_script_read(const char *path, const char **ret, struct errmsg *e) {
        static char script[PROTO_EXEC_MAX];
        _cleanup_fd_ int opened = -1;
        int fd = STDIN_FILENO;
        size_t len = 0;
        ssize_t n;

        if (strcmp(path, "-") != 0) {
                fd = opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                if (fd < 0)
                        return errmsg_set(e, -errno, "exec: --script %s: %s", path, strerror(errno));
        }
        while ((n = read(fd, script + len, sizeof(script) - len)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errmsg_set(e, -errno, "exec: --script %s: %s", path, strerror(errno));
                len += (size_t)n;
                if (len == sizeof(script))
                        return errmsg_set(e, -EFBIG, "exec: --script %s: longer than %u bytes", path,
                                          PROTO_EXEC_MAX - 1);
        }
        if (memchr(script, '\0', len))
                return errmsg_set(e, -EINVAL, "exec: --script %s: holds a NUL byte, expected text",
                                  path);
        script[len] = '\0';
        *ret = script;
        return 0;
}
