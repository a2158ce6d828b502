/* The ssh gateway's program, with sshd's environment and a fake manager. */
#include <sys/stat.h>

#include "clirig.h"

#include "cli/gateway/gateway.h"
#include "common/proto_open.h"

#define FP "SHA256:D8ef6+iKhlbXk6swnJ2+0deDyGNsuOBNtUa5Uf6m9mM"
#define SESSION "ssh-D8ef6-iKhlbXk6swnJ2-0deDyGNsuOBNtUa5Uf6m9mM"
#define BLOB "AAAAC3NzaC1lZDI1NTE5AAAAICP3tCMzUvFHGMy5DxM2+eQ+LQevjkM8FDNqo/hSPF1p"
#define OTHER "AAAAC3NzaC1lZDI1NTE5AAAAIP///////////////////////////////////////////1p"
#define KEYS                                                             \
        "# list\nrestrict,pty ssh-ed25519 " OTHER                        \
        " fp=SHA256:0000000000000000000000000000000000000000000 other\n" \
        "restrict,pty ssh-ed25519 " BLOB " fp=" FP " profile=hermes ttl=8h me\n"

static char auth[80], keys[80], auth_var[120];

static void write_file(const char *path, const char *text, mode_t mode) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        assert_int_equal(chmod(path, mode), 0);
}

/* --- the manager's side --- */

/* HELLO of the gateway, and a request of @type in a static buffer. */
static const struct frame *take_of_gateway(struct peer *p, uint8_t type) {
        struct hello h;

        must(peer_next(p) && p->f.type == FRAME_HELLO, "no HELLO");
        must(hello_decode(p->f.payload, p->f.len, &h) == 0 && h.role == HELLO_GATEWAY,
             "no HELLO of a gateway");
        must(strcmp(h.text, FP " 192.0.2.7 54321 auth") == 0, "who it speaks for");
        must(peer_next(p) && p->f.type == type && p->f.channel == 1, "another request");
        return &p->f;
}

static struct exec_request take_exec(struct peer *p) {
        static uint8_t payload[FRAME_PAYLOAD_MAX];
        const struct frame *f = take_of_gateway(p, FRAME_EXEC);
        struct exec_request r;

        memcpy(payload, f->payload, f->len);
        must(exec_request_decode(payload, f->len, &r) == 0, "bad EXEC");
        must(strcmp(r.session, SESSION) == 0 && r.profile[0] == '\0' && !r.open && !r.shell &&
                     r.use_stdin && !r.tty,
             "the request");
        put_hello(p, FRAME_VERSION);
        return r;
}

/* All its strings, one behind the other. */
static void expect_words(const struct exec_request *r, const char *words) {
        char text[2048] = "";
        struct wire_in in;

        wire_in_init(&in, r->args_wire, r->strings_len);
        for (uint32_t i = 0; i < r->n_args + r->n_env; i++) {
                strcat(text, wire_get_str(&in, 1000));
                strcat(text, "|");
        }
        if (strcmp(text, words) != 0)
                fprintf(stderr, "words: %s\n", text);
        must(strcmp(text, words) == 0, "the words");
}

static void refuse(struct peer *p, uint8_t code, uint8_t reason, const char *line) {
        const struct reject r = { .exit_code = code, .reason = reason, .message = line };
        uint8_t buf[1100];

        put(p, FRAME_REJECT, 1, buf, (size_t)reject_encode(&r, buf, sizeof(buf)));
}

static void take_stdin(struct peer *p, const char *text) {
        char got[64] = "";

        while (peer_next(p) && p->f.type == FRAME_STDIN) {
                strncat(got, (const char *)p->f.payload, p->f.len);
                if (p->f.flags & FRAME_EOF)
                        break;
        }
        must(strcmp(got, text) == 0, "the input");
}

#define ENV                                                                                                 \
        "SHELL=/bin/bash|SSH_CONNECTION=192.0.2.7 54321 192.0.2.1 2222|USER=hermes-ssh|LOGNAME=hermes-ssh|" \
        "SSH_CLIENT=192.0.2.7 54321 2222|LANG=C.UTF-8|LC_TIME=de|"

static void m_command(struct peer *p) {
        struct exec_request r = take_exec(p);

        expect_words(&r, "/bin/bash|-c|echo 'a  b'; exit 7|" ENV);
        put_started(p);
        take_stdin(p, "input\n");
        put(p, FRAME_STDOUT, 1, "out\n", 4);
        put(p, FRAME_STDERR, 1, "err\n", 4);
        put_exit(p, 7);
}

