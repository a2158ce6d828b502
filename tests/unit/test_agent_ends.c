/* How commands end under a real agent: time-outs, cancellation, signals, what outlives its main process, the
 * pids limit; and the agent itself: violations, a manager that goes and comes, BYE. */
#include <dirent.h>
#include <time.h>

#include "agentrig.h"

#define CGROUP_PIDS "/sys/fs/cgroup/pids"

static struct rig rig;

static int begin(void **state) {
        *state = &rig;
        rig.cgroup = NULL;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Starts @script and returns once it has said "ready" (6 bytes with the newline). */
static void start_ready(struct rig *r, uint32_t channel, struct exec_order o, const char *script) {
        struct frame f;
        size_t n = 0;

        rig_sh(r, channel, o, script);
        while (n < 6) {
                rig_next(r, &f);
                assert_int_equal(f.channel, channel);
                assert_int_equal(f.type, FRAME_STDOUT);
                n += f.len;
        }
}

static struct exited wait_exited(struct rig *r, uint32_t channel) {
        struct run x = { .channel = channel };
        struct exited e;

        rig_collect(r, &x, 1);
        e = x.end;
        run_done(&x);
        return e;
}

/* No process of a command is in the sandbox, but those that look. */
static void nothing_runs(struct rig *r) {
        struct run x = rig_run(r, 77,
                               "ps -eo uid=,sid= | awk -v self=$$ '$1 == 10000 && $2 != self' | wc -l");

        run_equals(&x, 0, "0\n", "");
}

static void timeout_term(void **state) {
        struct run x = { .channel = 1 };
        uint64_t begun = now_ms();

        rig_sh(*state, 1, (struct exec_order){ .one_shot = true, .timeout_ms = 100, .grace_ms = 20000 },
               "trap 'echo bye; exit 3' TERM; sleep 100 & wait");
        rig_collect(*state, &x, 1);
        assert_true(now_ms() - begun >= 100 && now_ms() - begun < 15000);
        assert_int_equal(x.end.cause, CAUSE_TIMEOUT);
        assert_int_equal(x.end.code, 3);
        assert_string_equal(x.out[0], "bye\n");
        run_done(&x);
        nothing_runs(*state);
}

/* Cases 1, 2 and 16: children, grandchildren, setsid, double fork, all deaf for TERM. */
static void timeout_kill(void **state) {
        static const char script[] =
                "trap '' TERM; (setsid sh -c 'sleep 300; :' & sleep 301; :) & "
                "sh -c '(sh -c \"sleep 302; :\" &) ; sleep 303; :' & sleep 304; sleep 305; :";

        for (int one_shot = 0; one_shot < 2; one_shot++) {
                struct exited e;

                rig_sh(*state, 1,
                       (struct exec_order){ .one_shot = one_shot, .timeout_ms = 150, .grace_ms = 100 },
                       script);
                e = wait_exited(*state, 1);
                assert_int_equal(e.cause, CAUSE_TIMEOUT);
                assert_true(e.signaled);
                assert_int_equal(e.code, SIGKILL);
                nothing_runs(*state);
        }
}

/* No time-out, one without grace, and an end right before it. */
static void timeout_others(void **state) {
        struct exited e;
        struct run x;

        rig_sh(*state, 1, (struct exec_order){ .timeout_ms = 1, .one_shot = true }, "sleep 100; :");
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_TIMEOUT);
        assert_int_equal(e.code, SIGKILL);
        x = (struct run){ .channel = 2 };
        rig_sh(*state, 2, (struct exec_order){ .timeout_ms = UINT64_MAX / 2000, .one_shot = true },
               "exit 6");
        rig_collect(*state, &x, 1);
        run_equals(&x, 6, "", "");
}

