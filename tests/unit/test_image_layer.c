/* image_layer.h and image_packages.h: two builds that differ in time and order of work alone give the same layer. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/image/image_layer.h"
#include "cli/image/image_packages.h"
#include "cli/image/image_place.h"

#define EPOCH 1000000

static uint8_t tar[1 << 20];
static size_t tar_len;
static struct image_layer layer;
static char hex[IMAGE_HEX];

static const char status[] =
        "Package: zlib\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:1.2-1\n"
        "Description: x\n Package: no\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n\n"
        "Package: base\nStatus: hold ok installed\nVersion: 2~rc1\nArchitecture: all\n";

static void member(enum image_tar_type type, const char *name, const char *data, int64_t mtime) {
        struct image_tar_entry e = { .type = type, .mode = 0644, .mtime = mtime };

        strcpy(e.name, name);
        if (type == IMAGE_TAR_HARD_LINK)
                strcpy(e.link, data);
        else
                e.size = strlen(data);
        tar_len += (size_t)image_tar_put_header(&e, tar + tar_len);
        if (type != IMAGE_TAR_FILE)
                return;
        memcpy(tar + tar_len, data, e.size);
        tar_len += e.size;
        memset(tar + tar_len, 0, image_tar_padding(e.size));
        tar_len += image_tar_padding(e.size);
}

/* A build at a time, with whatever a time leaves. */
static void begin(int64_t now) {
        char when[32];

        snprintf(when, sizeof(when), "%lld", (long long)now);
        tar_len = 0;
        member(IMAGE_TAR_FOLDER, "etc", "", now);
        member(IMAGE_TAR_FILE, "etc/hostname", when, now);
        member(IMAGE_TAR_FILE, "etc/passwd", "root", now);
        member(IMAGE_TAR_FILE, "etc/passwd-", when, now);
        member(IMAGE_TAR_FILE, "usr/bin/true", "true", 500);
        member(IMAGE_TAR_FILE, "var/log/dpkg.log", when, now);
        member(IMAGE_TAR_FILE, "var/lib/dpkg/status", status, now);
        member(IMAGE_TAR_FILE, "var/lib/dpkg/status-old", when, now);
}

static int make(int fd, struct errmsg *e) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        int r = 0;

        memset(tar + tar_len, 0, IMAGE_TAR_END);
        image_layer_init(&layer, fd, EPOCH);
        for (size_t at = 0; at < tar_len + IMAGE_TAR_END && r == 0; at += 1000) {
                size_t n = tar_len + IMAGE_TAR_END - at;

                r = image_layer_put(&layer, tar + at, n < 1000 ? n : 1000, e);
        }
        if (r == 0)
                r = image_layer_end(&layer, digest, e);
        if (r == 0)
                image_hex(digest, hex);
        return r;
}

static void test_reproducible(void **state) {
        char first[IMAGE_HEX], out[16384];
        struct errmsg e;
        int fd = memfd_create("layer", 0);

        (void)state;
        begin(EPOCH + 7);
        assert_int_equal(make(fd, &e), 0);
        strcpy(first, hex);
        assert_int_equal(layer.size, lseek(fd, 0, SEEK_END));
        assert_int_equal(layer.status_len, strlen(status));
        assert_memory_equal(layer.status, status, strlen(status));
        image_layer_done(&layer);
        memset(out, 0, sizeof(out));
        assert_true(pread(fd, out, sizeof(out), 0) > 0);
        assert_null(memmem(out, sizeof(out), "hostname", 8));
        assert_non_null(memmem(out, sizeof(out), "etc/passwd\0", 11));
        close(fd);

        fd = memfd_create("layer", 0);
        begin(EPOCH + 99999999);
        assert_int_equal(make(fd, &e), 0);
        assert_string_equal(hex, first);
        image_layer_done(&layer);
        close(fd);

        fd = memfd_create("layer", 0);
        begin(EPOCH + 7);
        member(IMAGE_TAR_FILE, "usr/bin/x", "", 0);
        assert_int_equal(make(fd, &e), 0);
        assert_string_not_equal(hex, first);
        image_layer_done(&layer);
        close(fd);
}

