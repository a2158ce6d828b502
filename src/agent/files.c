/*
 * The verbs but ls and rm, in a process of its own: memory is one mapping of fixed size, of which only what is used
 * is touched. A signal that ends it takes the file along that is half written.
 */
#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/pack.h"
#include "common/unpack.h"

void files_say(void *userdata, const char *what, const char *path, const char *why) {
        struct iovec line[] = {
                { (char *)what, strlen(what) },   { (char *)" '", 2 },
                { (char *)path, strlen(path) },   { (char *)"': ", 3 },
                { (char *)why, strlen(why) + 1 },
        };

        (void)userdata;
        /* Where nobody reads it, there is nobody to tell. */
        if (writev(STDERR_FILENO, line, sizeof(line) / sizeof(line[0])) < 0)
                return;
}

static int usage(const char *verb) {
        files_say(NULL, "bad use of", verb, "see hermes-sandbox-agent(8)");
        return EXIT_USAGE;
}

void *files_memory(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);

        if (p == MAP_FAILED) {
                files_say(NULL, "cannot get", "memory", strerror(errno));
                return NULL;
        }
        return p;
}

/* --- put ---------------------------------------------------------------------------------------- */

static void on_signal(int signo) {
        unpack_abandon();
        /* SA_RESETHAND: now it does what it does to any process. */
        raise(signo);
}

static void catch_signals(void) {
        static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
        struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
                sigaction(ends[i], &sa, NULL);
}

static int take_stream(struct unpack *u, void *buf, size_t size) {
        for (;;) {
                ssize_t n = read(STDIN_FILENO, buf, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        files_say(NULL, "cannot read", "stdin", strerror(errno));
                if (n <= 0 || unpack_feed(u, buf, (size_t)n) < 0)
                        break;
        }
        return unpack_done(u) == 0 ? 0 : 1;
}

static int put(char **args) {
        struct {
                struct unpack u;
                uint8_t buf[2 * ARCHIVE_DATA_MAX];
        } *w = files_memory(sizeof(*w));
        struct unpack_rules rules = { .links = true, .mode_bits = 07777, .say = files_say };
        struct unpack_target target;
        bool many = args[0] && strcmp(args[0], "-m") == 0,
             stream = args[0] && strcmp(args[0], "-s") == 0;
        const char *why;
        int r;

        if (!w)
                return 1;
        args += many || stream;
        if (!args[0] || args[1])
                return usage("put");
        r = unpack_target_open(args[0], many, &target, &why);
        if (r == 0 && stream && target.name[0] == '\0') {
                why = "it is a folder";
                r = -EISDIR;
        }
        if (r < 0) {
                files_say(NULL, "cannot copy to", args[0], why);
                return 1;
        }
        catch_signals();
        unpack_init(&w->u, &target, args[0], &rules);
        r = take_stream(&w->u, w->buf, sizeof(w->buf));
        close(target.dir);
        return r;
}

/* --- get, cat ----------------------------------------------------------------------------------- */

static int get(char **paths) {
        struct pack *p = files_memory(sizeof(*p));
        int r = 0;

        if (!p)
                return 1;
        pack_init(p, STDOUT_FILENO, files_say, NULL);
        for (; *paths && r == 0; paths++)
                r = pack_path(p, *paths);
        if (r == 0)
                r = pack_end(p);
        if (r < 0)
                files_say(NULL, "cannot write", "stdout", strerror(-r));
        return r < 0 || p->failed;
}

static int copy_out(int fd) {
        uint8_t buf[ARCHIVE_DATA_MAX];

        for (;;) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                for (ssize_t done = 0, w; done < n; done += w) {
                        w = write(STDOUT_FILENO, buf + done, (size_t)(n - done));
                        if (w < 0 && errno != EINTR)
                                return -errno;
                        if (w < 0)
                                w = 0;
                }
        }
}

static int cat(char **paths) {
        int status = 0;

        for (; *paths; paths++) {
                _cleanup_fd_ int fd = open(*paths, O_RDONLY | O_NOCTTY | O_CLOEXEC);
                int r = fd < 0 ? -errno : copy_out(fd);

                if (r < 0) {
                        files_say(NULL, "cannot read", *paths, strerror(-r));
                        status = 1;
                }
        }
        return status;
}

/* --- the verbs ---------------------------------------------------------------------------------- */

static int rm(char **args) {
        bool recursive = false, force = false;

        for (; *args && (*args)[0] == '-' && (*args)[1]; args++) {
                if (strcmp(*args, "-r") == 0)
                        recursive = true;
                else if (strcmp(*args, "-f") == 0)
                        force = true;
                else if (strcmp(*args, "--") == 0) {
                        args++;
                        break;
                } else
                        return usage("rm");
        }
        return *args ? files_rm(args, recursive, force) : usage("rm");
}

/* As mkdir -p: what is there stays as it is, and a link that leads to a folder is one. */
static int make_folder(char *path) {
        char *slash = path;

        do {
                slash = strchr(slash + 1, '/');
                if (slash)
                        *slash = '\0';
                if (mkdir(path, 0755) < 0 && errno != EEXIST) {
                        files_say(NULL, "cannot make", path, strerror(errno));
                        return 1;
                }
                if (slash)
                        *slash = '/';
        } while (slash);
        if (chdir(path) == 0)
                return 0;
        files_say(NULL, "cannot enter", path, strerror(errno));
        return 1;
}

static int make(char **args) {
        return args[0][0] == '/' && !args[1] ? make_folder(args[0]) : usage("mkdir");
}

int files_main(int argc, char **argv) {
        static const struct {
                const char *name;
                int (*run)(char **args);
        } verbs[] = { { "put", put },     { "get", get }, { "cat", cat },
                      { "ls", files_ls }, { "rm", rm },   { "mkdir", make } };

        umask(0);
        for (size_t i = 0; argc > 2 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (strcmp(argv[1], verbs[i].name) == 0)
                        return verbs[i].run(argv + 2);
        return usage(argc > 1 ? argv[1] : FILES_NAME);
}