static void signals(void **state) {
        struct exited e;

        start_ready(*state, 1, (struct exec_order){ .one_shot = true },
                    "trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done");
        rig_send(*state, FRAME_SIGNAL, 0, 1, "\x0a", 1);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_EXITED);
        assert_int_equal(e.code, 5);
        /* No shell: dash has a moment in which it loses a SIGINT. */
        rig_order(*state, 2, (struct exec_order){ .one_shot = true },
                  (const char *const[]){ "sleep", "100", NULL }, NULL);
        rig_send(*state, FRAME_SIGNAL, 0, 2, "\x02", 1);
        e = wait_exited(*state, 2);
        assert_int_equal(e.cause, CAUSE_SIGNALED);
        assert_int_equal(e.code, SIGINT);
        rig_sh(*state, 3, (struct exec_order){ .one_shot = true }, "kill -9 $$");
        e = wait_exited(*state, 3);
        assert_int_equal(e.cause, CAUSE_SIGNALED);
        assert_int_equal(e.code, SIGKILL);
}

static void cancel(void **state) {
        struct exited e;

        start_ready(*state, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM HUP INT; setsid sleep 300 & echo ready; sleep 301; :");
        rig_send(*state, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        nothing_runs(*state);
        /* Beside another command: only its own tree goes, one-shot or not. */
        for (int one_shot = 0; one_shot < 2; one_shot++) {
                start_ready(*state, 2, (struct exec_order){ .one_shot = one_shot },
                            "echo ready; while :; do sleep 0.01; [ -e /tmp/go ] && exit 8; done");
                start_ready(*state, 3, (struct exec_order){ .one_shot = one_shot },
                            "echo ready; (setsid sleep 302 &); sleep 303; :");
                rig_send(*state, FRAME_CANCEL, 0, 3, NULL, 0);
                e = wait_exited(*state, 3);
                assert_int_equal(e.cause, CAUSE_CANCELLED);
                rig_sh(*state, 4, (struct exec_order){ .one_shot = one_shot },
                       "ps -eo args= | grep -c '^sleep 30'; touch /tmp/go; :");
                struct run x[2] = { { .channel = 2 }, { .channel = 4 } };
                rig_collect(*state, x, 2);
                assert_string_equal(x[1].out[0], "0\n");
                assert_int_equal(x[0].end.code, 8);
                run_done(&x[0]);
                run_done(&x[1]);
                x[0] = rig_run(*state, 5, "rm /tmp/go");
                run_done(&x[0]);
        }
}

/* The caller went away without having read: no credit will come, and none is waited for. */
static void cancel_without_credit(void **state) {
        struct exited e;
        struct frame f;
        size_t n = 0;

        rig_sh(*state, 1, (struct exec_order){ .one_shot = true }, "yes; :");
        while (n < FRAME_CREDIT) {
                rig_next(*state, &f);
                n += f.len;
        }
        rig_send(*state, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        /* The same once it has ended by itself, and only its output waits. */
        rig_sh(*state, 2, (struct exec_order){ .one_shot = true }, "head -c 300000 /dev/zero; exit 2");
        for (n = 0; n < FRAME_CREDIT; n += f.len)
                rig_next(*state, &f);
        poll(NULL, 0, 100);
        rig_send(*state, FRAME_CANCEL, 0, 2, NULL, 0);
        wait_exited(*state, 2);
}

/* Case 3. A one-shot's background goes; a session's stays, and holds nobody. */
static void background(void **state) {
        uint64_t begun = now_ms();
        struct run x = rig_run(*state, 1, "sleep 100 & setsid sleep 101 & echo hi");

        assert_int_equal(x.end.background_left, 2);
        run_equals(&x, 0, "hi\n", "");
        nothing_runs(*state);
        x = (struct run){ .channel = 2 };
        rig_sh(*state, 2, (struct exec_order){ 0 },
               "(while :; do echo more; sleep 0.001; done) & head -c 100000 /dev/zero; echo last; exit 3");
        rig_collect(*state, &x, 1);
        assert_in_range(x.end.background_left, 1, 2); /* the loop, and its sleep */
        assert_int_equal(x.end.code, 3);
        assert_true(x.len[0] >= 100005);
        assert_true(now_ms() - begun < 20000);
        run_done(&x);
        x = (struct run){ .channel = 3 };
        rig_sh(*state, 3, (struct exec_order){ 0 }, "ps -eo args= | grep -c 'echo more'");
        rig_collect(*state, &x, 1);
        assert_string_equal(x.out[0], "2\n"); /* the loop, and grep itself */
        run_done(&x);
}

/* Case 7: orphans are reaped, and their ends are nobody's status. */
static void double_forks(void **state) {
        struct run x = { .channel = 1 }, y;

        rig_sh(*state, 1, (struct exec_order){ 0 },
               "i=0; while [ $i -lt 1000 ]; do (true &) ; i=$((i+1)); done; exit 42");
        rig_collect(*state, &x, 1);
        run_equals(&x, 42, "", "");
        y = rig_run(*state, 2, "ps -eo stat= | grep -c Z");
        run_equals(&y, 1, "0\n", "");
}

static size_t agent_fds(const struct rig *r) {
        char path[64];
        size_t n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)r->agent);
        d = opendir(path);
        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

static void no_descriptor_leaks(void **state) {
        const char *const none[] = { "/no/such", NULL };
        size_t before = 0;

        for (uint32_t i = 0; i < 200; i++) {
                struct run x = { .channel = i };

                if (i == 10)
                        before = agent_fds(*state);
                if (i % 3 == 0)
                        rig_order(*state, i, (struct exec_order){ .use_stdin = true, .one_shot = true },
                                  none, NULL);
                else if (i % 3 == 1)
                        rig_sh(*state, i, (struct exec_order){ .use_stdin = true, .one_shot = true },
                               "kill -9 $$");
                else
                        rig_sh(*state, i, (struct exec_order){ .use_stdin = true }, "exit 0");
                rig_collect(*state, &x, 1);
                run_done(&x);
        }
        assert_true(agent_fds(*state) <= before);
}

static void more_than_slots(void **state) {
        struct frame f;
        struct exited e;

        for (uint32_t i = 0; i < 129; i++)
                rig_sh(*state, i, (struct exec_order){ .one_shot = true }, "sleep 100; :");
        rig_next(*state, &f);
        assert_int_equal(f.type, FRAME_EXITED);
        assert_int_equal(f.channel, 128);
        assert_int_equal(exited_decode(f.payload, f.len, &e), 0);
        assert_int_equal(e.cause, CAUSE_PIDS_LIMIT);
        assert_int_equal(e.error, EAGAIN);
}

/* --- the agent and its manager ------------------------------------------------------------------ */

/* The agent closes the connection, ends what ran, and comes again. */
static void comes_again(struct rig *r) {
        struct frame f;
        struct run x;

        while (rig_try_next(r, &f))
                ;
        close(r->fd);
        rig_accept(r);
        nothing_runs(r);
        x = rig_run(r, 1, "echo again"); /* a channel that was in use before */
        run_equals(&x, 0, "again\n", "");
}

static void violations(void **state) {
        static const uint8_t unknown[FRAME_HEADER] = { [8] = 200 },
                             foreign[FRAME_HEADER] = { [8] = FRAME_EXITED },
                             large[FRAME_HEADER] = { 1, 0, 1, 0, [8] = FRAME_STDIN },
                             reserved[FRAME_HEADER] = { [8] = FRAME_CANCEL, [10] = 1 };
        static const uint8_t *const bad[] = { unknown, foreign, large, reserved };
        struct rig *r = *state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                rig_sh(r, 1, (struct exec_order){ .one_shot = true }, "trap '' TERM HUP; sleep 400; :");
                rig_write(r, bad[i], FRAME_HEADER);
                comes_again(r);
        }
        rig_send(r, FRAME_EXEC, 0, 1, "nonsense", 8);
        comes_again(r);
        rig_send(r, FRAME_EXEC, FRAME_MORE, 1, "x", 1); /* two orders at once */
        rig_send(r, FRAME_EXEC, FRAME_MORE, 2, "x", 1);
        comes_again(r);
        rig_sh(r, 1, (struct exec_order){ .one_shot = true }, "sleep 401; :"); /* one channel for two */
        rig_sh(r, 1, (struct exec_order){ .one_shot = true }, "sleep 402; :");
        comes_again(r);
        rig_sh(r, 1, (struct exec_order){ .one_shot = true, .use_stdin = true }, "sleep 403; :");
        rig_send(r, FRAME_STDIN, FRAME_EOF, 1, NULL, 0); /* bytes behind the end */
        rig_send(r, FRAME_STDIN, 0, 1, "x", 1);
        comes_again(r);
        rig_grant(r, 1, STREAM_STDIN, 1);
        comes_again(r);
        rig_send(r, FRAME_SIGNAL, 0, 1, "\x41", 1);
        comes_again(r);
}

/* Stdin beyond the credit, for a command that does not read. */
static void stdin_overrun(void **state) {
        static uint8_t data[60000];
        struct rig *r = *state;

        rig_sh(r, 1, (struct exec_order){ .one_shot = true, .use_stdin = true }, "sleep 404; :");
        for (int i = 0; i < 9; i++) {
                uint8_t head[FRAME_HEADER];

                frame_put_header(head, FRAME_STDIN, 0, 1, sizeof(data));
                if (send(r->fd, head, sizeof(head), MSG_NOSIGNAL) < 0 ||
                    send(r->fd, data, sizeof(data), MSG_NOSIGNAL) < 0)
                        break;
        }
        comes_again(r);
}

static void order_too_large(void **state) {
        static uint8_t data[FRAME_PAYLOAD_MAX];
        struct rig *r = *state;

        for (unsigned i = 0; i <= PROTO_EXEC_MAX / sizeof(data); i++) {
                uint8_t head[FRAME_HEADER];

                frame_put_header(head, FRAME_EXEC, FRAME_MORE, 1, sizeof(data));
                if (send(r->fd, head, sizeof(head), MSG_NOSIGNAL) < 0 ||
                    send(r->fd, data, sizeof(data), MSG_NOSIGNAL) < 0)
                        break;
        }
        comes_again(r);
}

static void manager_goes(void **state) {
        struct rig *r = *state;
        struct run x;

        start_ready(r, 2, (struct exec_order){ 0 },
                    "echo ready; while sleep 0.01; do :; done; echo kept");
        start_ready(r, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM HUP; echo ready; setsid sleep 405 & yes");
        close(r->fd);
        rig_accept(r);
        x = rig_run(r, 1,
                    "ps -eo args= | grep -cE '^(yes|sleep 405)'; ps -eo args= | grep -c '[e]cho kept'");
        run_equals(&x, 0, "0\n1\n", ""); /* a session's command goes on */
}

static void bye(void **state) {
        struct rig *r = *state;

        start_ready(r, 1, (struct exec_order){ .one_shot = true },
                    "trap '' TERM; echo ready; sleep 406; :");
        rig_send(r, FRAME_BYE, 0, 0, NULL, 0);
        assert_int_equal(rig_status(r), 0);
}

static void nobody_listens(void **state) {
        struct rig *r = &rig;

        (void)state;
        r->cgroup = NULL;
        /* Several times: the end may come with the HELLO, before it, or behind it. */
        for (int i = 0; i < 8; i++) {
                rig_start(r, "100");
                rig_accept(r);
                r->listen_fd = close_fd(r->listen_fd);
                r->fd = close_fd(r->fd);
                assert_int_equal(rig_status(r), 0);
                rig_stop(r);
        }
}

/* --- the pids limit ----------------------------------------------------------------------------- */

static void write_to(const char *folder, const char *name, const char *value) {
        char path[128];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, value, strlen(value)), strlen(value));
        close(fd);
}

