/* The process that a real agent makes beforehand: what a command that it becomes is like, what becomes of one
 * that was killed, and the reserve at the pids limit. */
#include <dirent.h>

#include "agentrun.h"

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

/* --- seen from outside --------------------------------------------------------------------------- */

struct seen {
        int n;          /* children of the agent */
        pid_t pid;      /* one of them, */
        unsigned uid;   /* its uid */
        unsigned inner; /* and its pid inside */
};

static const char *line_of(const char *status, const char *key) {
        const char *p = strstr(status, key);

        assert_non_null(p);
        return p + strlen(key);
}

static struct seen look(const struct rig *r) {
        DIR *d = opendir("/proc");
        struct seen s = { 0 };
        struct dirent *e;

        assert_non_null(d);
        while ((e = readdir(d))) {
                char path[64], status[4096];
                ssize_t n = -1;
                int fd;

                snprintf(path, sizeof(path), "/proc/%.20s/status", e->d_name);
                fd = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
                if (fd >= 0) {
                        n = read(fd, status, sizeof(status) - 1);
                        close(fd);
                }
                if (n <= 0)
                        continue;
                status[n] = '\0';
                if (atoi(line_of(status, "\nPPid:\t")) != r->agent)
                        continue;
                s.n++;
                s.pid = atoi(e->d_name);
                s.uid = (unsigned)atoi(line_of(status, "\nUid:\t"));
                assert_int_equal(sscanf(line_of(status, "\nNSpid:\t"), "%*u %u", &s.inner), 1);
        }
        closedir(d);
        return s;
}

/* The spare process alone, with this uid. */
static struct seen spare(const struct rig *r, unsigned uid) {
        uint64_t until = now_ms() + RIG_WAIT_MS;
        struct seen s = look(r);

        while (s.n != 1 || s.uid != uid) {
                assert_true(now_ms() < until);
                poll(NULL, 0, 1);
                s = look(r);
        }
        return s;
}

static struct run ordered(struct rig *r, uint32_t channel, struct exec_order o, const char *const *args,
                          const char *const *env) {
        struct run x = { .channel = channel };

        rig_order(r, channel, o, args, env);
        rig_collect(r, &x, 1);
        return x;
}

/* Root's, beside what a command left; never the command's uid. */
static void spare_beside(struct rig *r) {
        struct seen s;

        says_nothing(r);
        says_nothing(r);
        s = look(r);
        assert_int_equal(s.n, 2); /* with the background process */
}

/* --- what it becomes ------------------------------------------------------------------------------ */

static void becomes_the_next(void **state) {
        for (int i = 0; i < 20; i++) {
                struct seen s = spare(*state, 10000);
                struct run x = rig_run(*state, 1, "echo $$");

                assert_int_equal(atoi(x.out[0]), s.inner);
                run_done(&x);
        }
}

/* Everything that a process has and that is not its own: of a command on the given way. */
static char *self_portrait(struct rig *r, uint32_t channel, bool use_stdin) {
        static const char script[] =
                "until [ \"$(cat /proc/self/oom_score_adj)\" = 1000 ]; do :; done\n"
                "grep -vE '^(Name|State|Tgid|Ngid|Pid|PPid|NStgid|NSpid|NSpgid|NSsid|Groups|Vm.*|Rss.*|"
                ".*ctxt_switches|Mems_allowed.*|x86_.*|HugetlbPages):' /proc/self/status\n"
                "echo groups $(id -G | wc -w); cat /proc/self/limits /proc/self/cgroup; pwd; umask\n"
                "for i in /proc/self/fd/*; do readlink $i; done | sed 's/[0-9][0-9]*/N/'\n"
                "ps -o sid=,pgid=,ni=,cls=,tty= -p $$ | sed \"s/ *$$ *$$ /leader /\"\n"
                "sed 's/ .*//' /proc/self/mountinfo | wc -l; kill -0 1 2>/dev/null; echo $?; echo >/dev/stderr\n"
                "tr '\\0' '\\n' </proc/self/environ; stat -L -c %a:%u /proc/self/fd/1 /proc/self/fd/2\n";
        const char *const args[] = { "sh", "-c", script, "name", "a b", "", NULL }, *const env[] = {
                "X=1", "E=", NULL
        };
        struct exec_order o = { .use_stdin = use_stdin, .workdir = "/tmp" };
        struct run x = { .channel = channel };
        char *text;

        rig_order(r, channel, o, args, env);
        if (use_stdin)
                rig_send(r, FRAME_STDIN, FRAME_EOF, channel, NULL, 0);
        rig_collect(r, &x, 1);
        assert_int_equal(x.end.code, 0);
        assert_string_equal(x.out[1], "\n");
        text = strdup(x.out[0]);
        assert_non_null(text);
        assert_non_null(strstr(text, "leader"));
        assert_non_null(strstr(text, "CapEff:\t0000000000000000"));
        run_done(&x);
        return text;
}

