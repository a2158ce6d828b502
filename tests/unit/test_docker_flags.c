/* The docker shim's table of flags: the manual has it, every row is decided, and values against a profile. */
#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/files.h"
#include "cli/docker/docker_copy.h"
#include "cli/docker/docker_judge.h"
#include "common/cleanup.h"
#include "filetree.h"

static struct run_words r;
static struct errmsg e;

static int parse(char **argv) {
        int argc = 0;

        while (argv[argc])
                argc++;
        return run_words_parse(&r, argc, argv, &e);
}

#define W(s) ((char[]){ s })
#define PARSE(...) parse((char *[]){ W("run"), __VA_ARGS__, NULL })

static const struct image_info profile = {
        .profile = "hermes",
        .name = "debian:12",
        .present = true,
        .id = "sha256:00",
        .network = "none",
        .memory_bytes = UINT64_C(256) << 20,
        .cpu_nano = 1000000000,
        .shm_bytes = 16 << 20,
        .pids_limit = 128,
        .capabilities = 1 << CAP_CHOWN | 1 << CAP_FOWNER,
        .workdir = "/srv/work",
        .read_only = true,
        .n_tmpfs = 2,
        .tmpfs = { { "/tmp", 32 << 20 }, { "/workspace", 64 << 20 } },
};

/* --- the table ------------------------------------------------------------------------------------------ */

/* Blanks and ends of lines are one blank each. */
static void squeeze(char *s) {
        char *to = s;

        for (; *s; s++)
                if (*s != '\n' && *s != ' ')
                        *to++ = *s;
                else if (to[-1] != ' ')
                        *to++ = ' ';
        *to = '\0';
}

/* The manual's part between the two marks, which are comments in it. */
static char *manual_table(void) {
        static char page[65536];
        FILE *f = fopen("man/hermes-sandbox-docker.1", "re");
        char *begin, *end;
        size_t n;

        assert_non_null(f);
        n = fread(page, 1, sizeof(page) - 1, f);
        fclose(f);
        page[n] = '\0';
        begin = strstr(page, ".\\\" The table begins.\n");
        end = strstr(page, ".\\\" The table ends.\n");
        assert_true(begin && end && begin < end);
        *end = '\0';
        squeeze(begin);
        return begin + strlen(".\\\" The table begins. ");
}

static void the_manual_prints_it(void **state) {
        static char expected[65536];
        size_t len = 0;

        (void)state;
        for (const struct run_flag *f = run_flags; f->f.name[0]; f++) {
                char letter[16] = "";

                if (f->f.letter)
                        snprintf(letter, sizeof(letter), "Fl %c , ", f->f.letter);
                len += (size_t)snprintf(expected + len, sizeof(expected) - len,
                                        ".It %sFl -%s%s\n.Em %s :\n%s\n", letter, f->f.name,
                                        f->f.value ? " Ar value" : "", run_flag_decision(f), f->text);
        }
        if (getenv("DOCKER_FLAGS_PRINT"))
                fputs(expected, stdout);
        squeeze(expected);
        assert_string_equal(manual_table(), expected);
}

static void each_row_is_whole(void **state) {
        (void)state;
        for (const struct run_flag *f = run_flags; f->f.name[0]; f++) {
                assert_true(f->text && strlen(f->text) > 5 && f->text[strlen(f->text) - 1] != '.');
                assert_true(f->decision <= FLAG_AUDITED);
                assert_true(f->decision != FLAG_TAKEN || f->take);
                if (f > run_flags)
                        assert_true(strcmp(f[-1].f.name, f->f.name) < 0);
        }
}

/* --- values --------------------------------------------------------------------------------------------- */