static int score_of(const struct rig *r) {
        char path[64], buf[16] = "";
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)r->agent);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0);
        close(fd);
        return atoi(buf);
}

/* The agent makes a new one at the end of a turn of its loop; the second answer comes from a later turn. */
static void new_spare(struct rig *r) {
        struct frame f;

        write_to(r->cgroup, "pids.max", "20");
        for (int i = 0; i < 2; i++) {
                rig_send(r, FRAME_PING, 0, 0, "", 0);
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_PONG);
        }
        write_to(r->cgroup, "pids.max", "9");
}

/* At the limit no process can be made. The spare one runs the next command, or says why it cannot. */
static void at_the_limit(struct rig *r) {
        const char *const none[] = { "/no/such", NULL },
                          *const exits[] = { "/bin/sh", "-c", "exit 3", NULL },
                          *const score[] = { "cat", "/proc/self/oom_score_adj", NULL };
        struct run x = { .channel = 2 };

        start_ready(
                r, 1, (struct exec_order){ 0 },
                "sleep 500 & sleep 500 & sleep 500 & sleep 500 & sleep 500 & sleep 500 & sleep 500 & echo ready; wait");
        write_to(r->cgroup, "pids.max", "9"); /* agent, spare, sh, seven of sleep: one above */
        rig_order(r, 2, (struct exec_order){ 0 }, score, NULL);
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "1000\n", "");
        assert_int_equal(score_of(r), 0); /* the agent's own is not touched */
        /* The spare one is used up. */
        rig_order(r, 2, (struct exec_order){ 0 }, exits, NULL);
        rig_collect(r, &x, 1);
        assert_int_equal(x.end.cause, CAUSE_PIDS_LIMIT);
        assert_int_equal(x.end.error, EAGAIN);
        run_done(&x);
        new_spare(r);
        x.channel = 2;
        rig_order(r, 2, (struct exec_order){ 0 }, none, NULL);
        rig_collect(r, &x, 1);
        assert_int_equal(x.end.cause, CAUSE_NOT_FOUND);
        assert_int_equal(x.end.error, ENOENT);
        run_done(&x);
        new_spare(r);
        x.channel = 2;
        rig_order(r, 2, (struct exec_order){ 0 }, exits, NULL);
        rig_collect(r, &x, 1);
        assert_int_equal(x.end.code, 3);
        assert_int_equal(x.end.cause, CAUSE_PIDS_LIMIT);
        run_done(&x);
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0);
        assert_int_equal(wait_exited(r, 1).cause, CAUSE_CANCELLED);
        x = rig_run(r, 4, "echo free");
        run_equals(&x, 0, "free\n", "");
}