static void test_refused(void **state) {
        struct errmsg e;
        int fd = memfd_create("layer", 0), full = open("/dev/full", O_WRONLY);
        uint8_t digest[SHA256_DIGEST_SIZE];

        (void)state;
        /* A link to what is left out would have no target. */
        begin(EPOCH);
        member(IMAGE_TAR_HARD_LINK, "usr/bin/y", "var/log/dpkg.log", 0);
        assert_int_equal(make(fd, &e), -EPROTO);
        image_layer_done(&layer);
        /* No list of packages. */
        tar_len = 0;
        member(IMAGE_TAR_FILE, "usr/bin/x", "", 0);
        assert_int_equal(make(fd, &e), -EPROTO);
        image_layer_done(&layer);
        /* No end. */
        begin(EPOCH);
        image_layer_init(&layer, fd, EPOCH);
        assert_int_equal(image_layer_put(&layer, tar, tar_len, &e), 0);
        assert_int_equal(image_layer_end(&layer, digest, &e), -EPROTO);
        image_layer_done(&layer);
        close(fd);

        begin(EPOCH);
        assert_int_equal(make(full, &e), -ENOSPC);
        image_layer_done(&layer);
        close(full);
}

static void test_left_out(void **state) {
        static const struct {
                bool out;
                enum image_tar_type type;
                const char *name;
        } cases[] = {
                { true, IMAGE_TAR_FOLDER, "" },
                { false, IMAGE_TAR_FOLDER, "dev" },
                { true, IMAGE_TAR_FOLDER, "dev/shm" },
                { true, IMAGE_TAR_CHAR, "opt/null" },
                { false, IMAGE_TAR_FOLDER, "var/log/apt" },
                { true, IMAGE_TAR_FILE, "var/log/apt/term.log" },
                { false, IMAGE_TAR_FILE, "var/logs" },
                { true, IMAGE_TAR_FILE, "etc/shadow-" },
                { false, IMAGE_TAR_FILE, "etc/alternatives/x-" },
                { false, IMAGE_TAR_FILE, "etc/machine-id" },
                { true, IMAGE_TAR_FILE, "etc/ssh/ssh_host_rsa_key" },
                { false, IMAGE_TAR_FILE, "etc/ssh/ssh_config" },
                { true, IMAGE_TAR_FILE, "etc/apt/sources.list.d/debian.sources" },
                { true, IMAGE_TAR_FILE, "var/cache/apt/archives/a_1_all.deb" },
                { false, IMAGE_TAR_FOLDER, "var/cache/apt/archives" },
                { false, IMAGE_TAR_FOLDER, "usr/share/doc/tar" },
                { false, IMAGE_TAR_SYMLINK, "usr/share/doc/libx" },
                { false, IMAGE_TAR_FILE, "usr/share/doc/tar/copyright" },
                { true, IMAGE_TAR_FILE, "usr/share/doc/tar/changelog.gz" },
                { true, IMAGE_TAR_FILE, "usr/share/man/man1/tar.1.gz" },
                { true, IMAGE_TAR_FILE, "usr/share/locale/de/LC_MESSAGES/tar.mo" },
                { false, IMAGE_TAR_FILE, "usr/share/locale/locale.alias" },
                { false, IMAGE_TAR_FILE, "usr/lib/python3/__pycache__/x.cpython-311.pyc" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                if (image_layer_leaves_out(cases[i].name, cases[i].type) != cases[i].out)
                        fail_msg("%s is%s left out", cases[i].name, cases[i].out ? " not" : "");
}

static void test_packages(void **state) {
        static const char *const bad[] = {
                "", "Package: a\nStatus: install ok installed\nVersion: 1\n",
                "Package: a\nStatus: install ok unpacked\nVersion: 1\nArchitecture: all\n"
        };
        struct image_packages p;

        (void)state;
        assert_int_equal(image_packages_parse(&p, status, strlen(status)), 0);
        assert_int_equal(p.n, 2);
        assert_string_equal(p.lines[0], "base 2~rc1 all");
        assert_string_equal(p.lines[1], "zlib 1:1.2-1 amd64");
        image_packages_hash(&p, hex);
        /* printf 'base 2~rc1 all\nzlib 1:1.2-1 amd64\n' | sha256sum */
        assert_string_equal(hex, "52a5f7addb84af4bcc6218faf41a9d34b0d79e3f3e70afb2a1b6dc6ccfa18900");

        assert_false(image_place_outdated("zlib_1%3a1.2-1_amd64.deb", &p));
        assert_true(image_place_outdated("zlib_1%3a1.1-1_amd64.deb", &p));
        assert_false(image_place_outdated("zlib_1%3a1.1-1_arm64.deb", &p));
        assert_false(image_place_outdated("zlib1g_1%3a1.1-1_amd64.deb", &p));
        assert_false(image_place_outdated("base_2~rc1_all.deb", &p));
        assert_true(image_place_outdated("base_2~rc1+b1_all.deb", &p));
        assert_false(image_place_outdated("lock", &p));
        assert_false(image_place_outdated("base_1.deb", &p));
        image_packages_done(&p);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(image_packages_parse(&p, bad[i], strlen(bad[i])), -EPROTO);
                image_packages_done(&p);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reproducible),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_left_out),
                cmocka_unit_test(test_packages),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