static void hermes_own_words(void **state) {
        struct open_request q;
        const char *flag;

        (void)state;
        assert_int_equal(PARSE(W("-d"), W("--init"), W("--name"), W("hermes-01234567"), W("--label"),
                               W("a=1"), W("-l"), W("b"), W("-w"), W("/workspace"), W("--cap-drop"),
                               W("ALL"), W("--cap-add"), W("cap_chown"), W("--security-opt"),
                               W("no-new-privileges"), W("--tmpfs"), W("/tmp:rw,nosuid,size=16m"),
                               W("--tmpfs"), W("/workspace:rw,exec,size=10g"), W("--cpus"), W("0.5"),
                               W("--memory"), W("64m"), W("--pids-limit"), W("256"), W("--network=none"),
                               W("-e"), W("K=V"), W("debian:12"), W("sleep"), W("infinity")),
                         0);
        assert_true(r.detach && !r.remove);
        assert_string_equal(r.image, "debian:12");
        assert_int_equal(r.n_command, 2);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), 0);
        assert_string_equal(q.name, "hermes-01234567");
        assert_int_equal(q.n_labels, 2);
        assert_string_equal(q.labels[1], "b=");
        assert_int_equal(q.narrow.memory_bytes, 64 << 20);
        assert_int_equal(q.narrow.cpu_nano, 500000000);
        assert_int_equal(q.narrow.pids_limit, 0);
        assert_false(q.narrow.no_network || q.narrow.user);
        assert_int_equal(q.narrow.n_tmpfs, 1);
        assert_string_equal(q.narrow.tmpfs[0].path, "/tmp");
        assert_int_equal(q.narrow.tmpfs[0].bytes, 16 << 20);
        assert_string_equal(q.env[0], "K=V");
}

static void the_last_one_wins(void **state) {
        (void)state;
        assert_int_equal(PARSE(W("--pids-limit"), W("256"), W("-m"), W("1g"), W("--pids-limit=9"),
                               W("-m2g"), W("--tmpfs"), W("/tmp:size=1m"), W("--tmpfs=/tmp:size=2m"),
                               W("-l"), W("a=1"), W("-la=2"), W("--rm=false"), W("i")),
                         0);
        assert_int_equal(r.pids, 9);
        assert_true(r.memory_bytes == UINT64_C(2) << 30);
        assert_int_equal(r.n_tmpfs, 1);
        assert_int_equal(r.tmpfs[0].bytes, 2 << 20);
        assert_int_equal(r.n_labels, 1);
        assert_string_equal(r.labels[0], "a=2");
        assert_false(r.remove);
}

static void sizes(void **state) {
        static const struct {
                const char *text;
                uint64_t bytes;
        } good[] = { { "0", RUN_UNLIMITED }, { "-1", RUN_UNLIMITED },
                     { "512", 512 },         { "512b", 512 },
                     { "1k", 1024 },         { "1.5g", UINT64_C(3) << 29 },
                     { "64MiB", 64 << 20 },  { "2GB", UINT64_C(2) << 30 },
                     { ".5m", 512 << 10 } };
        static const char *const bad[] = {
                "", "m", "1x", "1mm", "-5", "1.2.3", "99999999999999999999t"
        };

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                char word[32];

                strcpy(word, good[i].text);
                assert_int_equal(PARSE(W("--memory"), word, W("i")), 0);
                assert_true(r.memory_bytes == good[i].bytes);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                char word[32];

                strcpy(word, bad[i]);
                assert_int_equal(PARSE(W("--memory"), word, W("i")), -EINVAL);
        }
        assert_int_equal(PARSE(W("--cpus"), W("1e9"), W("i")), -EINVAL);
        assert_int_equal(PARSE(W("--pids-limit"), W("many"), W("i")), -EINVAL);
}

#define REFUSED(how, part, ...)                            \
        do {                                               \
                assert_int_equal(PARSE(__VA_ARGS__), how); \
                assert_non_null(strstr(e.text, part));     \
        } while (0)

