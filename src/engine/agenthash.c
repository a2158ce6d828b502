#include "engine/agenthash.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"

_Static_assert(CONFIG_RECIPE == SHA256_DIGEST_SIZE, "a recipe is a SHA-256");

int agenthash_file(const char *path, uint8_t ret[CONFIG_RECIPE], struct errmsg *e) {
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct sha256_ctx ctx;
        uint8_t buf[16384];
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0)
                return errmsg_set(e, -errno, "agent binary %s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return errmsg_set(e, -EINVAL, "agent binary %s: not a regular file", path);
        sha256_init(&ctx);
        while ((n = read(fd, buf, sizeof(buf))) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errmsg_set(e, -errno, "agent binary %s: %s", path, strerror(errno));
                sha256_update(&ctx, (size_t)n, buf);
        }
        sha256_digest(&ctx, CONFIG_RECIPE, ret);
        return 0;
}
