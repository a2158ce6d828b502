/* review_verify.h: trails that the manager's own code wrote, each manipulation of them, and what is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/audit/review_verify.h"
#include "manager/trail.h"

#define LINES 12
#define LATER INT64_C(4000000000000) /* no line of today is fresh then */

static char dir[64], path[128];
static struct review_stamps stamps;

static int setup(void **state) {
        (void)state;
        snprintf(dir, sizeof(dir), "/tmp/test-verify-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(path, sizeof(path), "%s/log", dir);
        return 0;
}

static int teardown(void **state) {
        char name[160];

        (void)state;
        review_stamps_done(&stamps);
        for (int i = 0; i < 9; i++) {
                snprintf(name, sizeof(name), i ? "%s.%d" : "%s", path, i);
                unlink(name);
        }
        return rmdir(dir);
}

/* --- a trail and the kernel's records of it -------------------------------------------------------- */

static void record(enum review_op op, uint64_t seq, const char *hash) {
        struct review_record r = { .op = op, .stamped = true, .seq = seq, .time_ms = 1000 };

        if (seq > 0)
                memcpy(r.hash, hash, sizeof(r.hash));
        assert_int_equal(review_stamps_add(&stamps, &r), 0);
}

/* A life of the manager: its trail-open record and @n lines, of which every fourth, a proof, has none. */
static void write_lines(uint32_t backups, uint64_t max, unsigned n) {
        struct trail_stamp s;
        struct trail *t;
        struct errmsg e;

        assert_int_equal(trail_open(path, backups, max, &t, &e), 0);
        trail_tip(t, &s);
        record(REVIEW_TRAIL_OPEN, s.seq, s.hash);
        for (unsigned i = 1; i <= n; i++) {
                assert_int_equal(
                        trail_write(t, i % 4 == 0 ? "SCRUB ok=true dur=0ms" : "POOL HIT=true rc=0", &s),
                        0);
                if (i % 4 != 0)
                        record(REVIEW_EXEC_END, s.seq, s.hash);
        }
        trail_free(t);
}

/* --- what is done to it ----------------------------------------------------------------------------- */

static char *lines[64];
static int n_lines;
static char text[65536];

static void load(void) {
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, text, sizeof(text) - 1);

        assert_true(n > 0);
        close(fd);
        text[n] = 0;
        n_lines = 0;
        for (char *p = strtok(text, "\n"); p; p = strtok(NULL, "\n"))
                lines[n_lines++] = p;
}

static void store(void) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        for (int i = 0; i < n_lines; i++)
                fprintf(f, "%s\n", lines[i]);
        fclose(f);
}

static void drop(int i, int n) {
        memmove(lines + i, lines + i + n, (size_t)(n_lines - i - n) * sizeof(*lines));
        n_lines -= n;
}

static void insert(int i, char *line) {
        memmove(lines + i + 1, lines + i, (size_t)(n_lines - i) * sizeof(*lines));
        lines[i] = line;
        n_lines++;
}

/* --- what is found ------------------------------------------------------------------------------- */

static char found_text[2048];

static void found(void *userdata, const struct review_finding *f) {
        size_t len = strlen(found_text);

        (void)userdata;
        assert_null(strchr(f->text, '\n'));
        snprintf(found_text + len, sizeof(found_text) - len, "%s%s:%llu#%llu", len ? " " : "", f->kind,
                 (unsigned long long)f->line, (unsigned long long)f->seq);
}

static struct review_verdict verify(const struct review_stamps *k, int64_t now) {
        struct review_files files = { 0 };
        struct review_verify v = { .stamps = k, .files = &files, .now_ms = now, .found = found };
        struct review_verdict verdict;
        struct errmsg e;

        found_text[0] = 0;
        if (review_files_add_rotated(&files, path, &e) < 0)
                v.missing = path;
        assert_int_equal(review_verify_run(&v, &verdict, &e), 0);
        review_files_done(&files);
        return verdict;
}

/* "kind:LINE#SEQ …" with the kernel's trail, and without it. */
static void expect(const char *with, const char *without) {
        verify(&stamps, LATER);
        assert_string_equal(found_text, with);
        verify(NULL, LATER);
        assert_string_equal(found_text, without);
}

