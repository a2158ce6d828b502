/*
 * Whatever stream comes in: it is taken apart alike in whatever pieces it comes; what is written stays below its
 * folder, is a file or folder, has no mode bit that the rules do not give, and no descriptor is left open.
 *
 * The first byte chooses the rules, the second how many bytes are fed at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/archive.h"
#include "common/unpack.h"
#include "filetree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUDGET (256 * 1024)

static char top[] = "/dev/shm/fuzz-archive.XXXXXX";
static uint64_t canary;
static bool links_allowed;

/* A path below top, good until the fourth call from here. */
static const char *below(const char *name) {
        static char path[4][64];
        static unsigned n;

        n = (n + 1) % 4;
        snprintf(path[n], sizeof(path[n]), "%s/%s", top, name);
        return path[n];
}

static void tidy(void) {
        tree_remove(top);
}

/* canary/ must stay as it is. */
static void make_tree(void) {
        struct rlimit files = { 1024, 1024 };

        /* In memory, where there is such a place: most of the time goes into files. */
        if (access("/dev/shm", W_OK) < 0)
                strcpy(top, "/tmp/fuzz-archive.XXXXXX");
        if (!mkdtemp(top) || mkdir(below("canary"), 0755) < 0 || mkdir(below("canary/sub"), 0700) < 0)
                abort();
        atexit(tidy);
        setrlimit(RLIMIT_NOFILE, &files);
        tree_file(below("canary/file"), "sings", 0644);
        tree_file(below("canary/sub/other"), "too", 0600);
        if (symlink("file", below("canary/link")) < 0)
                abort();
        canary = tree_digest_of(below("canary"));
}

/* out/ is written into, and has a file, a folder, and links to the canary where a stream may meet them. */
static void make_out(void) {
        if (mkdir(below("out"), 0755) < 0 || mkdir(below("out/d"), 0755) < 0 ||
            symlink("../canary", below("out/l")) < 0 || symlink("../canary/file", below("out/m")) < 0 ||
            symlink("../../canary", below("out/d/l")) < 0)
                abort();
        tree_file(below("out/f"), "was there", 0600);
        tree_file(below("out/d/f"), "was there", 0640);
}

static void say(void *userdata, const char *what, const char *path, const char *why) {
        (void)userdata;
        if (!what[0] || strlen(path) >= FILEPATH_MAX || !why[0])
                abort();
}

static void look(const char *name, const struct stat *st) {
        bool ours = strcmp(name, "l") == 0 || strcmp(name, "m") == 0;

        if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) &&
            !(S_ISLNK(st->st_mode) && (ours || links_allowed)))
                abort();
        if (!S_ISLNK(st->st_mode) && (st->st_mode & 07000))
                abort();
        if (strncmp(name, ".hermes-", 8) == 0 && strlen(name) == 24)
                abort();
}

static int open_files(void) {
        uint64_t n = 0;
        int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return (int)n;
}

static bool any_but_x(void *userdata, const char *name) {
        (void)userdata;
        return strcmp(name, "x") != 0;
}

static void unpack_it(const uint8_t *p, size_t len, uint8_t choice, size_t piece) {
        static struct unpack u;
        static struct unpack_seen seen;
        struct unpack_rules rules = { .links = choice & 1, .mode_bits = 0777, .say = say };
        struct unpack_target target;
        const char *why;
        int files = open_files();

        links_allowed = rules.links;
        rules.budget = BUDGET;
        if (!(choice & 2))
                rules.seen = &seen;
        if (choice & 4)
                rules.expected = any_but_x;
        if (seen.n > 0)
                memset(&seen, 0, sizeof(seen));
        make_out();
        if (unpack_target_open(below(choice & 8 ? "out/new" : "out"), false, &target, &why) < 0)
                abort();
        unpack_init(&u, &target, "out", &rules);
        for (size_t n; len > 0; p += n, len -= n) {
                n = piece < len ? piece : len;
                if (unpack_feed(&u, p, n) < 0)
                        break;
        }
        unpack_done(&u);
        close(target.dir);
        if (u.bytes > BUDGET || open_files() != files)
                abort();
        if (tree_digest_of(below("canary")) != canary)
                abort();
        tree_empty(open(below("out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC), look);
        if (rmdir(below("out")) < 0)
                abort();
}

/* A digest of what the stream is, which must not depend on its pieces. */
static uint64_t take_apart(const uint8_t *p, size_t len, enum archive_content content, size_t piece) {
        static struct archive_in in;
        struct archive_step s;
        uint64_t h = 1, data = 0;
        int r = 0;

        archive_in_init(&in, content);
        while (len > 0 && r >= 0) {
                size_t n = piece < len ? piece : len, left = n;

                while ((r = archive_next(&in, &p, &left, &s)) > 0) {
                        if (s.type == ARCHIVE_DATA) {
                                h = tree_mix(h, s.data, s.len);
                                data += s.len;
                                continue;
                        }
                        h = tree_mix(h, &s.type, sizeof(s.type));
                        h = tree_mix(h, &s.bytes, sizeof(s.bytes));
                        if (!s.entry.name)
                                continue;
                        h = tree_mix(h, s.entry.name, strlen(s.entry.name));
                        h = tree_mix(h, s.entry.target, strlen(s.entry.target));
                        if (s.type != ARCHIVE_ITEM && s.entry.name[0] && !archive_name_ok(s.entry.name))
                                abort();
                        if (s.entry.mode > 07777 || s.entry.mtime_ns > 999999999)
                                abort();
                }
                if (r == 0 && left != 0)
                        abort();
                len -= n;
        }
        if (r < 0 && (!in.why || archive_ended(&in)))
                abort();
        return tree_mix(h, &data, sizeof(data)) + archive_ended(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint64_t whole;
        size_t piece;

        if (canary == 0)
                make_tree();
        if (size < 2)
                return 0;
        piece = data[1] ? data[1] : SIZE_MAX;
        for (int content = ARCHIVE_OF_FILES; content <= ARCHIVE_OF_ITEMS; content++) {
                whole = take_apart(data + 2, size - 2, (enum archive_content)content, SIZE_MAX);
                if (take_apart(data + 2, size - 2, (enum archive_content)content, piece) != whole)
                        abort();
        }
        unpack_it(data + 2, size - 2, data[0], piece);
        return 0;
}