static void m_login(struct peer *p) {
        struct exec_request r = take_exec(p);

        expect_words(&r, "/bin/bash|-l|" ENV);
        put_started(p);
        put_exit(p, 0);
}

static void take_gateway_open(struct peer *p) {
        const struct frame *f = take_of_gateway(p, FRAME_OPEN);
        struct open_request r;

        must(open_request_decode(f->payload, f->len, &r) == 0, "bad OPEN");
        must(strcmp(r.name, SESSION) == 0 && strcmp(r.profile, "hermes") == 0 &&
                     r.ttl_ms == 8 * 3600 * 1000 && !r.mounts && r.n_env == 0,
             "the session");
        put_hello(p, FRAME_VERSION);
}

/* No session: it is opened, the command is sent again, and so is what was read of stdin. */
static void m_opens(struct peer *p) {
        take_exec(p);
        take_stdin(p, "input\n");
        refuse(p, 125, REJECT_NO_SESSION, "no such session");
        peer_again(p);
        take_gateway_open(p);
        put(p, FRAME_ANSWER, 1, "", 0);
        peer_again(p);
        take_exec(p);
        put_started(p);
        take_stdin(p, "input\n");
        put_exit(p, 0);
}

/* Another channel was faster, and somebody has stopped it. */
static void m_races(struct peer *p) {
        struct ask a;
        const struct frame *f;

        take_exec(p);
        refuse(p, 125, REJECT_NO_SESSION, "no such session");
        peer_again(p);
        take_gateway_open(p);
        refuse(p, 64, REJECT_NAME_TAKEN, "taken");
        peer_again(p);
        take_exec(p);
        refuse(p, 125, REJECT_STOPPED, "it is stopped");
        peer_again(p);
        f = take_of_gateway(p, FRAME_ASK);
        must(ask_decode(f->payload, f->len, &a) == 0 && a.op == ASK_SESSION_START &&
                     strcmp(a.name, SESSION) == 0,
             "ASK");
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_ANSWER, 1, "", 0);
        peer_again(p);
        take_exec(p);
        put_started(p);
        put_exit(p, 3);
}

static void m_no_profile(struct peer *p) {
        take_exec(p);
        refuse(p, 125, REJECT_NO_SESSION, "no such session");
        peer_again(p);
        take_gateway_open(p);
        refuse(p, 78, REJECT_NO_PROFILE, "no profile hermes");
}

/* It does not go on for ever. */
static void m_never(struct peer *p) {
        for (int i = 0; i < 8; i++) {
                take_exec(p);
                refuse(p, 125, REJECT_NO_SESSION, "no such session");
                peer_again(p);
                take_gateway_open(p);
                put(p, FRAME_ANSWER, 1, "", 0);
                peer_again(p);
        }
        take_exec(p);
        refuse(p, 125, REJECT_NO_SESSION, "no such session");
}

static void m_no_bash(struct peer *p) {
        struct result r = a_result();
        struct exec_request q;

        take_exec(p);
        put_started(p);
        take_stdin(p, "input\n");
        r.cause = CAUSE_NOT_FOUND;
        r.exit_code = 127;
        r.message = "no /bin/bash";
        put_result(p, &r);
        peer_again(p);
        q = take_exec(p);
        must(q.n_args == 3 && strcmp((const char *)q.args_wire + 4, "/bin/sh") == 0, "the second shell");
        put_started(p);
        take_stdin(p, "input\n");
        put_exit(p, 0);
}

static void m_neither(struct peer *p) {
        struct result r = a_result();

        r.cause = CAUSE_NOT_FOUND;
        r.exit_code = 127;
        r.message = "no such shell";
        for (int i = 0; i < 2; i++) {
                if (i > 0)
                        peer_again(p);
                take_exec(p);
                put_started(p);
                put_result(p, &r);
        }
}

/* Written to when the program waits for the manager. */
static int waits[2];

/* A command that says nothing, until its caller has gone. */
static void m_silent(struct peer *p) {
        take_exec(p);
        put_started(p);
        must(write(waits[1], "x", 1) == 1, "write");
        while (peer_next(p))
                ;
}

