/*
 * What a container uses now, out of the files of its control group: /proc/PID/cgroup of its init process says which one,
 * /proc/self/mountinfo where that is. cgroup v1, v2, and both at once (hybrid: a controller is in one of the two).
 * All of these files are readable for everybody, unless a unit or a hidepid= hides them.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* What cannot be read, or has no limit. */
#define USAGE_UNKNOWN UINT64_MAX
#define USAGE_NO_LIMIT (UINT64_MAX - 1)

struct usage {
        uint64_t cpu_us; /* that all its processes have used */
        uint64_t memory_bytes,
                memory_max_bytes; /* without what the kernel can drop at once: inactive file pages */
        uint64_t pids, pids_max;
};

/* Where they are read: "/proc", and "" before the mount points that stand in mountinfo. Tests have folders of their
 * own. */
struct usage_roots {
        const char *proc, *prefix;
};
extern const struct usage_roots usage_roots_system;

/* Of the process @pid, whose control group has @container in its name: another process may have got the pid. Fills all
 * of *ret, what is not known with USAGE_UNKNOWN. */
void usage_read(const struct usage_roots *roots, pid_t pid, const char *container, struct usage *ret);

/* The share of a CPU between two looks at the same sandbox. */
struct usage_sample {
        uint64_t cpu_us, at_us; /* all 0: never looked at */
};
/* Per mille of one CPU since @s was taken, or USAGE_UNKNOWN the first time. @s becomes this look, unless it is younger
 * than a second: so several that ask all the time do not take each other's time away. */
uint64_t usage_cpu_per_mille(struct usage_sample *s, uint64_t cpu_us, uint64_t now_us);
