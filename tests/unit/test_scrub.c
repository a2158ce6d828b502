/* What a command can leave in a sandbox, and what a scrub makes of it. */
#include <time.h>

#include "scrubrig.h"

/* The agent's own two stand beside its main(), which a test does not link. */
void forget(void *p, size_t n) {
        memset(p, 0, n);
}

uint64_t now_us(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- what a command leaves ----------------------------------------------------------------------------- */

static int make_file(const char *path) {
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        need(fd >= 0 && write(fd, "residue", 7) == 7, path);
        return fd;
}

static void leave_nothing(void) {
        close(make_file("/tmp/x"));
        need(access("/tmp/x", F_OK) == 0, "/tmp/x");
}

static void leave_files(void) {
        char longest[256];

        memset(longest, 'n', 255);
        longest[255] = '\0';
        make_file("/tmp/f");
        make_file(HOME "/-rf *\n");
        make_file("/dev/shm/.f");
        need(chdir(HOME) == 0, HOME);
        make_file(longest);
        need(link(longest, "hard") == 0 && symlink("/dev", "up") == 0 && symlink(".", "self") == 0,
             "link");
        need(mkfifo("fifo", 0) == 0 && ftruncate(make_file("sparse"), 1 << 30) == 0, "fifo");
}

static void leave_deep(void) {
        need(chdir("/tmp") == 0, "/tmp");
        for (int i = 0; i < 1000; i++)
                need(mkdir("d", i % 3 ? 0755 : 0300) == 0 && chdir("d") == 0, "d");
        make_file("f");
}

static void leave_many(void) {
        char name[32];

        for (int i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), HOME "/%d", i);
                close(make_file(name));
        }
        for (int i = 0; i < 300; i++) {
                snprintf(name, sizeof(name), "/dev/shm/%d", i);
                need(mkdir(name, 0755) == 0 && symlink("/tmp", strcat(name, "/x")) == 0, name);
        }
}

/* No folder of the tree can be entered, not even the top. */
static void leave_closed(void) {
        need(mkdir(HOME "/a", 0755) == 0 && mkdir(HOME "/a/b", 0755) == 0, "mkdir");
        make_file(HOME "/a/b/f");
        need(chmod(HOME "/a/b/f", 0) == 0 && chmod(HOME "/a/b", 0) == 0, "chmod");
        need(chmod(HOME "/a", 0600) == 0 && chmod(HOME, 0) == 0, "chmod");
}

static void leave_full(void) {
        static char block[MB];
        int fd = make_file("/tmp/full");

        while (write(fd, block, sizeof(block)) > 0)
                ;
        need(errno == ENOSPC, "full");
}

static void leave_mode(void) {
        need(chmod(HOME, 03777) == 0, "chmod");
}

static void leave_group(void) {
        need(chown(HOME, (uid_t)-1, EXEC_GID) == 0 && chmod(HOME, 02700) == 0, "chown");
}

static void leave_times(void) {
        static const struct timespec t[2] = { { 1, 2 }, { 3, 4 } };

        need(utimensat(AT_FDCWD, HOME, t, 0) == 0, HOME);
        need(utimensat(AT_FDCWD, "/tmp", NULL, 0) == 0, "/tmp");
}

static void leave_xattr(void) {
        need(setxattr(HOME, "user.residue", "x", 1, 0) == 0, "user.residue");
}

/* Version 2, then tag, permissions and id of each entry (linux/posix_acl_xattr.h). */
static void leave_acl(void) {
        static const uint16_t acl[] = { 2,      0,      1,    7, 0xffff, 0xffff, 2,    7,
                                        7,      0,      4,    0, 0xffff, 0xffff, 0x10, 7,
                                        0xffff, 0xffff, 0x20, 0, 0xffff, 0xffff };

        need(setxattr(HOME, "system.posix_acl_access", acl, sizeof(acl), 0) == 0, "ACL");
        need(setxattr(HOME, "system.posix_acl_default", acl, sizeof(acl), 0) == 0, "default ACL");
}

static void leave_flags(void) {
        int flags = NODUMP_FL;

        need(ioctl(open(HOME, O_RDONLY | O_CLOEXEC), SET_FLAGS, &flags) == 0, "flags");
}

