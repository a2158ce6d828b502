/* image_tar.h: what GNU tar writes is read, what we write is read by it, and what is no tar is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/image/image_tar.h"

static struct image_tar_in in;
static uint8_t tar[1 << 20];
static char said[8192]; /* one line a member */

/* Reads it in pieces of @piece bytes; the members go into said[]. */
static int read_all(const uint8_t *p, size_t len, size_t piece) {
        const uint8_t *data;
        enum image_tar_step step;
        size_t n, at = 0;
        int r = 0;

        image_tar_in_init(&in);
        said[0] = '\0';
        while (len > 0 && r == 0) {
                size_t part = len < piece ? len : piece, left = part;
                const uint8_t *q = p;

                while ((r = image_tar_next(&in, &q, &left, &step, &data, &n)) == 1) {
                        const struct image_tar_entry *e = &in.entry;

                        if (step == IMAGE_TAR_ENTRY)
                                at += (size_t)snprintf(said + at, sizeof(said) - at,
                                                       "%c %s%s%s %o %u:%u %lld ", (char)e->type,
                                                       e->name, e->link[0] ? ">" : "", e->link, e->mode,
                                                       e->uid, e->gid, (long long)e->mtime);
                        else if (step == IMAGE_TAR_DATA)
                                at += (size_t)snprintf(said + at, sizeof(said) - at, "%.*s", (int)n,
                                                       (const char *)data);
                        else
                                at += (size_t)snprintf(said + at, sizeof(said) - at, "|\n");
                }
                p += part;
                len -= part;
        }
        return r;
}

/* GNU tar's own output for what the shell commands make. */
static size_t gnu_tar(const char *make) {
        char command[2048];
        FILE *f;
        size_t n;

        snprintf(
                command, sizeof(command),
                "d=$(mktemp -d) && cd \"$d\" && %s && tar --numeric-owner --owner=7 --group=8 --mtime=@86400.5 "
                "--sort=name --format=pax --pax-option=exthdr.name=%%d/PaxHeaders/%%f,delete=atime,delete=ctime -c .; "
                "rm -rf \"$d\"",
                make);
        f = popen(command, "r");
        assert_non_null(f);
        n = fread(tar, 1, sizeof(tar), f);
        assert_int_equal(pclose(f), 0);
        assert_in_range(n, 1024, sizeof(tar) - 1);
        return n;
}

static void test_gnu(void **state) {
        static const char make[] =
                "umask 022; mkdir a; echo hello >a/f; ln -s ../x a/l; ln a/f a/h; mkfifo p; "
                "long=$(printf %0120d 0); : >\"$long\"; ln -s \"$long\" s";
        char expected[2048];
        size_t len = gnu_tar(make), pieces[] = { 1, 7, 512, 100000 };

        (void)state;
        snprintf(expected, sizeof(expected),
                 "5  755 7:8 86400 |\n0 %0120d 644 7:8 86400 |\n5 a 755 7:8 86400 |\n"
                 "0 a/f 644 7:8 86400 hello\n|\n1 a/h>a/f 644 7:8 86400 |\n2 a/l>../x 777 7:8 86400 |\n"
                 "6 p 644 7:8 86400 |\n2 s>%0120d 777 7:8 86400 |\n",
                 0, 0);
        /* The top has mktemp's mode. */
        memcpy(strchr(expected, '7'), "700", 3);
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
                assert_int_equal(read_all(tar, len, pieces[i]), 0);
                assert_int_equal(in.state, IMAGE_TAR_ENDED);
                if (pieces[i] > 1)
                        assert_string_equal(said, expected);
        }
}

/* What is written comes back as it was. */
static size_t put(const struct image_tar_entry *e, const char *data) {
        int n = image_tar_put_header(e, tar);
        size_t len = strlen(data), all;

        assert_in_range(n, 512, IMAGE_TAR_HEADER_MAX);
        assert_int_equal(n % 512, 0);
        memcpy(tar + n, data, len);
        all = (size_t)n + len + image_tar_padding(len);
        memset(tar + n + len, 0, image_tar_padding(len) + IMAGE_TAR_END);
        return all + IMAGE_TAR_END;
}

