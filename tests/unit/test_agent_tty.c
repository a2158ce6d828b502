/* Terminals under a real agent: whose, how large, job control, the end of input and of output, hang-up. */
#include "agentrun.h"

/* seq -f %09.0f 0 19999 | md5sum */
#define LINES_MD5 "cd760d01a772f329585afafbee724776"

static struct rig rig;

static int begin_in(void **state, bool sealed) {
        *state = &rig;
        rig.sealed = sealed;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int begin(void **state) {
        return begin_in(state, false);
}

static int begin_sealed(void **state) {
        return begin_in(state, true);
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static const struct exec_order on_tty = { .tty = true, .use_stdin = true, .rows = 41, .cols = 133 };

static void type(struct rig *r, uint32_t channel, const char *text) {
        rig_send(r, FRAME_STDIN, 0, channel, text, strlen(text));
}

static void end_of_input(struct rig *r, uint32_t channel) {
        rig_send(r, FRAME_STDIN, FRAME_EOF, channel, NULL, 0);
}

static struct run tty_run(struct rig *r, uint32_t channel, const char *script) {
        struct run x = { .channel = channel };

        rig_sh(r, channel, on_tty, script);
        rig_collect(r, &x, 1);
        assert_null(x.out[1]);
        return x;
}

/* Takes frames until the command's output so far ends with @text, or has it at all. */
static void wait_for(struct rig *r, struct run *x, const char *text) {
        struct frame f;

        while (!x->out[0] || !strstr(x->out[0], text)) {
                assert_false(x->ended);
                rig_next(r, &f);
                rig_take(r, &f, x, 1);
        }
}

static const char whose[] =
        "stat -c %u:%a $(tty); stty size; ps -o tty=,tpgid= -p $$ | sed \"s/ $$\\$/ leader/\";"
        "for i in 0 1 2; do [ /proc/self/fd/$i -ef $(tty) ] && echo $i; done;"
        "ls -x /proc/$$/fd; echo err >&2; exit 7";

/* Prepared beforehand and forked alike. */
static void whose_and_how_large(void **state) {
        struct rig *r = *state;

        for (uint32_t i = 0; i < 3; i++) {
                struct run x = tty_run(r, i, whose);
                char *p;

                assert_non_null(x.out[0]);
                p = strstr(x.out[0], "leader");
                assert_non_null(p);
                assert_memory_equal(x.out[0], "10000:620\r\n41 133\r\npts/", 23);
                assert_string_equal(p, "leader\r\n0\r\n1\r\n2\r\n0  1  2\r\nerr\r\n");
                assert_int_equal(x.end.code, 7);
                assert_int_equal(x.end.cause, CAUSE_EXITED);
                run_done(&x);
                if (i == 1)
                        rig_sh(r, 9, (struct exec_order){ .detached = true }, "exec sleep 300");
        }
        rig_send(r, FRAME_CANCEL, 0, 9, NULL, 0);
        wait_exited(r, 9);
}

/* 0 by 0 is what a caller without a size has. */
static void no_size(void **state) {
        struct exec_order o = { .tty = true, .use_stdin = true };
        struct run x = { .channel = 1 };

        rig_sh(*state, 1, o, "stty size");
        rig_collect(*state, &x, 1);
        run_equals(&x, 0, "0 0\r\n", "");
}

static void resize(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };
        uint8_t buf[RESIZE_SIZE];

        rig_sh(r, 1, on_tty, "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done");
        wait_for(r, &x, "ready");
        resize_encode(&(struct resize){ 7, 300 }, buf);
        rig_send(r, FRAME_RESIZE, 0, 1, buf, sizeof(buf));
        rig_collect(r, &x, 1);
        run_equals(&x, 3, "ready\r\n7 300\r\n", "");
        rig_send(r, FRAME_RESIZE, 0, 1, buf, sizeof(buf)); /* it has ended */
        rig_sh(r, 2, (struct exec_order){ .one_shot = true }, "sleep 0.1; echo plain");
        rig_send(r, FRAME_RESIZE, 0, 2, buf, sizeof(buf)); /* it has no terminal */
        x = (struct run){ .channel = 2 };
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "plain\n", "");
}

