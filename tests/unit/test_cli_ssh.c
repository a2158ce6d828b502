/* hermes-sandbox ssh: lines of authorized_keys, addresses, the configuration, and the commands with the real ssh-keygen and
 * sshd, in a folder of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli_sshkey.h"
#include "cli/ssh/ssh.h"

#define FP "SHA256:D8ef6+iKhlbXk6swnJ2+0deDyGNsuOBNtUa5Uf6m9mM"
#define BLOB "AAAAC3NzaC1lZDI1NTE5AAAAICP3tCMzUvFHGMy5DxM2+eQ+LQevjkM8FDNqo/hSPF1p"

/* --- lines ---------------------------------------------------------------------------- */

static bool is(struct sshkey_span s, const char *text) {
        return s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}

static bool line_is(const char *line, const char *options, const char *type, const char *notes) {
        struct sshkey_line l;

        return sshkey_line_parse(line, strlen(line), &l) && is(l.options, options) && is(l.type, type) &&
               is(l.blob, BLOB) && is(l.notes, notes);
}

static void test_lines(void **state) {
        struct sshkey_line l;

        (void)state;
        assert_true(line_is("ssh-ed25519 " BLOB, "", "ssh-ed25519", ""));
        assert_true(line_is("  ssh-ed25519\t" BLOB "  me@here \r", "", "ssh-ed25519", "me@here"));
        assert_true(line_is("restrict,pty ssh-ed25519 " BLOB " fp=x n", "restrict,pty", "ssh-ed25519",
                            "fp=x n"));
        assert_true(line_is(
                "from=\"10.0.0.0/8, 1\",environment=\"A=\\\"b c\\\"\" ecdsa-sha2-nistp256 " BLOB,
                "from=\"10.0.0.0/8, 1\",environment=\"A=\\\"b c\\\"\"", "ecdsa-sha2-nistp256", ""));
        /* A type within quotes is none. */
        assert_true(line_is("command=\"ssh-rsa AAAA\" ssh-ed25519 " BLOB, "command=\"ssh-rsa AAAA\"",
                            "ssh-ed25519", ""));
        static const char *const none[] = { "",
                                            "   ",
                                            "# ssh-ed25519 " BLOB,
                                            "ssh-ed25519",
                                            "ssh-ed25519 AAAA",
                                            "ssh-ed25519 " BLOB "\x01",
                                            "x y ssh-ed25519 " BLOB,
                                            "command=\"ssh-ed25519 " BLOB };
        for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
                assert_false(sshkey_line_parse(none[i], strlen(none[i]), &l));
}

static int notes(const char *text, struct sshkey_notes *n) {
        return sshkey_notes_parse((struct sshkey_span){ text, strlen(text) }, n, NULL);
}

