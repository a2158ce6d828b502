/* The checks of audit, uid, disk and clock, each ok and in every state that it complains of; and the program: options,
 * output, exit status. */
#include "unit/doctor_rig.h"

#include "common/exitcode.h"

#define CONF "/etc/audit/auditd.conf"
#define LOG "/var/log/audit/audit.log"

static void required(void) {
        rig_put("/etc/hermes-sandbox/sandbox.yaml", "audit:\n  required: true\n");
}

static void auditd(void **state) {
        (void)state;
        rig.audit = (struct doctor_audit){ .enabled = true, .pid = 7 };
        rig_run("auditd", check_auditd);
        rig_says(DOCTOR_OK, "auditd runs, pid 7", NULL);
        rig.audit.enabled = false;
        rig_run("auditd", check_auditd);
        rig_says(DOCTOR_WARNING, "auditing is off", "auditctl -e 1");
        rig.audit.pid = 0;
        rig_run("auditd", check_auditd);
        rig_says(DOCTOR_WARNING, "no auditd runs", "install auditd");
        rig.audit_r = -EPROTONOSUPPORT;
        rig_run("auditd", check_auditd);
        rig_says(DOCTOR_WARNING, "no audit socket", "kernel");
        /* Where the config asks for the trail, no command runs without it. */
        required();
        rig_run("auditd", check_auditd);
        rig_says(DOCTOR_FAILURE, "no audit socket", "kernel");
        rig.d.uid = 1000;
        rig_run("auditd", check_auditd);
        rig_says(DOCTOR_WARNING, "auditd: not looked at: needs root", "sudo hermes-sandbox doctor");
        rig_n(1);
}

static void audit_rules(void **state) {
        (void)state;
        rig.audit = (struct doctor_audit){ .n_helper = 1, .n_socket = 3, .n_config = 10 };
        rig_run("audit-rules", check_audit_rules);
        rig_says(DOCTOR_OK, "are loaded: 14", NULL);
        rig.audit.n_socket = 0;
        rig_run("audit-rules", check_audit_rules);
        rig_says(DOCTOR_WARNING, "hermes-docker-sock", "augenrules --load");
        rig.d.uid = 1000;
        rig_run("audit-rules", check_audit_rules);
        rig_says(DOCTOR_WARNING, "needs root", "sudo hermes-sandbox doctor");
}

static void audit_log(void **state) {
        (void)state;
        rig_run("audit-log", check_audit_log);
        rig_says(DOCTOR_WARNING, "auditd.conf: No such file", "install auditd");
        rig_put(CONF,
                "# max_log_file_action = keep_logs\nnum_logs = 3\nmax_log_file = 6\nmax_log_file_action = ROTATE\n");
        rig_run("audit-log", check_audit_log);
        rig_says(DOCTOR_WARNING, "behind 3 files of 6 MiB", "KEEP_LOGS");
        rig_put(CONF, "num_logs = 3\n");
        rig_run("audit-log", check_audit_log);
        rig_says(DOCTOR_WARNING, "ROTATE", "KEEP_LOGS");
        rig_put(CONF, "Max_Log_File_Action=keep_logs\n");
        rig_run("audit-log", check_audit_log);
        rig_says(DOCTOR_OK, "max_log_file_action is keep_logs", NULL);
        rig_n(1);
}

static void audit_record(void **state) {
        (void)state;
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_WARNING, "no audit log: " LOG, "install auditd");
        rig_put(LOG,
                "type=TRUSTED_APP msg=audit(1795997800.250:76): pid=1 uid=0 msg='op=doctor doctor=0'\n");
        rig.write_to = LOG;
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_OK, "found in " LOG, NULL);
        /* Where auditd.conf has the log. */
        rig_put(CONF, "log_file = /elsewhere/audit.log\n");
        rig_put("/elsewhere/audit.log", "");
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_WARNING, "is not in /elsewhere/audit.log", "log_file");
        rig.write_to = "/elsewhere/audit.log";
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_OK, "found in /elsewhere/audit.log", NULL);
        rig.write_r = -EPERM;
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_WARNING, "takes no record", "outside of a container");
        required();
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_FAILURE, "takes no record", "outside of a container");
        rig.d.uid = 1000;
        rig_run("audit-record", check_audit_record);
        rig_says(DOCTOR_WARNING, "needs root", "sudo hermes-sandbox doctor");
        rig_n(1);
}