static void leave_sysv_ipc(void) {
        int id = shmget(1, MB, IPC_CREAT | 0600);
        struct shmid_ds ds;

        need(id >= 0 && shmctl(id, IPC_STAT, &ds) == 0, "shmget");
        ds.shm_perm.uid = 1;
        ds.shm_perm.mode = 0;
        need(shmctl(id, IPC_SET, &ds) == 0 && shmget(2, MB, IPC_CREAT) >= 0, "shmget");
        need(msgget(1, IPC_CREAT) >= 0 && semget(1, 5, IPC_CREAT) >= 0, "msgget");
}

static void leave_queues(void) {
        struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
        mqd_t q = mq_open("/residue", O_RDWR | O_CREAT, 0, &attr);

        need(q >= 0 && mq_send(q, "x", 1, 0) == 0 && mq_open("/other", O_RDWR | O_CREAT, 0, &attr) >= 0,
             "mq_open");
}

/* It has left its session and its parent, keeps a file without a name and a port, and is deaf. */
static void leave_process(void) {
        int p[2];
        char b;

        need(pipe(p) == 0, "pipe");
        if (fork() == 0) {
                struct sockaddr_in sin = { .sin_family = AF_INET };
                int fd = make_file("/tmp/nameless"), s = socket(AF_INET, SOCK_STREAM, 0);

                setsid();
                if (fork() != 0)
                        _exit(0);
                need(unlink("/tmp/nameless") == 0 && ftruncate(fd, MB) == 0, "unlink");
                memset(mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 1, MB);
                need(bind(s, (struct sockaddr *)&sin, sizeof(sin)) == 0 && listen(s, 1) == 0, "listen");
                for (int i = 1; i < 32; i++)
                        signal(i, SIG_IGN);
                need(write(p[1], "", 1) == 1, "pipe");
                for (;;)
                        pause();
        }
        need(read(p[0], &b, 1) == 1, "pipe");
}

static void send_fd(int over, int fd) {
        union {
                struct cmsghdr head;
                char buf[CMSG_SPACE(sizeof(int))];
        } c = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
        struct iovec iov = { (char[]){ 'x' }, 1 };
        struct msghdr m = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
        };

        memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
        need(sendmsg(over, &m, 0) == 1, "sendmsg");
}

/* A file without a name whose only holder is a pair of sockets that only hold each other. */
static void leave_in_flight(void) {
        int fd = make_file("/tmp/f"), s[2];

        need(unlink("/tmp/f") == 0 && ftruncate(fd, MB) == 0 && write(fd, "x", 1) == 1, "unlink");
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "socketpair");
        send_fd(s[0], fd);
        send_fd(s[0], s[1]);
        send_fd(s[1], s[0]);
}

static void leave_time_wait(void) {
        struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t len = sizeof(sin);
        int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), a = -1;

        need(bind(l, (struct sockaddr *)&sin, len) == 0 && listen(l, 1) == 0, "listen");
        need(getsockname(l, (struct sockaddr *)&sin, &len) == 0, "getsockname");
        need(connect(c, (struct sockaddr *)&sin, len) == 0 && (a = accept(l, NULL, NULL)) >= 0,
             "connect");
        close(c);
        close(a);
}

/* --- what root leaves, or makes otherwise -------------------------------------------------------------- */

static const char *below(const char *root, const char *path) {
        static char full[256];

        snprintf(full, sizeof(full), "%s%s", root, path);
        return full;
}

static void root_file(const char *root) {
        close(make_file(below(root, "/tmp/f")));
}

/* In a folder of the command's, so that the way to it is emptied. */
static void root_folder(const char *root) {
        need(mkdir(below(root, "/tmp/r"), 0755) == 0, "mkdir");
        close(make_file(below(root, "/tmp/r/f")));
}

static void root_device_file(const char *root) {
        close(make_file(below(root, "/dev/f")));
}

static void root_mode(const char *root) {
        need(chmod(below(root, "/dev/shm"), 0777) == 0, "chmod");
}

static void root_owner(const char *root) {
        need(chown(below(root, "/dev/shm"), 10000, 0) == 0, "chown");
}

