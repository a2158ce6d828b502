/* The sandbox's own cgroup, read through the mount that every engine gives a container. The files are
 * opened once; a read afterwards is one pread. */
#include "agent/agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_counter(const char *root, const char *name) {
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

void cgroup_init(struct cgroup *cg, const char *root) {
        cg->version = 0;
        cg->oom_fd = open_counter(root, "memory.events");
        if (cg->oom_fd >= 0) {
                cg->version = 2;
                cg->pids_fd = open_counter(root, "pids.events");
                cg->peak_fd = open_counter(root, "memory.peak");
                return;
        }
        cg->oom_fd = open_counter(root, "memory/memory.oom_control");
        cg->pids_fd = open_counter(root, "pids/pids.events");
        cg->peak_fd = open_counter(root, "memory/memory.max_usage_in_bytes");
        if (cg->oom_fd >= 0 || cg->pids_fd >= 0)
                cg->version = 1;
}

/* The number behind @key at the start of a line, or the file's only number where @key is "". */
static uint64_t read_counter(int fd, const char *key) {
        char buf[512];
        size_t key_len = strlen(key);
        ssize_t n;

        if (fd < 0)
                return 0;
        n = pread(fd, buf, sizeof(buf) - 1, 0);
        if (n <= 0)
                return 0;
        buf[n] = '\0';
        for (char *line = buf; line && *line;) {
                if (strncmp(line, key, key_len) == 0)
                        return strtoull(line + key_len, NULL, 10);
                line = strchr(line, '\n');
                if (line)
                        line++;
        }
        return 0;
}

uint64_t cgroup_oom_kills(const struct cgroup *cg) {
        return read_counter(cg->oom_fd, "oom_kill ");
}

uint64_t cgroup_pids_refused(const struct cgroup *cg) {
        return read_counter(cg->pids_fd, "max ");
}

uint64_t cgroup_peak(const struct cgroup *cg) {
        return read_counter(cg->peak_fd, "");
}