static void refusals(void **state) {
        (void)state;
        REFUSED(-EACCES, "--privileged: refused: nothing allows it", W("--privileged"), W("i"));
        REFUSED(-EACCES, "--pid host: refused", W("--pid=host"), W("i"));
        REFUSED(-EACCES, "--ipc container:x: refused", W("--ipc"), W("container:x"), W("i"));
        REFUSED(-EACCES, "--network host", W("--net"), W("none"), W("--network"), W("host"), W("i"));
        REFUSED(-EACCES, "--device /dev/kvm", W("--device"), W("/dev/kvm"), W("i"));
        REFUSED(-EACCES, "capabilities", W("--cap-add"), W("ALL"), W("i"));
        REFUSED(-EACCES, "--security-opt", W("--security-opt"), W("apparmor=unconfined"), W("i"));
        REFUSED(-EACCES, "--security-opt", W("--security-opt"), W("no-new-privileges=false"), W("i"));
        REFUSED(-EACCES, "socket", W("-v"), W("/run/docker.sock:/x"), W("i"));
        REFUSED(-EACCES, "socket", W("--mount"), W("type=bind,src=/var/run/docker.sock,dst=/x"), W("i"));
        REFUSED(-EPERM, "volumes", W("-v"), W("name:/x"), W("i"));
        REFUSED(-EPERM, "volumes", W("-v"), W("/x"), W("i"));
        REFUSED(-EPERM, "volumes", W("--mount"), W("target=/x"), W("i"));
        REFUSED(-EPERM, "options", W("-v"), W("/a:/b:shared"), W("i"));
        REFUSED(-EPERM, "--entrypoint", W("--entrypoint"), W("sh"), W("i"));
        REFUSED(-EPERM, "runtime", W("--runtime"), W("runsc"), W("i"));
        REFUSED(-EINVAL, "Invalid container name", W("--name"), W("-x"), W("i"));
        assert_int_equal(PARSE(W("--privileged=false"), W("--entrypoint="), W("--pid="),
                               W("--restart=no"), W("--pull"), W("missing"), W("i")),
                         0);
        assert_int_equal(r.n_warnings, 0);
}

/* --- what is not given ---------------------------------------------------------------------------------- */

