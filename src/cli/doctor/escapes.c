/*
 * Where the numbers come from, entry by entry: "affected" and the description of the record at cve.org, the project's own
 * advisory (GHSA-…, at github.com/opencontainers/runc or moby/moby, security/advisories) where the record has none, and
 * for Debian's versions the changelog of that very package. Debian mends old versions without a new upstream number.
 */
#include "cli/doctor/escapes.h"

#include <string.h>

#include "cli/doctor/debver.h"

#define VERSION_MAX 64

const struct escape escapes[] = {
        /* "runc through 1.0-rc6". */
        { "CVE-2019-5736",
          ESCAPE_RUNC,
          true,
          "a container overwrites the host's runc",
          { { "0", "1.0.0-rc7" } },
          { NULL } },
        /* "runc before 1.0.0-rc95", GHSA-c3xm-pvg7-gh7r; runc's changelog in Debian, 1.0.0~rc94+ds1-2. */
        { "CVE-2021-30465",
          ESCAPE_RUNC,
          true,
          "mounts that follow a symlink out of the container",
          { { "0", "1.0.0-rc95" } },
          { "1.0.0~rc94+ds1-2" } },
        /* ">=v1.0.0-rc93, < 1.1.12", GHSA-xr7r-f8xq-vfvv; changelog, 1.1.5+ds1-1+deb12u1. */
        { "CVE-2024-21626",
          ESCAPE_RUNC,
          true,
          "a working directory on the host through a leaked descriptor",
          { { "1.0.0-rc93", "1.1.12" } },
          { "1.1.5+ds1-1+deb12u1" } },
        /* "1.1.13 and earlier, as well as 1.2.0-rc2 and earlier", GHSA-jfvp-7x6p-h2pv. A sandbox whose caller has a host
         * folder within another one can try it, while one more of his is made. */
        { "CVE-2024-45310",
          ESCAPE_RUNC,
          true,
          "empty folders anywhere on the host, by a race with a mount",
          { { "0", "1.1.14" }, { "1.2.0-rc.1", "1.2.0-rc.3" } },
          { NULL } },
        /* "1.2.8, 1.3.3 and 1.4.0-rc.3", GHSA-9493-h29p-rfm2; changelog, 1.1.15+ds1-2+deb13u1. */
        { "CVE-2025-31133",
          ESCAPE_RUNC,
          true,
          "masked paths by way of a false /dev/null",
          { { "0", "1.2.8" }, { "1.3.0-rc.1", "1.3.3" }, { "1.4.0-rc.1", "1.4.0-rc.3" } },
          { "1.1.15+ds1-2+deb13u1" } },
        /* The same and ">= 1.0.0-rc3", GHSA-qw9x-cqr3-wc7r; changelog, 1.1.15+ds1-2+deb13u1. */
        { "CVE-2025-52565",
          ESCAPE_RUNC,
          true,
          "a false /dev/console",
          { { "1.0.0-rc3", "1.2.8" }, { "1.3.0-rc.1", "1.3.3" }, { "1.4.0-rc.1", "1.4.0-rc.3" } },
          { "1.1.15+ds1-2+deb13u1" } },
        /* The same three versions, GHSA-cgrx-mc8f-2prm. */
        { "CVE-2025-52881",
          ESCAPE_RUNC,
          true,
          "writes to /proc that are led elsewhere",
          { { "0", "1.2.8" }, { "1.3.0-rc.1", "1.3.3" }, { "1.4.0-rc.1", "1.4.0-rc.3" } },
          { NULL } },

        /* "Docker 19.03.x before 19.03.1". */
        { "CVE-2019-14271",
          ESCAPE_ENGINE,
          false,
          "docker cp loads a library of the container",
          { { "19.03.0", "19.03.1" } },
          { NULL } },
        /* The last affected ones in the record, of 26.1 in GO-2024-3005 at osv.dev; docker.io's changelog,
         * 20.10.24+dfsg1-1+deb12u1. */
        { "CVE-2024-41110",
          ESCAPE_ENGINE,
          false,
          "a request without a body passes an authorization plugin",
          { { "19.03.0", "19.03.16" },
            { "20.0.0", "20.10.28" },
            { "23.0.0", "23.0.15" },
            { "24.0.0", "24.0.10" },
            { "25.0.0", "25.0.6" },
            { "26.0.0", "26.0.3" },
            { "26.1.0", "26.1.5" },
            { "27.0.0", "27.1.1" } },
          { "20.10.24+dfsg1-1+deb12u1" } },
        /* "< 29.3.1", GHSA-x744-4wpc-v9h2; changelog, 26.1.5+dfsg1-9+deb13u1. */
        { "CVE-2026-34040",
          ESCAPE_ENGINE,
          false,
          "an oversized request passes an authorization plugin",
          { { "0", "29.3.1" } },
          { "26.1.5+dfsg1-9+deb13u1" } },
        /* "< 29.5.1", GHSA-x86f-5xw2-fm2r. */
        { "CVE-2026-41567",
          ESCAPE_ENGINE,
          false,
          "docker cp of a compressed archive runs a program of the container as root",
          { { "0", "29.5.1" } },
          { NULL } },
        /* "< 29.5.1", GHSA-vp62-88p7-qqf5; changelog, 26.1.5+dfsg1-9+deb13u1. */
        { "CVE-2026-41568",
          ESCAPE_ENGINE,
          false,
          "docker cp makes files anywhere on the host",
          { { "0", "29.5.1" } },
          { "26.1.5+dfsg1-9+deb13u1" } },
        /* "< 29.5.1", GHSA-rg2x-37c3-w2rh; changelog, 26.1.5+dfsg1-9+deb13u1. */
        { "CVE-2026-42306",
          ESCAPE_ENGINE,
          false,
          "docker cp mounts a volume anywhere on the host",
          { { "0", "29.5.1" } },
          { "26.1.5+dfsg1-9+deb13u1" } },
};
const size_t n_escapes = sizeof(escapes) / sizeof(escapes[0]);

