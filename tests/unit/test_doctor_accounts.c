/* The checks accounts, docker-group, sockets, helper and config, each ok and in every state that it complains of. */
#include "unit/doctor_rig.h"

#define ENGINE "/run/hermes-sandbox-engine/engine.sock"
#define POOL "/run/hermes-sandbox/pool.sock"
#define DOCKER "/run/docker.sock"
#define HELPER "/usr/sbin/hermes-docker-enable"

static void accounts(void **state) {
        (void)state;
        rig_run("accounts", check_accounts);
        rig_says(DOCTOR_OK, "are there", NULL);
        rig_n(1);
        rig_put("/etc/passwd", "root:x:0:0::/:/bin/sh\n_hermes-engine:x:0:990::/:/bin/false\n");
        rig_put("/etc/group", "root:x:0:\n");
        rig_run("accounts", check_accounts);
        rig_says(DOCTOR_FAILURE, "_hermes-engine has uid 0", "reinstall");
        rig_says(DOCTOR_FAILURE, "no account _hermes-sandbox", "reinstall");
        rig_says(DOCTOR_FAILURE, "no group hermes-sandbox", "reinstall");
        rig_n(3);
}

static void docker_group(void **state) {
        (void)state;
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_OK, "_hermes-engine is in group docker", NULL);
        rig_says(DOCTOR_OK, "nobody who uses", NULL);
        rig_n(2);

        rig_put("/etc/group", GROUP "docker:x:993:\n");
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_FAILURE, "_hermes-engine is not in group docker", "sudo hermes-docker-enable");

        rig_put("/etc/group", GROUP DOCKER_GROUP ",_hermes-sandbox\n");
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_FAILURE, "_hermes-sandbox is in group docker",
                 "gpasswd -d _hermes-sandbox docker");

        rig_put("/etc/group", GROUP);
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_FAILURE, "no group docker", "docker.io");
        rig_n(1);
}

static void people_in_docker(void **state) {
        (void)state;
        /* alice is in hermes-sandbox, bob is not. */
        rig_put("/etc/group", GROUP DOCKER_GROUP ",alice,bob,root,nobody-there\n");
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_WARNING, "alice uses the sandbox", "gpasswd -d alice docker");
        rig_says(DOCTOR_WARNING, "bob is in group docker", "gpasswd -d bob docker");
        rig_n(3);

        /* As the account's own group; a system's account is no person. */
        rig_put("/etc/group", GROUP DOCKER_GROUP ",daemon\n");
        rig_put("/etc/passwd", PASSWD "carol:x:1002:993::/:/bin/sh\ndaemon:x:1:1::/:/bin/false\n");
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_WARNING, "carol is in group docker", "gpasswd -d carol docker");
        rig_n(2);

        /* A part of a name is not the name. */
        rig_put("/etc/passwd", PASSWD);
        rig_put("/etc/group", GROUP DOCKER_GROUP ",alice2,xbob\n");
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_OK, "nobody who uses", NULL);
}

static void caller_in_docker(void **state) {
        (void)state;
        /* Whoever calls is about to use it. */
        rig.d.uid = 1001;
        rig_put("/etc/group", GROUP DOCKER_GROUP ",bob\n");
        rig.groups[0] = 993;
        rig.n_groups = 1;
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_WARNING, "bob uses the sandbox", "gpasswd -d bob docker");
        rig_n(2);
        /* It was taken away, and the login has it still. */
        rig_put("/etc/group", GROUP DOCKER_GROUP "\n");
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_WARNING, "this login still has group docker", "logout");
        rig_n(2);
        rig.groups[0] = 994;
        rig_run("docker-group", check_docker_group);
        rig_says(DOCTOR_OK, "nobody who uses", NULL);
}

static void file(size_t i, const char *path, mode_t mode, uid_t uid, gid_t gid) {
        rig.files[i].path = path;
        rig.files[i].mode = mode;
        rig.files[i].uid = uid;
        rig.files[i].gid = gid;
}

static void good_sockets(void) {
        file(0, POOL, S_IFSOCK | 0660, 991, 992);
        file(1, ENGINE, S_IFSOCK | 0660, 990, 991);
        file(2, DOCKER, S_IFSOCK | 0660, 0, 993);
}