static void uid(void **state) {
        static const char process[] =
                "Name:\tsl\033eep\nUmask:\t0022\nUid:\t%u\t10000\t10000\t10000\nNSpid:\t77%s\n";
        char text[256];

        (void)state;
        rig_run("uid", check_uid);
        rig_says(DOCTOR_OK, "nobody on this machine has uid 10000", NULL);
        /* A command in a sandbox has a pid of its own there; another uid is another's. */
        snprintf(text, sizeof(text), process, 10000, "\t6");
        rig_put("/proc/77/status", text);
        snprintf(text, sizeof(text), process, 1000, "");
        rig_put("/proc/78/status", text);
        rig_put("/proc/self/status", text);
        rig_run("uid", check_uid);
        rig_says(DOCTOR_OK, "nobody on this machine has uid 10000", NULL);
        snprintf(text, sizeof(text), process, 10000, "");
        rig_put("/proc/79/status", text);
        rig_put("/etc/passwd", PASSWD "eve:x:10000:10000::/:/bin/sh\n");
        rig_run("uid", check_uid);
        rig_says(DOCTOR_WARNING, "process 79", "a uid and gid that nobody has");
        rig_says(DOCTOR_WARNING, "account eve", "a uid and gid that nobody has");
        rig_n(2);
        /* Each uid of the profiles, once. */
        rig_put("/etc/hermes-sandbox/sandbox.yaml",
                "pool:\n  user: \"20000:20000\"\nprofiles:\n  a: {}\n  b:\n    user: \"10000:10000\"\n");
        rig_run("uid", check_uid);
        rig_says(DOCTOR_OK, "uid 20000", NULL);
        rig_n(3);
        rig_put("/etc/hermes-sandbox/sandbox.yaml", "bad");
        rig_run("uid", check_uid);
        rig_says(DOCTOR_WARNING, "which uids", "config check");
}

/* Of a disk of so many MiB so many are free. */
static void room(unsigned long total, unsigned long left) {
        rig.disk = (struct statvfs){ .f_frsize = 1 << 20, .f_blocks = total, .f_bavail = left };
        rig_run("disk", check_disk);
        rig_n(3);
}

static void disk(void **state) {
        (void)state;
        room(100000, 6000);
        rig_says(DOCTOR_OK, "the engine's images", NULL);
        rig_says(DOCTOR_OK, "/var/log/audit", NULL);
        room(100000, 4000); /* 4 % */
        rig_says(DOCTOR_WARNING, "/var/lib/docker", "prune");
        rig_says(DOCTOR_WARNING, "/var/log/hermes-sandbox", "backup_count");
        rig_says(DOCTOR_WARNING, "/var/log/audit", "move");
        room(2000, 1000); /* less than 1 GiB */
        rig_says(DOCTOR_WARNING, "/var/lib/docker", "prune");
        room(100000, 400);
        rig_says(DOCTOR_FAILURE, "/var/lib/docker", "prune");
        room(1000, 10);
        rig_says(DOCTOR_FAILURE, "/var/lib/docker", "prune");
        rig.disk = (struct statvfs){ .f_frsize = 1 << 20,
                                     .f_blocks = 100000,
                                     .f_bavail = 90000,
                                     .f_files = 1000,
                                     .f_favail = 10 };
        rig_run("disk", check_disk);
        rig_says(DOCTOR_WARNING, "the readable trail): 90000 MiB of 100000 MiB are free, but few inodes",
                 "backup_count");
        rig.disk_r = -ENOENT;
        rig_run("disk", check_disk);
        rig_says(DOCTOR_WARNING, "/var/log/audit (the kernel's trail): No such file", NULL);
        rig.disk_r = -EACCES;
        rig_run("disk", check_disk);
        rig_says(DOCTOR_WARNING, "/var/log/audit: not looked at: needs root",
                 "sudo hermes-sandbox doctor");
        /* Where the engine says that its data is. */
        rig.disk_r = 0;
        rig.replies[0].path = "/version";
        rig.replies[1].path = "/info";
        rig.replies[0].http = rig.replies[1].http = 200;
        rig.replies[0].body = "{}";
        rig.replies[1].body = "{\"DockerRootDir\": \"/srv/docker\"}";
        room(100000, 50000);
        rig_says(DOCTOR_OK, "/srv/docker", NULL);
}