static void test_clean(void **state) {
        struct review_verdict v;

        (void)state;
        write_lines(3, 1 << 20, LINES);
        write_lines(3, 1 << 20, LINES);
        expect("", "");
        v = verify(&stamps, LATER);
        assert_int_equal(v.findings, 0);
        assert_int_equal(v.lines, 2 * LINES);
        assert_int_equal(v.first, 1);
        assert_int_equal(v.last, 2 * LINES);
        assert_int_equal(v.agreed, 2 * (LINES - LINES / 4) + 1); /* and the tip that trail-open names */
}

static void test_older_lines(void **state) {
        FILE *f = fopen(path, "w");

        (void)state;
        fputs("2026-06-08T05:02:59Z POOL-STOP containers=3\nwhatever\n", f);
        fclose(f);
        write_lines(3, 1 << 20, LINES);
        expect("", "");
        load();
        lines[1][0] = 'W';
        store();
        expect("changed:3#1", "changed:3#1");
        drop(1, 1);
        store();
        expect("changed:2#1", "changed:2#1");
        drop(0, 1);
        store();
        expect("changed:1#1", "changed:1#1");
}

static void test_missing(void **state) {
        (void)state;
        write_lines(3, 1 << 20, LINES);
        load();
        drop(4, 1);
        store();
        expect("missing:5#5", "missing:5#5");
        drop(6, 2);
        store();
        expect("missing:5#5 missing:7#8", "missing:5#5 missing:7#8");
}

static void test_changed(void **state) {
        (void)state;
        write_lines(3, 1 << 20, LINES);
        load();
        strstr(lines[4], "rc=0")[3] = '7';
        store();
        expect("changed:5#5", "changed:5#5");
        /* A proof has no record of its own: the hash in the next line shows it. */
        load();
        strstr(lines[4], "rc=7")[3] = '0';
        strstr(lines[7], "dur=0")[4] = '9';
        store();
        expect("changed:8#8", "changed:8#8");
        /* The last line: only the kernel's trail has its hash. */
        load();
        strstr(lines[7], "dur=9")[4] = '0';
        drop(LINES - 1, 1);
        strstr(lines[LINES - 2], "rc=0")[3] = '7';
        store();
        expect("changed:11#11", "");
        /* Its hash of the line before. */
        load();
        strstr(lines[LINES - 2], "rc=7")[3] = '0';
        lines[5][strlen(lines[5]) - 1] = lines[5][strlen(lines[5]) - 1] == '0' ? '1' : '0';
        store();
        /* Without the kernel's trail it may have been either of two lines, at each of the two breaks. */
        expect("changed:6#6", "changed:5#5 changed:6#6");
        /* Its end: no line of the trail any more. */
        load();
        lines[5][strlen(lines[5]) - 1] = 'x';
        store();
        expect("changed:6#6", "changed:6#6");
}

static void test_rewritten(void **state) {
        struct trail_stamp s;
        struct trail *t;
        struct errmsg e;

        (void)state;
        /* All from line 5 on, hashes and all: what the manager's account can do. */
        write_lines(3, 1 << 20, LINES);
        load();
        drop(4, LINES - 4);
        store();
        assert_int_equal(trail_open(path, 3, 1 << 20, &t, &e), 0);
        for (int i = 4; i < LINES; i++)
                assert_int_equal(trail_write(t, "POOL HIT=true rc=9", &s), 0);
        trail_free(t);
        expect("changed:5#5 unrecorded:8#8 changed:9#9 unrecorded:12#12", "");
}

static void test_reordered(void **state) {
        char *line;

        (void)state;
        write_lines(3, 1 << 20, LINES);
        load();
        line = lines[4];
        lines[4] = lines[5];
        lines[5] = line;
        store();
        expect("reordered:6#5", "reordered:6#5");
        load();
        line = lines[2];
        drop(2, 1);
        insert(8, line);
        store();
        verify(&stamps, LATER);
        assert_non_null(strstr(found_text, "reordered:9#3"));
}

static void test_inserted(void **state) {
        char again[512];

        (void)state;
        write_lines(3, 1 << 20, LINES);
        load();
        insert(4, (char[]){ "2026-06-08T05:02:59Z POOL HIT=true rc=0 cmd=\"id\"" });
        store();
        expect("inserted:5#0", "inserted:5#0");
        load();
        drop(4, 1);
        snprintf(again, sizeof(again), "%s", lines[2]);
        insert(6, again);
        store();
        expect("inserted:7#3", "inserted:7#3");
        strstr(again, "rc=0")[3] = '7';
        store();
        verify(NULL, LATER);
        assert_string_equal(found_text, "inserted:7#3");
        /* At the end, well chained, and not in the kernel's trail. */
        load();
        drop(6, 1);
        store();
        {
                struct trail_stamp s;
                struct trail *t;
                struct errmsg e;

                assert_int_equal(trail_open(path, 3, 1 << 20, &t, &e), 0);
                assert_int_equal(trail_write(t, "POOL HIT=true rc=0", &s), 0);
                trail_free(t);
        }
        expect("unrecorded:13#13", "");
}

