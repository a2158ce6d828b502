/* debver.h and escapes.h: the order of versions, and which versions have which known escape. */
#include "unit/doctor_rig.h"

#include "cli/doctor/debver.h"
#include "cli/doctor/escapes.h"

static void order(void **state) {
        /* Each is older than the one below it. */
        static const char *const sorted[] = {
                "1.0.0~rc6+dfsg1-2",
                "1.0.0~rc93",
                "1.0.0~rc93+ds1-5",
                "1.0.0",
                "1.0.0+ds1-1",
                "1.1.5+ds1-1",
                "1.1.5+ds1-1+deb12u1",
                "1.1.5+ds1-1+deb12u1+b2",
                "1.1.5+ds1-1+deb12u2",
                "1.1.5+ds1-1+deb12u10",
                "1.1.12+ds1-1",
                "1.1.12+ds1-5.1",
                "1.1.15",
                "1.10",
                "2a",
                "2+",
                "1:0.1",
                "2:0~~",
                "2:0~",
                "2:0",
        };
        size_t n = sizeof(sorted) / sizeof(sorted[0]);

        (void)state;
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++) {
                        int r = debver_compare(sorted[i], sorted[j]);

                        if ((r > 0) - (r < 0) != (i > j) - (i < j))
                                fail_msg("%s and %s: %d", sorted[i], sorted[j], r);
                }
        assert_int_equal(0, debver_compare("1.0", "1.00"));
        assert_int_equal(0, debver_compare("0:1.0-0", "1.0"));
        assert_int_equal(9, debver_upstream("1.1.5+ds1-1"));
        assert_int_equal(3, debver_upstream("1.1"));
}

static void installed(void **state) {
        char buf[64];

        (void)state;
        assert_int_equal(-ENOENT, debver_installed(&rig.d, "runc", buf, sizeof(buf)));
        rig_put("/var/lib/dpkg/status",
                "Package: runc-doc\nStatus: install ok installed\nVersion: 9\n\n"
                "Package: runc\nStatus: install ok installed\nPriority: optional\n"
                "Version: 1.1.5+ds1-1+deb12u1\n\n"
                "Package: gone\nStatus: deinstall ok config-files\nVersion: 3\n\n");
        assert_int_equal(0, debver_installed(&rig.d, "runc", buf, sizeof(buf)));
        assert_string_equal("1.1.5+ds1-1+deb12u1", buf);
        assert_int_equal(-ENOENT, debver_installed(&rig.d, "gone", buf, sizeof(buf)));
        assert_int_equal(-ENOENT, debver_installed(&rig.d, "docker.io", buf, sizeof(buf)));
}

static const struct escape *find(const char *id) {
        for (size_t i = 0; i < n_escapes; i++)
                if (strcmp(escapes[i].id, id) == 0)
                        return &escapes[i];
        fail_msg("there is no %s", id);
        return NULL;
}