/* What run_warn() writes, which says as many lines. */
static const char *warnings(const struct image_info *p) {
        static char text[4096];
        int fd = memfd_create("warnings", MFD_CLOEXEC), kept = dup(STDERR_FILENO), lines = 0, n;
        ssize_t len;

        assert_true(fd >= 0 && kept >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
        n = run_warn(&r, p);
        dup2(kept, STDERR_FILENO);
        close(kept);
        len = pread(fd, text, sizeof(text) - 1, 0);
        close(fd);
        assert_true(len >= 0);
        text[len] = '\0';
        for (const char *s = text; (s = strchr(s, '\n')); s++)
                lines++;
        assert_int_equal(n, lines);
        return text;
}

static void less_is_told(void **state) {
        struct image_info writable = profile;

        (void)state;
        assert_int_equal(PARSE(W("--cap-drop"), W("ALL"), W("--cap-add"), W("CHOWN"), W("i")), 0);
        assert_non_null(strstr(warnings(&profile),
                               "WARNING: --cap-drop: not done: commands as root have "
                               "FOWNER, as profile \"hermes\" does"));
        assert_int_equal(PARSE(W("--cap-drop=cap_chown"), W("i")), 0);
        assert_non_null(strstr(warnings(&profile), "have CHOWN, as"));
        assert_int_equal(PARSE(W("--read-only=false"), W("i")), 0);
        assert_non_null(strstr(warnings(&profile), "--read-only=false: not done: profile \"hermes\" has "
                                                   "read_only: true"));
        writable.read_only = false;
        assert_string_equal(warnings(&writable), "");
        assert_int_equal(PARSE(W("--read-only"), W("i")), 0);
        assert_non_null(strstr(warnings(&writable), "--read-only: not done: "));
        assert_int_equal(PARSE(W("--tmpfs"), W("/tmp:rw,noexec,nosuid,size=1m,mode=700"), W("--mount"),
                               W("type=tmpfs,dst=/workspace,readonly,tmpfs-mode=0750"), W("i")),
                         0);
        assert_non_null(
                strstr(warnings(&profile), "WARNING: --tmpfs /tmp: noexec,mode=700: not done: "));
        assert_non_null(strstr(warnings(&profile),
                               "WARNING: --tmpfs /workspace: readonly,tmpfs-mode=0750: not done: "));
        assert_int_equal(PARSE(W("--ipc=none"), W("i")), 0);
        assert_non_null(strstr(warnings(&profile), "WARNING: --ipc none: not done: private; "));
        assert_int_equal(PARSE(W("--init=false"), W("i")), 0);
        assert_string_equal(warnings(&profile), "WARNING: --init=false: not done: always: the agent "
                                                "reaps what is left over\n");
}

static void what_is_so_is_not_told(void **state) {
        (void)state;
        assert_int_equal(PARSE(W("--init"), W("--cap-drop"), W("ALL"), W("--cap-add"), W("CHOWN"),
                               W("--cap-add"), W("FOWNER"), W("--read-only"), W("--tmpfs"),
                               W("/tmp:rw,exec,nosuid,nodev,size=16m,mode=1777"), W("--mount"),
                               W("type=tmpfs,dst=/workspace,tmpfs-mode=1777"), W("i")),
                         0);
        assert_string_equal(warnings(&profile), "");
        /* No command of that user has a capability. */
        assert_int_equal(PARSE(W("--cap-drop"), W("ALL"), W("-u"), W("1000"), W("i")), 0);
        assert_string_equal(warnings(&profile), "");
        /* The last one counts. */
        assert_int_equal(PARSE(W("--tmpfs"), W("/tmp:noexec"), W("--tmpfs"), W("/tmp:size=1m"), W("i")),
                         0);
        assert_string_equal(warnings(&profile), "");
}

/* --- where commands start ------------------------------------------------------------------------------- */

static void a_workdir_that_is_there_is_not_made(void **state) {
        static const struct {
                const char *path;
                bool make;
        } dirs[] = { { "/", false },          { "//", false },           { "/tmp", false },
                     { "/tmp/", false },      { "/srv/work", false },    { "/data", false },
                     { "/workspace", false }, { "/workspace/x", true },  { "/tmp2", true },
                     { "/srv", true },        { "/srv/work/one", true }, { "/dat", true } };
        struct open_request q;
        const char *flag;

        (void)state;
        for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
                char word[32];

                strcpy(word, dirs[i].path);
                assert_int_equal(PARSE(W("-w"), word, W("-v"), W("/srv:/data"), W("debian:12")), 0);
                assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), 0);
                assert_string_equal(q.workdir, word);
                assert_int_equal(r.make_workdir, dirs[i].make);
        }
        assert_int_equal(PARSE(W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), 0);
        assert_false(r.make_workdir);
}

/* --- files ---------------------------------------------------------------------------------------------- */

static char file[] = "/tmp/docker-flags-XXXXXX";

static int make_file(void **state) {
        int fd = mkstemp(file);

        (void)state;
        return fd >= 0 && write(fd, "secret\n", 7) == 7 && close(fd) == 0 ? 0 : -1;
}

static int remove_file(void **state) {
        (void)state;
        return unlink(file);
}

/* SRC and what stands behind it, good until the fourth call from here. */
static char *of_file(const char *before, const char *behind) {
        static char word[4][512];
        static unsigned n;

        n = (n + 1) % 4;
        snprintf(word[n], sizeof(word[n]), "%s%s%s", before, file, behind);
        return word[n];
}