static void sockets(void **state) {
        (void)state;
        good_sockets();
        rig_run("sockets", check_sockets);
        rig_says(DOCTOR_OK, POOL, NULL);
        rig_says(DOCTOR_OK, ENGINE, NULL);
        rig_says(DOCTOR_OK, DOCKER, NULL);
        rig_n(3);
        /* systemd's is root's. */
        file(0, POOL, S_IFSOCK | 0660, 0, 992);
        rig_run("sockets", check_sockets);
        rig_says(DOCTOR_OK, POOL, NULL);

        file(0, POOL, S_IFSOCK | 0666, 991, 992);
        file(1, ENGINE, S_IFSOCK | 0660, 990, 992);
        file(2, DOCKER, S_IFSOCK | 0666, 0, 993);
        rig_run("sockets", check_sockets);
        rig_says(DOCTOR_FAILURE, POOL " has mode 0666: everybody", "hermes-sandbox start");
        rig_says(DOCTOR_FAILURE, ENGINE " belongs to _hermes-engine:hermes-sandbox",
                 "hermes-sandbox start");
        rig_says(DOCTOR_FAILURE, DOCKER " has mode 0666: everybody", "daemon.json");

        file(0, POOL, S_IFSOCK | 0600, 991, 992);
        file(1, ENGINE, S_IFREG | 0660, 990, 991);
        file(2, DOCKER, S_IFSOCK | 0660, 1000, 4711);
        rig_run("sockets", check_sockets);
        rig_says(DOCTOR_FAILURE, POOL " has mode 0600, expected", "hermes-sandbox start");
        rig_says(DOCTOR_FAILURE, ENGINE " is no socket", "hermes-sandbox start");
        rig_says(DOCTOR_FAILURE, DOCKER " belongs to alice:?", "daemon.json");

        rig.files[0].path = NULL;
        rig_run("sockets", check_sockets);
        rig_says(DOCTOR_FAILURE, POOL ": No such file", "hermes-sandbox start");
        rig.stat_r = -EACCES;
        rig_run("sockets", check_sockets);
        rig_says(DOCTOR_WARNING, POOL ": not looked at: needs root", "sudo hermes-sandbox doctor");
}

static void helper_is(mode_t mode, uid_t uid, gid_t gid) {
        file(0, HELPER, mode, uid, gid);
        rig_run("helper", check_helper);
        rig_n(1);
}

static void helper(void **state) {
        (void)state;
        rig_run("helper", check_helper);
        rig_says(DOCTOR_FAILURE, "No such file", "reinstall");

        rig_put("/var/lib/dpkg/statoverride",
                "root mail 2755 /usr/bin/other\nroot hermes-sandbox 4750 " HELPER "\n");
        helper_is(S_IFREG | 04750, 0, 992);
        rig_says(DOCTOR_OK, "root:hermes-sandbox 4750", NULL);
        helper_is(S_IFREG | 04755, 0, 992);
        rig_says(DOCTOR_FAILURE, "everybody may run it as root", "dpkg-statoverride");
        helper_is(S_IFREG | 04770, 0, 992);
        rig_says(DOCTOR_FAILURE, "others than root may write", "dpkg-statoverride");
        helper_is(S_IFREG | 04750, 0, 1000);
        rig_says(DOCTOR_FAILURE, "belongs to group alice", "dpkg-statoverride");
        helper_is(S_IFREG | 04750, 1000, 992);
        rig_says(DOCTOR_FAILURE, "belongs to alice", "reinstall");
        helper_is(S_IFLNK | 0777, 0, 0);
        rig_says(DOCTOR_FAILURE, "expected a plain file", "reinstall");
        /* What an upgrade would set back. */
        helper_is(S_IFREG | 0755, 0, 0);
        rig_says(DOCTOR_WARNING, "dpkg's override says root:hermes-sandbox 4750", "dpkg-statoverride");
        /* The administrator's word: members may not call it. */
        rig_put("/var/lib/dpkg/statoverride", "root root 755 " HELPER "\n");
        helper_is(S_IFREG | 0755, 0, 0);
        rig_says(DOCTOR_OK, "members may not call it", NULL);
        rig_put("/var/lib/dpkg/statoverride", "");
        helper_is(S_IFREG | 04750, 0, 992);
        rig_says(DOCTOR_WARNING, "no override", "dpkg-statoverride");
}

static void config(void **state) {
        char path[PATH_MAX];

        (void)state;
        rig_run("config", check_config);
        rig_says(DOCTOR_OK, "1 profile,", NULL);
        rig_put("/etc/hermes-sandbox/sandbox.yaml", "pool:\n  memory_limit: 3 sheep\n");
        rig_run("config", check_config);
        rig_says(DOCTOR_FAILURE, "sandbox.yaml:2:", "hermes-sandbox config check");
        rig_put("/etc/hermes-sandbox/sandbox.yaml", "");
        assert_int_equal(0, chmod(doctor_path(&rig.d, "/etc/hermes-sandbox/sandbox.yaml", path), 0666));
        rig_run("config", check_config);
        rig_says(DOCTOR_FAILURE, "only the owner write", "hermes-sandbox config check");
        assert_int_equal(0, unlink(path));
        rig_run("config", check_config);
        rig_says(DOCTOR_FAILURE, "No such file", "hermes-sandbox config check");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RIG_TEST(accounts),         RIG_TEST(docker_group), RIG_TEST(people_in_docker),
                RIG_TEST(caller_in_docker), RIG_TEST(sockets),      RIG_TEST(helper),
                RIG_TEST(config),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
