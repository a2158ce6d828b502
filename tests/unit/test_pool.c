/* Who gets which sandbox: pool.c and queue.c with sandboxes that have no container, callers without a socket, and
 * no broker, so that nothing is ever created. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wire.h"
#include "manager/exec.h"
#include "manager/manager.h"

#define ALICE 1001
#define BOB 1002
#define CAROL 1003

static struct manager m;
static struct pool pool;
static struct config_profile profile;
static char dir[64], trail[128], state_file[128];
static char order[512]; /* the names of execs in the order in which they got a sandbox */

static char *no_strings[] = { NULL };

static void open_audit(void) {
        struct config c = { .log_max_bytes = 1 << 20, .audit_required = TRI_FALSE };
        struct errmsg e = { "" };

        snprintf(dir, sizeof(dir), "/tmp/test-pool-XXXXXX");
        assert_non_null(mkdtemp(dir));
        snprintf(trail, sizeof(trail), "%s/log", dir);
        snprintf(state_file, sizeof(state_file), "%s/open", dir);
        c.audit_file = trail;
        if (audit_new(&c, false, state_file, &m.audit, &e) < 0)
                fail_msg("%s", e.text);
}

static int begin(void **state) {
        (void)state;
        memset(&m, 0, sizeof(m));
        memset(&pool, 0, sizeof(pool));
        TAILQ_INIT(&m.sessions);
        order[0] = '\0';
        open_audit();
        m.broker.fd = -1;
        assert_true(sd_event_new(&m.event) >= 0);
        assert_true(sd_event_add_time_relative(m.event, &m.announce, CLOCK_MONOTONIC, 0, 0,
                                               client_announce, &m) >= 0);
        assert_true(pools_attach(&m) >= 0);
        profile = (struct config_profile){ .name = (char *)"default",
                                           .size = 2,
                                           .max_sandboxes = 4,
                                           .reuse = REUSE_SCRUB,
                                           .on_empty = ON_EMPTY_WAIT,
                                           .cold_after_ms = 100000,
                                           .queue_limit = 100,
                                           .limits = { .execs = 100, .queued = 100 },
                                           .queue_timeout_ms = 100000,
                                           .workdir = (char *)"/",
                                           .home = (char *)"/",
                                           .env = no_strings };
        pool.m = &m;
        pool.name = (char *)"default";
        pool.profile = &profile;
        TAILQ_INIT(&pool.sandboxes);
        TAILQ_INIT(&pool.turns);
        LIST_INSERT_HEAD(&m.pools, &pool, link);
        return 0;
}

static void settle(void) {
        pool_changed(&pool);
        assert_int_equal(pools_settle(NULL, &m), 0);
}

static struct sandbox *warm(uid_t owner, unsigned uses) {
        struct sandbox *sb = calloc(1, sizeof(*sb));

        assert_non_null(sb);
        sb->pool = &pool;
        sb->listen_fd = sb->conn.fd = -1;
        sb->can_scrub = true;
        sb->born_ms = sb->since_ms = now_ms();
        sb->owner = owner;
        sb->uses = uses;
        sb->state = SANDBOX_WARM;
        pool.n_warm++;
        TAILQ_INSERT_TAIL(&pool.sandboxes, sb, link);
        return sb;
}

/* A caller's `true`, as exec_request() would have made it; it waits. */
static int wait_in_line(uid_t uid, char name) {
        struct exec *x = calloc(1, sizeof(*x));
        struct client *c = calloc(1, sizeof(*c));
        static uint8_t args[64];
        struct wire_out out;

        assert_true(x && c);
        wire_out_init(&out, args, sizeof(args));
        wire_put_str(&out, "true");
        c->m = &m;
        c->conn.fd = -1;
        c->exec = x;
        x->m = &m;
        x->client = c;
        x->pool = &pool;
        x->request = (struct exec_request){
                .n_args = 1, .workdir = "", .profile = "", .args_wire = args, .strings_len = out.len
        };
        x->args_len = out.len;
        snprintf(x->id, sizeof(x->id), "%016x", name);
        x->audit = (struct audit_exec){ .exec_id = x->id,
                                        .container_id = "",
                                        .profile = "default",
                                        .caller = { .uid = uid },
                                        .args_wire = args,
                                        .args_len = out.len,
                                        .n_args = 1 };
        LIST_INSERT_HEAD(&m.execs, x, link);
        return queue_add(&pool, uid, &x->waiter);
}

/* What sandboxes run now, each as the last two digits of its exec's id: the names. */
static void note(void) {
        struct sandbox *sb;

        TAILQ_FOREACH(sb, &pool.sandboxes, link)
        if (sb->state == SANDBOX_BUSY && sb->exec) {
                size_t n = strlen(order);

                snprintf(order + n, sizeof(order) - n, "%c", (int)strtol(sb->exec->id, NULL, 16));
                free(sb->exec->client);
                LIST_REMOVE(sb->exec, link);
                free(sb->exec);
                sb->exec = NULL;
        }
}