/* Ctrl-C, Ctrl-Z, fg, bg, jobs: of an interactive shell. */
static void job_control(void **state) {
        const char *const args[] = { "bash", "--norc", "-i", NULL }, *const env[] = {
                "TERM=xterm", "PS1=<$(jobs -s | wc -l)> ", "HISTFILE=", NULL
        };
        struct rig *r = *state;
        struct run x = { .channel = 1 };

        rig_order(r, 1, on_tty, args, env);
        wait_for(r, &x, "<0> ");
        assert_null(strstr(x.out[0], "job control")); /* "no job control in this shell" */
        type(r, 1, "sleep 401; echo code-$?\n");
        poll(NULL, 0, 300); /* readline gives the terminal over */
        type(r, 1, "\x1a");
        wait_for(r, &x, "Stopped");
        wait_for(r, &x, "<1> ");
        type(r, 1, "bg\n");
        wait_for(r, &x, "sleep 401 &");
        type(r, 1, "jobs -r | grep -c sleep\n");
        wait_for(r, &x, "\r1\r\n");
        type(r, 1, "fg\n");
        poll(NULL, 0, 300);
        type(r, 1, "\x03");
        wait_for(r, &x, "^C");
        type(r, 1, "echo $TERM-alive\n");
        wait_for(r, &x, "xterm-alive");
        type(r, 1, "exit 9\n");
        rig_collect(r, &x, 1);
        assert_int_equal(x.end.code, 9);
        run_done(&x);
        nothing_runs(r);
}

/* Whoever reads, and how often, meets it; and a shell that changes its terminal's mode, too. */
static void end_of_stdin(void **state) {
        const char *const bash[] = { "bash", "--norc", "-i", NULL };
        struct rig *r = *state;
        struct run x = { .channel = 1 };

        rig_sh(r, 1, on_tty, "stty -echo; cat; echo one; cat; echo two; exit 4");
        type(r, 1, "line\nhalf");
        end_of_input(r, 1);
        rig_collect(r, &x, 1);
        assert_non_null(strstr(x.out[0], "half"));
        assert_non_null(strstr(x.out[0], "one\r\ntwo\r\n"));
        assert_int_equal(x.end.code, 4);
        run_done(&x);
        for (uint32_t i = 2; i < 6; i++) {
                x = (struct run){ .channel = i };
                rig_order(r, i, on_tty, bash, NULL);
                type(r, i, "sleep 0.1; echo $((40+2))\n");
                if (i % 2)
                        wait_for(r, &x, "42");
                end_of_input(r, i);
                rig_collect(r, &x, 1);
                assert_non_null(strstr(x.out[0], "42"));
                assert_int_equal(x.end.cause, CAUSE_EXITED);
                assert_int_equal(x.end.code, 0);
                run_done(&x);
        }
        /* Who does not read is not disturbed. */
        x = (struct run){ .channel = 7 };
        rig_sh(r, 7, on_tty, "sleep 0.3; echo slept");
        end_of_input(r, 7);
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "slept\r\n", "");
}

/* More than a terminal holds, to a command that is slow to read. */
static void much_input(void **state) {
        enum { LINES = 20000 };
        static char text[LINES * 10 + 1];
        struct rig *r = *state;
        struct run x = { .channel = 1 };

        for (int i = 0; i < LINES; i++)
                snprintf(text + (size_t)i * 10, 11, "%09d\n", i);
        rig_sh(r, 1, on_tty, "stty -echo; echo ready; sleep 0.3; md5sum; exit 2");
        wait_for(r, &x, "ready");
        for (size_t n = 0; n < sizeof(text) - 1; n += 50000)
                rig_send(r, FRAME_STDIN, n + 50000 == sizeof(text) - 1 ? FRAME_EOF : 0, 1, text + n,
                         50000);
        rig_collect(r, &x, 1);
        assert_string_equal(x.out[0], "ready\r\n" LINES_MD5 "  -\r\n");
        assert_int_equal(x.end.code, 2);
        run_done(&x);
}

/* Every byte, though the kernel passes them on behind the command's back; and a background process that has the
 * terminal open holds nobody. */
static void no_tail_is_lost(void **state) {
        struct rig *r = *state;
        uint64_t begun = now_ms();
        struct run x;

        for (uint32_t i = 0; i < 50; i++) {
                x = tty_run(r, i, "stty -onlcr; seq 20000; printf END");
                assert_int_equal(x.len[0], 108894 + 3);
                assert_string_equal(x.out[0] + 108894, "END");
                run_done(&x);
        }
        x = tty_run(
                r, 60,
                "trap '' HUP; (while echo more; do sleep 0.01; done) & sleep 0.1; echo last; exit 3");
        assert_int_equal(x.end.code, 3);
        assert_non_null(strstr(x.out[0], "last"));
        assert_in_range(x.end.background_left, 1, 3);
        run_done(&x);
        x = tty_run(r, 61, "trap '' HUP; yes & head -c 100000 /dev/zero; exit 3");
        assert_int_equal(x.end.code, 3);
        assert_true(x.len[0] >= 100000);
        run_done(&x);
        assert_true(now_ms() - begun < 30000);
}

