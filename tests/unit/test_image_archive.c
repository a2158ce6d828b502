/* image_archive.h and what the engine says: the archive of an image, byte for byte, and its answers. */
#include <errno.h>
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

#include "cli/image/image_archive.h"
#include "cli/image/image_engine.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID "sha256:" HEX64

static void test_config(void **state) {
        static const struct image_suite suite = { "bookworm", 1, "2023-06-10T00:00:00Z" };
        static const struct image_flavour flavour = { "dev", "git" };
        static const char *const extra[] = { "jq", "socat" };
        struct image_facts f = { .architecture = "amd64", .suite = &suite, .flavour = &flavour };
        char *config;

        (void)state;
        strcpy(f.layer, "aa");
        strcpy(f.packages, "bb");
        config = image_archive_config(&f);
        /* All of it, as each byte is part of the image's id. */
        assert_string_equal(
                config,
                "{\"architecture\":\"amd64\",\"config\":{\"Cmd\":[\"bash\"],\"Env\":[\"PATH=/usr/local/sbin:"
                "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],\"Labels\":{\"hermes-sandbox.image.flavour\":"
                "\"dev\",\"hermes-sandbox.image.packages\":\"bb\",\"hermes-sandbox.image.suite\":\"bookworm\"}},"
                "\"created\":\"2023-06-10T00:00:00Z\",\"history\":[{\"created\":\"2023-06-10T00:00:00Z\","
                "\"created_by\":\"hermes-sandbox image build\"}],\"os\":\"linux\",\"rootfs\":{\"diff_ids\":"
                "[\"sha256:aa\"],\"type\":\"layers\"}}");
        free(config);
        f.extra = extra;
        f.n_extra = 2;
        config = image_archive_config(&f);
        assert_non_null(strstr(config, "\"hermes-sandbox.image.extra\":\"jq socat\""));
        free(config);
}

/* Whatever the pieces, the bytes are the same, and GNU tar reads them. */
static void test_stream(void **state) {
        static const size_t pieces[] = { 1, 100, 512, 65536 };
        static char first[16384], all[16384];
        size_t first_len = 0;
        char line[256], listing[512] = "";
        int fd = memfd_create("layer", 0);
        FILE *f;

        (void)state;
        assert_int_equal(write(fd, "the layer", 9), 9);
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
                struct image_archive a;
                size_t len = 0;
                ssize_t n;

                assert_int_equal(image_archive_init(&a, "{}", fd, 9), 0);
                while ((n = image_archive_read(&a, all + len,
                                               pieces[i] < sizeof(all) - len ? pieces[i]
                                                                             : sizeof(all) - len)) > 0)
                        len += (size_t)n;
                assert_int_equal(n, 0);
                assert_int_equal(len, a.size);
                assert_int_equal(a.at, a.size);
                image_archive_done(&a);
                if (i == 0)
                        memcpy(first, all, first_len = len);
                assert_int_equal(len, first_len);
                assert_memory_equal(first, all, len);
        }
        close(fd);

        fd = memfd_create("archive", 0);
        assert_int_equal(write(fd, first, first_len), first_len);
        snprintf(line, sizeof(line), "TZ=UTC tar -tvf /proc/%d/fd/%d && tar -xOf /proc/%d/fd/%d",
                 getpid(), fd, getpid(), fd);
        f = popen(line, "r");
        while (fgets(line, sizeof(line), f))
                strcat(listing, line);
        assert_int_equal(pclose(f), 0);
        close(fd);
        assert_string_equal(
                listing,
                "-rw-r--r-- 0/0               2 1970-01-01 00:00 config.json\n"
                "-rw-r--r-- 0/0              65 1970-01-01 00:00 manifest.json\n"
                "-rw-r--r-- 0/0               9 1970-01-01 00:00 layer.tar\n"
                "{}[{\"Config\":\"config.json\",\"RepoTags\":null,\"Layers\":[\"layer.tar\"]}]the layer");
}

