/* exec -t and top on a terminal: a pseudoterminal of which the test has the other end. */
#include "clirig.h"

#include <sys/ioctl.h>
#include <termios.h>

#define ROWS 33
#define COLUMNS 101

/* --- a program on a terminal ----------------------------------------------------------------- */

static struct tty {
        int master, stays; /* stays: the other end, so that it outlives the program */
        struct termios was;
        pid_t cli, manager;
        char seen[1 << 16];
        size_t len;
} t;

static void become(char **argv, int slave, int in, int out) {
        struct how h = { .stdin_fd = in >= 0 ? in : slave };

        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        setenv("TERM", "test-9", 1);
        run_child(argv, &h, out >= 0 ? out : slave, slave);
}

/* Starts the program with these streams in place of the terminal, or -1. */
static void begin(char **argv, void (*manager)(struct peer *p), int in, int out) {
        struct winsize w = { .ws_row = ROWS, .ws_col = COLUMNS };

        t.manager = start_manager(manager);
        t.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_int_equal(grantpt(t.master), 0);
        assert_int_equal(unlockpt(t.master), 0);
        assert_int_equal(ioctl(t.master, TIOCSWINSZ, &w), 0);
        t.stays = open(ptsname(t.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(t.stays >= 0);
        assert_int_equal(tcgetattr(t.stays, &t.was), 0);
        t.len = 0;
        t.seen[0] = '\0';
        t.cli = fork();
        if (t.cli == 0)
                become(argv, t.stays, in, out);
}

/* Until that text has come out of the terminal. */
static void until(const char *text) {
        while (!strstr(t.seen, text)) {
                struct pollfd p = { .fd = t.master, .events = POLLIN };
                ssize_t n;

                if (poll(&p, 1, DEADLINE_S * 1000) != 1) {
                        print_message("%s did not come, but: %s\n", text, t.seen);
                        fail();
                }
                n = read(t.master, t.seen + t.len, sizeof(t.seen) - 1 - t.len);
                assert_true(n > 0);
                t.len += (size_t)n;
                t.seen[t.len] = '\0';
        }
}

static void type(const char *keys) {
        assert_int_equal(write(t.master, keys, strlen(keys)), strlen(keys));
}

static bool same_modes(void) {
        struct termios now;

        assert_int_equal(tcgetattr(t.stays, &now), 0);
        return now.c_iflag == t.was.c_iflag && now.c_oflag == t.was.c_oflag &&
               now.c_cflag == t.was.c_cflag && now.c_lflag == t.was.c_lflag &&
               memcmp(now.c_cc, t.was.c_cc, sizeof(now.c_cc)) == 0;
}

static bool raw(void) {
        struct termios now;

        assert_int_equal(tcgetattr(t.stays, &now), 0);
        return !(now.c_lflag & (ICANON | ECHO | ISIG | IEXTEN)) && !(now.c_oflag & OPOST) &&
               !(now.c_iflag & (ICRNL | IXON));
}

static void until_raw(void) {
        for (int i = 0; i < DEADLINE_S * 1000 && !raw(); i++)
                poll(NULL, 0, 1);
        assert_true(raw());
}

/* The end of both, and the terminal as it was. Returns the status of the program. */
static int end(void) {
        int status, of_manager;

        assert_int_equal(waitpid(t.cli, &status, 0), t.cli);
        assert_true(same_modes());
        assert_int_equal(waitpid(t.manager, &of_manager, 0), t.manager);
        assert_int_equal(of_manager, 0);
        close(t.stays);
        if (t.master >= 0)
                close(t.master);
        return status;
}

static void ends_with(int code) {
        int status = end();

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), code);
}

static void ends_by(int signo) {
        int status = end();

        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signo);
}

/* --- exec -it -------------------------------------------------------------------------------- */

static void greet_tty(struct peer *p) {
        struct exec_request r = take_request(p);
        struct wire_in in;

        must(r.tty && r.use_stdin && r.rows == ROWS && r.cols == COLUMNS, "the request");
        must(r.n_env == 1, "variables");
        wire_in_init(&in, r.args_wire, r.strings_len);
        for (uint32_t i = 0; i < r.n_args; i++)
                wire_get_str(&in, 100);
        must(strcmp(wire_get_str(&in, 100), "TERM=test-9") == 0, "TERM");
        put_hello(p, FRAME_VERSION);
        put_started(p);
}