static void test_fresh(void **state) {
        struct trail_stamp s;
        struct trail *t;
        struct errmsg e;

        (void)state;
        write_lines(3, 1 << 20, 3);
        assert_int_equal(trail_open(path, 3, 1 << 20, &t, &e), 0);
        assert_int_equal(trail_write(t, "POOL HIT=true rc=0", &s), 0);
        trail_free(t);
        /* Its record may be on the way: said, and no finding. */
        assert_int_equal(verify(&stamps, 0).findings, 0);
        assert_string_equal(found_text, "note:0#0");
        assert_int_equal(verify(&stamps, LATER).findings, 1);
}

static void test_torn(void **state) {
        struct stat st;

        (void)state;
        write_lines(3, 1 << 20, LINES);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(truncate(path, st.st_size - 40), 0);
        expect("torn:12#0", "torn:12#0");
        /* The manager closes it and says so; line 11 is the last that the kernel had, 12 was a proof. */
        write_lines(3, 1 << 20, 2);
        expect("note:12#0", "note:12#0");
        load();
        assert_non_null(strstr(lines[12], "TORN bytes="));
        lines[11][0] = '3';
        store();
        verify(NULL, LATER);
        assert_string_equal(found_text, "inserted:12#0");
}

/* The kernel's record of the torn line is no second finding. */
static void test_torn_recorded(void **state) {
        struct stat st;

        (void)state;
        write_lines(3, 1 << 20, LINES - 1);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(truncate(path, st.st_size - 40), 0);
        expect("torn:11#0", "torn:11#0");
        assert_int_equal(verify(&stamps, LATER).last, 10);
}

static void test_tail(void **state) {
        (void)state;
        write_lines(3, 1 << 20, LINES - 1);
        load();
        drop(9, 2);
        store();
        expect("tail:9#10", "");
        /* After the next start the kernel's trail still knows. */
        write_lines(3, 1 << 20, 3);
        expect("anew:0#9", "");
}

static void test_gone(void **state) {
        (void)state;
        write_lines(3, 1 << 20, LINES);
        assert_int_equal(unlink(path), 0);
        expect("gone:0#0 gone:0#0", "gone:0#0");
        write_lines(3, 1 << 20, 3);
        expect("anew:0#1", "");
        /* Emptied in place. */
        assert_int_equal(truncate(path, 0), 0);
        verify(&stamps, LATER);
        assert_string_equal(found_text, "anew:0#1 gone:0#0");
}

static void test_rotation(void **state) {
        char name[160];

        (void)state;
        write_lines(5, 500, 15);
        write_lines(5, 500, 15);
        snprintf(name, sizeof(name), "%s.5", path);
        assert_int_equal(access(name, F_OK), 0);
        expect("", "");
        /* The oldest line at hand is the anchor. */
        assert_true(verify(NULL, LATER).first > 1);
        assert_int_equal(unlink(name), 0);
        expect("", "");
        snprintf(name, sizeof(name), "%s.3", path);
        assert_int_equal(unlink(name), 0);
        verify(&stamps, LATER);
        assert_memory_equal(found_text, "rotation:1#", 11);
        assert_null(strchr(found_text, ' '));
        verify(NULL, LATER);
        assert_memory_equal(found_text, "rotation:1#", 11);
}

static void test_lost(void **state) {
        struct review_record r = { .op = REVIEW_EXEC_END, .stamped = true };

        (void)state;
        write_lines(3, 1 << 20, 3);
        assert_int_equal(review_stamps_add(&stamps, &r), 0);
        assert_int_equal(verify(&stamps, LATER).findings, 0);
        assert_string_equal(found_text, "note:0#0");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_clean),     TEST(test_older_lines),   TEST(test_missing),  TEST(test_changed),
                TEST(test_rewritten), TEST(test_reordered),     TEST(test_inserted), TEST(test_fresh),
                TEST(test_torn),      TEST(test_torn_recorded), TEST(test_tail),     TEST(test_gone),
                TEST(test_rotation),  TEST(test_lost),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