static void test_written(void **state) {
        static const size_t lengths[] = { 1, 98, 99, 100, 101, 300, IMAGE_TAR_PATH - 1 };

        (void)state;
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
                struct image_tar_entry e = {
                        .type = IMAGE_TAR_FILE, .mode = 04755, .mtime = 5, .size = 3
                };

                memset(e.name, 'n', lengths[i]);
                e.capability_len = 20;
                memset(e.capability, i == 0 ? '=' : '\n', sizeof(e.capability));
                assert_int_equal(read_all(tar, put(&e, "abc"), 4096), 0);
                assert_int_equal(in.state, IMAGE_TAR_ENDED);
                assert_string_equal(in.entry.name, e.name);
                assert_int_equal(in.entry.mode, 04755);
                assert_int_equal(in.entry.capability_len, 20);
                assert_memory_equal(in.entry.capability, e.capability, 20);

                e = (struct image_tar_entry){ .type = IMAGE_TAR_FOLDER, .mode = 0755 };
                memset(e.name, 'd', lengths[i]);
                assert_int_equal(read_all(tar, put(&e, ""), 4096), 0);
                assert_string_equal(in.entry.name, e.name);

                e = (struct image_tar_entry){ .type = IMAGE_TAR_SYMLINK, .name = "l" };
                memset(e.link, 't', lengths[i]);
                assert_int_equal(read_all(tar, put(&e, ""), 4096), 0);
                assert_string_equal(in.entry.link, e.link);
        }
}

static void test_no_room(void **state) {
        struct image_tar_entry e = { .type = IMAGE_TAR_FILE, .name = "f", .size = IMAGE_TAR_SIZE_MAX };

        (void)state;
        assert_int_equal(image_tar_put_header(&e, tar), 512);
        e.size++;
        assert_int_equal(image_tar_put_header(&e, tar), -EFBIG);
        e.size = 0;
        e.uid = 1 << 21;
        assert_int_equal(image_tar_put_header(&e, tar), -EFBIG);
}

static void sum(uint8_t *header) {
        unsigned n = 0;

        memset(header + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
                n += header[i];
        snprintf((char *)header + 148, 8, "%06o", n);
}

static void test_refused(void **state) {
        struct image_tar_entry e = { .type = IMAGE_TAR_FILE, .name = "f", .size = 1 };
        static const char *const records[] = {
                "11 path=x\n",    "8 path=x",       "99 path=x\n",
                "x path=x\n",     "7 size\n",       "9 size=-\n",
                "3 \n",           "0 path=x\n",     "999999999999999999999 path=x\n",
                "13 path=/abc\n", "14 path=../ab\n"
        };
        size_t len = put(&e, "a");

        (void)state;
        tar[0] ^= 1;
        assert_int_equal(read_all(tar, len, 512), -EPROTO);
        put(&e, "a");
        tar[156] = 'Q';
        sum(tar);
        assert_int_equal(read_all(tar, len, 512), -EPROTO);
        put(&e, "a");
        tar[125] = 'x';
        sum(tar);
        assert_int_equal(read_all(tar, len, 512), -EPROTO);
        strcpy(e.name, "a/../../b");
        put(&e, "a");
        assert_int_equal(read_all(tar, len, 512), -EPROTO);
        strcpy(e.name, "/b");
        put(&e, "a");
        assert_int_equal(read_all(tar, len, 512), -EPROTO);

        for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
                struct image_tar_entry pax = { .type = IMAGE_TAR_FILE,
                                               .name = "pax",
                                               .size = strlen(records[i]) };

                memset(tar, 0, 8192);
                image_tar_put_header(&pax, tar);
                tar[156] = 'x';
                sum(tar);
                strcpy((char *)tar + 512, records[i]);
                e = (struct image_tar_entry){ .type = IMAGE_TAR_FILE, .name = "f" };
                image_tar_put_header(&e, tar + 1024);
                if (read_all(tar, 4096, 512) != -EPROTO)
                        fail_msg("taken: %s", records[i]);
        }
}

/* A tar that ends early is not at its end, wherever that is. */
static void test_cut(void **state) {
        struct image_tar_entry e = { .type = IMAGE_TAR_FILE, .name = "f", .size = 3 };
        size_t len = put(&e, "abc") - 512;

        (void)state;
        for (size_t n = 1; n < len; n++) {
                assert_int_equal(read_all(tar, n, 4096), 0);
                assert_int_not_equal(in.state, IMAGE_TAR_ENDED);
        }
        assert_int_equal(read_all(tar, len, 4096), 0);
        assert_int_equal(in.state, IMAGE_TAR_ENDED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gnu),     cmocka_unit_test(test_written),
                cmocka_unit_test(test_no_room), cmocka_unit_test(test_refused),
                cmocka_unit_test(test_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
