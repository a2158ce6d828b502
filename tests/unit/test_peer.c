/* Who is at the other end of a socket, by the kernel's word, and what the lists make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "manager/peer.h"

static struct config_profile profile(char **users, char **groups) {
        return (struct config_profile){ .allow_users = users, .allow_groups = groups };
}

static void own_end(void **state) {
        struct peer p;
        int s[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
        assert_int_equal(peer_get(s[0], &p), 0);
        assert_int_equal(p.uid, geteuid());
        assert_int_equal(p.gid, getegid());
        assert_int_equal(p.pid, getpid());
        assert_int_equal(peer_caller(&p).uid, geteuid());
        assert_int_equal(peer_caller(&p).pid, getpid());
        peer_done(&p);
        peer_done(&p); /* twice does no harm */
        close(s[0]);
        close(s[1]);
        assert_true(peer_get(s[0], &p) < 0);
}

/* A child with another uid and @n groups from 70000 on connects, and is looked at. */
static struct peer from_child(int n) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        socklen_t len = sizeof(sa_family_t); /* the kernel gives it an abstract name */
        int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, status;
        struct peer p;
        pid_t pid;

        assert_int_equal(bind(l, (struct sockaddr *)&sa, len), 0);
        len = sizeof(sa);
        assert_int_equal(getsockname(l, (struct sockaddr *)&sa, &len), 0);
        assert_int_equal(listen(l, 1), 0);
        pid = fork();
        if (pid == 0) {
                gid_t *groups = calloc((size_t)n + 1, sizeof(*groups));
                int c = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
                char b;

                for (int i = 0; groups && i < n; i++)
                        groups[i] = 70000 + (gid_t)i;
                if (!groups || setgroups((size_t)n, groups) < 0 || setgid(60001) < 0 ||
                    setuid(60002) < 0 || connect(c, (struct sockaddr *)&sa, len) < 0)
                        _exit(1);
                _exit(read(c, &b, 1) != 0);
        }
        fd = accept(l, NULL, NULL);
        assert_true(fd >= 0);
        assert_int_equal(peer_get(fd, &p), 0);
        assert_int_equal(p.pid, pid);
        close(fd);
        close(l);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        return p;
}

static void another_uid(void **state) {
        (void)state;
        if (geteuid() != 0) {
                print_message("skipped: another uid takes root\n");
                skip();
        }
        for (int n = 0; n <= 1000; n = n ? n * 10 : 1) {
                struct peer_policy yes = { .group = 70000 + (gid_t)n - 1, .have_group = true },
                                   no = { .group = 70000 + (gid_t)n, .have_group = true },
                                   primary = { .group = 60001, .have_group = true },
                                   none = { .group = (gid_t)-1 };
                struct peer p = from_child(n);

                assert_int_equal(p.uid, 60002);
                assert_int_equal(p.gid, 60001);
                assert_int_equal(p.n_groups, n);
                assert_int_equal(peer_allowed(&p, &yes), n > 0);
                assert_false(peer_allowed(&p, &no));
                assert_true(peer_allowed(&p, &primary));
                assert_false(peer_allowed(&p, &none));
                peer_done(&p);
        }
}

static void always_allowed(void **state) {
        struct peer_policy none = { .group = (gid_t)-1 };
        struct peer root = { .uid = 0 }, self = { .uid = geteuid() },
                    other = { .uid = 60002, .gid = (gid_t)-1 };

        (void)state;
        assert_true(peer_allowed(&root, &none));
        assert_true(peer_allowed(&self, &none));
        assert_false(peer_allowed(&other, &none));
}

static void lists(void **state) {
        char *none[] = { NULL }, *users[] = { (char *)"no-such-user-here", (char *)"daemon", NULL },
             *groups[] = { (char *)"no-such-group-here", (char *)"adm", NULL };
        struct passwd *pw = getpwnam("daemon");
        struct group *gr = getgrnam("adm");
        gid_t adm = gr ? gr->gr_gid : 0;
        struct peer daemon = { .uid = pw ? pw->pw_uid : 0 }, stranger = { .uid = 60002, .gid = 60001 },
                    member = { .uid = 60002, .gid = 60001, .groups = &adm, .n_groups = 1 },
                    primary = { .uid = 60002, .gid = adm };
        struct config_profile p = profile(none, none);

        (void)state;
        assert_true(pw && gr);
        assert_true(peer_profile_allowed(&stranger, &p));
        p = profile(users, none);
        assert_true(peer_profile_allowed(&daemon, &p));
        assert_false(peer_profile_allowed(&stranger, &p));
        assert_false(peer_profile_allowed(&member, &p));
        p = profile(none, groups);
        assert_false(peer_profile_allowed(&daemon, &p));
        assert_false(peer_profile_allowed(&stranger, &p));
        assert_true(peer_profile_allowed(&member, &p));
        assert_true(peer_profile_allowed(&primary, &p));
        p = profile(users, groups);
        assert_true(peer_profile_allowed(&daemon, &p));
        assert_true(peer_profile_allowed(&member, &p));
        assert_false(peer_profile_allowed(&stranger, &p));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(own_end),
                cmocka_unit_test(another_uid),
                cmocka_unit_test(always_allowed),
                cmocka_unit_test(lists),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