/* Its command has ended, and it was proved clean. */
static void give_back(struct sandbox *sb) {
        sandbox_set_state(sb, SANDBOX_SCRUBBING);
        sandbox_set_state(sb, SANDBOX_WARM);
        settle();
        note();
}

static unsigned sandboxes(void) {
        struct sandbox *sb;
        unsigned n = 0;

        TAILQ_FOREACH(sb, &pool.sandboxes, link)
        n++;
        return n;
}

static unsigned waiting_cold(void) {
        struct turn *t;
        unsigned n = 0;

        TAILQ_FOREACH(t, &pool.turns, link)
        n += t->n_cold;
        return n;
}

static int end(void **state) {
        struct sandbox *sb;
        struct exec *x;

        (void)state;
        note();
        m.draining = true;
        queue_refuse(&pool, true, "stopping", "the test has ended");
        while ((x = LIST_FIRST(&m.execs))) {
                LIST_REMOVE(x, link);
                free(x);
        }
        while ((sb = TAILQ_FIRST(&pool.sandboxes)))
                sandbox_discard(sb, NULL);
        sd_event_source_disable_unref(m.announce);
        sd_event_source_disable_unref(m.settle);
        sd_event_unref(m.event);
        audit_free(m.audit);
        unlink(trail);
        unlink(state_file);
        return rmdir(dir);
}

static void own_before_unused(void **state) {
        struct sandbox *unused = warm(0, 0), *used = warm(ALICE, 3);

        (void)state;
        assert_ptr_equal(pool_claim(&pool, ALICE), used);
        assert_ptr_equal(pool_claim(&pool, BOB), unused);
        assert_ptr_equal(pool_claim(&pool, 0), unused); /* an owner of 0 with no uses is nobody */
        unused->uses = 1;
        unused->owner = CAROL;
        assert_null(pool_claim(&pool, BOB));
        assert_null(pool_claim(&pool, 0));
}

static void unfit_serve_nobody(void **state) {
        struct sandbox *sb = warm(ALICE, 1);

        (void)state;
        sb->recipe[0] = 1;
        assert_null(pool_claim(&pool, ALICE));
        sb->recipe[0] = 0;
        assert_non_null(pool_claim(&pool, ALICE));
        profile.max_age_ms = 1000;
        sb->born_ms = now_ms() - 1001;
        assert_null(pool_claim(&pool, ALICE));
        pool.profile = NULL;
        profile.max_age_ms = 0;
        assert_null(pool_claim(&pool, ALICE));
}

static void turns_go_round(void **state) {
        (void)state;
        for (const char *p = "aAbBcCdDeE"; *p; p += 2) {
                assert_int_equal(wait_in_line(ALICE, p[0]), 0);
                if (*p < 'c')
                        assert_int_equal(wait_in_line(BOB, p[1]), 0);
        }
        assert_int_equal(pool.n_queue, 7);
        for (int i = 0; i < 7; i++) {
                warm(0, 0);
                profile.size = profile.max_sandboxes = 100;
                settle();
                note();
        }
        assert_string_equal(order, "aAbBcde");
        assert_int_equal(pool.n_queue, 0);
        assert_true(TAILQ_EMPTY(&pool.turns));
}

static void returned_serves_its_owner_only(void **state) {
        struct sandbox *sb = warm(0, 0);

        (void)state;
        profile.size = profile.max_sandboxes = 2;
        wait_in_line(ALICE, 'a');
        settle();
        note();
        wait_in_line(BOB, 'B');
        wait_in_line(ALICE, 'b');
        give_back(sb);
        /* There is room for another one, which Bob waits for. */
        assert_string_equal(order, "ab");
        assert_int_equal(sb->owner, ALICE);
        warm(0, 0);
        settle();
        note();
        assert_string_equal(order, "abB");
}

static void nobody_starves_at_the_bound(void **state) {
        struct sandbox *sb[2];

        (void)state;
        profile.size = profile.max_sandboxes = 2;
        for (int i = 0; i < 2; i++) {
                sb[i] = warm(0, 0);
                wait_in_line(ALICE, (char)('a' + i));
                settle();
                note();
        }
        wait_in_line(BOB, 'B');
        wait_in_line(ALICE, 'c');
        wait_in_line(ALICE, 'd');
        /* All are Alice's, and no more may be made: hers is thrown away when it comes back. */
        give_back(sb[0]);
        assert_int_equal(sandboxes(), 1);
        assert_string_equal(order, "ab");
        /* One is enough: the other serves Alice on. */
        pool.n_creating = 1;
        give_back(sb[1]);
        assert_string_equal(order, "abc");
        pool.n_creating = 0;
        warm(0, 0);
        settle();
        note();
        assert_string_equal(order, "abcB");
}

