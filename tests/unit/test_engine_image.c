/* What a person is told to do about an image that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/image.h"

static void mends(const char *name, const char *wanted) {
        char text[400];

        image_mend(name, text, sizeof(text));
        assert_string_equal(text, wanted);
}

static void by_name(void **state) {
        (void)state;
        mends("debian:bookworm-slim",
              "docker pull debian:bookworm-slim, or without a registry sudo hermes-sandbox "
              "image build --suite bookworm --name debian:bookworm-slim");
        mends("debian:trixie-slim",
              "docker pull debian:trixie-slim, or without a registry sudo hermes-sandbox "
              "image build --suite trixie --name debian:trixie-slim");
        mends("python:3.13-slim", "docker pull python:3.13-slim, or docker load / docker import it");
        mends("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
              "docker load the image with that id, or name another in sandbox.yaml");
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(by_name) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
