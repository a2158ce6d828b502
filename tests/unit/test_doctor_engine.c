/* The checks manager, engine, escapes, layers and image, each ok and in every state that it complains of. */
#include "unit/doctor_rig.h"

#define UP "\"engine\": {\"state\": \"up\", \"version\": \"20.10.24+dfsg1\", \"api_version\": \"1.41\"}"
#define STATUS(engine, pools) "{\"version\": \"" VERSION "\", " engine ", \"pools\": [" pools "]}"
#define POOL(warm, why) \
        "{\"profile\": \"default\", \"size\": 3, \"warm\": " warm ", \"last_failure\": " why "}"
#define COMPONENTS(engine, runc)                                                 \
        "{\"Version\": \"" engine                                                \
        "\", \"ApiVersion\": \"1.41\", \"Components\": [{\"Name\": \"Engine\", " \
        "\"Version\": \"" engine "\"}, {\"Name\": \"runc\", \"Version\": \"" runc "\"}]}"

static void answer(size_t i, const char *path, long http, const char *body) {
        rig.replies[i].path = path;
        rig.replies[i].http = http;
        rig.replies[i].body = body;
}

static void manager(void **state) {
        (void)state;
        rig.status = STATUS(UP, POOL("3", "null"));
        rig_run("manager", check_manager);
        rig_says(DOCTOR_OK, "answers", NULL);
        rig_says(DOCTOR_OK, "the broker reaches the engine", NULL);
        rig_says(DOCTOR_OK, "3 of 3 sandboxes are warm", NULL);

        rig.status =
                "{\"version\": \"0.0.9\", \"engine\": {\"state\": \"down\", \"why\": \"no answer\"}}";
        rig_run("manager", check_manager);
        rig_says(DOCTOR_WARNING, "of version 0.0.9", "hermes-sandbox start");
        rig_says(DOCTOR_FAILURE, "does not reach the engine: no answer", "start docker");

        rig.status = STATUS("\"engine\": {\"state\": \"not enabled\", \"why\": \"no group\"}",
                            POOL("0", "\"no image one:1\""));
        rig_run("manager", check_manager);
        rig_says(DOCTOR_FAILURE, "may not reach the engine: no group", "sudo hermes-docker-enable");
        rig_says(DOCTOR_FAILURE, "no sandbox is warm: no image one:1", "logs");
        rig.status = STATUS(UP, POOL("0", "null"));
        rig_run("manager", check_manager);
        rig_says(DOCTOR_WARNING, "0 of 3 sandboxes are warm", "status");

        rig.status = NULL;
        rig_run("manager", check_manager);
        rig_says(DOCTOR_FAILURE, "/run/hermes-sandbox/pool.sock", "sudo hermes-sandbox start");
        rig_n(1);
        rig.status_r = -EACCES;
        rig_run("manager", check_manager);
        rig_says(DOCTOR_FAILURE, "no manager", "usermod -aG hermes-sandbox $(id -un)");
}

static void engine(void **state) {
        (void)state;
        rig_run("engine", check_engine);
        rig_says(DOCTOR_FAILURE, "/run/docker.sock", "start docker");
        answer(0, "/version", 200, COMPONENTS("29.5.1", "1.3.3"));
        rig_run("engine", check_engine);
        rig_says(DOCTOR_OK, "version 29.5.1, API 1.41, answers at /run/docker.sock", NULL);
        answer(0, "/version", 500, "{}");
        rig_run("engine", check_engine);
        rig_says(DOCTOR_FAILURE, "status 500", "start docker");
        answer(0, "/version", 200, "no JSON");
        rig_run("engine", check_engine);
        rig_says(DOCTOR_FAILURE, "no JSON", "start docker");
        answer(0, "/version", 200, "[]");
        rig_run("engine", check_engine);
        rig_says(DOCTOR_FAILURE, "status 200", "start docker");

        /* A member has the manager's word alone, and does not even try. */
        answer(0, "/version", 200, COMPONENTS("29.5.1", "1.3.3"));
        rig.d.uid = 1000;
        rig_run("engine", check_engine);
        rig_says(DOCTOR_WARNING, "needs root", "sudo hermes-sandbox doctor");
        rig.status = STATUS(UP, "");
        rig_run("engine", check_engine);
        rig_says(DOCTOR_OK, "version 20.10.24+dfsg1, API 1.41, answers the broker", NULL);
}

