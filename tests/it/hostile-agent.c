/*
 * An agent that a sandbox has taken over. Which way it is hostile, a mount in its sandbox says: a tmpfs at
 * /hostile/WAY or /hostile/WAY.WORD. Without one it becomes the real agent, whose bytes stand behind this program's own
 * in one file, and behind them their number in 8 bytes (66-hostile-agent.sh puts it together).
 *
 * It knows the protocol as it stands in src/common/PROTOCOL.md and shares no code with ours.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_PATH "/.hermes-sandbox/stream/agent.sock"
#define PROTOCOL_VERSION 3
#define CREDIT 262144
#define PAYLOAD 65536
#define HELD_MAX 192

enum type {
        HELLO = 1,
        EXEC = 2,
        STDOUT = 4,
        STDERR = 5,
        WINDOW = 6,
        EXITED = 10,
        RESULT = 11,
        PING = 14,
        PONG = 15,
        BYE = 17,
        SCRUBBED = 18,
        ATTACHED = 22,
        HELD = 23,
};
enum { FLAG_MORE = 1 };

static int link_fd = -1;
static char word[65]; /* of the mount's name */
static uint8_t zeros[4 * PAYLOAD];

static void rest(long ms) {
        nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* --- what is said ------------------------------------------------------------------------------ */

/* The manager hangs up on a liar: then there is nobody left to lie to. */
static void put(const void *p, size_t n) {
        const uint8_t *from = p;

        while (n > 0) {
                ssize_t sent = send(link_fd, from, n, MSG_NOSIGNAL);

                if (sent <= 0)
                        _exit(0);
                from += sent;
                n -= (size_t)sent;
        }
}

static void u32(uint8_t *at, uint32_t v) {
        for (int i = 0; i < 4; i++)
                at[i] = (uint8_t)(v >> 8 * i);
}

static void head(uint8_t h[12], enum type type, uint32_t channel, uint32_t len) {
        memset(h, 0, 12);
        u32(h, len);
        u32(h + 4, channel);
        h[8] = (uint8_t)type;
}

static void say(enum type type, uint32_t channel, const void *payload, uint32_t len) {
        uint8_t frame[12 + PAYLOAD];

        head(frame, type, channel, len);
        if (len > 0)
                memcpy(frame + 12, payload, len);
        put(frame, 12 + len);
}

static void hello(uint16_t version, uint8_t role, const char *text) {
        uint8_t p[4096] = { (uint8_t)version, (uint8_t)(version >> 8), role };
        uint32_t n = (uint32_t)strlen(text) + 1;

        u32(p + 3, n);
        memcpy(p + 7, text, n);
        say(HELLO, 0, p, 7 + n);
}

/* @n commands that are said to run, of these ids or of made up ones. */
static void held(unsigned n, const char *id) {
        static const char digits[] = "0123456789abcdef";
        uint8_t p[2 + HELD_MAX * 26] = { (uint8_t)n, (uint8_t)(n >> 8) };

        for (unsigned i = 0; i < n && i < HELD_MAX; i++) {
                uint8_t *at = p + 2 + (size_t)i * 26;

                u32(at, 17);
                memset(at + 4, 'a', 16);
                at[4] = (uint8_t)digits[i % 16];
                at[5] = (uint8_t)digits[i / 16];
                if (id)
                        memcpy(at + 4, id, 16);
                u32(at + 21, i + 1);
        }
        say(HELD, 0, p, 2 + n * 26);
}

static void exited(uint32_t channel, uint8_t cause) {
        uint8_t p[84] = { cause };

        say(EXITED, channel, p, sizeof(p));
}

static void scrubbed(void) {
        uint8_t p[15] = { 0 };

        p[10] = 1; /* place: "" */
        say(SCRUBBED, 0, p, sizeof(p));
}

/* As an agent ends a command. */
static void end_well(uint32_t channel) {
        exited(channel, 1);
        scrubbed();
}

static void greet(void) {
        hello(PROTOCOL_VERSION, 3, "scrub=yes\n");
        held(0, NULL);
}

/* --- the ways, at the greeting ------------------------------------------------------------------ */

static void noise(void) {
        uint32_t x = 2463534242;

        for (size_t i = 0; i < sizeof(zeros); i++) {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                zeros[i] = (uint8_t)x;
        }
        put(zeros, sizeof(zeros));
}
static void mute(void) {
}
static void giant_hello(void) {
        uint8_t h[12];

        head(h, HELLO, 0, UINT32_MAX);
        put(h, sizeof(h));
}
static void old(void) {
        hello(1, 3, "scrub=yes\n");
}
static void posing(void) {
        hello(PROTOCOL_VERSION, 1, "scrub=yes\n");
}
static void held_foreign(void) {
        hello(PROTOCOL_VERSION, 3, "scrub=yes\n");
        held(1, word);
}
static void held_full(void) {
        hello(PROTOCOL_VERSION, 3, "scrub=yes\n");
        held(HELD_MAX, NULL);
}
static void held_more(void) {
        hello(PROTOCOL_VERSION, 3, "scrub=yes\n");
        memset(zeros, 0xff, 8192);
        say(HELD, 0, zeros, 8192);
}
static void held_twice(void) {
        greet();
        held(0, NULL);
}
/* What a person reads in status, and a program as JSON. */
static void words(void) {
        hello(PROTOCOL_VERSION, 3,
              "scrub=yes\nseccomp=\"},{\n\033]0;owned\a=\033[2J\nno_new_privs=\xff\xfe\n\xe2\x80\xa8=1\n=\n"
              "apparmor=\r\n");
        held(0, NULL);
}

/* --- the ways, at a command ---------------------------------------------------------------------- */

static void garbage(uint32_t channel) {
        (void)channel;
        noise();
}
static void giant(uint32_t channel) {
        uint8_t h[12];

        head(h, STDOUT, channel, PAYLOAD + 1);
        put(h, sizeof(h));
        put(zeros, sizeof(zeros));
}
static void half(uint32_t channel) {
        uint8_t h[12];

        head(h, STDOUT, channel, 100);
        put(h, 7);
        rest(600000);
}
static void deaf(uint32_t channel) {
        say(STDOUT, channel, "begun\n", 6);
        rest(600000);
}
/* It answers each ping and ends nothing, neither at the time-out nor when it is told to. */
static void stall(uint32_t channel) {
        say(STDOUT, channel, "begun\n", 6);
}
/* As fast as it can, whatever the caller has read. */
static void over_credit(uint32_t channel) {
        for (int i = 0; i < 1024; i++)
                say(STDOUT, channel, zeros, PAYLOAD);
        _exit(0);
}
static void others(uint32_t channel) {
        for (uint32_t i = 0; i < 256; i++)
                if (i != channel)
                        say(STDOUT, i, "not yours\n", 10);
}
static void others_end(uint32_t channel) {
        for (uint32_t i = 0; i < 256; i++)
                if (i != channel)
                        exited(i, 1);
}
static void managers(uint32_t channel) {
        say(RESULT, channel, zeros, 199);
}
static void callers(uint32_t channel) {
        say(EXEC, channel, zeros, 53);
}
static void reserved(uint32_t channel) {
        uint8_t h[12];

        head(h, STDOUT, channel, 0);
        h[11] = 1;
        put(h, sizeof(h));
}
static void ends_twice(uint32_t channel) {
        exited(channel, 1);
        exited(channel, 1);
}
static void ends_lost(uint32_t channel) {
        exited(channel, 7);
}
static void scrub_first(uint32_t channel) {
        (void)channel;
        scrubbed();
}
static void window(uint32_t channel) {
        uint8_t p[5] = { 0, 1 };

        say(WINDOW, channel, p, sizeof(p));
}
static void attached(uint32_t channel) {
        say(ATTACHED, channel, zeros, 16);
}
static void held_late(uint32_t channel) {
        (void)channel;
        held(HELD_MAX, NULL);
}
static void hello_late(uint32_t channel) {
        (void)channel;
        greet();
}
static void hang_up(uint32_t channel) {
        (void)channel;
        close(link_fd);
        rest(600000);
}
static void die(uint32_t channel) {
        (void)channel;
        _exit(3);
}
/* Frames that cost no credit, and that cannot be joined. Whoever is to read them does not. */
static void hollow(uint32_t channel) {
        uint8_t h[2][12];

        head(h[0], STDOUT, channel, 0);
        head(h[1], STDERR, channel, 0);
        for (size_t i = 0; i + sizeof(h) <= sizeof(zeros); i += sizeof(h))
                memcpy(zeros + i, h, sizeof(h));
        for (int i = 0; i < 64; i++)
                put(zeros, sizeof(zeros) / sizeof(h) * sizeof(h));
        end_well(channel);
}
static void pongs(uint32_t channel) {
        uint8_t h[20];

        head(h, PONG, 0, 8);
        memset(h + 12, 0, 8);
        for (size_t i = 0; i + sizeof(h) <= sizeof(zeros); i += sizeof(h))
                memcpy(zeros + i, h, sizeof(h));
        for (int i = 0; i < 64; i++)
                put(zeros, sizeof(zeros) / sizeof(h) * sizeof(h));
        end_well(channel);
}
static void drip(uint32_t channel) {
        uint8_t frame[12 + 6];

        head(frame, STDOUT, channel, 6);
        memcpy(frame + 12, "slow!\n", 6);
        for (size_t i = 0; i < sizeof(frame); i++) {
                put(frame + i, 1);
                rest(20);
        }
        end_well(channel);
}
static void descriptors(uint32_t channel) {
        uint8_t h[12];
        int fds[64];
        union {
                struct cmsghdr align;
                char room[CMSG_SPACE(sizeof(fds))];
        } control = { 0 };
        struct iovec iov = { h, sizeof(h) };
        struct msghdr mh = { .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);

        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
                fds[i] = link_fd;
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(c), fds, sizeof(fds));
        head(h, STDOUT, channel, 0);
        for (int i = 0; i < 100; i++)
                if (sendmsg(link_fd, &mh, MSG_NOSIGNAL) != (ssize_t)sizeof(h))
                        _exit(0);
        end_well(channel);
}
static void tame(uint32_t channel) {
        end_well(channel);
}