/* So does a session that takes its time. */
static void m_slow_open(struct peer *p) {
        take_exec(p);
        refuse(p, 125, REJECT_NO_SESSION, "no such session");
        peer_again(p);
        take_gateway_open(p);
        must(write(waits[1], "x", 1) == 1, "write");
        while (peer_next(p))
                ;
}

/* --- the runner --- */

static char *base_env[] = { auth_var,
                            (char[]){ "SSH_CONNECTION=192.0.2.7 54321 192.0.2.1 2222" },
                            (char[]){ "USER=hermes-ssh" },
                            (char[]){ "LOGNAME=hermes-ssh" },
                            (char[]){ "HOME=/var/lib/hermes-sandbox-ssh" },
                            (char[]){ "PATH=/usr/bin" },
                            (char[]){ "SSH_CLIENT=192.0.2.7 54321 2222" },
                            (char[]){ "TERM=xterm" },
                            (char[]){ "LANG=C.UTF-8" },
                            (char[]){ "LC_TIME=de" },
                            (char[]){ "LC_time=x" },
                            (char[]){ "LD_PRELOAD=/tmp/x.so" },
                            (char[]){ "BASH_ENV=/tmp/x" },
                            (char[]){ "HERMES_SANDBOX_SOCKET=/nonexistent" },
                            NULL,
                            NULL };
#define LAST (sizeof(base_env) / sizeof(base_env[0]) - 2)

static pid_t start(int in, int out_fd, int err_fd) {
        const struct gateway g = {
                .cli = { .system_socket = sock, .socket = sock, .group_file = "/etc/group" },
                .keys = keys,
                .owner = geteuid()
        };
        pid_t pid = fork();

        if (pid == 0) {
                alarm(DEADLINE_S);
                dup2(in, 0);
                dup2(out_fd, 1);
                dup2(err_fd, 2);
                close_range(3, ~0U, 0);
                exit(gateway_run(&g, base_env));
        }
        return pid;
}

/* @command: NULL: none. */
static void login(void (*manager)(struct peer *p), const char *command, int code, const char *out,
                  const char *err) {
        static char var[256];
        int in[2], ends[2], errs[2], status = 0;
        char got[256] = "", said[1024] = "";
        pid_t m = manager ? start_manager(manager) : 0, pid;

        snprintf(var, sizeof(var), "SSH_ORIGINAL_COMMAND=%s", command ? command : "");
        base_env[LAST] = command ? var : NULL;
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(pipe2(errs, O_CLOEXEC), 0);
        assert_int_equal(write(in[1], "input\n", 6), 6);
        close(in[1]);
        pid = start(in[0], ends[1], errs[1]);
        close(ends[1]);
        close(errs[1]);
        close(in[0]);
        for (ssize_t n, at = 0; (n = read(ends[0], got + at, sizeof(got) - 1 - (size_t)at)) > 0;)
                at += n;
        for (ssize_t n, at = 0; (n = read(errs[0], said + at, sizeof(said) - 1 - (size_t)at)) > 0;)
                at += n;
        close(ends[0]);
        close(errs[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
                print_message("status %x, stderr: %s\n", (unsigned)status, said);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), code);
        assert_string_equal(got, out);
        if (!strstr(said, err) || (err[0] == '\0' && said[0] != '\0'))
                fail_msg("stderr: %s", said);
        if (m > 0) {
                assert_int_equal(waitpid(m, &status, 0), m);
                assert_int_equal(status, 0);
        }
}