static void files_are_told_from_folders(void **state) {
        char *words[2 * RUN_FILES_MAX + 5] = { W("run") };
        char flag[] = "-v", image[] = "i", dst[RUN_FILES_MAX + 1][64];
        int n = 1;

        (void)state;
        assert_int_equal(PARSE(W("-v"), of_file("", ":/tmp/a/file:ro"), W("--mount"),
                               of_file("type=bind,src=", ",dst=/tmp/b,readonly"), W("-v"), W("/:/c:ro"),
                               W("i")),
                         0);
        assert_int_equal(r.n_files, 2);
        assert_int_equal(r.mounts.n, 1);
        assert_string_equal(r.files[0].src, file);
        assert_string_equal(r.files[0].dst, "/tmp/a/file");
        assert_string_equal(r.files[1].dst, "/tmp/b");
        REFUSED(-EPERM, "only folders can be written through: with :ro", W("-v"), of_file("", ":/tmp/x"),
                W("i"));
        REFUSED(-EPERM, "only folders can be written through", W("--mount"),
                of_file("type=bind,src=", ",dst=/tmp/x"), W("i"));
        REFUSED(-EPERM, "neither a folder nor a file", W("-v"), W("/dev/null:/tmp/x:ro"), W("i"));
        REFUSED(-EINVAL, "not absolute", W("-v"), of_file("", ":x:ro"), W("i"));
        REFUSED(-EINVAL, "/tmp/../etc/x", W("-v"), of_file("", ":/tmp/../etc/x:ro"), W("i"));
        REFUSED(-EINVAL, "duplicate mount point: /tmp/x", W("-v"), of_file("", ":/tmp/x:ro"), W("-v"),
                of_file("", ":/tmp/x:ro"), W("i"));
        for (int i = 0; i <= RUN_FILES_MAX; i++) {
                snprintf(dst[i], sizeof(dst[i]), "%s:/tmp/%d:ro", file, i);
                words[n++] = flag;
                words[n++] = dst[i];
        }
        words[n] = image;
        assert_int_equal(parse(words), -EINVAL);
        assert_non_null(strstr(e.text, "more than 16 files"));
}

static void no_file_goes_into_a_folder_of_the_host(void **state) {
        struct image_info with_run = profile;
        char place[512] = ":/data/";
        struct open_request q;
        const char *flag;

        (void)state;
        assert_int_equal(
                PARSE(W("-v"), of_file("", ":/data/in/x:ro"), W("-v"), W("/srv:/data"), W("debian:12")),
                0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), -EPERM);
        assert_non_null(strstr(e.text, "at /data/in/x it would be written into the folder /srv"));
        assert_int_equal(
                PARSE(W("-v"), of_file("", ":/data2:ro"), W("-v"), W("/srv:/data"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), 0);
        assert_string_equal(r.files[0].at, "/data2");
        /* With a place for it it goes there. */
        with_run.tmpfs[with_run.n_tmpfs++].path = "/.hermes-files";
        assert_int_equal(
                PARSE(W("-v"), of_file("", ":/data/in/x:ro"), W("-v"), W("/srv:/data"), W("debian:12")),
                0);
        assert_int_equal(run_judge(&r, &with_run, &q, &flag, &e), 0);
        assert_string_equal(r.files[0].dst, "/data/in/x");
        assert_string_equal(r.files[0].at, "/.hermes-files/data+in+x");
        assert_int_equal(PARSE(W("-v"), of_file("", ":/.hermes-files/x:ro"), W("-v"),
                               W("/srv:/.hermes-files"), W("debian:12")),
                         0);
        assert_int_equal(run_judge(&r, &with_run, &q, &flag, &e), -EPERM);
        assert_int_equal(
                PARSE(W("-v"), of_file("", ":/data:ro"), W("-v"), W("/srv:/data"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &with_run, &q, &flag, &e), -EINVAL);
        assert_non_null(strstr(e.text, "duplicate mount point: /data"));
        memset(place + 7, 'x', 251);
        strcpy(place + 258, ":ro");
        assert_int_equal(PARSE(W("-v"), of_file("", place), W("-v"), W("/srv:/data"), W("debian:12")),
                         0);
        assert_int_equal(run_judge(&r, &with_run, &q, &flag, &e), -EINVAL);
        assert_non_null(strstr(e.text, "too long"));
}

static void put_with_the_tool(int fd, char *folder) {
        char *argv[] = { W("hermes-files"), W("put"), folder, NULL };
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, 0) == 0 ? files_main(3, argv) : 99);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void what_is_read_the_tool_puts(void **state) {
        static const mode_t modes[][2] = { { 0600, 0400 }, { 0755, 0444 }, { 0640, 0400 } };
        char path[512], folder[] = "/tmp/docker-flags-XXXXXX";
        struct stat st;

        (void)state;
        assert_non_null(mkdtemp(folder));
        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
                assert_int_equal(chmod(file, modes[i][0]), 0);
                assert_int_equal(PARSE(W("-v"), of_file("", ":/one/two/file:ro"), W("i")), 0);
                assert_int_equal(run_files_read(&r, &e), 0);
                put_with_the_tool(r.files[0].fd, folder);
                close(r.files[0].fd);
                snprintf(path, sizeof(path), "%s/one/two/file", folder);
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_mode, S_IFREG | modes[i][1]);
                assert_int_equal(st.st_size, 7);
        }
        tree_remove(folder);
}