static const struct way {
        const char *name;
        void (*greeting)(void);
        void (*command)(uint32_t channel);
        void (*again)(void); /* the greeting of the next manager; NULL: it waits for none */
} ways[] = {
        { "noise", noise, tame, NULL },
        { "mute", mute, tame, NULL },
        { "giant-hello", giant_hello, tame, NULL },
        { "old", old, tame, NULL },
        { "posing", posing, tame, NULL },
        { "held-full", held_full, tame, NULL },
        { "held-more", held_more, tame, NULL },
        { "held-twice", held_twice, tame, NULL },
        { "again-noise", greet, tame, noise },
        { "again-mute", greet, tame, mute },
        { "again-foreign", greet, tame, held_foreign },
        { "again-full", greet, tame, held_full },
        { "again-more", greet, tame, held_more },
        { "again-twice", greet, tame, held_twice },
        { "again-tame", greet, tame, greet },
        { "words", words, tame, NULL },
        { "garbage", greet, garbage, NULL },
        { "giant", greet, giant, NULL },
        { "half", greet, half, NULL },
        { "deaf", greet, deaf, NULL },
        { "stall", greet, stall, NULL },
        { "over-credit", greet, over_credit, NULL },
        { "others", greet, others, NULL },
        { "others-end", greet, others_end, NULL },
        { "managers", greet, managers, NULL },
        { "callers", greet, callers, NULL },
        { "reserved", greet, reserved, NULL },
        { "ends-twice", greet, ends_twice, NULL },
        { "ends-lost", greet, ends_lost, NULL },
        { "scrub-first", greet, scrub_first, NULL },
        { "window", greet, window, NULL },
        { "attached", greet, attached, NULL },
        { "held-late", greet, held_late, NULL },
        { "hello-late", greet, hello_late, NULL },
        { "hang-up", greet, hang_up, NULL },
        { "die", greet, die, NULL },
        { "hollow", greet, hollow, NULL },
        { "pongs", greet, pongs, NULL },
        { "drip", greet, drip, NULL },
        { "descriptors", greet, descriptors, NULL },
        { "tame", greet, tame, NULL },
};

