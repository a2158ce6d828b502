/* One command's tree ends beside 63 others, whatever it does, on a machine that has little time for the agent: agent
 * and commands share half a processor. */
#include "agentrun.h"

#define OTHERS 63
#ifdef __SANITIZE_ADDRESS__
#define CHAINS 10 /* a fork copies ASan's tables, too */
#else
#define CHAINS 100
#endif
#define PIDS_MAX "250"

static char pids[] = "/sys/fs/cgroup/pids/hst-trees.XXXXXX",
            cpu[] = "/sys/fs/cgroup/cpu/hst-trees.XXXXXX";
static struct rig rig;

/* --- what it does: this program, as a command --------------------------------------------------------- */

static void say_ready(void) {
        if (write(1, "ready\n", 6) != 6)
                _exit(1);
}

/* Each lives as long as it takes to make the next, which leaves its group and session. */
static void chain(void) {
        for (;;) {
                pid_t pid = fork();

                if (pid > 0)
                        _exit(0);
                if (pid == 0)
                        setsid();
        }
}

static void chains(int n) {
        for (int i = 0; i < n; i++)
                if (fork() == 0) {
                        setsid();
                        chain();
                }
        say_ready();
        for (;;)
                pause();
}

/* As many as the limit lets there be, in one group or in one each. */
static void bomb(bool groups) {
        say_ready();
        for (;;)
                if (fork() == 0 && groups)
                        setsid();
}

/* Two generations that lose their parents at once, deaf for all that can be heard. */
static void double_forks(void) {
        for (int i = 0; i < 20; i++)
                if (fork() == 0) {
                        setsid();
                        for (int signo = 1; signo < 32; signo++)
                                signal(signo, SIG_IGN);
                        if (fork() > 0)
                                _exit(0);
                        setsid();
                        for (;;)
                                pause();
                }
        say_ready();
        for (;;)
                pause();
}

static int command(const char *what) {
        if (strcmp(what, "chain") == 0)
                chains(1);
        if (strcmp(what, "chains") == 0)
                chains(CHAINS);
        if (strcmp(what, "bomb") == 0)
                bomb(false);
        if (strcmp(what, "bombs") == 0)
                bomb(true);
        if (strcmp(what, "double") == 0)
                double_forks();
        return 1;
}

/* --- and how it ends ------------------------------------------------------------------------------------ */

static void write_to(const char *folder, const char *file, const char *text) {
        char path[256];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", folder, file);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

static int begin(void **state) {
        *state = &rig;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

/* Processes in the sandbox, but for the agent and its spare one. */
static int population(void) {
        char path[256], text[16] = "";
        int fd;

        snprintf(path, sizeof(path), "%s/pids.current", rig.cgroup);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
        close(fd);
        return atoi(text);
}

static void dies_alone(struct rig *r, const char *what) {
        const char *const args[] = { RIG_TEST, what, NULL };
        struct frame f;
        uint64_t begun;
        struct exited e;

        rig_order(r, 1, (struct exec_order){ 0 }, args, NULL);
        for (size_t n = 0; n < 6; n += f.len) {
                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_STDOUT);
        }
        poll(NULL, 0, 300); /* time to breed */
        begun = now_ms();
        rig_send(r, FRAME_CANCEL, 0, 1, NULL, 0);
        e = wait_exited(r, 1);
        print_message("%s: %u ms\n", what, (unsigned)(now_ms() - begun));
        assert_int_equal(e.cause, CAUSE_CANCELLED);
        says_nothing(r);
        says_nothing(r);
        /* The dead may wait to be reaped. */
        begun = now_ms();
        while (population() > OTHERS + 2) {
                assert_true(now_ms() - begun < 5000);
                poll(NULL, 0, 10);
        }
        assert_true(population() >= OTHERS + 1);
}

static void beside_others(void **state) {
        static const char *const kinds[] = { "double", "chain", "chains", "bomb", "bombs" };
        struct rig *r = *state;
        unsigned ended = 0;

        for (uint32_t i = 0; i < OTHERS; i++)
                start_ready(r, 100 + i, (struct exec_order){ 0 }, "echo ready; exec sleep 300");
        write_to(rig.slow, "cpu.cfs_quota_us", "50000");
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                dies_alone(r, kinds[i]);
        write_to(rig.slow, "cpu.cfs_quota_us", "-1");
        for (uint32_t i = 0; i < OTHERS; i++)
                rig_send(r, FRAME_SIGNAL, 0, 100 + i, "\x0f", 1);
        while (ended < OTHERS) {
                struct exited e;
                struct frame f;

                rig_next(r, &f);
                assert_int_equal(f.type, FRAME_EXITED);
                assert_int_equal(exited_decode(f.payload, f.len, &e), 0);
                /* The limit was the others' affair. */
                assert_int_equal(e.cause, CAUSE_SIGNALED);
                assert_int_equal(e.code, SIGTERM);
                ended++;
        }
}

static int make_cgroups(void **state) {
        (void)state;
        if (!mkdtemp(pids) || !mkdtemp(cpu)) {
                print_message("skipped: no cgroup (v1) can be made below /sys/fs/cgroup/pids and cpu\n");
                return -1;
        }
        rig.cgroup = pids;
        rig.slow = cpu;
        write_to(pids, "pids.max", PIDS_MAX);
        return 0;
}

static int remove_cgroups(void **state) {
        (void)state;
        for (int i = 0; i < 1000 && (rmdir(pids) < 0 || rmdir(cpu) < 0); i++)
                poll(NULL, 0, 10);
        return 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(int argc, char *args[]) {
        const struct CMUnitTest tests[] = { CASE(beside_others) };
        int unfit = argc > 1 ? command(args[1]) : rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, make_cgroups, remove_cgroups);
}
