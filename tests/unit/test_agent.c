/* The agent's streams: a real one, a manager that is played here. The ends stand in test_agent_ends.c. */
#include "agentrun.h"

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

static struct run args_run(struct rig *r, const char *const *args, const char *const *env,
                           const char *workdir) {
        struct run x = { .channel = 900 };

        rig_order(r, 900, (struct exec_order){ .one_shot = true, .workdir = workdir }, args, env);
        rig_collect(r, &x, 1);
        return x;
}

static void says_what_confines_it(void **state) {
        struct rig *r = *state;

        assert_non_null(strstr(r->hello, "seccomp=2\n"));
        assert_non_null(strstr(r->hello, "no_new_privs=1\n"));
        assert_non_null(strstr(r->hello, "rootfs=writable\n"));
        assert_non_null(strstr(r->hello, "userns=host\n"));
        assert_non_null(strstr(r->hello, "cgroup="));
}

static void streams_and_code(void **state) {
        struct run x = rig_run(*state, 1, "echo out; echo err >&2; exit 7");

        assert_false(x.end.signaled || x.end.truncated);
        assert_int_equal(x.end.error, 0);
        assert_true(x.end.wall_us > 0 && x.end.maxrss_bytes > 0);
        run_equals(&x, 7, "out\n", "err\n");
        x = rig_run(*state, 1, ":"); /* the same channel again */
        run_equals(&x, 0, "", "");
}

/* What a command finds itself to be. */
static void identity(void **state) {
        struct run x = rig_run(
                *state, 1,
                "until [ \"$(cat /proc/self/oom_score_adj)\" = 1000 ]; do :; done\n"
                "id -u; id -g; pwd; umask; cat /proc/self/oom_score_adj; ls /proc/self/fd | wc -l\n"
                "ps -o sid= -p $$ | tr -d ' ' | sed \"s/^$$\\$/leader/\"\n"
                "grep -E '^(Cap(Inh|Prm|Eff|Amb)|SigBlk|SigIgn|NoNewPrivs)' /proc/self/status |"
                "tr -d '\\t' | sed 's/0000*/0/'");

        run_equals(&x, 0,
                   "10000\n10001\n/\n0022\n1000\n4\nleader\n"
                   "SigBlk:0\nSigIgn:0\nCapInh:0\nCapPrm:0\nCapEff:0\nCapAmb:0\nNoNewPrivs:1\n",
                   "");
        x = rig_run(*state, 1, "n=$(id -G | wc -w); id -G | tr ' ' '\\n' | grep -c '^19000'; echo $n");
        run_equals(&x, 0, "1\n2\n", "");
}

/* Case 20: nothing of PID 1 can be read, and it cannot be signalled. */
static void agent_is_out_of_reach(void **state) {
        struct run x = rig_run(
                *state, 1,
                "cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c; kill -9 1 2>/dev/null;"
                "echo $?; kill -STOP 1 2>/dev/null; echo $?");

        run_equals(&x, 0, "0\n1\n1\n", "");
}

/* They are the command's: `echo >/dev/stderr` is what a script does. */
static void streams_by_name(void **state) {
        struct run x = rig_run(*state, 1, "echo err >/dev/stderr; echo out | tee /dev/stdout");

        run_equals(&x, 0, "out\nout\n", "err\n");
        x = (struct run){ .channel = 2 };
        rig_sh(*state, 2, (struct exec_order){ .use_stdin = true, .one_shot = true }, "cat /dev/stdin");
        rig_send(*state, FRAME_STDIN, FRAME_EOF, 2, "in", 2);
        rig_collect(*state, &x, 1);
        run_equals(&x, 0, "in", "");
}

static void environment(void **state) {
        const char *const args[] = {
                "sh", "-c",
                "printf '%s|' \"$IMAGE\" \"$BOTH\" \"$X\" \"$NL\" \"$EMPTY\" \"$PATH\"; "
                "env | grep -c '^BOTH='",
                NULL
        };
        const char *const env[] = { "BOTH=order",         "X=1", "NL=a\nb=c", "EMPTY=", "X=\xff 2",
                                    "PATH=/bin:/usr/bin", NULL };
        struct run x = args_run(*state, args, env, "/tmp");

        run_equals(&x, 0, "yes|order|\xff 2|a\nb=c||/bin:/usr/bin|1\n", "");
}

static void failed_start(struct run *x, uint8_t cause, uint8_t stage, int error) {
        assert_int_equal(x->end.cause, cause);
        assert_int_equal(x->end.code, stage);
        assert_int_equal(x->end.error, error);
        assert_false(x->end.signaled);
        run_done(x);
}