/* --- the rest of an agent ------------------------------------------------------------------------ */

/* False: the manager has gone. */
static bool get(void *p, size_t n) {
        uint8_t *to = p;

        while (n > 0) {
                ssize_t got = recv(link_fd, to, n, 0);

                if (got <= 0)
                        return false;
                to += got;
                n -= (size_t)got;
        }
        return true;
}

/* Until the manager has gone. */
static void serve(const struct way *way) {
        static uint8_t payload[PAYLOAD];
        uint8_t h[12];

        while (get(h, sizeof(h))) {
                uint32_t len, channel;

                len = h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16;
                channel = h[4] | (uint32_t)h[5] << 8 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 24;
                if (len > PAYLOAD)
                        _exit(4);
                if (!get(payload, len))
                        return;
                if (h[8] == BYE)
                        _exit(0);
                if (h[8] == PING)
                        say(PONG, 0, payload, len);
                if (h[8] == EXEC && !(h[9] & FLAG_MORE))
                        way->command(channel);
        }
}

/* For ten seconds. */
static void reach(void) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = SOCKET_PATH };

        for (int i = 0; i < 100; i++) {
                link_fd = socket(AF_UNIX, SOCK_STREAM, 0);
                if (link_fd >= 0 && connect(link_fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
                        return;
                close(link_fd);
                rest(100);
        }
        _exit(9);
}

/* The way of the sandbox, or NULL; exits where there is none of that name. */
static const struct way *find_way(void) {
        DIR *d = opendir("/hostile");
        struct dirent *e;
        char name[256] = "", *dot;

        if (!d)
                return NULL;
        while ((e = readdir(d)))
                if (e->d_name[0] != '.')
                        strcpy(name, e->d_name);
        dot = strchr(name, '.');
        if (dot) {
                strncpy(word, dot + 1, sizeof(word) - 1);
                *dot = '\0';
        }
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
                if (strcmp(ways[i].name, name) == 0)
                        return &ways[i];
        _exit(5);
}

/* The one behind this program's own bytes. */
static void become_real(char **argv, char **envp) {
        int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
            copy = memfd_create("agent", MFD_CLOEXEC);
        struct stat st;
        uint64_t len;
        off_t from;

        if (self < 0 || copy < 0 || fstat(self, &st) < 0 || pread(self, &len, 8, st.st_size - 8) != 8)
                _exit(6);
        from = st.st_size - 8 - (off_t)len;
        while (len > 0) {
                ssize_t n = sendfile(copy, self, &from, len);

                if (n <= 0)
                        _exit(7);
                len -= (uint64_t)n;
        }
        fexecve(copy, argv, envp);
        _exit(8);
}

int main(int argc, char **argv, char **envp) {
        const struct way *way = find_way();

        (void)argc;
        if (!way)
                become_real(argv, envp);
        reach();
        way->greeting();
        serve(way);
        while (way->again) {
                close(link_fd);
                reach();
                way->again();
                serve(way);
        }
        return 0;
}
