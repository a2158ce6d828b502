/* Who is told of a limit: the counters are the whole sandbox's, and a command is blamed for what it did, not for what
 * others did beside it. The counters are files of the test. */
#include "agentrun.h"

#define ONE_SHOT true
#define SESSION false

enum company { ALONE, BESIDE, LATER, LEFT };

struct end {
        const char *how;
        bool one_shot;
        bool oom, pids; /* which counters rise while it runs */
        uint8_t cause;
};

static char counters[] = "/tmp/test-agent-limits.XXXXXX";
static unsigned oom, pids;
static struct rig rig;

static void put(const char *name, const char *key, unsigned value) {
        char path[128], text[64];
        int n = snprintf(text, sizeof(text), "%s %u\n", key, value);
        int fd;

        snprintf(path, sizeof(path), "%s/%s", counters, name);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, (size_t)n),
                         n); /* numbers only grow: nothing old stays behind */
        close(fd);
}

static int make_counters(void **state) {
        (void)state;
        if (!mkdtemp(counters))
                return -1;
        put("memory.events", "oom_kill", 0);
        put("pids.events", "max", 0);
        return 0;
}

static int remove_counters(void **state) {
        char path[128];

        (void)state;
        snprintf(path, sizeof(path), "%s/memory.events", counters);
        unlink(path);
        snprintf(path, sizeof(path), "%s/pids.events", counters);
        unlink(path);
        return rmdir(counters);
}

static int begin(void **state) {
        *state = &rig;
        rig.counters = counters;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

/* Runs until the counters have risen, in this company. */
static void ends(struct rig *r, enum company company, const struct end *t) {
        struct exited e;
        struct run x;
        char script[64];

        if (company == BESIDE)
                start_ready(r, 2, (struct exec_order){ 0 }, "echo ready; exec sleep 300");
        if (company == LEFT) {
                rig_sh(r, 2, (struct exec_order){ 0 }, "sleep 300 >/dev/null 2>&1 &");
                assert_int_equal(wait_exited(r, 2).cause, CAUSE_EXITED);
        }
        snprintf(script, sizeof(script), "echo ready; read -r line; %s", t->how);
        start_ready(r, 1, (struct exec_order){ .one_shot = t->one_shot, .use_stdin = true }, script);
        if (company == LATER) {
                x = rig_run(r, 2, ":");
                run_equals(&x, 0, "", "");
        }
        if (t->oom)
                put("memory.events", "oom_kill", ++oom);
        if (t->pids)
                put("pids.events", "max", ++pids);
        rig_send(r, FRAME_STDIN, FRAME_EOF, 1, "go\n", 3);
        e = wait_exited(r, 1);
        if (e.cause != t->cause)
                fail_msg("%s: cause %s, expected %s", t->how, cause_name(e.cause), cause_name(t->cause));
        if (company == BESIDE) {
                rig_send(r, FRAME_CANCEL, 0, 2, NULL, 0);
                assert_int_equal(wait_exited(r, 2).cause, CAUSE_CANCELLED);
        }
}

static void alone(void **state) {
        static const struct end all[] = {
                { "exit 0", ONE_SHOT, true, false, CAUSE_OOM },
                { "exit 0", SESSION, true, false, CAUSE_EXITED },
                { "exit 5", ONE_SHOT, true, false, CAUSE_OOM },
                { "exit 5", SESSION, true, false, CAUSE_OOM },
                { "kill -KILL $$", SESSION, true, false, CAUSE_OOM },
                { "exit 0", ONE_SHOT, false, true, CAUSE_EXITED },
                { "exit 0", SESSION, false, true, CAUSE_EXITED },
                { "exit 5", ONE_SHOT, false, true, CAUSE_PIDS_LIMIT },
                { "exit 5", SESSION, false, true, CAUSE_PIDS_LIMIT },
                { "exit 5", SESSION, true, true, CAUSE_OOM },
                { "exit 137", SESSION, false, false, CAUSE_EXITED },
                { "kill -KILL $$", SESSION, false, false, CAUSE_SIGNALED },
        };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                ends(*state, ALONE, &all[i]);
}

static void in_company(struct rig *r, enum company company) {
        static const struct end all[] = {
                { "exit 0", SESSION, true, true, CAUSE_EXITED },
                { "exit 1", SESSION, true, false, CAUSE_EXITED },
                { "exit 1", SESSION, false, true, CAUSE_EXITED },
                { "kill -TERM $$", SESSION, true, true, CAUSE_SIGNALED },
                { "kill -KILL $$", SESSION, false, true, CAUSE_SIGNALED },
                { "kill -KILL $$", SESSION, true, false, CAUSE_OOM },
                { "exit 137", SESSION, true, false, CAUSE_OOM },
                { "exit 9", SESSION, true, false, CAUSE_EXITED },
        };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                ends(r, company, &all[i]);
}

static void beside_another(void **state) {
        in_company(*state, BESIDE);
}

/* The other began later, and ended before. */
static void with_a_guest(void **state) {
        in_company(*state, LATER);
}

/* The other has ended, and left something in the background. */
static void beside_what_was_left(void **state) {
        in_company(*state, LEFT);
}

/* That there was company once is no matter for the next. */
static void alone_again(void **state) {
        static const struct end guest = { "exit 1", SESSION, true, false, CAUSE_EXITED },
                                host = { "exit 1", SESSION, true, false, CAUSE_OOM };

        ends(*state, LATER, &guest);
        ends(*state, ALONE, &host);
        ends(*state, BESIDE, &guest);
        nothing_runs(*state);
        ends(*state, ALONE, &host);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(alone),       CASE(beside_another),       CASE(with_a_guest),
                CASE(alone_again), CASE(beside_what_was_left),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, make_counters, remove_counters);
}