static void a_full_queue_takes_another_user(void **state) {
        (void)state;
        profile.queue_limit = 2;
        assert_int_equal(wait_in_line(ALICE, 'a'), 0);
        assert_int_equal(wait_in_line(ALICE, 'b'), 0);
        assert_int_equal(wait_in_line(ALICE, 'c'), -ENOSPC);
        assert_int_equal(wait_in_line(BOB, 'A'), 0);
        assert_int_equal(wait_in_line(BOB, 'B'), -ENOSPC);
        assert_int_equal(pool.n_queue, 3);
}

static void a_user_holds_no_more_than_allowed(void **state) {
        (void)state;
        profile.size = 4;
        profile.max_sandboxes = 2;
        for (int i = 0; i < 4; i++)
                warm(0, 0);
        for (const char *p = "abcd"; *p; p++)
                wait_in_line(ALICE, *p);
        wait_in_line(BOB, 'B');
        settle();
        note();
        assert_int_equal(strlen(order), 3);
        assert_non_null(strchr(order, 'B'));
        assert_true(pool_uid_full(&pool, ALICE));
        assert_false(pool_uid_full(&pool, BOB));
}

static void unfit_go_one_by_one(void **state) {
        struct sandbox *old[2] = { warm(ALICE, 1), warm(ALICE, 1) };

        (void)state;
        old[0]->recipe[0] = old[1]->recipe[0] = 1;
        settle();
        assert_int_equal(sandboxes(), 2); /* until there is another one */
        warm(0, 0);
        settle();
        assert_int_equal(sandboxes(), 2);
        warm(0, 0);
        settle();
        assert_int_equal(sandboxes(), 2);
        assert_int_equal(TAILQ_FIRST(&pool.sandboxes)->uses, 0);
}

static void cold_at_once_where_nothing_comes_back(void **state) {
        struct sandbox *sb;

        (void)state;
        profile.on_empty = ON_EMPTY_COLD;
        wait_in_line(ALICE, 'a');
        assert_int_equal(waiting_cold(), 1);
        sb = warm(0, 0);
        settle();
        note();
        assert_int_equal(waiting_cold(), 0);
        assert_int_equal(sb->state, SANDBOX_BUSY);
        wait_in_line(ALICE, 'b'); /* hers will be back */
        assert_int_equal(waiting_cold(), 0);
        wait_in_line(BOB, 'B');
        assert_int_equal(waiting_cold(), 1);
        give_back(sb);
        assert_string_equal(order, "ab");
}

static void reuse_is_said_with_its_reason(void **state) {
        char why[64];

        (void)state;
        assert_string_equal(pool_reuse(&pool, why, sizeof(why)), "scrub");
        assert_string_equal(why, "");
        strcpy(pool.probe, "seccomp=2\nscrub=no: /data (ext4) is writable\nrootfs=read-only\n");
        assert_string_equal(pool_reuse(&pool, why, sizeof(why)), "replace");
        assert_string_equal(why, "/data (ext4) is writable");
        profile.reuse = REUSE_REPLACE;
        assert_string_equal(pool_reuse(&pool, why, sizeof(why)), "replace");
        assert_string_equal(why, "");
}

static void the_last_use_is_not_scrubbed(void **state) {
        struct sandbox *sb = warm(ALICE, 0);

        (void)state;
        profile.max_uses = 2;
        assert_true(pool_scrubs(&pool, sb));
        sb->uses = 1;
        assert_false(pool_scrubs(&pool, sb));
        profile.max_uses = 0;
        assert_true(pool_scrubs(&pool, sb));
        sb->can_scrub = false;
        assert_false(pool_scrubs(&pool, sb));
}

/* Without a turn of the loop of its own, and whatever one pool's change means for another. */
static void settled_before_the_loop_waits(void **state) {
        struct config_profile gone = profile;
        struct pool other = { .m = &m, .name = (char *)"other", .profile = &gone };
        struct sandbox *sb = warm(1, 1);

        (void)state;
        TAILQ_INIT(&other.sandboxes);
        TAILQ_INIT(&other.turns);
        LIST_INSERT_HEAD(&m.pools, &other, link);
        sd_event_source_set_enabled(m.announce, SD_EVENT_OFF);
        pool_changed(&other);
        assert_int_equal(wait_in_line(1, 'a'), 0);
        pool_changed(&pool);
        assert_int_equal(sd_event_run(m.event, 0), 0);
        assert_int_equal(sb->state, SANDBOX_BUSY);
        assert_false(m.changed || pool.changed || other.changed);
        note();
        assert_string_equal(order, "a");
        LIST_REMOVE(&other, link);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(own_before_unused),
                CASE(unfit_serve_nobody),
                CASE(turns_go_round),
                CASE(returned_serves_its_owner_only),
                CASE(nobody_starves_at_the_bound),
                CASE(a_full_queue_takes_another_user),
                CASE(a_user_holds_no_more_than_allowed),
                CASE(unfit_go_one_by_one),
                CASE(cold_at_once_where_nothing_comes_back),
                CASE(reuse_is_said_with_its_reason),
                CASE(the_last_use_is_not_scrubbed),
                CASE(settled_before_the_loop_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