/* What runs beside it makes the agent take the other way. */
static void both_ways_are_one(void **state) {
        struct rig *r = *state;
        char *prepared[2], *forked;

        for (int i = 0; i < 2; i++) {
                spare(r, 10000);
                prepared[i] = self_portrait(r, 1, i);
        }
        start_ready(r, 2, (struct exec_order){ 0 }, "echo ready; sleep 500; :");
        for (int i = 0; i < 2; i++) {
                forked = self_portrait(r, 1, i);
                assert_string_equal(prepared[i], forked);
                free(forked);
                free(prepared[i]);
        }
        rig_send(r, FRAME_CANCEL, 0, 2, NULL, 0);
        wait_exited(r, 2);
}

static void argv_env_workdir(void **state) {
        const char *const args[] = { "sh",   "-c",  "printf '%s|' \"$@\" \"$X\" \"$IMAGE\"; pwd",
                                     "me",   "a b", "",
                                     "\xff", NULL },
                          *const env[] = { "X=1\n2", "IMAGE=order", NULL };
        struct run x;

        for (int i = 0; i < 3; i++) {
                spare(*state, 10000);
                x = ordered(*state, 3, (struct exec_order){ .workdir = i ? "/usr" : "/tmp" }, args, env);
                run_equals(&x, 0, i ? "a b||\xff|1\n2|order|/usr\n" : "a b||\xff|1\n2|order|/tmp\n", "");
        }
}

static void stdin_or_none(void **state) {
        for (uint32_t i = 0; i < 6; i++) {
                struct run x = { .channel = i };

                spare(*state, 10000);
                if (i % 2) {
                        rig_sh(*state, i, (struct exec_order){ .use_stdin = true, .one_shot = true },
                               "cat; readlink /proc/self/fd/3 || echo none");
                        rig_send(*state, FRAME_STDIN, FRAME_EOF, i, "bytes ", 6);
                        rig_collect(*state, &x, 1);
                        run_equals(&x, 0, "bytes none\n", "");
                        continue;
                }
                x = rig_run(*state, i, "cat; readlink /proc/self/fd/0");
                run_equals(&x, 0, "/dev/null\n", "");
        }
}

/* A start that fails costs the prepared child, and no more. */
static void failed_starts(void **state) {
        static char script[200000];
        const char *const none[] = { "/no/such", NULL }, *const yes[] = { "true", NULL };
        struct run x;

        memset(script, ' ', sizeof(script) - 1);
        memcpy(script, "echo $0; ", 9);
        for (int i = 0; i < 5; i++) {
                spare(*state, 10000);
                x = ordered(*state, 1, (struct exec_order){ .use_stdin = i % 2 }, none, NULL);
                assert_int_equal(x.end.cause, CAUSE_NOT_FOUND);
                assert_int_equal(x.end.error, ENOENT);
                run_done(&x);
                spare(*state, 10000);
                x = ordered(*state, 1, (struct exec_order){ .workdir = "/nowhere" }, yes, NULL);
                assert_int_equal(x.end.code, START_WORKDIR);
                run_done(&x);
                spare(*state, 10000);
                x = rig_run(*state, 1, script);
                run_equals(&x, 0, "sh\n", "");
        }
}