/* A file that is shorter than was said is no end. */
static void test_short(void **state) {
        static char buf[65536];
        struct image_archive a;
        int fd = memfd_create("layer", 0);
        ssize_t n;

        (void)state;
        assert_int_equal(image_archive_init(&a, "{}", fd, 9), 0);
        while ((n = image_archive_read(&a, buf, sizeof(buf))) > 0)
                ;
        assert_int_equal(n, -EIO);
        image_archive_done(&a);
        assert_int_equal(image_archive_init(&a, "{}", fd, IMAGE_TAR_SIZE_MAX + 1), -EFBIG);
        image_archive_done(&a);
        close(fd);
}

static char lines[512];

static void on_line(void *userdata, const char *line) {
        (void)userdata;
        strcat(strcat(lines, line), "\n");
}

static void test_replies(void **state) {
        static const char loaded[] = "{\"stream\":\"Loaded image ID: " ID "\\n\"}\r\n";
        static const char failed[] =
                "{\"stream\":\"x\"}\n{\"errorDetail\":{\"message\":\"no\\nspace\"},\"error\":"
                "\"no\\nspace\"}\n";
        static const char found[] = "{\"Id\":\"" ID
                                    "\",\"RepoTags\":[\"a:b\",\"c:d\"],\"Size\":1234567}";
        static const char removed[] = "[{\"Untagged\":\"a:b\"},{\"Deleted\":\"" ID "\"}]";
        static const char users[] = "[{\"Id\":\"1\",\"Names\":[\"/x\"],\"ImageID\":\"" ID "\"},"
                                    "{\"Id\":\"2\",\"Names\":[\"/y\"],\"ImageID\":\"sha256:0\"},"
                                    "{\"Id\":\"3\",\"Names\":[],\"ImageID\":\"" ID "\"}]";
        char id[IMAGE_ID_MAX + 1], why[100], version[16];
        struct image_found f;
        size_t n;

        (void)state;
        assert_int_equal(image_reply_loaded(loaded, strlen(loaded), id, why, sizeof(why)), 0);
        assert_string_equal(id, ID);
        assert_int_equal(image_reply_loaded("", 0, id, why, sizeof(why)), 0);
        assert_string_equal(id, "");
        assert_int_equal(image_reply_loaded(failed, strlen(failed), id, why, sizeof(why)),
                         IMAGE_E_REFUSED);
        assert_string_equal(why, "no space");

        assert_int_equal(image_reply_found(found, strlen(found), &f), 0);
        assert_string_equal(f.id, ID);
        assert_int_equal(f.n_tags, 2);
        assert_int_equal(f.size, 1234567);
        assert_int_equal(image_reply_found("{\"Id\":\"sha256:../x\"}", 20, &f), -EPROTO);

        lines[0] = '\0';
        assert_int_equal(image_reply_removed(removed, strlen(removed), on_line, NULL), 0);
        assert_string_equal(lines, "untagged: a:b\ndeleted: " ID "\n");

        assert_int_equal(image_reply_users(users, strlen(users), ID, &n, why, sizeof(why)), 0);
        assert_int_equal(n, 2);
        assert_string_equal(why, "x");
        assert_int_equal(image_reply_users("{}", 2, ID, &n, why, sizeof(why)), -EPROTO);

        image_reply_message("{\"message\":\"a\\u001bb\"}", 22, why, sizeof(why));
        assert_string_equal(why, "a b");
        image_reply_message("not JSON\n", 9, why, sizeof(why));
        assert_string_equal(why, "not JSON");

        assert_int_equal(image_reply_version("{\"ApiVersion\":\"1.41\"}", 21, version), 0);
        assert_string_equal(version, "1.41");
        assert_int_equal(image_reply_version("{\"ApiVersion\":\"1.52\"}", 21, version), 0);
        assert_string_equal(version, "1.47");
        assert_int_equal(image_reply_version("{\"ApiVersion\":\"2.0\"}", 20, version), -EPROTO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_config),
                cmocka_unit_test(test_stream),
                cmocka_unit_test(test_short),
                cmocka_unit_test(test_replies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
