/*
 * hermes-sandbox agent: PID 1 of a sandbox.
 *
 *     agent UID GID EXEC_GID_FIRST EXEC_GID_COUNT RECONNECT_MS CAPS [UID:GID]...
 *
 * It confines itself first, then connects out to the manager, says what it sees of its confinement, and
 * serves commands until the manager says BYE or stays away for RECONNECT_MS.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/files.h"
#include "common/agent_args.h"
#include "common/exitcode.h"

/* A manager takes its agent within 15 s, or not at all. */
#define FIRST_MS 30000
#define RECONNECT_PAUSE_MS 100
/* A command that writes 1 GB/s does not fill its pipe in that time (stream.c). */
#define FILL_NS 150000L
/* Or more, on some machines: then less is given back. */
#define PAGE ((uintptr_t)4096)
/* Bytes of the stack right below a frame that forget_stack() leaves alone, and further down gives back. */
#define STACK_KEPT 512
#define STACK_FORGOTTEN 65536
/* Taken at once: more wait in the kernel. */
#define EVENTS 16
/* The longest HELD (proto_session.c): a count, and each command's id, channel and state. */
#define HELD_MAX (2 + PROTO_HELD_MAX * (4 + PROTO_EXEC_ID + 1 + 4 + 1))

static struct agent the_agent PLACED_AGENT; /* static for its buffers: untouched pages cost nothing */

void forget(void *p, size_t n) {
        madvise(p, n, MADV_DONTNEED);
}

/* What the start and the greeting used of the stack and will not be used again. A page is left for the frames of
 * the call itself. */
static void forget_stack(void) {
        uintptr_t here = (uintptr_t)__builtin_frame_address(0), top = (here - STACK_KEPT) & ~(PAGE - 1);

        forget((void *)(top - STACK_FORGOTTEN), STACK_FORGOTTEN);
}

uint64_t now_us(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* What the linker resolved (GOT, vtables of pointers) is written once, at the start. A dynamic loader closes it
 * then for whoever asked by -z relro; musl's start of a static program does not. */
static int seal_relro(void) {
        extern const char __ehdr_start[] __attribute__((visibility("hidden")));
        const Elf64_Phdr *ph = (const Elf64_Phdr *)getauxval(AT_PHDR);
        uintptr_t page = getauxval(AT_PAGESZ), base = (uintptr_t)__ehdr_start;

        for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
                uintptr_t from = base + ph[i].p_vaddr, to = from + ph[i].p_memsz;

                from -= from % page;
                to -= to % page;
                if (ph[i].p_type == PT_GNU_RELRO && to > from &&
                    mprotect((void *)from, to - from, PROT_READ) < 0)
                        return -errno;
        }
        return 0;
}

/* Nothing of the host's stays open, nobody may look into this process, and every signal waits. */
static int confine(struct agent *a) {
        static const struct rlimit no_core = { 0, 0 };
        sigset_t all, child;
        struct epoll_event ev = { .events = EPOLLIN, .data.u64 = AGENT_EVENT(EVENT_SIGNAL, 0) };
        int fd;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        /* An ignored signal would be inherited by every command. The C library keeps two for itself and does
         * not let them be set: hence the bare call, with the kernel's struct of zeros (SIG_DFL, no flags). */
        for (int signo = 1; signo < NSIG; signo++)
                syscall(SYS_rt_sigaction, signo, (const uint64_t[4]){ 0 }, NULL, NSIG / 8);
        if (seal_relro() < 0 || syscall(SYS_close_range, 3, ~0u, 0) < 0)
                return -errno;
        if (child_keep_score(a->ids.exec_gid_count == 0) < 0)
                return -EACCES;
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
                return -errno;
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        for (int i = 0; i < 3; i++)
                if (dup2(fd, i) < 0)
                        return -errno;
        a->null_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        a->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
        if (a->null_fd < 0 || a->epoll_fd < 0 || a->signal_fd < 0)
                return -errno;
        if (epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, a->signal_fd, &ev) < 0)
                return -errno;
        return seccomp_install();
}

static int watch_link(struct agent *a, int op, bool room) {
        struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET | (room ? EPOLLOUT : 0),
                                  .data.u64 = AGENT_EVENT(EVENT_LINK, 0) };

        a->link_waits = room;
        return epoll_ctl(a->epoll_fd, op, a->link.fd, &ev) < 0 ? -errno : 0;
}