static void test_notes(void **state) {
        struct sshkey_notes n;
        char session[SSHKEY_SESSION_LEN + 1];

        (void)state;
        assert_int_equal(notes("fp=" FP " profile=hermes ttl=8h alice@laptop", &n), 0);
        assert_string_equal(n.fp, FP);
        assert_string_equal(n.profile, "hermes");
        assert_int_equal(n.ttl_ms, 8 * 3600 * 1000);
        assert_string_equal(n.name, "alice@laptop");
        sshkey_session(n.fp, session);
        assert_string_equal(session, "ssh-D8ef6-iKhlbXk6swnJ2-0deDyGNsuOBNtUa5Uf6m9mM");
        assert_int_equal(notes("fp=" FP, &n), 0);
        assert_string_equal(n.profile, "");
        static const char *const bad[] = { "",
                                           "alice",
                                           "fp=SHA256:short a",
                                           "fp=MD5:8ef6+iKhlbXk6swnJ2+0deDyGNsuOBNtUa5Uf6m9mMxxxx a",
                                           "fp=" FP "x a",
                                           "fp=" FP " ttl=x a",
                                           "fp=" FP " ttl=0 a",
                                           "fp=" FP " a b",
                                           "fp=" FP " weird=1 a",
                                           "fp=" FP " -a" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(notes(bad[i], &n), -EINVAL);
}

/* --- addresses and the configuration ---------------------------------------------------- */

static void test_listen(void **state) {
        static const char *const good[][2] = {
                { "127.0.0.1", "127.0.0.1:2222" }, { "10.1.2.3:22", "10.1.2.3:22" },
                { "::1", "[::1]:2222" },           { "[::1]:65535", "[::1]:65535" },
                { "[fe80::2]", "[fe80::2]:2222" }, { "0.0.0.0", "0.0.0.0:2222" }
        };
        static const char *const bad[] = {
                "",       "localhost", "127.0.0.1:", "127.0.0.1:0",     "127.0.0.1:65536", "[::1",
                "[::1]x", "1.2.3",     "::1 ",       "127.0.0.1:22\nX", "1.1.1.1:+1",      "[::1]:2222:1"
        };
        struct ssh_listen l;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                assert_int_equal(ssh_listen_parse(good[i][0], &l, NULL), 0);
                assert_string_equal(l.text, good[i][1]);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(ssh_listen_parse(bad[i], &l, NULL), -EINVAL);
        assert_int_equal(ssh_listen_parse("127.9.9.9", &l, NULL), 0);
        assert_false(ssh_listen_is_wide(&l));
        assert_int_equal(ssh_listen_parse("::", &l, NULL), 0);
        assert_true(ssh_listen_is_wide(&l));
}

static void test_config(void **state) {
        static const char template[] = "# a\n@LISTEN@\nb c\n@IF-KNOWN@ d e\n";
        const struct ssh_listen two[] = { { "127.0.0.1:2222" }, { "[::1]:22" } };
        struct ssh_listen found[SSH_LISTEN_MAX];
        char *text;
        size_t len;

        (void)state;
        assert_int_equal(ssh_config_make(template, strlen(template), two, 2, true, &text, &len), 0);
        assert_string_equal(text,
                            "# a\nListenAddress 127.0.0.1:2222\nListenAddress [::1]:22\nb c\nd e\n");
        assert_int_equal(ssh_listen_find(text, len, found), 2);
        assert_string_equal(found[1].text, "[::1]:22");
        free(text);
        assert_int_equal(ssh_config_make(template, strlen(template), two, 1, false, &text, &len), 0);
        assert_string_equal(text, "# a\nListenAddress 127.0.0.1:2222\nb c\n");
        free(text);
        assert_int_equal(ssh_config_make("x\n", 2, two, 1, false, &text, &len), -EINVAL);
}

/* --- commands ----------------------------------------------------------------------------- */

static char top[] = "/var/tmp/test-ssh.XXXXXX";
static char keys_file[64], out[8192], err[8192];
static struct ssh_places places;

static char *at(const char *name) {
        char *s;

        assert_true(asprintf(&s, "%s/%s", top, name) > 0);
        return s;
}

static void put(const char *name, const char *text) {
        FILE *f = fopen(at(name), "we");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static const char *get(const char *name) {
        static char text[65536];
        FILE *f = fopen(at(name), "re");
        size_t n;

        assert_non_null(f);
        n = fread(text, 1, sizeof(text) - 1, f);
        fclose(f);
        text[n] = '\0';
        return text;
}

/* Runs the program; @in is its stdin, or NULL. Its status, and what it wrote in out and err. */
static int run(const char *in, char **argv) {
        int status, argc = 0;
        pid_t pid;

        while (argv[argc])
                argc++;
        put("in", in ? in : "");
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
                alarm(60);
                if (!freopen(at("in"), "r", stdin) || !freopen(at("out"), "w", stdout) ||
                    !freopen(at("err"), "w", stderr))
                        _exit(99);
                status = ssh_main(&places, argc, argv);
                fflush(NULL);
                _exit(status);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        snprintf(out, sizeof(out), "%s", get("out"));
        snprintf(err, sizeof(err), "%s", get("err"));
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}
#define RUN(...) run(NULL, (char *[]){ (char[]){ "ssh" }, __VA_ARGS__, NULL })
#define W(s) ((char[]){ s })
/* One line, which begins so. */
#define SAYS(text)                                                          \
        do {                                                                \
                if (!strstr(err, text))                                     \
                        fail_msg("stderr: %s", err);                        \
                assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1); \
        } while (0)

static void keygen(const char *name, const char *type, const char *comment) {
        char command[512];

        snprintf(command, sizeof(command), "ssh-keygen -q -t %s -N '' -C '%s' -f %s/%s", type, comment,
                 top, name);
        assert_int_equal(system(command), 0);
}

static void test_add_key(void **state) {
        char *a = at("a.pub"), *b = at("b.pub"), line[4096];
        struct stat st;

        (void)state;
        keygen("a", "ed25519", "alice@laptop");
        keygen("b", "rsa", "two words");
        assert_int_equal(RUN(W("add-key"), a), 0);
        assert_non_null(strstr(out, "added alice@laptop SHA256:"));
        assert_non_null(strstr(out, ", profile default\n"));
        assert_int_equal(strncmp(get(SSH_KEYS), "restrict,pty ssh-ed25519 AAAA", 29), 0);
        assert_int_equal(stat(keys_file, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        /* From stdin, with a name that is made of the fingerprint. */
        snprintf(line, sizeof(line), "\n# mine\n%s", get("b.pub"));
        assert_int_equal(run(line, (char *[]){ W("ssh"), W("add-key"), W("-"), W("--profile"),
                                               W("hermes"), NULL }),
                         0);
        assert_non_null(strstr(out, "added key-"));
        /* Said again it is one line still, and has what is new. */
        assert_int_equal(RUN(W("add-key"), W("--ttl=8h"), W("--name=bob"), b), 0);
        assert_non_null(strstr(out, "was there, and is now bob SHA256:"));
        snprintf(line, sizeof(line), "%s", get(SSH_KEYS));
        assert_non_null(strstr(line, " profile=hermes ttl=8h bob\n"));
        assert_ptr_equal(strchr(strchr(line, '\n') + 1, '\n'), line + strlen(line) - 1);
        /* A name is one key's. */
        assert_int_equal(RUN(W("add-key"), W("--name"), W("alice@laptop"), b), 64);
        SAYS("another key has the name alice@laptop: say --name");
        assert_string_equal(get(SSH_KEYS), line);
}

static void test_refused_keys(void **state) {
        char *file = at("refused");
        char both[16384];

        (void)state;
        assert_int_equal(RUN(W("add-key"), at("a")), 64);
        SAYS("is a private key, which stays with its owner");
        assert_int_equal(RUN(W("add-key"), at("nothing")), 64);
        SAYS("cannot read");
        put("refused", "hello\n");
        assert_int_equal(RUN(W("add-key"), file), 64);
        SAYS("has no public key");
        snprintf(both, sizeof(both), "%s", get("a.pub"));
        strcat(both, get("b.pub"));
        put("refused", both);
        assert_int_equal(RUN(W("add-key"), file), 64);
        SAYS("more than one key");
        snprintf(both, sizeof(both), "command=\"x\" %s", get("a.pub"));
        put("refused", both);
        assert_int_equal(RUN(W("add-key"), file), 64);
        SAYS("has options in front of the key");
        put("refused", "ssh-ed25519 AAAAAAAAAAAAAAAAAAAAAAAAAAAA x\n");
        assert_int_equal(RUN(W("add-key"), file), 64);
        SAYS("ssh-keygen takes it for no public key");
        put("refused", "ssh-ed25519-cert-v01@openssh.com AAAAAAAAAAAAAAAAAAAAAAAAAAAA x\n");
        assert_int_equal(RUN(W("add-key"), file), 64);
        SAYS("is a certificate");
        assert_int_equal(RUN(W("add-key"), W("/dev/zero")), 64);
        SAYS("no public key is");
        assert_int_equal(RUN(W("add-key"), W("--profile=a b"), at("a.pub")), 64);
        SAYS("--profile 'a b'");
        assert_int_equal(RUN(W("add-key"), W("--ttl=never"), at("a.pub")), 64);
        SAYS("--ttl 'never'");
        assert_int_equal(RUN(W("add-key"), W("--name=a b"), at("a.pub")), 64);
        SAYS("--name 'a b'");
        assert_int_equal(RUN(W("add-key")), 64);
        SAYS("expected the file of a public key, or -");
        assert_int_equal(RUN(W("add-key"), W("x"), W("y")), 64);
        SAYS("unexpected argument 'y'");
}

/* What the administrator wrote stays. */
static void test_foreign_lines(void **state) {
        char text[16384], was[16384];

        (void)state;
        snprintf(was, sizeof(was), "%s", get(SSH_KEYS));
        snprintf(text, sizeof(text),
                 "# mine\n\nssh-ed25519 " BLOB " plain\nfrom=\"10.0.0.0/8, ::1\" %.*s\n",
                 (int)strcspn(was, "\n") - 13, was + 13);
        put(SSH_KEYS, text);
        assert_int_equal(RUN(W("add-key"), W("--ttl=1d"), at("a.pub")), 0);
        assert_non_null(strstr(get(SSH_KEYS), "# mine\n\nssh-ed25519 " BLOB
                                              " plain\nfrom=\"10.0.0.0/8, ::1\" ssh-ed25519 "));
        assert_non_null(strstr(get(SSH_KEYS), " ttl=1d alice@laptop\n"));
        assert_int_equal(RUN(W("list-keys")), 0);
        SAYS("authorized_keys line 3: the key's line has no fp=SHA256:");
        put(SSH_KEYS, was);
}

static void test_list_and_remove(void **state) {
        char *fp, word[64];

        (void)state;
        assert_int_equal(RUN(W("list-keys")), 0);
        assert_non_null(strstr(out, "alice@laptop"));
        assert_non_null(strstr(out, "profile hermes  ttl 8h\n"));
        assert_int_equal(RUN(W("list-keys"), W("--json")), 0);
        assert_int_equal(strncmp(out, "[{\"name\":\"alice@laptop\",\"fingerprint\":\"SHA256:", 46), 0);
        assert_non_null(strstr(
                out, "\"type\":\"ssh-rsa\",\"profile\":\"hermes\",\"ttl\":\"8h\",\"error\":null}]\n"));
        fp = strstr(out, "SHA256:");
        snprintf(word, sizeof(word), "%.*s", KEYFP_LEN, fp);
        assert_int_equal(RUN(W("remove-key"), word), 0);
        assert_int_equal(RUN(W("remove-key"), W("bob")), 0);
        assert_string_equal(get(SSH_KEYS), "");
        assert_int_equal(RUN(W("remove-key"), W("bob")), 1);
        SAYS("no key 'bob'");
}

static void test_words(void **state) {
        (void)state;
        assert_int_equal(RUN(W("frobnicate")), 64);
        SAYS("expected enable, disable, status, add-key, remove-key or list-keys");
        assert_int_equal(RUN(W("enable"), W("--listen"), W("localhost")), 64);
        SAYS("--listen 'localhost'");
        assert_int_equal(RUN(W("status"), W("--json")), 64);
        SAYS("unknown option --json");
        assert_int_equal(RUN(W("enable"), W("--help")), 0);
        assert_non_null(strstr(out, "usage: hermes-sandbox ssh enable"));
        places.root++;
        assert_int_equal(RUN(W("add-key"), at("a.pub")), 77);
        SAYS("add-key is root's: sudo hermes-sandbox ssh add-key");
        places.root--;
}

/* A folder or a file that others can write is refused as it stands. */
static void test_untrusted(void **state) {
        (void)state;
        assert_int_equal(chmod(keys_file, 0664), 0);
        assert_int_equal(RUN(W("list-keys")), 71);
        SAYS("nobody else can write");
        assert_int_equal(RUN(W("add-key"), at("a.pub")), 71);
        SAYS("nobody else can write");
        assert_int_equal(unlink(keys_file), 0);
        assert_int_equal(symlink("a.pub", keys_file), 0);
        assert_int_equal(RUN(W("add-key"), at("a.pub")), 71);
        SAYS("cannot open");
        assert_int_equal(unlink(keys_file), 0);
        assert_int_equal(chmod(top, 0777), 0);
        assert_int_equal(RUN(W("add-key"), at("a.pub")), 71);
        SAYS("others than root can write there");
        assert_int_equal(chmod(top, 0755), 0);
}

static void test_enable(void **state) {
        char config[16384], host_key[1024];
        pid_t pid;

        (void)state;
        if (geteuid() != 0 || access(places.sshd, X_OK) < 0)
                skip();
        assert_int_equal(RUN(W("status")), 0);
        assert_string_equal(out, "ssh:       disabled\n");
        if (RUN(W("enable"), W("--listen=127.0.0.1:2391")) != 0)
                fail_msg("stderr: %s", err);
        assert_string_equal(out, "root at 127.0.0.1:2391\n");
        pid = ssh_service_pid(&places);
        assert_true(pid > 0);
        snprintf(config, sizeof(config), "%s", get(SSH_CONFIG));
        snprintf(host_key, sizeof(host_key), "%s", get(SSH_HOST_KEY));
        /* Said again it changes nothing, and keeps the address. */
        assert_int_equal(RUN(W("enable")), 0);
        assert_int_equal(ssh_service_pid(&places), pid);
        assert_string_equal(get(SSH_CONFIG), config);
        assert_string_equal(get(SSH_HOST_KEY), host_key);
        assert_int_equal(RUN(W("status")), 0);
        assert_non_null(
                strstr(out, "ssh:       enabled\nlistens:   127.0.0.1:2391\nhost key:  256 SHA256:"));
        assert_non_null(strstr(out, "keys:      0\n"));
        assert_int_equal(RUN(W("disable")), 0);
        assert_int_equal(ssh_service_pid(&places), 0);
        assert_int_equal(RUN(W("disable")), 0);
        assert_int_equal(RUN(W("status")), 0);
        assert_string_equal(get(SSH_HOST_KEY), host_key);
}

/* Nothing is changed by what sshd does not take, and an sshd that is missing is named. */
static void test_enable_refused(void **state) {
        struct ssh_places p = places;

        (void)state;
        places.sshd = "/nonexistent/sshd";
        assert_int_equal(RUN(W("enable")), 71);
        SAYS("/nonexistent/sshd is not there: apt install openssh-server");
        places = p;
        places.account = "no-such-account";
        if (access(places.sshd, X_OK) == 0) {
                assert_int_equal(RUN(W("enable")), 71);
                SAYS("there is no account no-such-account: systemd-sysusers hermes-sandbox.conf");
        }
        places = p;
        if (geteuid() != 0 || access(places.sshd, X_OK) < 0)
                skip();
        put("bad", "@LISTEN@\nNoSuchWord yes\n");
        places.template = at("bad");
        assert_int_equal(RUN(W("enable")), 78);
        SAYS("sshd does not take the configuration: ");
        assert_int_equal(access(at(SSH_CONFIG), F_OK), -1);
        places = p;
}

/* The shipped template, with the folder of the test in it. */
static void make_template(void) {
        char command[512];

        snprintf(
                command, sizeof(command),
                "sed 's#/etc/hermes-sandbox/ssh#%s#; s#/run/hermes-sandbox-ssh#%s#' etc/ssh/sshd_config >%s/template",
                top, top, top);
        assert_int_equal(system(command), 0);
}

static int setup(void **state) {
        struct passwd *pw = getpwuid(geteuid());

        (void)state;
        if (!mkdtemp(top) || !pw || chmod(top, 0755) < 0)
                return -1;
        umask(022);
        snprintf(keys_file, sizeof(keys_file), "%s/" SSH_KEYS, top);
        make_template();
        places = (struct ssh_places){
                .dir = top,
                .template = at("template"),
                .home = at("home"),
                .run = top,
                .privsep = geteuid() == 0 ? "/run/sshd" : at("privsep"),
                .log_dir = at("log"),
                .account = strdup(pw->pw_name),
                .systemd_dir = "/nonexistent",
                .sshd = "/usr/sbin/sshd",
                .ssh_keygen = "/usr/bin/ssh-keygen",
                .systemctl = "/nonexistent/systemctl",
                .root = geteuid(),
        };
        return 0;
}

static int teardown(void **state) {
        pid_t pid = ssh_service_pid(&places);
        char command[64];

        (void)state;
        if (pid > 0)
                kill(pid, SIGTERM);
        snprintf(command, sizeof(command), "rm -rf %s", top);
        return system(command);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),           cmocka_unit_test(test_notes),
                cmocka_unit_test(test_listen),          cmocka_unit_test(test_config),
                cmocka_unit_test(test_words),           cmocka_unit_test(test_add_key),
                cmocka_unit_test(test_refused_keys),    cmocka_unit_test(test_foreign_lines),
                cmocka_unit_test(test_list_and_remove), cmocka_unit_test(test_untrusted),
                cmocka_unit_test(test_enable),          cmocka_unit_test(test_enable_refused),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