static void judged(void **state) {
        static const struct {
                const char *id, *version, *package;
                enum escape_verdict verdict;
                const char *fixed;
        } cases[] = {
                { "CVE-2019-5736", "1.0.0-rc6", NULL, ESCAPE_OPEN, "1.0.0-rc7" },
                { "CVE-2019-5736", "1.0.0-rc7", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2019-5736", "v1.0.0-rc6+dev", NULL, ESCAPE_OPEN, "1.0.0-rc7" },
                { "CVE-2019-5736", "1.1.5+ds1", "1.1.5+ds1-1+deb12u1", ESCAPE_FIXED, NULL },
                { "CVE-2021-30465", "1.0.0~rc94+ds1", "1.0.0~rc94+ds1-2", ESCAPE_FIXED, NULL },
                { "CVE-2021-30465", "1.0.0-rc94", NULL, ESCAPE_OPEN, "1.0.0-rc95" },
                /* Not before it came in. */
                { "CVE-2024-21626", "1.0.0-rc92", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2024-21626", "1.0.0-rc93", NULL, ESCAPE_OPEN, "1.1.12" },
                { "CVE-2024-21626", "1.1.11", NULL, ESCAPE_OPEN, "1.1.12" },
                { "CVE-2024-21626", "1.1.12", NULL, ESCAPE_FIXED, NULL },
                /* Debian 12: mended without another number. */
                { "CVE-2024-21626", "1.1.5+ds1", "1.1.5+ds1-1+deb12u1", ESCAPE_FIXED, NULL },
                { "CVE-2024-21626", "1.1.5+ds1", "1.1.5+ds1-1+deb12u2", ESCAPE_FIXED, NULL },
                { "CVE-2024-21626", "1.1.5+ds1", "1.1.5+ds1-1", ESCAPE_OPEN, "1.1.5+ds1-1+deb12u1" },
                /* Nothing is known of this one, which is newer than Debian 12's. */
                { "CVE-2024-21626", "1.1.10+ds1", "1.1.10+ds1-1", ESCAPE_UNSURE, "1.1.12" },
                { "CVE-2024-45310", "1.1.13", NULL, ESCAPE_OPEN, "1.1.14" },
                { "CVE-2024-45310", "1.1.15+ds1", "1.1.15+ds1-2+b4", ESCAPE_FIXED, NULL },
                { "CVE-2024-45310", "1.2.0-rc.2", NULL, ESCAPE_OPEN, "1.2.0-rc.3" },
                { "CVE-2024-45310", "1.2.0", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2025-31133", "1.2.7", NULL, ESCAPE_OPEN, "1.2.8" },
                { "CVE-2025-31133", "1.2.8", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2025-31133", "1.3.0-rc.1", NULL, ESCAPE_OPEN, "1.3.3" },
                { "CVE-2025-31133", "1.3.2", NULL, ESCAPE_OPEN, "1.3.3" },
                { "CVE-2025-31133", "1.3.3", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2025-31133", "1.4.0-rc.2", NULL, ESCAPE_OPEN, "1.4.0-rc.3" },
                { "CVE-2025-31133", "1.4.0", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2025-31133", "1.1.15+ds1", "1.1.15+ds1-2+b4", ESCAPE_OPEN,
                  "1.1.15+ds1-2+deb13u1" },
                { "CVE-2025-31133", "1.1.15+ds1", "1.1.15+ds1-2+deb13u1", ESCAPE_FIXED, NULL },
                { "CVE-2025-52565", "1.0.0-rc2", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2025-52565", "1.1.15+ds1", "1.1.15+ds1-2+deb13u1", ESCAPE_FIXED, NULL },
                { "CVE-2025-52881", "1.1.15+ds1", "1.1.15+ds1-2+deb13u1", ESCAPE_UNSURE, "1.2.8" },
                { "CVE-2025-52881", "1.2.7", NULL, ESCAPE_OPEN, "1.2.8" },
                { "CVE-2019-14271", "19.03.0", NULL, ESCAPE_OPEN, "19.03.1" },
                { "CVE-2019-14271", "18.09.9", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2024-41110", "20.10.24+dfsg1", "20.10.24+dfsg1-1+deb12u1+b6", ESCAPE_FIXED,
                  NULL },
                { "CVE-2024-41110", "20.10.24+dfsg1", "20.10.24+dfsg1-1", ESCAPE_OPEN,
                  "20.10.24+dfsg1-1+deb12u1" },
                { "CVE-2024-41110", "25.0.5", NULL, ESCAPE_OPEN, "25.0.6" },
                { "CVE-2024-41110", "26.0.3", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2024-41110", "26.1.4", NULL, ESCAPE_OPEN, "26.1.5" },
                { "CVE-2024-41110", "27.1.1", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2026-34040", "29.3.0", NULL, ESCAPE_OPEN, "29.3.1" },
                { "CVE-2026-34040", "29.3.1", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2026-41567", "29.5.0", NULL, ESCAPE_OPEN, "29.5.1" },
                { "CVE-2026-41567", "28.5.2+dfsg4", "28.5.2+dfsg4-5", ESCAPE_UNSURE, "29.5.1" },
                { "CVE-2026-41568", "26.1.5+dfsg1", "26.1.5+dfsg1-9+deb13u1", ESCAPE_FIXED, NULL },
                { "CVE-2026-42306", "26.1.5+dfsg1", "26.1.5+dfsg1-9", ESCAPE_OPEN,
                  "26.1.5+dfsg1-9+deb13u1" },
                { "CVE-2026-42306", "29.5.1", NULL, ESCAPE_FIXED, NULL },
                { "CVE-2026-42306", "", NULL, ESCAPE_UNKNOWN, NULL },
                { "CVE-2026-42306", "library-import", NULL, ESCAPE_UNKNOWN, NULL },
                { "CVE-2026-42306",
                  "1111111111111111111111111111111111111111111111111111111111111111111111111111111",
                  NULL, ESCAPE_UNKNOWN, NULL },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *fixed = NULL;
                enum escape_verdict v = escape_judge(find(cases[i].id), cases[i].version,
                                                     cases[i].package, &fixed);

                if (v != cases[i].verdict)
                        fail_msg("%s %s: %d", cases[i].id, cases[i].version, v);
                if (cases[i].fixed)
                        assert_string_equal(cases[i].fixed, fixed);
        }
}

/* A range that ends before it begins, or a fix that is itself affected, would never be noticed. */
static void table(void **state) {
        (void)state;
        for (size_t i = 0; i < n_escapes; i++) {
                const struct escape *x = &escapes[i];
                unsigned year, number;
                const char *fixed;

                assert_int_equal(2, sscanf(x->id, "CVE-%4u-%u", &year, &number));
                assert_non_null(x->ranges[0].fixed);
                for (size_t j = 0; j < 10 && x->ranges[j].fixed; j++) {
                        const char *from = strcmp(x->ranges[j].from, "0") == 0 ? "0.1"
                                                                               : x->ranges[j].from;

                        assert_int_equal(ESCAPE_OPEN, escape_judge(x, from, NULL, &fixed));
                        assert_int_equal(ESCAPE_FIXED,
                                         escape_judge(x, x->ranges[j].fixed, NULL, &fixed));
                }
                for (size_t j = 0; j < 4 && x->debian[j]; j++)
                        assert_int_equal(ESCAPE_FIXED,
                                         escape_judge(x, x->debian[j], x->debian[j], &fixed));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(order),
                RIG_TEST(installed),
                cmocka_unit_test(judged),
                cmocka_unit_test(table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