static void what_cannot_start(void **state) {
        const char *const none[] = { "no-such-program", NULL }, *const path[] = { "/no/such", NULL },
                          *const empty[] = { "", NULL }, *const folder[] = { "/tmp", NULL },
                          *const denied[] = { "/etc/shadow", NULL },
                          *const under[] = { "/etc/passwd/x", NULL }, *const yes[] = { "true", NULL },
                          *const plain[] = { "/tmp/plain", NULL };
        const char *const nowhere[] = { "PATH=/nowhere", NULL };
        struct run x = args_run(*state, none, NULL, NULL);

        failed_start(&x, CAUSE_NOT_FOUND, START_PROGRAM, ENOENT);
        x = args_run(*state, path, NULL, NULL);
        failed_start(&x, CAUSE_NOT_FOUND, START_PROGRAM, ENOENT);
        x = args_run(*state, empty, NULL, NULL);
        failed_start(&x, CAUSE_NOT_FOUND, START_PROGRAM, ENOENT);
        x = args_run(*state, under, NULL, NULL);
        failed_start(&x, CAUSE_NOT_FOUND, START_PROGRAM, ENOTDIR);
        x = args_run(*state, yes, nowhere, NULL);
        failed_start(&x, CAUSE_NOT_FOUND, START_PROGRAM, ENOENT);
        x = args_run(*state, folder, NULL, NULL);
        failed_start(&x, CAUSE_NOT_EXECUTABLE, START_PROGRAM, EACCES);
        x = args_run(*state, denied, NULL, NULL);
        failed_start(&x, CAUSE_NOT_EXECUTABLE, START_PROGRAM, EACCES);
        x = args_run(*state, yes, NULL, "/nowhere");
        failed_start(&x, CAUSE_NOT_EXECUTABLE, START_WORKDIR, ENOENT);
        /* The command's own rights, not the agent's. */
        x = args_run(*state, yes, NULL, "/etc/ssl/private");
        assert_int_equal(x.end.code, START_WORKDIR);
        run_done(&x);
        x = rig_run(*state, 1, "echo : >/tmp/plain; chmod 755 /tmp/plain");
        run_equals(&x, 0, "", "");
        x = args_run(*state, plain, NULL, NULL);
        failed_start(&x, CAUSE_NOT_EXECUTABLE, START_PROGRAM, ENOEXEC);
        x = args_run(*state, yes, NULL, NULL);
        run_equals(&x, 0, "", "");
}

/* Longer than one argument may be: handed over as a file, with the same $0 and the same code. */
static void long_script(void **state) {
        static char script[1 << 20];
        struct run x;

        memset(script, ' ', sizeof(script) - 1);
        memcpy(script, "echo $0 $#; ", 12);
        memcpy(script + sizeof(script) - 1 - 6, "exit 9", 6);
        x = rig_run(*state, 1, script);
        run_equals(&x, 9, "sh 0\n", "");
}

static void no_stdin_is_null(void **state) {
        struct run x = rig_run(*state, 1, "readlink /proc/self/fd/0; cat; echo end");

        run_equals(&x, 0, "/dev/null\nend\n", "");
}

/* Sends @len bytes of stdin within the credit, while output comes back. */
static void feed(struct rig *r, struct run *x, const uint8_t *p, size_t len) {
        size_t credit = FRAME_CREDIT;
        struct frame f;

        while (len > 0) {
                size_t n = len < 50000 ? len : 50000;

                n = n < credit ? n : credit;
                if (n > 0) {
                        rig_send(r, FRAME_STDIN, n == len ? FRAME_EOF : 0, x->channel, p, n);
                        p += n;
                        len -= n;
                        credit -= n;
                        continue;
                }
                rig_next(r, &f);
                if (f.type == FRAME_WINDOW) {
                        struct window w;

                        assert_int_equal(window_decode(f.payload, f.len, &w), 0);
                        assert_int_equal(w.stream, STREAM_STDIN);
                        credit += w.bytes;
                        assert_true(credit <= FRAME_CREDIT);
                } else
                        rig_take(r, &f, x, 1);
        }
}

static void stdin_is_exact(void **state) {
        enum { N = 3000000 };
        struct run x = { .channel = 5 };
        uint8_t *data = malloc(N);

        assert_non_null(data);
        for (size_t i = 0; i < N; i++)
                data[i] = (uint8_t)(i * 2654435761u >> 13);
        rig_sh(*state, 5, (struct exec_order){ .use_stdin = true, .one_shot = true }, "cat");
        feed(*state, &x, data, N);
        rig_collect(*state, &x, 1);
        assert_int_equal(x.len[0], N);
        assert_memory_equal(x.out[0], data, N);
        run_done(&x);
        free(data);
}