/* Reads STDIN frames until these bytes have come. */
static void take_keys(struct peer *p, const char *keys, size_t len) {
        size_t n = 0;

        while (n < len) {
                must(peer_next(p) && p->f.type == FRAME_STDIN && !(p->f.flags & FRAME_EOF), "no STDIN");
                must(n + p->f.len <= len && memcmp(p->f.payload, keys + n, p->f.len) == 0, "other keys");
                n += p->f.len;
        }
}

static void m_keys(struct peer *p) {
        greet_tty(p);
        put(p, FRAME_STDOUT, 1, "a\nb\x1b[1m", 7);
        take_keys(p, "x\x03\x04\x1a\x1c\r\x11", 7);
        put(p, FRAME_STDOUT, 1, "end", 3);
        put_exit(p, 9);
}

static void test_keys(void **state) {
        (void)state;
        begin(ARGV(W("exec"), W("-it"), W("sh")), m_keys, -1, -1);
        until("a\nb\x1b[1m");
        assert_true(raw());
        type("x\x03\x04\x1a\x1c\r\x11");
        until("end");
        ends_with(9);
        assert_string_equal(t.seen, "a\nb\x1b[1mend");
}

static void m_resize(struct peer *p) {
        struct resize size;

        greet_tty(p);
        must(peer_next(p) && p->f.type == FRAME_RESIZE, "no RESIZE");
        must(resize_decode(p->f.payload, p->f.len, &size) == 0 && size.rows == 50 && size.cols == 200,
             "size");
        put_exit(p, 0);
}

static void test_resize(void **state) {
        struct winsize w = { .ws_row = 50, .ws_col = 200 };

        (void)state;
        begin(ARGV(W("exec"), W("-ti"), W("sh")), m_resize, -1, -1);
        until_raw();
        assert_int_equal(ioctl(t.master, TIOCSWINSZ, &w), 0);
        ends_with(0);
}

static int take_signal(struct peer *p) {
        must(peer_next(p) && p->f.type == FRAME_SIGNAL, "no SIGNAL");
        return p->f.payload[0];
}

/* Those that come at once come in any order. */
static void m_signals(struct peer *p) {
        int n = 0;

        greet_tty(p);
        for (int i = 0; i < 3; i++)
                n += take_signal(p);
        must(n == SIGTERM + SIGTSTP + SIGQUIT, "other signals");
        put(p, FRAME_STDOUT, 1, "three", 5);
        take_keys(p, "q", 1);
        put_exit(p, 143);
}

/* They are the command's, SIGTSTP too. What another program did to the terminal is undone when we go on. */
static void test_signals(void **state) {
        (void)state;
        begin(ARGV(W("exec"), W("-it"), W("sh")), m_signals, -1, -1);
        until_raw();
        /* The signals may still be open: raw mode comes first. */
        when_blocked(t.cli, SIGTSTP);
        kill(t.cli, SIGTERM);
        kill(t.cli, SIGTSTP);
        kill(t.cli, SIGQUIT);
        until("three");
        assert_int_equal(tcsetattr(t.stays, TCSANOW, &t.was), 0);
        kill(t.cli, SIGSTOP);
        kill(t.cli, SIGCONT);
        until_raw();
        type("q");
        ends_with(143);
}

static void m_up(struct peer *p) {
        greet_tty(p);
        put(p, FRAME_STDOUT, 1, "up", 2);
        while (peer_next(p))
                must(p->f.type == FRAME_WINDOW || p->f.type == FRAME_STDIN, "another frame");
}

/* Neither is forwarded: who was on the terminal is gone. */
static void test_hangup(void **state) {
        (void)state;
        begin(ARGV(W("exec"), W("-it"), W("sh")), m_up, -1, -1);
        until("up");
        kill(t.cli, SIGHUP);
        ends_by(SIGHUP);

        begin(ARGV(W("exec"), W("-it"), W("sh")), m_up, -1, -1);
        until("up");
        close(t.master);
        t.master = -1;
        t.was = (struct termios){ 0 };
        assert_int_equal(waitpid(t.cli, &t.manager, 0), t.cli);
        assert_true(WIFSIGNALED(t.manager) && WTERMSIG(t.manager) == SIGHUP);
        close(t.stays);
}

/* Faults, and signals that are nobody's. */
static void test_fatal(void **state) {
        static const int signals[] = { SIGALRM, SIGXCPU, SIGABRT, SIGSEGV, SIGVTALRM };

        (void)state;
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
                begin(ARGV(W("exec"), W("-it"), W("sh")), m_up, -1, -1);
                until("up");
                kill(t.cli, signals[i]);
                ends_by(signals[i]);
        }
}