static void known_escapes(void **state) {
        (void)state;
        answer(0, "/version", 200, COMPONENTS("29.5.1", "1.3.3"));
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_OK, "runc 1.3.3 has none of the 7", NULL);
        rig_says(DOCTOR_OK, "the engine 29.5.1 has none of the 6", NULL);
        rig_n(2);

        /* Not Debian's: what a command could try is a failure, the engine's own is a warning. */
        answer(0, "/version", 200, COMPONENTS("29.5.0", "1.1.11"));
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_FAILURE, "CVE-2024-21626: ", "--only-upgrade containerd.io");
        rig_says(DOCTOR_FAILURE, "CVE-2025-31133: ", "--only-upgrade containerd.io");
        rig_says(DOCTOR_WARNING, "CVE-2026-41567: ", "--only-upgrade docker-ce");
        rig_says(DOCTOR_WARNING, "CVE-2026-42306: ", "--only-upgrade docker-ce");
        rig_n(5 + 3);

        answer(0, "/version", 200, COMPONENTS("\\u001b[31m", "x"));
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_WARNING, "runc says no version", NULL);
        rig_n(2);

        /* Podman is made of neither. */
        answer(0, "/version", 200,
               "{\"Version\": \"4.3.1\", \"Components\": [{\"Name\": \"Podman Engine\", "
               "\"Version\": \"4.3.1\"}, 7]}");
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_OK, "without runc", NULL);
        rig_says(DOCTOR_OK, "without Docker's", NULL);

        rig.replies[0].path = NULL;
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_WARNING, "the version of runc is not known", "start docker");
        rig.d.uid = 1000;
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_WARNING, "runc: not looked at: needs root", "sudo hermes-sandbox doctor");
}

static void debian_escapes(void **state) {
        static const char status[] =
                "Package: docker.io\nStatus: install ok installed\nVersion: %s\n\n"
                "Package: runc\nStatus: install ok installed\nVersion: 1.1.5+ds1-1%s\n\n";
        char text[512];

        (void)state;
        answer(0, "/version", 200, COMPONENTS("20.10.24+dfsg1", "1.1.5+ds1"));
        snprintf(text, sizeof(text), status, "20.10.24+dfsg1-1+deb12u1+b6", "+deb12u1");
        rig_put("/var/lib/dpkg/status", text);
        rig_run("escapes", check_escapes);
        rig_n(2);
        rig_says(DOCTOR_WARNING,
                 "runc 1.1.5+ds1-1+deb12u1 is below upstream's number for CVE-2024-45310 (mended in",
                 "--only-upgrade runc");
        rig_says(DOCTOR_WARNING, "security-tracker.debian.org/tracker/source-package/docker.io",
                 "--only-upgrade docker.io");

        /* So it is for a member: the engine is Debian's, so is its runc. */
        rig.d.uid = 1000;
        rig.status = STATUS(UP, "");
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_WARNING, "runc 1.1.5+ds1-1+deb12u1 is below", "--only-upgrade runc");
        rig_says(DOCTOR_WARNING, "source-package/docker.io", "--only-upgrade docker.io");
        rig_n(2);
        /* Another engine than the package's. */
        rig.status = STATUS("\"engine\": {\"state\": \"up\", \"version\": \"29.5.1\"}", "");
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_WARNING, "runc: not looked at", "sudo hermes-sandbox doctor");
        rig_says(DOCTOR_WARNING, "the engine: not looked at", "sudo hermes-sandbox doctor");

        /* The last one before the fix. */
        rig.d.uid = 0;
        snprintf(text, sizeof(text), status, "20.10.24+dfsg1-1", "");
        rig_put("/var/lib/dpkg/status", text);
        rig_run("escapes", check_escapes);
        rig_says(DOCTOR_FAILURE, "CVE-2024-21626: ", "--only-upgrade runc");
        rig_says(DOCTOR_WARNING, "CVE-2024-41110: ", "--only-upgrade docker.io");
        rig_n(4);
}

#define LAYER(name, state) "\"" name "\": {\"state\": \"" state "\", \"why\": \"" name "-why\"}"
#define LAYERS(s)                                                                                      \
        "{\"profile\": \"p\", \"layers\": {" LAYER("namespaces", s) "," LAYER("seccomp", s) "," LAYER( \
                "apparmor", s) "," LAYER("capabilities",                                               \
                                         s) "," LAYER("rootfs",                                        \
                                                      s) "," LAYER("network",                          \
                                                                   s) "," LAYER("limits",              \
                                                                                s) "," LAYER("audit",  \
                                                                                             s) "}}"