/* Who does not read its stdin, or closes it, does not hold the sender. */
static void stdin_unread(void **state) {
        static uint8_t data[1000000];
        struct run x = { .channel = 6 };

        rig_sh(*state, 6, (struct exec_order){ .use_stdin = true, .one_shot = true },
               "exec <&-; sleep 0.2; echo done");
        feed(*state, &x, data, sizeof(data));
        rig_collect(*state, &x, 1);
        run_equals(&x, 0, "done\n", "");
        x.channel = 7;
        rig_sh(*state, 7, (struct exec_order){ .use_stdin = true, .one_shot = true },
               "head -c 3; exit 2");
        rig_send(*state, FRAME_STDIN, 0, 7, "abcdef", 6);
        rig_collect(*state, &x, 1);
        run_equals(&x, 2, "abc", "");
        /* Frames that were on their way when it ended belong to nobody. */
        rig_send(*state, FRAME_STDIN, FRAME_EOF, 7, "x", 1);
        rig_grant(*state, 7, STREAM_STDOUT, 5);
        rig_send(*state, FRAME_SIGNAL, 0, 7, "\x0f", 1);
        rig_send(*state, FRAME_CANCEL, 0, 7, NULL, 0);
        x = rig_run(*state, 7, "echo fine");
        run_equals(&x, 0, "fine\n", "");
}

static void empty_stdin(void **state) {
        struct run x = { .channel = 8 };

        rig_sh(*state, 8, (struct exec_order){ .use_stdin = true, .one_shot = true }, "cat; echo end");
        rig_send(*state, FRAME_STDIN, FRAME_EOF, 8, NULL, 0);
        rig_collect(*state, &x, 1);
        run_equals(&x, 0, "end\n", "");
}

/* Bytes of stdout that come before the answer to a ping, which is sent once they have stopped coming. */
static size_t bytes_now(struct rig *r, size_t expected) {
        size_t n = 0;
        struct frame f;

        while (n < expected) {
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_STDOUT);
                n += f.len;
        }
        poll(NULL, 0, 50); /* time in which more would come */
        rig_send(r, FRAME_PING, 0, 0, "12345678", 8);
        for (;;) {
                rig_next(r, &f);
                if (f.type == FRAME_PONG)
                        break;
                n += f.len;
        }
        assert_memory_equal(f.payload, "12345678", 8);
        return n;
}

static void output_waits_for_credit(void **state) {
        struct rig *r = *state;
        struct run x = { .channel = 3 };
        struct frame f;

        rig_sh(r, 3, (struct exec_order){ .one_shot = true }, "head -c 600000 /dev/zero");
        assert_int_equal(bytes_now(r, FRAME_CREDIT), FRAME_CREDIT);
        rig_grant(r, 3, STREAM_STDOUT, 100001);
        assert_int_equal(bytes_now(r, 100001), 100001);
        rig_grant(r, 3, STREAM_STDOUT, 1000000);
        rig_collect(r, &x, 1);
        assert_int_equal(x.len[0], 600000 - FRAME_CREDIT - 100001);
        run_done(&x);
        /* As much as the credit, to the byte: its end needs no more of it. */
        x.channel = 4;
        rig_sh(r, 4, (struct exec_order){ .one_shot = true }, "head -c 262144 /dev/zero; sleep 0.1");
        for (size_t n = 0; n < FRAME_CREDIT; n += f.len) {
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_STDOUT);
        }
        rig_collect(r, &x, 1);
        assert_int_equal(x.len[0], 0);
        run_done(&x);
}

/* Case 4: a lot, and then the end at once. */
static void no_tail_is_lost(void **state) {
        enum { N = 5000000 };

        for (int i = 0; i < 5; i++) {
                struct run x = rig_run(*state, 1, "seq 1 1000000 | head -c 5000000; printf END >&2");

                assert_int_equal(x.len[0], N);
                assert_memory_equal(x.out[0], "1\n2\n3\n", 6);
                assert_string_equal(x.out[1], "END");
                run_done(&x);
        }
        for (int i = 0; i < 300; i++) {
                struct run x = rig_run(*state, (uint32_t)i, "echo x");

                run_equals(&x, 0, "x\n", "");
        }
}