static void m_flood(struct peer *p) {
        static uint8_t frame[FRAME_MAX];

        greet_tty(p);
        frame_put_header(frame, FRAME_STDOUT, 0, 1, FRAME_PAYLOAD_MAX);
        for (int i = 0; i < 4; i++)
                if (send(p->fd, frame, sizeof(frame), MSG_NOSIGNAL) < 0)
                        return;
        while (peer_next(p))
                ;
}

static bool waits(pid_t pid) {
        char path[64], state = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        f = fopen(path, "re");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
        fclose(f);
        return state == 'S';
}

/* Nobody reads the terminal: the program waits there, and must end all the same. */
static void test_stuck(void **state) {
        int full = 0;

        (void)state;
        begin(ARGV(W("exec"), W("-it"), W("sh")), m_flood, -1, -1);
        until_raw();
        for (int i = 0; i < DEADLINE_S * 1000 && full < 100; i++) {
                int n = 0;

                assert_int_equal(ioctl(t.master, FIONREAD, &n), 0);
                full = n > 1000 && waits(t.cli) ? full + 1 : 0;
                poll(NULL, 0, 1);
        }
        assert_int_equal(full, 100);
        kill(t.cli, SIGTERM);
        ends_by(SIGTERM);
}

static void m_queue(struct peer *p) {
        struct exec_request r = take_request(p);

        must(r.tty, "no terminal");
        put_hello(p, FRAME_VERSION);
        must(!peer_next(p), "a frame where the end was expected");
}

/* Before the command runs, ^C is ours, and the terminal is untouched. */
static void test_queued(void **state) {
        (void)state;
        begin(ARGV(W("exec"), W("-it"), W("sh")), m_queue, -1, -1);
        when_blocked(t.cli, SIGTERM);
        assert_true(same_modes());
        type("\x03");
        ends_by(SIGINT);
}

/* --- errors ---------------------------------------------------------------------------------- */

static void m_gone(struct peer *p) {
        greet_tty(p);
        put(p, FRAME_STDOUT, 1, "up", 2);
        take_keys(p, "x", 1);
}

static void m_nonsense(struct peer *p) {
        greet_tty(p);
        put(p, FRAME_STDOUT, 1, "up", 2);
        take_keys(p, "x", 1);
        put(p, FRAME_WINDOW, 1, "\7\0\0\0\0", 5);
        peer_next(p);
}

static void m_message(struct peer *p) {
        struct result r = a_result();

        greet_tty(p);
        put(p, FRAME_STDOUT, 1, "up", 2);
        take_keys(p, "x", 1);
        r.cause = CAUSE_OOM;
        r.exit_code = 137;
        r.message = "out of memory";
        put_result(p, &r);
}