/* Room in the socket is an event only while commands fill it: else each small frame that the manager takes
 * would wake the agent for nothing. */
static int watch_room(struct agent *a) {
        if (!a->link_waits && a->link.out_len > 0)
                return watch_link(a, EPOLL_CTL_MOD, true);
        if (a->link_waits && a->link.out_len == 0 && a->n_execs == 0)
                return watch_link(a, EPOLL_CTL_MOD, false);
        return 0;
}

/* The first two frames: there is room for them, or this connection is none. */
__attribute__((noinline)) static int send_hello(struct agent *a) {
        char text[4001];
        uint8_t frames[2 * FRAME_HEADER + 4096 + HELD_MAX];
        struct hello h = { FRAME_VERSION, HELLO_AGENT, text };
        ssize_t n, held;

        probe(text, sizeof(text), &a->cgroup, a->no_scrub);
        n = hello_encode(&h, frames + FRAME_HEADER, 4096);
        if (n < 0)
                return (int)n;
        frame_put_header(frames, FRAME_HELLO, 0, 0, (uint32_t)n);
        n += FRAME_HEADER;
        held = keep_held(a, frames + n + FRAME_HEADER, HELD_MAX);
        if (held < 0)
                return (int)held;
        frame_put_header(frames + n, FRAME_HELD, 0, 0, (uint32_t)held);
        n += FRAME_HEADER + held;
        return send(a->link.fd, frames, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -EIO;
}

static int greet(struct agent *a) {
        int r = watch_link(a, EPOLL_CTL_ADD, false);

        return r < 0 ? r : send_hello(a);
}

/* A ping may come while the link is full of output: its answer waits for the next room. */
static void answer_ping(struct agent *a) {
        if (!a->pong_due || link_room(&a->link) <= a->pong_len)
                return;
        link_put(&a->link, FRAME_PONG, 0, a->pong, a->pong_len);
        a->pong_due = false;
}

static int handle(void *userdata, const struct frame *f) {
        struct agent *a = userdata;
        struct hello h;

        switch (f->type) {
        case FRAME_HELLO:
                if (hello_decode(f->payload, f->len, &h) < 0 || h.role != HELLO_MANAGER ||
                    h.version < FRAME_VERSION)
                        return -EPROTO;
                return 0;
        case FRAME_EXEC:
                return start_order_frame(a, f);
        case FRAME_STDIN:
                return stream_stdin_frame(a, f);
        case FRAME_WINDOW:
                return stream_window_frame(a, f);
        case FRAME_SIGNAL:
                return exec_signal_frame(a, f);
        case FRAME_CANCEL:
                return exec_cancel_frame(a, f);
        case FRAME_RESIZE:
                return tty_resize_frame(a, f);
        case FRAME_ATTACH:
                return attach_frame(a, f);
        case FRAME_FORGET:
                return keep_forget_frame(a, f);
        case FRAME_PING:
                memcpy(a->pong, f->payload, f->len);
                a->pong_len = f->len;
                a->pong_due = true;
                return 0;
        case FRAME_HALT:
                return halt_frame(a, f);
        case FRAME_BYE:
                /* The end of PID 1 is the end of everything in its namespace. */
                _exit(0);
        default:
                return -EPROTO;
        }
}

/* A pipe wakes its reader at each write, and most writes are far smaller than a frame. Who reads at once
 * moves a flood in small pieces, each with its wake-ups down to the caller; who waits a little gets all of it
 * at once. */
static void let_fill(void) {
        struct timespec pause = { 0, FILL_NS };

        nanosleep(&pause, NULL);
}

/* Takes what has happened. True: the link is to be read. */
static bool take_events(struct agent *a, int timeout_ms) {
        struct epoll_event ev[EVENTS];
        int n = epoll_wait(a->epoll_fd, ev, EVENTS, timeout_ms);
        bool link = false;

        for (int i = 0; i < n; i++) {
                enum agent_event kind = ev[i].data.u64 >> 32;
                struct signalfd_siginfo si;

                if (kind == EVENT_SIGNAL) {
                        /* One stands for all: SIGCHLD does not queue. */
                        if (read(a->signal_fd, &si, sizeof(si)) > 0)
                                exec_reap(a);
                } else if (kind == EVENT_LINK) {
                        link |= ev[i].events & ~(uint32_t)EPOLLOUT;
                        a->link_hup |= ev[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR);
                } else
                        stream_event(a, kind, (uint32_t)ev[i].data.u64);
        }
        return link;
}

static int take_frames(struct agent *a, bool link) {
        int r;

        a->link_more |= link;
        if (!a->link_more || (a->link_later && link_room(&a->link) < EXITED_MAX))
                return 0;
        r = link_receive(&a->link, handle, a);
        if (r < 0)
                return r;
        a->link_later = r == LINK_LATER;
        /* The end may stand behind the bytes that came with the same event. */
        a->link_more = r > 0 || a->link_hup;
        return 0;
}

/* One turn of the loop. 0, or -errno: the connection is gone. */
static int turn(struct agent *a, bool *more) {
        bool link = take_events(a, *more ? 0 : exec_timeout(a)), full;
        int r = take_frames(a, link);

        if (r < 0)
                return r;
        answer_ping(a);
        *more = exec_advance(a) || (a->link_more && !a->link_later);
        full = link_room(&a->link) < FRAME_MAX;
        r = link_flush(&a->link);
        if (r == 0 && a->scrub_due) {
                exec_scrub(a);
                r = link_flush(&a->link);
        }
        /* Who waited for room has it now, and no event will say so. */
        *more |= full && link_room(&a->link) >= FRAME_MAX;
        *more |= a->link_later && link_room(&a->link) >= EXITED_MAX;
        if (a->rest && !*more)
                let_fill();
        a->rest = false;
        return r < 0 ? r : watch_room(a);
}

static void serve(struct agent *a) {
        bool more = false;

        start_ready(a);
        forget_stack();
        while (turn(a, &more) == 0)
                if (!more)
                        start_ready(a);
        link_close(&a->link);
        a->link_more = a->link_later = a->link_hup = false;
        a->pong_due = a->scrub_due = false;
        a->order_len = 0;
        attach_abandon(a);
        exec_abandon(a);
        halt_abandon(a);
}

/* Between two attempts to reach the manager, also one that takes a connection and ends it at once: what runs goes
 * on, and is never held up. */
static void rest(struct agent *a) {
        uint64_t until = now_us() + RECONNECT_PAUSE_MS * UINT64_C(1000), now;
        bool more = false;

        while ((now = now_us()) < until) {
                int left = (int)((until - now + 999) / 1000), next = exec_timeout(a);

                take_events(a, more ? 0 : next >= 0 && next < left ? next : left);
                more = exec_advance(a);
                if (a->rest && !more)
                        let_fill();
                a->rest = false;
        }
}

/* Tries to reach the manager, for so long. 0, or -ETIMEDOUT. */
static int reconnect(struct agent *a, uint32_t patience_ms) {
        uint64_t until = now_us() + patience_ms * UINT64_C(1000);

        for (;;) {
                if (link_connect(&a->link, AGENT_STREAM_DIR "/" AGENT_SOCKET) == 0)
                        return 0;
                if (now_us() >= until)
                        return -ETIMEDOUT;
                rest(a);
        }
}

int main(int argc, char *args[], char *environ_of_image[]) {
        struct agent *a = &the_agent;
        uint32_t reconnect_ms, patience_ms;
        const char *no_scrub;

        if (argc > 0 && strcmp(args[0], FILES_NAME) == 0)
                return files_main(argc, args);
        /* Whoever else calls it: there is one agent in a sandbox. */
        if (getpid() != 1 || ids_parse(&a->ids, argc, args, &reconnect_ms) < 0)
                return EXIT_USAGE;
        a->image_env = environ_of_image;
        link_init(&a->link);
        if (confine(a) < 0)
                return EXIT_OS;
        cgroup_init(&a->cgroup, "/sys/fs/cgroup");
        start_warm_up(a);
        no_scrub = ids_no_scrub(&a->ids);
        if (no_scrub)
                snprintf(a->no_scrub, sizeof(a->no_scrub), "%s", no_scrub);
        else if (places_init(&a->ids, a->no_scrub, sizeof(a->no_scrub)) == 0)
                a->no_scrub[0] = '\0';
        /* One that no manager has ever met holds nothing that is worth the wait. */
        patience_ms = reconnect_ms < FIRST_MS ? reconnect_ms : FIRST_MS;
        while (reconnect(a, patience_ms) == 0) {
                patience_ms = reconnect_ms;
                if (greet(a) == 0)
                        serve(a);
                else
                        link_close(&a->link);
                rest(a);
        }
        return 0;
}