static void what_cannot_be_read(void **state) {
        (void)state;
        assert_int_equal(PARSE(W("-v"), of_file("", ":/tmp/x:ro"), W("i")), 0);
        assert_int_equal(truncate(file, RUN_FILE_BYTES_MAX), 0);
        assert_int_equal(run_files_read(&r, &e), 0);
        r.files[0].fd = close_fd(r.files[0].fd);
        assert_int_equal(truncate(file, RUN_FILE_BYTES_MAX + 1), 0);
        assert_int_equal(run_files_read(&r, &e), -EFBIG);
        assert_non_null(strstr(e.text, "at most 16 MiB"));
        assert_int_equal(unlink(file), 0);
        assert_int_equal(run_files_read(&r, &e), -ENOENT);
        assert_non_null(strstr(e.text, file));
        /* Another thing by now: no writer is waited for. */
        assert_int_equal(mkfifo(file, 0600), 0);
        assert_int_equal(run_files_read(&r, &e), -EINVAL);
        assert_int_equal(r.files[0].fd, -1);
}

static void judged(void **state) {
        struct image_info root = profile;
        struct open_request q;
        const char *flag;

        (void)state;
        assert_int_equal(PARSE(W("--cap-add"), W("FSETID"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &root, &q, &flag, &e), -EACCES);
        assert_string_equal(flag, "--cap-add");
        /* Who is not root has none in any case. */
        root.uid = root.gid = 1000;
        assert_int_equal(run_judge(&r, &root, &q, &flag, &e), 0);
        assert_int_equal(PARSE(W("--tmpfs"), W("/opt"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), -EPERM);
        assert_non_null(strstr(e.text, "tmpfs"));
        assert_int_equal(PARSE(W("--network"), W("bridge"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), -EPERM);
        assert_int_equal(PARSE(W("debian:13")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), -EPERM);
        assert_non_null(strstr(e.text, "\"debian:12\""));
        assert_int_equal(PARSE(W("-u"), W("4000:5"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), 0);
        assert_true(q.narrow.user && q.narrow.uid == 4000 && q.narrow.gid == 5);
        assert_int_equal(PARSE(W("-u"), W("root"), W("debian:12")), 0);
        assert_int_equal(run_judge(&r, &profile, &q, &flag, &e), 0);
        assert_false(q.narrow.user);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_manual_prints_it),
                cmocka_unit_test(each_row_is_whole),
                cmocka_unit_test(hermes_own_words),
                cmocka_unit_test(the_last_one_wins),
                cmocka_unit_test(sizes),
                cmocka_unit_test(refusals),
                cmocka_unit_test(judged),
                cmocka_unit_test(less_is_told),
                cmocka_unit_test(what_is_so_is_not_told),
                cmocka_unit_test(a_workdir_that_is_there_is_not_made),
                cmocka_unit_test(files_are_told_from_folders),
                cmocka_unit_test(no_file_goes_into_a_folder_of_the_host),
                cmocka_unit_test(what_is_read_the_tool_puts),
                cmocka_unit_test(what_cannot_be_read),
        };

        return cmocka_run_group_tests(tests, make_file, remove_file);
}