/* The line on stderr comes when the terminal is its own again: with a carriage return in front of its end. */
static void test_errors(void **state) {
        static const struct {
                void (*manager)(struct peer *p);
                int code;
                const char *line;
        } cases[] = {
                { m_gone, 125,
                  "uphermes-sandbox: lost the manager: nothing is known of the command's end\r\n" },
                { m_nonsense, 125, "uphermes-sandbox: protocol error: a bad WINDOW frame\r\n" },
                { m_message, 137, "uphermes-sandbox: out of memory\r\n" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                begin(ARGV(W("exec"), W("-it"), W("sh")), cases[i].manager, -1, -1);
                until("up");
                type("x");
                until("\n");
                assert_string_equal(t.seen, cases[i].line);
                ends_with(cases[i].code);
        }
}

static void m_no_reader(struct peer *p) {
        greet_tty(p);
        put(p, FRAME_STDOUT, 1, "up", 2);
        while (peer_next(p))
                ;
}

/* exec -it … | head: SIGPIPE does not leave the terminal raw. */
static void test_no_reader(void **state) {
        int broken[2];

        (void)state;
        assert_int_equal(pipe2(broken, O_CLOEXEC), 0);
        close(broken[0]);
        begin(ARGV(W("exec"), W("-it"), W("sh")), m_no_reader, -1, broken[1]);
        ends_with(128 + SIGPIPE);
        close(broken[1]);
}

/* --- -t alone --------------------------------------------------------------------------------- */

static void m_no_input(struct peer *p) {
        greet_tty(p);
        must(peer_next(p) && p->f.type == FRAME_STDIN && p->f.len == 0 && (p->f.flags & FRAME_EOF),
             "no EOF");
        put(p, FRAME_STDOUT, 1, "up", 2);
        must(take_signal(p) == SIGINT, "another signal");
        put_exit(p, 130);
}

/* The input is at its end, the terminal stays as it is, and ^C is a signal. */
static void test_output_only(void **state) {
        struct how h = { .manager = m_plain, .stdin_fd = null_fd() };

        (void)state;
        begin(ARGV(W("exec"), W("-t"), W("ls")), m_no_input, -1, -1);
        until("up");
        assert_true(same_modes());
        type("\x03");
        ends_with(130);

        /* Nor does it need a stdin that is a terminal; -i does. */
        begin(ARGV(W("exec"), W("-t"), W("ls")), m_no_input, h.stdin_fd, -1);
        until("up");
        type("\x03");
        ends_with(130);
        h.manager = NULL;
        run(ARGV(W("exec"), W("-it"), W("sh")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 64);
        assert_string_equal(
                o.err,
                "hermes-sandbox: exec: -it: stdin is no terminal: give -i alone to pass it on, or "
                "-t alone for a terminal that nobody types into\n");
}

/* --- top -------------------------------------------------------------------------------------- */

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static void answer_top(struct peer *p, const char *text) {
        struct ask a = take_ask(p);

        must(a.op == ASK_TOP && a.form == ANSWER_TEXT, "top");
        put_answer(p, text);
}

static void m_top(struct peer *p) {
        answer_top(p, "SANDBOX\nfirst\x1b[31m\n");
        peer_again(p);
        answer_top(p, "SANDBOX\nsecond\n");
        peer_again(p);
        take_ask(p);
        put_reject(p, 125, "no more");
        peer_again(p);
        answer_top(p, "SANDBOX\nagain\n");
}

static void m_top_once(struct peer *p) {
        answer_top(p, "SANDBOX\nfirst\n");
}

/* It asks again and again, also after a failure, and q leaves. */
static void test_top(void **state) {
        (void)state;
        begin(ARGV(W("top")), m_top, -1, -1);
        until(ENTER "\033[HSANDBOX\033[K\r\nfirst?[31m\033[K\r\n\033[J");
        until("\033[HSANDBOX\033[K\r\nsecond\033[K\r\n\033[J");
        until("\033[Hno more\033[K\r\n\033[J");
        until("again\033[K\r\n\033[J");
        type("q");
        until(LEAVE);
        ends_with(0);
        /* Nothing behind it. */
        assert_string_equal(strstr(t.seen, LEAVE), LEAVE);
}

static void m_top_wide(struct peer *p) {
        answer_top(p, "1\n2\xe4\xbd\xa0"
                      "45678901234567890\n3\n4\n5\n6\n7\n8\n9\n");
}

static void test_top_sizes(void **state) {
        struct winsize w = { .ws_row = 4, .ws_col = 5 };

        (void)state;
        begin(ARGV(W("top")), m_top_wide, -1, -1);
        until("9\033[K\r\n\033[J");
        assert_int_equal(ioctl(t.master, TIOCSWINSZ, &w), 0);
        until("\033[H1\033[K\r\n2\xe4\xbd\xa0"
              "456\033[K\r\n3\033[K\r\n\033[J");
        type("\x03");
        until(LEAVE);
        ends_with(0);
}

static void test_top_ends(void **state) {
        struct how h = { .manager = m_top_once, .stdin_fd = null_fd() };

        (void)state;
        begin(ARGV(W("top")), m_top_once, -1, -1);
        until("first");
        kill(t.cli, SIGTERM);
        until(LEAVE);
        ends_by(SIGTERM);

        /* ^Z gives the terminal back; going on, here at once as no shell could bring us back, takes it again. */
        begin(ARGV(W("top")), m_top_once, -1, -1);
        until("first");
        kill(t.cli, SIGTSTP);
        until(LEAVE ENTER);
        kill(t.cli, SIGQUIT);
        until(LEAVE);
        ends_by(SIGQUIT);

        /* No terminal, no control sequence. */
        run(ARGV(W("top")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 0);
        assert_string_equal(o.out, "SANDBOX\nfirst\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys),      cmocka_unit_test(test_resize),
                cmocka_unit_test(test_signals),   cmocka_unit_test(test_hangup),
                cmocka_unit_test(test_fatal),     cmocka_unit_test(test_stuck),
                cmocka_unit_test(test_queued),    cmocka_unit_test(test_errors),
                cmocka_unit_test(test_no_reader), cmocka_unit_test(test_output_only),
                cmocka_unit_test(test_top),       cmocka_unit_test(test_top_sizes),
                cmocka_unit_test(test_top_ends),
        };

        /* What comes is compared byte by byte: test_cli_paint has the colours. */
        setenv("NO_COLOR", "1", 1);
        return cmocka_run_group_tests(tests, setup, teardown);
}