static void layers(void **state) {
        static const char *const names[] = { "limits",       "seccomp", "apparmor", "userns",
                                             "capabilities", "rootfs",  "network",  "audit" };

        (void)state;
        rig.status = STATUS(UP, LAYERS("active"));
        rig_run("layers", check_layers);
        rig_n(8);
        for (size_t i = 0; i < 8; i++) {
                assert_string_equal(names[i], rig.d.lines[i].check);
                assert_int_equal(DOCTOR_OK, rig.d.lines[i].result);
        }
        rig.status = STATUS(UP, LAYERS("degraded"));
        rig_run("layers", check_layers);
        rig_says(DOCTOR_WARNING, "limits-why", "swapaccount=1");
        rig_says(DOCTOR_WARNING, "seccomp-why", "daemon.json");
        rig_says(DOCTOR_WARNING, "apparmor-why", "apparmor=1");
        rig_says(DOCTOR_WARNING, "namespaces-why", "userns-remap");
        rig_says(DOCTOR_WARNING, "capabilities-why", "status");
        rig_says(DOCTOR_OK, "network-why", NULL);
        rig.status = STATUS(UP, LAYERS("disabled"));
        rig_run("layers", check_layers);
        rig_says(DOCTOR_FAILURE, "limits-why", "swapaccount=1");
        rig_says(DOCTOR_FAILURE, "seccomp-why", "daemon.json");
        rig_says(DOCTOR_WARNING, "apparmor-why", "apparmor=1");
        rig_says(DOCTOR_WARNING, "rootfs-why", "read_only");
        rig_says(DOCTOR_WARNING, "audit-why", "auditd");
        /* A word that is not known is never ok. */
        rig.status = STATUS(UP, LAYERS("unsupported") "," LAYERS("sideways"));
        rig_run("layers", check_layers);
        rig_n(16);
        for (size_t i = 0; i < 16; i++)
                assert_true(rig.d.lines[i].result != DOCTOR_OK ||
                            strcmp(rig.d.lines[i].check, "network") == 0);

        rig.status = STATUS(UP, POOL("0", "null"));
        rig_run("layers", check_layers);
        rig_says(DOCTOR_WARNING, "not known until a sandbox is warm", "status");
        rig.status = NULL;
        rig_run("layers", check_layers);
        rig_says(DOCTOR_WARNING, "not known until the manager answers", "status");
        rig_n(1);
}

static void images(void **state) {
        (void)state;
        rig_put("/etc/hermes-sandbox/sandbox.yaml",
                "pool:\n  image: \"one:1\"\nprofiles:\n  dev:\n    image: \"reg:5000/two\"\n");
        answer(0, "/version", 200, COMPONENTS("29.5.1", "1.3.3"));
        answer(1, "/images/one:1/json", 200, "{}");
        answer(2, "/images/reg:5000/two/json", 404, "{\"message\": \"No such image\"}");
        rig_run("image", check_images);
        rig_says(DOCTOR_OK, "one:1 is there", NULL);
        rig_says(DOCTOR_FAILURE, "profile dev: the engine has no image reg:5000/two",
                 "hermes-sandbox image pull dev");
        answer(1, "/images/one:1/json", 500, "{\"message\": \"on fire\"}");
        rig.replies[2].path = NULL;
        rig_run("image", check_images);
        rig_says(DOCTOR_WARNING, "status 500 for image one:1: on fire", "status");
        rig_says(DOCTOR_WARNING, "profile dev: the engine does not answer",
                 "sudo hermes-sandbox doctor");

        rig.replies[0].path = NULL;
        rig_run("image", check_images);
        rig_says(DOCTOR_WARNING, "whether one:1 is there", "sudo hermes-sandbox doctor");
        /* For a member a warm sandbox is proof. */
        rig.d.uid = 1000;
        rig.status = STATUS(UP, POOL("1", "null"));
        rig_run("image", check_images);
        rig_says(DOCTOR_OK, "sandboxes of one:1 are warm", NULL);
        rig_says(DOCTOR_WARNING, "reg:5000/two: not looked at: needs root",
                 "sudo hermes-sandbox doctor");
        /* What is not kept is nobody's fault. */
        rig_put("/etc/hermes-sandbox/sandbox.yaml",
                "pool:\n  image: \"one:1\"\nprofiles:\n  dev:\n    image: \"reg:5000/two\"\n    size: 0\n");
        rig_run("image", check_images);
        rig_says(DOCTOR_OK, "profile dev: no sandbox of reg:5000/two is kept warm (size 0)", NULL);
        rig_put("/etc/hermes-sandbox/sandbox.yaml", "bad");
        rig_run("image", check_images);
        rig_says(DOCTOR_WARNING, "which images", "config check");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RIG_TEST(manager),        RIG_TEST(engine), RIG_TEST(known_escapes),
                RIG_TEST(debian_escapes), RIG_TEST(layers), RIG_TEST(images),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
