/*
 * All of a file is read before its session is opened, into memory and as the stream that the agent's file tool takes
 * (common/archive.h): what cannot be read costs no sandbox, and what is copied is of one moment. The tool runs as any
 * command of the session does, so that it writes what that could have written itself.
 */
#include "cli/docker/docker_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli_run.h"
#include "common/archive.h"
#include "common/cleanup.h"
#include "common/proto.h"

/* --- reading ------------------------------------------------------------------------------------------ */

static struct archive_out out;

/* Puts the folders before the last component of @dst, an absolute path, and returns where that one begins. */
static const char *put_folders(const char *dst, unsigned *ret_n) {
        struct archive_entry e = { .mode = 0755, .mtime_s = time(NULL) };
        char name[MOUNT_DST_MAX + 1];
        const char *slash;

        for (*ret_n = 0; (slash = strchr(++dst, '/')); dst = slash) {
                memcpy(name, dst, (size_t)(slash - dst));
                name[slash - dst] = '\0';
                e.name = name;
                if (archive_put_entry(&out, ARCHIVE_DIR, &e) < 0)
                        return NULL;
                ++*ret_n;
        }
        return dst;
}

static int put_contents(int fd) {
        uint64_t size = 0;
        ssize_t n;

        do {
                n = read(fd, archive_data_room(&out), ARCHIVE_DATA_MAX);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                archive_put_data(&out, (size_t)n);
                size += (uint64_t)n;
                if (size > RUN_FILE_BYTES_MAX)
                        return -EFBIG;
        } while (n != 0);
        archive_put_close(&out, size, true);
        return 0;
}

static int make_stream(int fd, const char *dst, int to) {
        struct archive_entry e = { .size = ARCHIVE_SIZE_UNKNOWN };
        unsigned folders;
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        archive_out_init(&out, to);
        e.mode = st.st_mode & S_IROTH ? 0444 : 0400;
        e.mtime_s = st.st_mtim.tv_sec;
        e.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
        e.name = put_folders(dst, &folders);
        r = e.name ? archive_put_entry(&out, ARCHIVE_FILE, &e) : -ENAMETOOLONG;
        if (r == 0)
                r = put_contents(fd);
        if (r < 0)
                return r;
        while (folders-- > 0)
                archive_put_up(&out);
        return archive_out_end(&out);
}

/* Memory as a file, above the standard streams, some of which may be closed. */
static int open_memory(void) {
        _cleanup_fd_ int fd = memfd_create("file", MFD_CLOEXEC);
        int ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

        return ret < 0 ? -errno : ret;
}

static int read_file(struct run_file *f) {
        /* It may be a pipe by now, whose opening would wait for a writer. */
        _cleanup_fd_ int fd = open(f->src, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        _cleanup_fd_ int to = -1;
        int r;

        if (fd < 0)
                return -errno;
        to = open_memory();
        r = to < 0 ? to : make_stream(fd, f->at, to);
        if (r == 0)
                f->fd = take_fd(&to);
        return r;
}

int run_files_read(struct run_words *r, struct errmsg *e) {
        for (int i = 0; i < r->n_files; i++) {
                struct run_file *f = &r->files[i];
                int code = read_file(f);

                if (code == -EFBIG)
                        return errmsg_set(
                                e, code,
                                "--%s %.200s: a file is copied, and at most %u MiB of it: put it "
                                "into a folder, and give that",
                                f->flag->f.name, f->src, RUN_FILE_BYTES_MAX >> 20);
                if (code < 0)
                        return errmsg_set(e, code, "--%s %.200s: cannot be read: %s", f->flag->f.name,
                                          f->src, strerror(-code));
        }
        return 0;
}

/* --- copying ------------------------------------------------------------------------------------------ */

struct tool_says {
        struct cli_sink sink; /* first */
        char line[512];       /* the first line on its stderr, which a NUL ends */
        size_t len;
        bool whole;
};

static int take(struct cli_sink *sink, uint8_t stream, const void *bytes, size_t len) {
        struct tool_says *s = (struct tool_says *)sink;
        const char *p = bytes;

        for (size_t i = 0; i < len && stream == STREAM_STDERR; i++) {
                s->whole = s->whole || p[i] == '\0' || s->len == sizeof(s->line) - 1;
                if (!s->whole)
                        s->line[s->len++] = p[i];
        }
        return 0;
}

/* Has the tool do it in that session, and in @says and @o what came of it. True: it is done. */
static bool ask_tool(const struct docker *d, const char *session, const char *const args[2], bool input,
                     struct tool_says *says, struct cli_outcome *o) {
        const struct exec_request q = {
                .use_stdin = input,
                .files = true,
                .profile = "",
                .workdir = "/",
                .session = session,
                .args = (const char **)(uintptr_t)args,
                .n_args = 2,
        };
        const struct cli_way way = { .kind = CLI_EXEC, .use_stdin = input };

        cli_exec_send(&d->cli, &q, &way, &says->sink, o);
        return o->end == CLI_END_RESULT && o->exit_code == 0;
}

/* @what could not be done: a line. */
static int not_done(const struct docker *d, const char *what, const struct tool_says *s,
                    const struct cli_outcome *o) {
        const char *why = o->end == CLI_END_RESULT   ? o->result.message
                          : o->end == CLI_END_REJECT ? o->reject.message
                                                     : o->error.text;

        if (s->len > 0)
                cli_error(
                        "%s: %s: a place below tmpfs, or read_only: false, of profile \"%.64s\" can be "
                        "written to",
                        what, s->line, d->profile);
        else
                cli_error("%s: %.400s", what, why[0] ? why : "its end is not known");
        return DOCKER_USAGE;
}

int run_files_link(const struct run_words *r, struct errmsg *e) {
        int code = 0;

        for (int i = 0; i < r->n_files && code == 0; i++)
                if (r->files[i].at != r->files[i].dst)
                        code = cli_mounts_link(&r->mounts, r->files[i].dst, r->files[i].at, "--volume",
                                               e);
        return code;
}

int run_file_put(const struct docker *d, const struct run_file *f, const char *session) {
        static const char *const args[2] = { "put", "/" };
        struct tool_says says = { .sink.take = take };
        struct cli_outcome o = { .end = CLI_END_LOST };
        char what[600];

        if (lseek(f->fd, 0, SEEK_SET) < 0 || dup2(f->fd, STDIN_FILENO) < 0)
                errmsg_set(&o.error, 0, "%s", strerror(errno));
        else if (ask_tool(d, session, args, true, &says, &o))
                return 0;
        snprintf(what, sizeof(what), "--%s %.200s: cannot be copied to %.300s", f->flag->f.name, f->src,
                 f->at);
        return not_done(d, what, &says, &o);
}

int run_workdir_make(const struct docker *d, const char *workdir, const char *session) {
        const char *const args[2] = { "mkdir", workdir };
        struct tool_says says = { .sink.take = take };
        struct cli_outcome o = { .end = CLI_END_LOST };
        char what[400];

        if (ask_tool(d, session, args, false, &says, &o))
                return 0;
        snprintf(what, sizeof(what), "--workdir %.300s: cannot be made", workdir);
        return not_done(d, what, &says, &o);
}