static void pids_limit(void **state) {
        static char folder[sizeof(CGROUP_PIDS) + 32];
        struct rig *r = &rig;

        *state = NULL;
        strcpy(folder, CGROUP_PIDS "/test-agent.XXXXXX");
        if (access(CGROUP_PIDS "/cgroup.procs", W_OK) < 0 || !mkdtemp(folder)) {
                print_message("skipped: no pids cgroup (v1) can be made below " CGROUP_PIDS "\n");
                skip();
        }
        r->cgroup = folder;
        *state = r;
        rig_start(r, "10000");
        rig_accept(r);
        assert_non_null(strstr(r->hello, "cgroup=1\n"));
        at_the_limit(r);
}

/* Also after a failure: nothing stays behind. */
static int pids_limit_end(void **state) {
        struct rig *r = *state;

        if (!r)
                return 0;
        rig_stop(r);
        for (int i = 0; i < 1000 && rmdir(r->cgroup) < 0; i++)
                poll(NULL, 0, 5); /* until the last process has left it */
        return access(r->cgroup, F_OK) == 0 ? -1 : 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(timeout_term),
                CASE(timeout_kill),
                CASE(timeout_others),
                CASE(signals),
                CASE(cancel),
                CASE(cancel_without_credit),
                CASE(background),
                CASE(double_forks),
                CASE(no_descriptor_leaks),
                CASE(more_than_slots),
                CASE(violations),
                CASE(stdin_overrun),
                CASE(order_too_large),
                CASE(manager_goes),
                CASE(bye),
                cmocka_unit_test(nobody_listens),
                cmocka_unit_test_teardown(pids_limit, pids_limit_end),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