/* Upstream's "v1.0.0-rc93" and "1.1.5+ds1" in the form in which debver_compare() has the order right: "1.0.0~rc93",
 * "1.1.5". False where it is no version. */
static bool normal(const char *s, char buf[VERSION_MAX]) {
        size_t n = 0;

        s += *s == 'v';
        if (*s < '0' || *s > '9')
                return false;
        for (; *s && *s != '+'; s++) {
                bool pre = *s == '-' &&
                           (strncmp(s + 1, "rc", 2) == 0 || strncmp(s + 1, "beta", 4) == 0 ||
                            strncmp(s + 1, "alpha", 5) == 0);

                if (*s == '-' && !pre)
                        break;
                if (n + 1 == VERSION_MAX)
                        return false;
                buf[n++] = pre ? '~' : *s;
        }
        buf[n] = '\0';
        return true;
}

static int compare(const char *version, const char *upstream) {
        char buf[VERSION_MAX];

        return normal(upstream, buf) ? debver_compare(version, buf) : 1;
}

/* 1: the package has the fix, -1: it is of a series that got it in *ret_fixed, 0: nothing is known. */
static int in_debian(const struct escape *x, const char *package, const char **ret_fixed) {
        for (size_t i = 0; i < sizeof(x->debian) / sizeof(x->debian[0]) && x->debian[i]; i++) {
                size_t n = debver_upstream(x->debian[i]);

                if (n != debver_upstream(package) || strncmp(x->debian[i], package, n) != 0)
                        continue;
                *ret_fixed = x->debian[i];
                return debver_compare(package, x->debian[i]) >= 0 ? 1 : -1;
        }
        return 0;
}

enum escape_verdict escape_judge(const struct escape *x, const char *version, const char *package,
                                 const char **ret_fixed) {
        const struct escape_range *r = x->ranges;
        char mine[VERSION_MAX];
        int known;

        if (!normal(version, mine))
                return ESCAPE_UNKNOWN;
        while (r->fixed && !(compare(mine, r->from) >= 0 && compare(mine, r->fixed) < 0))
                r++;
        if (!r->fixed)
                return ESCAPE_FIXED;
        *ret_fixed = r->fixed;
        known = package ? in_debian(x, package, ret_fixed) : 0;
        if (known > 0)
                return ESCAPE_FIXED;
        return known == 0 && package ? ESCAPE_UNSURE : ESCAPE_OPEN;
}