static void output_waits_for_credit(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 1 };
        struct frame f;

        rig_sh(r, 1, on_tty, "stty -onlcr; head -c 300000 /dev/zero; exit 8");
        for (size_t n = 0; n < FRAME_CREDIT; n += f.len) {
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_STDOUT);
        }
        poll(NULL, 0, 50);
        says_nothing(r);
        rig_grant(r, 1, STREAM_STDOUT, FRAME_CREDIT);
        rig_collect(r, &x, 1);
        assert_int_equal(x.len[0], 300000 - FRAME_CREDIT);
        assert_int_equal(x.end.code, 8);
        run_done(&x);
}

/* SIGHUP, time to heed it, and then the end of the whole tree. */
static void hang_up(void **state) {
        struct exec_order o = on_tty;
        struct rig *r = *state;
        struct exited e;
        struct run x = { .channel = 1 };

        o.grace_ms = 20000;
        rig_sh(r, 1, o,
               "trap 'echo hung >/tmp/hung; exit 5' HUP; stty -echo; echo ready; while :; do sleep 0.01; done");
        wait_for(r, &x, "ready");
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(r, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        assert_int_equal(e.code, 5);
        run_done(&x);
        x = rig_run(r, 2, "cat /tmp/hung; rm /tmp/hung");
        run_equals(&x, 0, "hung\n", "");
        for (int grace_ms = 0; grace_ms <= 200; grace_ms += 200) {
                uint64_t begun = now_ms();

                o.grace_ms = (uint32_t)grace_ms;
                x = (struct run){ .channel = 3 };
                rig_sh(r, 3, o, "trap '' HUP TERM; (setsid sleep 300 &); echo ready; sleep 301; :");
                wait_for(r, &x, "ready");
                rig_send(r, FRAME_CANCEL, 0, 3, NULL, 0);
                e = wait_exited(r, 3);
                assert_int_equal(e.cause, CAUSE_CANCELLED);
                assert_int_equal(e.code, SIGKILL);
                assert_true(now_ms() - begun >= (uint64_t)grace_ms && now_ms() - begun < 15000);
                run_done(&x);
                nothing_runs(r);
        }
        /* Its manager goes, and nobody is there to tell. */
        o.grace_ms = 100;
        x = (struct run){ .channel = 4 };
        rig_sh(r, 4, o, "trap 'echo hung >/tmp/hung' HUP; echo ready; while :; do sleep 0.01; done");
        wait_for(r, &x, "ready");
        run_done(&x);
        rig_listen(r, false);
        close(r->fd);
        poll(NULL, 0, 500); /* time in which the agent finds nobody */
        rig_listen(r, true);
        rig_accept(r);
        x = rig_run(r, 5, "cat /tmp/hung; ps -eo args= | grep -c '[w]hile'");
        run_equals(&x, 1, "hung\n0\n", "");
}

static void no_descriptor_leaks(void **state) {
        struct rig *r = *state;
        struct run x;
        char before[64];

        for (uint32_t i = 0; i < 100; i++) {
                if (i == 10) {
                        x = rig_run(r, 200, "ls /dev/pts | wc -l");
                        snprintf(before, sizeof(before), "%s", x.out[0]);
                        run_done(&x);
                }
                if (i % 2) {
                        x = tty_run(r, i, "exit 1");
                        run_done(&x);
                } else {
                        rig_order(r, i, on_tty, (const char *const[]){ "/no/such", NULL }, NULL);
                        assert_int_equal(wait_exited(r, i).cause, CAUSE_NOT_FOUND);
                }
        }
        says_nothing(r);
        x = rig_run(r, 200, "ls /dev/pts | wc -l");
        run_equals(&x, 0, before, "");
}

/* What must not reach a terminal's input from its own command: the agent's filter (seccomp.c). */
static void no_pushing(void **state) {
        struct run x = tty_run(*state, 1,
                               "python3 -c 'import fcntl, termios\n"
                               "try: fcntl.ioctl(0, termios.TIOCSTI, b\"x\")\n"
                               "except OSError as e: print(e.errno)'");

        run_equals(&x, 0, "1\r\n", "");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(whose_and_how_large),
                cmocka_unit_test_setup_teardown(whose_and_how_large, begin_sealed, end),
                CASE(no_size),
                CASE(resize),
                CASE(job_control),
                CASE(end_of_stdin),
                CASE(much_input),
                CASE(no_tail_is_lost),
                CASE(output_waits_for_credit),
                CASE(hang_up),
                CASE(no_descriptor_leaks),
                CASE(no_pushing),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
