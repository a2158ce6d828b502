/* What the agent sees of its confinement. It is the sandbox's own word, for status: what the engine was
 * asked for and what the kernel says inside can differ, and a person wants to know. */
#include "agent/agent.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct text {
        char *p;
        size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...) {
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(t->p, t->left, fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t)n >= t->left) {
                *t->p = '\0'; /* a line that does not fit whole is left out */
                return;
        }
        t->p += n;
        t->left -= (size_t)n;
}

/* The file's first @cap - 1 bytes; "" when there is none. */
static void slurp(const char *path, char *buf, size_t cap) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        ssize_t n = -1;

        if (fd >= 0) {
                n = read(fd, buf, cap - 1);
                close(fd);
        }
        buf[n > 0 ? n : 0] = '\0';
}

static void say_line(struct text *t, const char *key, const char *value) {
        size_t n = strcspn(value, "\n");

        if (n > 0)
                say(t, "%s=%.*s\n", key, (int)n, value);
}

static void say_status(struct text *t) {
        static const struct {
                const char *field, *key;
        } fields[] = {
                { "\nNoNewPrivs:\t", "no_new_privs" },
                { "\nSeccomp:\t", "seccomp" },
                { "\nSeccomp_filters:\t", "seccomp_filters" },
                { "\nCapBnd:\t", "cap_bounding" },
        };
        char buf[4096];

        slurp("/proc/self/status", buf, sizeof(buf));
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
                const char *p = strstr(buf, fields[i].field);

                if (p)
                        say_line(t, fields[i].key, p + strlen(fields[i].field));
        }
}

/* The names of the interfaces besides lo, or "none". */
static void say_network(struct text *t) {
        char buf[4096], names[256] = "";
        size_t len = 0;

        slurp("/proc/net/dev", buf, sizeof(buf));
        for (char *line = buf; (line = strchr(line, '\n'));) {
                char *colon;

                line++;
                line += strspn(line, " ");
                colon = strpbrk(line, ":|\n");
                if (!colon || *colon != ':' || strncmp(line, "lo:", 3) == 0)
                        continue;
                if (len < sizeof(names))
                        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s",
                                                len ? "," : "", (int)(colon - line), line);
        }
        say(t, "network=%s\n", names[0] ? names : "none");
}

static void say_limits(struct text *t, const struct cgroup *cg) {
        static const struct {
                const char *key, *v1, *v2;
        } files[] = {
                { "memory_max", "memory/memory.limit_in_bytes", "memory.max" },
                { "memory_reserve", "memory/memory.soft_limit_in_bytes", "memory.low" },
                { "swap_max", "memory/memory.memsw.limit_in_bytes", "memory.swap.max" },
                { "pids_max", "pids/pids.max", "pids.max" },
                { "cpu_max", "cpu/cpu.cfs_quota_us", "cpu.max" },
        };
        char path[256], buf[128];

        say(t, "cgroup=%d\n", cg->version);
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                snprintf(path, sizeof(path), "/sys/fs/cgroup/%s",
                         cg->version == 2 ? files[i].v2 : files[i].v1);
                slurp(path, buf, sizeof(buf));
                say_line(t, files[i].key, buf);
        }
}

void probe(char *buf, size_t cap, const struct cgroup *cg, const char *no_scrub) {
        struct text t = { buf, cap };
        struct statvfs root;
        char s[256];
        unsigned inside = 0, outside = 0, count = 0;

        buf[0] = '\0';
        say_status(&t);
        slurp("/proc/self/attr/apparmor/current", s, sizeof(s));
        if (!s[0])
                slurp("/proc/self/attr/current", s, sizeof(s));
        say_line(&t, "apparmor", s[0] ? s : "absent");
        if (statvfs("/", &root) == 0)
                say(&t, "rootfs=%s\n", root.f_flag & ST_RDONLY ? "read-only" : "writable");
        say_network(&t);
        slurp("/proc/self/uid_map", s, sizeof(s));
        if (sscanf(s, "%u %u %u", &inside, &outside, &count) == 3)
                say(&t, "userns=%s\n", outside == 0 && count == ~0u ? "host" : "private");
        say_limits(&t, cg);
        say(&t, "scrub=%s%s\n", no_scrub[0] ? "no: " : "yes", no_scrub);
}