/* Whoever reads our output goes away: the program dies of SIGHUP, and the manager sees the end. */
static void hang_up(void (*manager)(struct peer *p)) {
        int in[2], ends[2], status;
        char byte;
        pid_t m, pid;

        assert_int_equal(pipe2(waits, O_CLOEXEC), 0);
        m = start_manager(manager);
        base_env[LAST] = (char[]){ "SSH_ORIGINAL_COMMAND=sleep 1000" };
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid = start(in[0], ends[1], 2);
        close(ends[1]);
        assert_int_equal(read(waits[0], &byte, 1), 1);
        close(ends[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
        assert_int_equal(waitpid(m, &status, 0), m);
        assert_int_equal(status, 0);
        close(in[0]);
        close(in[1]);
        close(waits[0]);
        close(waits[1]);
}

/* --- the cases --- */

static void test_command(void **state) {
        (void)state;
        login(m_command, "echo 'a  b'; exit 7", 7, "out\n", "err\n");
        login(m_login, NULL, 0, "", "");
}

static void test_session(void **state) {
        (void)state;
        login(m_opens, "x", 0, "", "");
        login(m_races, "x", 3, "", "");
        login(m_no_profile, "x", 78, "", "hermes-sandbox: no profile hermes\n");
        login(m_never, "x", 125, "", "hermes-sandbox: no such session\n");
}

static void test_shells(void **state) {
        (void)state;
        login(m_no_bash, "x", 0, "", "");
        login(m_neither, "x", 127, "", "hermes-sandbox: no such shell\n");
}

static void test_hang_up(void **state) {
        (void)state;
        hang_up(m_silent);
        hang_up(m_slow_open);
}

/* What sshd says, and what root's file says, is believed only as it should be. */
static void test_who(void **state) {
        char *connection = base_env[1], other[100];

        (void)state;
        login(NULL, "x", 69, "", "no manager at ");
        write_file(auth, "publickey ssh-ed25519 " BLOB "x\n", 0600);
        login(NULL, "x", 77, "", " has no such key any more: hermes-sandbox ssh add-key adds it\n");
        write_file(auth, "publickey ssh-ed25519 " BLOB "\npublickey ssh-ed25519 " OTHER "\n", 0600);
        login(NULL, "x", 77, "",
              " names no key, or more than one: sshd_config has to have AuthenticationMethods publickey\n");
        write_file(auth, "password\n", 0600);
        login(NULL, "x", 77, "",
              " names no key, or more than one: sshd_config has to have AuthenticationMethods publickey\n");
        write_file(auth, "publickey ssh-ed25519 " BLOB "\n", 0622);
        login(NULL, "x", 77, "", "nobody else can write");
        unlink(auth);
        login(NULL, "x", 77, "", "cannot open");
        snprintf(other, sizeof(other), "%s.other", auth);
        write_file(other, "publickey ssh-ed25519 " BLOB "\n", 0600);
        assert_int_equal(symlink(other, auth), 0);
        login(NULL, "x", 77, "", "cannot open");
        unlink(auth);
        unlink(other);
        write_file(auth, "publickey ssh-ed25519 " BLOB "\n", 0600);
        write_file(keys, "ssh-ed25519 " BLOB " me\n", 0644);
        login(NULL, "x", 78, "", "add it with hermes-sandbox ssh add-key\n");
        write_file(keys, KEYS, 0664);
        login(NULL, "x", 78, "", "nobody else can write");
        write_file(keys, KEYS, 0644);
        base_env[1] = (char[]){ "SSH_CONNECTION=x; 1 2 3" };
        login(NULL, "x", 64, "", "SSH_CONNECTION does not say who asks");
        base_env[1] = connection;
        auth_var[0] = 'X';
        login(NULL, "x", 64, "", "SSH_USER_AUTH is not set");
        auth_var[0] = 'S';
}

static void test_env(void **state) {
        char *env[] = { (char[]){ "TERM=xterm" }, (char[]){ "LANG=a" }, (char[]){ "LANGUAGE=b" },
                        (char[]){ "LC_=c" },      (char[]){ "LC_A" },   NULL };
        const char *got[GW_ENV_MAX];

        (void)state;
        assert_int_equal(gw_env_make(env, true, got), 4);
        assert_string_equal(got[0], "SHELL=/bin/bash");
        assert_string_equal(got[1], "SSH_TTY=/dev/tty");
        assert_string_equal(got[2], "TERM=xterm");
        assert_string_equal(got[3], "LANG=a");
        assert_int_equal(gw_env_make(env, false, got), 2);
}

static int setup_gateway(void **state) {
        if (setup(state) < 0)
                return -1;
        snprintf(auth, sizeof(auth), "%s/auth", dir);
        snprintf(keys, sizeof(keys), "%s/keys", dir);
        snprintf(auth_var, sizeof(auth_var), "SSH_USER_AUTH=%s", auth);
        write_file(auth, "publickey ssh-ed25519 " BLOB "\n", 0600);
        write_file(keys, KEYS, 0644);
        return 0;
}

static int teardown_gateway(void **state) {
        unlink(auth);
        unlink(keys);
        return teardown(state);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_command), cmocka_unit_test(test_session),
                cmocka_unit_test(test_shells),  cmocka_unit_test(test_hang_up),
                cmocka_unit_test(test_who),     cmocka_unit_test(test_env),
        };

        return cmocka_run_group_tests(tests, setup_gateway, teardown_gateway);
}