static void output_limit(void **state) {
        struct run x = { .channel = 2 };

        rig_sh(*state, 2, (struct exec_order){ .one_shot = true, .output_bytes = 1000 },
               "yes 123456789 | head -n 700; echo 1234 >&2; exit 3");
        rig_collect(*state, &x, 1);
        assert_int_equal(x.end.code, 3);
        assert_true(x.end.truncated);
        assert_int_equal(x.len[0] + x.len[1], 1000);
        assert_int_equal(x.end.dropped_bytes[0] + x.end.dropped_bytes[1], 7005 - 1000);
        assert_int_equal(x.len[0] + x.end.dropped_bytes[0], 7000);
        assert_true(x.end.dropped_lines[0] >= 600);
        run_done(&x);
        x.channel = 3;
        rig_sh(*state, 3, (struct exec_order){ .one_shot = true, .output_bytes = 5 }, "printf 12345");
        rig_collect(*state, &x, 1);
        assert_false(x.end.truncated);
        run_equals(&x, 0, "12345", "");
}

static void many_at_once(void **state) {
        enum { N = 64 };
        static struct run runs[N];
        char script[256], want[64];

        for (uint32_t i = 0; i < N; i++) {
                snprintf(script, sizeof(script),
                         "for i in 1 2 3 4 5 6 7 8 9; do echo %u-$i; echo e%u >&2; "
                         "sleep 0.01; done; head -c 100000 /dev/zero | tr '\\0' x; exit %u",
                         i, i, i);
                runs[i] = (struct run){ .channel = 1000 + i };
                rig_sh(*state, 1000 + i, (struct exec_order){ .one_shot = i % 2 }, script);
        }
        rig_collect(*state, runs, N);
        for (uint32_t i = 0; i < N; i++) {
                assert_int_equal(runs[i].end.cause, CAUSE_EXITED);
                assert_int_equal(runs[i].end.code, i);
                assert_true(runs[i].len[0] > 100000);
                runs[i].out[0][runs[i].len[0] - 100000] = '\0';
                snprintf(want, sizeof(want), "%u-1\n%u-2\n%u-3\n%u-4\n", i, i, i, i);
                assert_memory_equal(runs[i].out[0], want, strlen(want));
                assert_int_equal(runs[i].len[1], 9 * (i < 10 ? 3 : 4));
                run_done(&runs[i]);
        }
}

/* Ten that flood from the first slots, and then one in a slot behind them. */
static void flood_starves_nobody(void **state) {
        enum { N = 11 };
        static struct run runs[N];
        unsigned pings = 0, pongs = 0;
        size_t flooded = 0;
        struct frame f;

        for (uint32_t i = 0; i < N; i++)
                runs[i] = (struct run){ .channel = i + 1 };
        for (uint32_t i = 0; i < N - 1; i++)
                rig_sh(*state, i + 1, (struct exec_order){ .one_shot = true }, "yes; :");
        while (!runs[N - 1].ended) {
                rig_next(*state, &f);
                if (f.type == FRAME_PONG) {
                        pongs++;
                        continue;
                }
                if (f.channel == N || f.type != FRAME_STDOUT) {
                        rig_take(*state, &f, runs, N);
                        continue;
                }
                rig_grant(*state, f.channel, STREAM_STDOUT, f.len);
                /* Once the flood is at its height. */
                if (flooded < 20000000 && flooded + f.len >= 20000000)
                        rig_sh(*state, N, (struct exec_order){ .one_shot = true },
                               "echo through; exit 4");
                flooded += f.len;
                if (flooded / 1000000 > pings) {
                        pings++;
                        rig_send(*state, FRAME_PING, 0, 0, "", 0);
                }
                assert_true(flooded < 20000000000);
        }
        run_equals(&runs[N - 1], 4, "through\n", "");
        runs[N - 1].ended = true;
        assert_true(pongs + 2 >= pings);
        for (uint32_t i = 0; i < N - 1; i++)
                rig_send(*state, FRAME_CANCEL, 0, i + 1, NULL, 0);
        for (unsigned left = N - 1; left > 0;) {
                rig_next(*state, &f);
                if (f.type == FRAME_EXITED) {
                        left--;
                        rig_take(*state, &f, runs, N);
                }
        }
        for (uint32_t i = 0; i < N - 1; i++)
                assert_int_equal(runs[i].end.cause, CAUSE_CANCELLED);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(says_what_confines_it),
                CASE(streams_and_code),
                CASE(identity),
                CASE(streams_by_name),
                CASE(agent_is_out_of_reach),
                CASE(environment),
                CASE(what_cannot_start),
                CASE(long_script),
                CASE(no_stdin_is_null),
                CASE(stdin_is_exact),
                CASE(stdin_unread),
                CASE(empty_stdin),
                CASE(output_waits_for_credit),
                CASE(no_tail_is_lost),
                CASE(output_limit),
                CASE(many_at_once),
                CASE(flood_starves_nobody),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