static void clock_(void **state) {
        (void)state;
        rig.synchronized = true;
        rig.now = 1795997800; /* 2026-11-30 */
        rig_run("clock", check_clock);
        rig_says(DOCTOR_OK, "NTP keeps", NULL);
        rig.synchronized = false;
        rig_run("clock", check_clock);
        rig_says(DOCTOR_WARNING, "nothing keeps the clock", "set-ntp true");
        rig.synchronized = true;
        rig.now = 1700000000; /* 2023 */
        rig_run("clock", check_clock);
        rig_says(DOCTOR_FAILURE, "the clock says 2023, and this version is of 2026", "set-ntp true");
        rig.clock_r = -EPERM;
        rig_run("clock", check_clock);
        rig_says(DOCTOR_WARNING, "the clock is not known", NULL);
}

/* --- the program ----------------------------------------------------------------------------------- */

static char out[65536], err[1024];

static int command(const char *a, const char *b) {
        char *argv[] = { (char[]){ "doctor" }, (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL };
        FILE *o = fmemopen(out, sizeof(out), "w"), *e = fmemopen(err, sizeof(err), "w");
        int rc;

        out[0] = err[0] = '\0';
        rc = doctor_command(&rig.d, b ? 3 : a ? 2 : 1, argv, o, e);
        fclose(o);
        fclose(e);
        return rc;
}

static void options(void **state) {
        (void)state;
        assert_int_equal(0, command("--help", NULL));
        assert_non_null(strstr(out, "usage: hermes-sandbox doctor"));
        assert_int_equal(EXIT_USAGE, command("--colour", NULL));
        assert_non_null(strstr(err, "unknown option: --colour"));
        assert_int_equal(EXIT_USAGE, command("--root", NULL));
        assert_int_equal(EXIT_USAGE, command("--root", "relative"));
        assert_int_equal(EXIT_USAGE, command("too", "many"));
        assert_string_equal("", out);
}

/* Everything as it should be: the only case in which every check has something to say, and nothing is wrong. */
static void healthy(void) {
        static const char status[] =
                "{\"version\": \"" VERSION
                "\", \"engine\": {\"state\": \"up\"}, \"pools\": [{\"profile\": "
                "\"default\", \"size\": 1, \"warm\": 1, \"layers\": {\"limits\": {\"state\": \"active\", "
                "\"why\": \"v2\"}}}]}";

        rig.status = status;
        rig.replies[0].path = "/version";
        rig.replies[0].body =
                "{\"Version\": \"29.5.1\", \"Components\": [{\"Name\": \"Engine\", \"Version\": "
                "\"29.5.1\"}]}";
        rig.replies[1].path = "/info";
        rig.replies[1].body = "{}";
        rig.replies[2].path = "/images/one:1/json";
        rig.replies[2].body = "{}";
        rig.replies[0].http = rig.replies[1].http = rig.replies[2].http = 200;
        rig.files[0].path = "/run/hermes-sandbox/pool.sock";
        rig.files[0].uid = 991;
        rig.files[0].gid = 992;
        rig.files[1].path = "/run/hermes-sandbox-engine/engine.sock";
        rig.files[1].uid = 990;
        rig.files[1].gid = 991;
        rig.files[2].path = "/run/docker.sock";
        rig.files[2].gid = 993;
        for (size_t i = 0; i < 3; i++)
                rig.files[i].mode = S_IFSOCK | 0660;
        rig.files[3].path = "/usr/sbin/hermes-docker-enable";
        rig.files[3].mode = S_IFREG | 04750;
        rig.files[3].gid = 992;
        rig_put("/var/lib/dpkg/statoverride",
                "root hermes-sandbox 4750 /usr/sbin/hermes-docker-enable\n");
        rig_put(CONF, "max_log_file_action = keep_logs\n");
        rig_put(LOG, "");
        rig.write_to = LOG;
        rig.audit = (struct doctor_audit){ true, 7, 1, 1, 1 };
        rig.disk = (struct statvfs){ .f_frsize = 1 << 20, .f_blocks = 100000, .f_bavail = 50000 };
        rig.synchronized = true;
        rig.now = 1795997800;
}

static void all_is_well(void **state) {
        (void)state;
        healthy();
        assert_int_equal(0, command(NULL, NULL));
        if (!strstr(out, " ok, 0 warnings, 0 failures\n"))
                fail_msg("%s", out);
        assert_null(strstr(out, "mend:"));
        assert_null(strchr(out, '\033'));
        /* A warning alone is no failure; one failure is. */
        rig.synchronized = false;
        assert_int_equal(0, command(NULL, NULL));
        assert_non_null(strstr(out, "1 warning, 0 failures\n"));
        assert_non_null(strstr(out, "\n         mend: sudo apt-get install systemd-timesyncd"));
        rig.files[0].mode = S_IFSOCK | 0666;
        assert_int_equal(1, command(NULL, NULL));
        assert_non_null(strstr(out, "1 failure\n"));
}

static void as_json(void **state) {
        json_t *lines, *l;
        size_t i;

        (void)state;
        healthy();
        rig.synchronized = false;
        assert_int_equal(0, command("--json", NULL));
        lines = json_loads(out, 0, NULL);
        assert_true(json_is_array(lines));
        assert_true(json_array_size(lines) > 17);
        json_array_foreach(lines, i, l) {
                bool clock = strcmp(doctor_json_str(l, "check"), "clock") == 0;

                assert_int_equal(4, json_object_size(l));
                assert_string_equal(clock ? "warning" : "ok", doctor_json_str(l, "result"));
                assert_true(json_is_string(json_object_get(l, "text")));
                assert_true(clock ? json_is_string(json_object_get(l, "mend"))
                                  : json_is_null(json_object_get(l, "mend")));
        }
        json_decref(lines);
}

/* What the engine says can drive no terminal. */
static void hostile(void **state) {
        (void)state;
        healthy();
        rig.replies[0].body =
                "{\"Version\": \"1\\u001b[2J\\n\\u202eok\", \"ApiVersion\": 7, \"Components\": 3}";
        assert_int_equal(0, command(NULL, NULL));
        assert_null(strchr(out, '\033'));
        assert_null(strstr(out, "\u202e"));
        assert_non_null(strstr(out, "version 1\\x1b[2J\\x0a\\u{202e}ok, API , answers"));
        assert_int_equal(0, command("--json", NULL));
        assert_null(strchr(out, '\033'));
        assert_null(strstr(out, "\u202e"));
}

/* With nothing there, nothing crashes, and each check has its say within the time. */
static void nothing_there(void **state) {
        int64_t begin = doctor_now_ms();

        (void)state;
        rig.stat_r = -ENOENT;
        rig.disk_r = -ENOENT;
        rig.audit_r = -EPROTONOSUPPORT;
        rig.clock_r = -EPERM;
        assert_int_equal(1, command("--root", "/nonexistent"));
        assert_null(strstr(out, "ok  "));
        assert_int_equal(1, command("--json", NULL));
        assert_true(doctor_now_ms() - begin < 4000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RIG_TEST(auditd),       RIG_TEST(audit_rules), RIG_TEST(audit_log),
                RIG_TEST(audit_record), RIG_TEST(uid),         RIG_TEST(disk),
                RIG_TEST(clock_),       RIG_TEST(options),     RIG_TEST(all_is_well),
                RIG_TEST(as_json),      RIG_TEST(hostile),     RIG_TEST(nothing_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