/* The host's OOM killer may take it. The next command runs, and is not told of any death. */
static void was_killed(void **state) {
        for (int i = 0; i < 5; i++) {
                struct seen s = spare(*state, 10000);
                struct run x;

                kill(s.pid, SIGKILL);
                x = rig_run(*state, 1, "id -u; id -G | wc -w; grep CapPrm /proc/self/status; echo $$");
                assert_memory_equal(x.out[0], "10000\n2\nCapPrm:\t0000000000000000\n", 33);
                assert_int_not_equal(atoi(x.out[0] + 33), s.inner);
                assert_int_equal(x.end.cause, CAUSE_EXITED);
                run_done(&x);
        }
}

/* What a session left in the background could signal a process of its own uid: until it has gone the spare
 * one is root's. */
static void never_met(void **state) {
        struct run x = { .channel = 1 };

        spare(*state, 10000);
        rig_sh(*state, 1, (struct exec_order){ 0 },
               "while ! [ -e /tmp/go ]; do sleep 0.01; done >/dev/null 2>&1 & echo $!");
        rig_collect(*state, &x, 1);
        run_done(&x);
        for (int i = 0; i < 10; i++) {
                x = (struct run){ .channel = 2 };
                rig_sh(*state, 2, (struct exec_order){ 0 },
                       "ps -eo uid=,args= | grep -c '^ *10000 .*/[a]gent '");
                rig_collect(*state, &x, 1);
                run_equals(&x, 1, "0\n", "");
                spare_beside(*state);
        }
        x = (struct run){ .channel = 1 };
        rig_sh(*state, 1, (struct exec_order){ 0 }, "touch /tmp/go");
        rig_collect(*state, &x, 1);
        run_done(&x);
        spare(*state, 10000);
}

static void a_reserve_for_sessions(void **state) {
        struct run x;
        struct exited e;

        start_ready(*state, 1, (struct exec_order){ 0 },
                    "echo ready; cat /tmp/pipe 2>/dev/null; sleep 500; :");
        x = (struct run){ .channel = 2 };
        rig_sh(*state, 2, (struct exec_order){ 0 },
               "ps -eo uid=,args= | grep '/[a]gent ' | awk '{print $1}'");
        rig_collect(*state, &x, 1);
        run_equals(&x, 0, "0\n0\n", ""); /* the agent and its reserve */
        rig_send(*state, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(*state, 1);
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        spare(*state, 10000);
}

/* --- the pids limit ------------------------------------------------------------------------------ */

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
                          *const score[] = {
                                  "/bin/sh", "-c",
                                  "until read s </proc/self/oom_score_adj && [ $s = 1000 ]; do :; done",
                                  NULL
                          };
        struct run x = { .channel = 2 };

        start_ready(
                r, 1, (struct exec_order){ 0 },
                "sleep 500 & sleep 500 & sleep 500 & sleep 500 & sleep 500 & sleep 500 & sleep 500 & echo ready; wait");
        write_to(r->cgroup, "pids.max", "9"); /* agent, spare, sh, seven of sleep: one above */
        rig_order(r, 2, (struct exec_order){ 0 }, score, NULL);
        rig_collect(r, &x, 1);
        run_equals(&x, 0, "", "");
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
                CASE(becomes_the_next),
                CASE(both_ways_are_one),
                CASE(argv_env_workdir),
                CASE(stdin_or_none),
                CASE(failed_starts),
                CASE(was_killed),
                CASE(never_met),
                CASE(a_reserve_for_sessions),
                cmocka_unit_test_teardown(pids_limit, pids_limit_end),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