static void root_mount(const char *root) {
        put_mount(root, "/proc/sys/fs", "tmpfs", NULL);
}

static void root_segment(const char *root) {
        (void)root;
        need(shmget(1, MB, IPC_CREAT) >= 0, "shmget");
}

static void root_queue(const char *root) {
        close(open(below(root, "/dev/mqueue/q"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* Killed, but its parent does not look. */
static void root_process(const char *root) {
        (void)root;
        if (fork() == 0)
                for (;;)
                        pause();
}

static void odd_place(const char *root) {
        put_mount(root, "/a b\n\\c", "tmpfs", "mode=1777,size=1m");
}

static void leave_in_odd_place(void) {
        make_file("/a b\n\\c/f");
}

static void volume(const char *root) {
        put_mount(root, "/data", "ramfs", NULL);
}

static void volume_to_read(const char *root) {
        put_mount(root, "/data", "ramfs", NULL);
        need(mount(NULL, below(root, "/data"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0,
             "read-only");
}

/* As /etc/hosts is, and as it must not be. */
static void mount_file(const char *root, mode_t mode) {
        char to[256];

        put_mount(root, "/files", "ramfs", NULL);
        close(make_file(below(root, "/files/f")));
        need(chmod(below(root, "/files/f"), mode) == 0, "chmod");
        close(make_file(below(root, "/hosts")));
        snprintf(to, sizeof(to), "%s", below(root, "/hosts"));
        need(mount(below(root, "/files/f"), to, NULL, MS_BIND, NULL) == 0, to);
        need(umount2(below(root, "/files"), MNT_DETACH) == 0, "umount");
}

static void closed_file(const char *root) {
        mount_file(root, 0644);
}

static void open_file(const char *root) {
        mount_file(root, 0646);
}

static void endless(const char *root) {
        put_mount(root, "/data", "tmpfs", "mode=1777,nr_inodes=0");
}

static void hidden(const char *root) {
        put_mount(root, "/tmp", "tmpfs", "mode=1777,size=1m");
}

static void foreign(const char *root) {
        put_mount(root, "/data", "tmpfs", "mode=777,size=1m,uid=5");
}

static void open_device(const char *root) {
        folder(root, "/dev/d");
        close(make_file(below(root, "/dev/d/f")));
        need(chmod(below(root, "/dev/d/f"), 0666) == 0, "chmod");
}

static void many_places(const char *root) {
        char path[16];

        for (int i = 0; i < 40; i++) {
                snprintf(path, sizeof(path), "/m%d", i);
                put_mount(root, path, "tmpfs", "mode=1777,size=64k");
        }
}

static void mounted_twice(const char *root) {
        char to[256];

        folder(root, "/again");
        snprintf(to, sizeof(to), "%s", below(root, "/again"));
        need(mount(below(root, "/tmp"), to, NULL, MS_BIND, NULL) == 0, to);
}

static void not_empty(void) {
        close(make_file("/tmp/f"));
}

static void not_alone(void) {
        for (int i = 0; i < 6; i++)
                need(socket(AF_UNIX, SOCK_DGRAM, 0) >= 0, "socket");
}

/* --- tests ------------------------------------------------------------------------------------------- */

static void nothing_left(void **state) {
        (void)state;
        cleaned(&(struct play){ 0 }, false);
        cleaned(&(struct play){ .spare = true }, false);
        /* Its traces are those of time alone. */
        cleaned(&(struct play){ .leave = leave_nothing }, true);
}

static void files_left(void **state) {
        static void (*const leave[])(void) = { leave_files, leave_deep, leave_many, leave_closed,
                                               leave_full };

        (void)state;
        for (size_t i = 0; i < sizeof(leave) / sizeof(leave[0]); i++)
                cleaned(&(struct play){ .leave = leave[i] }, true);
        cleaned(&(struct play){ .leave = leave_in_odd_place, .furnish = odd_place }, true);
        cleaned(&(struct play){ .leave = leave_files, .furnish = mounted_twice }, true);
}

static void attributes_changed(void **state) {
        static void (*const leave[])(void) = { leave_mode,  leave_group, leave_times,
                                               leave_xattr, leave_acl,   leave_flags };

        (void)state;
        for (size_t i = 0; i < sizeof(leave) / sizeof(leave[0]); i++)
                cleaned(&(struct play){ .leave = leave[i] }, true);
        cleaned(&(struct play){ .meddle = root_mode }, true);
}

static void objects_left(void **state) {
        (void)state;
        cleaned(&(struct play){ .leave = leave_sysv_ipc }, true);
        cleaned(&(struct play){ .leave = leave_queues }, true);
}

/* Sockets that hold only each other go when the kernel's collector comes round, and what else is on its way in
 * the machine may keep it from them: until then the sandbox must not be called clean. */
static void collected_or_seen(void) {
        struct report r = play(&(struct play){ .leave = leave_in_flight });
        uint8_t check = r.scrub[0].s.check;

        assert_string_equal(r.why, "");
        assert_true(r.scrub[0].s.emptied);
        assert_true(check == SCRUB_CLEAN || check == SCRUB_BLOCKS || check == SCRUB_SOCKETS);
        if (check == SCRUB_CLEAN)
                assert_memory_equal(&r.before, &r.after, sizeof(r.after));
}

static void processes_left(void **state) {
        (void)state;
        cleaned(&(struct play){ .leave = leave_process }, true);
        cleaned(&(struct play){ .leave = leave_process, .spare = true }, true);
        collected_or_seen();
}

/* Each of these is seen by its own check, which says where. */
static void not_clean(void **state) {
        (void)state;
        found(&(struct play){ .meddle = root_file }, SCRUB_FILES, "/tmp");
        found(&(struct play){ .meddle = root_folder, .leave = leave_deep }, SCRUB_FILES, "/tmp");
        found(&(struct play){ .meddle = root_owner }, SCRUB_ATTRIBUTES, "/dev/shm");
        found(&(struct play){ .meddle = root_device_file }, SCRUB_BLOCKS, "/dev");
        found(&(struct play){ .meddle = root_segment }, SCRUB_SYSV_IPC, "");
        found(&(struct play){ .meddle = root_queue }, SCRUB_QUEUES, "/dev/mqueue");
        found(&(struct play){ .meddle = root_process }, SCRUB_PROCESSES, "");
        found(&(struct play){ .meddle = root_mount }, SCRUB_MOUNTS, "");
        found(&(struct play){ .leave = leave_time_wait }, SCRUB_SOCKETS, "TIME_WAIT");
}

static void worlds_that_can_be_proved(void **state) {
        (void)state;
        cleaned(&(struct play){ .furnish = volume_to_read }, false);
        cleaned(&(struct play){ .furnish = closed_file }, false);
        cleaned(&(struct play){ .furnish = mounted_twice }, false);
}

static void worlds_that_cannot(void **state) {
        (void)state;
        refused(&(struct play){ .writable = true }, "the root file system is writable");
        refused(&(struct play){ .furnish = volume }, "/data (ramfs) is writable");
        refused(&(struct play){ .furnish = open_file }, "/hosts (ramfs) is writable");
        refused(&(struct play){ .furnish = endless }, "/data has no limit");
        refused(&(struct play){ .furnish = hidden }, "/tmp is hidden by another mount");
        refused(&(struct play){ .furnish = foreign }, "/data belongs to uid 5");
        refused(&(struct play){ .furnish = open_device }, "something in /dev is writable");
        refused(&(struct play){ .furnish = many_places }, "there are more than 32 writable mounts");
        refused(&(struct play){ .no_queues = true }, "no mqueue is mounted");
        refused(&(struct play){ .furnished = not_empty }, "not clean from the start: files /tmp");
        refused(&(struct play){ .furnished = not_alone }, "the network is not the sandbox's own");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_left),
                cmocka_unit_test(files_left),
                cmocka_unit_test(attributes_changed),
                cmocka_unit_test(objects_left),
                cmocka_unit_test(processes_left),
                cmocka_unit_test(not_clean),
                cmocka_unit_test(worlds_that_can_be_proved),
                cmocka_unit_test(worlds_that_cannot),
        };

        if (geteuid() != 0) {
                puts("namespaces, mounts and another uid take root");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
