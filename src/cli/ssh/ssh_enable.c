/*
 * What can refuse comes before what changes anything: sshd is there, the account is, and sshd takes the configuration. What
 * is there already stays, so that it can be said again after whatever interrupted it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_sshkey.h"
#include "cli/cli_spawn.h"
#include "cli/ssh/ssh.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define NEW_KEY ".new_host_key"
#define NEW_CONFIG ".check"
#define DEFAULT_LISTEN "127.0.0.1:2222"

struct config {
        char *text;
        size_t len;
};

static void config_done(struct config *c) {
        free(c->text);
}

/* The folder's files are small. */
static char before[SSHKEY_FILE_MAX];

static ssize_t read_file(const struct ssh_places *p, const char *name, char *buf, struct errmsg *e) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", p->dir, name);
        return sshkey_file_read(path, p->root, buf, e);
}

static int make_folder(const char *path, struct errmsg *e) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return errmsg_set(e, EXIT_OS, "cannot make %s: %s", path, strerror(errno));
        return 0;
}

/* What the package and its administrator have to bring. 0, or the exit status and a line in *e. */
static int look(const struct ssh_places *p, struct errmsg *e) {
        const struct passwd *pw;
        struct stat st;
        int r;

        if (access(p->sshd, X_OK) < 0)
                return errmsg_set(e, EXIT_OS, "%s is not there: apt install openssh-server", p->sshd);
        if (access(p->ssh_keygen, X_OK) < 0)
                return errmsg_set(e, EXIT_OS, "%s is not there: apt install openssh-client",
                                  p->ssh_keygen);
        pw = getpwnam(p->account);
        if (!pw)
                return errmsg_set(e, EXIT_OS,
                                  "there is no account %s: systemd-sysusers hermes-sandbox.conf",
                                  p->account);
        /* sshd looks into it for what a login's owner has there: nobody but root may put anything into it. */
        r = make_folder(p->home, e);
        if (r != 0)
                return r;
        if (lstat(p->home, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != p->root ||
            (st.st_mode & 022) != 0)
                return errmsg_set(
                        e, EXIT_OS,
                        "%s: found something else than a folder of root that nobody else can write: chown "
                        "root:root it, and chmod 0755",
                        p->home);
        return make_folder(p->privsep, e);
}

/* Once, and whole: the private half is the last to get its name. */
static int make_host_key(const struct ssh_places *p, const struct ssh_folder *f, struct errmsg *e) {
        char new_key[PATH_MAX];
        const char *const argv[] = { p->ssh_keygen,        "-q", "-t",    "ed25519", "-N", "", "-C",
                                     "hermes-sandbox-ssh", "-f", new_key, NULL };
        int r;

        if (faccessat(f->fd, SSH_HOST_KEY, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return 0;
        unlinkat(f->fd, NEW_KEY, 0);
        unlinkat(f->fd, NEW_KEY ".pub", 0);
        snprintf(new_key, sizeof(new_key), "%s/" NEW_KEY, p->dir);
        r = spawn_run(argv, -1, -1);
        if (r != 0)
                return errmsg_set(e, EXIT_OS, "%s made no host key (status %d)", p->ssh_keygen, r);
        if (renameat(f->fd, NEW_KEY ".pub", f->fd, SSH_HOST_KEY ".pub") < 0 ||
            renameat(f->fd, NEW_KEY, f->fd, SSH_HOST_KEY) < 0 || fsync(f->fd) < 0)
                return errmsg_set(e, EXIT_OS, "cannot keep the host key in %s: %s", f->path,
                                  strerror(errno));
        return 0;
}

/* 0, or the exit status and what sshd says of it in *e. */
static int check_config(const struct ssh_places *p, const struct ssh_folder *f, const struct config *c,
                        struct errmsg *e) {
        char path[PATH_MAX];
        const char *const argv[] = { p->sshd, "-t", "-f", path, NULL };
        _cleanup_free_ char *said = NULL;
        int r = ssh_folder_put(f, NEW_CONFIG, c->text, c->len, e);

        if (r < 0)
                return EXIT_OS;
        snprintf(path, sizeof(path), "%s/" NEW_CONFIG, p->dir);
        r = spawn_read(argv, &said);
        unlinkat(f->fd, NEW_CONFIG, 0);
        if (r == 0)
                return 0;
        return errmsg_set(e, EXIT_CONFIG, "sshd does not take the configuration: %.300s",
                          said ? (said[strcspn(said, "\n")] = '\0', said) : strerror(-r));
}

/* The newest that this sshd takes. */
static int make_config(const struct ssh_places *p, const struct ssh_folder *f,
                       const struct ssh_listen *listen, size_t n, struct config *ret, struct errmsg *e) {
        static char template[SSHKEY_FILE_MAX];
        ssize_t len = sshkey_file_read(p->template, p->root, template, e);

        if (len < 0)
                return EXIT_OS;
        for (int newer = 1; newer >= 0; newer--) {
                _cleanup_(config_done) struct config c = { 0 };
                int r;

                if (ssh_config_make(template, (size_t)len, listen, n, newer, &c.text, &c.len) < 0)
                        return errmsg_set(e, EXIT_CONFIG, "%s has no line @LISTEN@", p->template);
                r = check_config(p, f, &c, e);
                if (r == 0) {
                        *ret = c;
                        c.text = NULL;
                        return 0;
                }
                if (newer == 0)
                        return r;
        }
        return EXIT_CONFIG;
}

/* What was said, or what holds already, or the default. */
static size_t choose_listen(const struct ssh_words *w, const char *config, size_t len,
                            struct ssh_listen *ret) {
        struct errmsg e;
        size_t n = w->n_listen;

        memcpy(ret, w->listen, n * sizeof(*ret));
        if (n == 0)
                n = ssh_listen_find(config, len, ret);
        if (n == 0)
                n = ssh_listen_parse(DEFAULT_LISTEN, ret, &e) == 0;
        return n;
}

static void say_listen(const struct ssh_places *p, const struct ssh_listen *l, size_t n) {
        bool wide = false;

        for (size_t i = 0; i < n; i++) {
                printf("%s at %s\n", p->account, l[i].text);
                wide |= ssh_listen_is_wide(&l[i]);
        }
        if (wide)
                printf("others reach it over the network: the keys alone keep them out\n");
}

static int enable(const struct ssh_places *p, const struct ssh_words *w, const struct ssh_folder *f,
                  struct errmsg *e) {
        _cleanup_(config_done) struct config c = { 0 };
        struct ssh_listen listen[SSH_LISTEN_MAX];
        ssize_t len = read_file(p, SSH_CONFIG, before, e);
        bool changed;
        size_t n;
        int r;

        n = choose_listen(w, before, len > 0 ? (size_t)len : 0, listen);
        r = make_host_key(p, f, e);
        if (r == 0)
                r = make_config(p, f, listen, n, &c, e);
        if (r != 0)
                return r;
        changed = len != (ssize_t)c.len || memcmp(before, c.text, c.len) != 0;
        if ((faccessat(f->fd, SSH_KEYS, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
             ssh_folder_put(f, SSH_KEYS, "", 0, e) < 0) ||
            (changed && ssh_folder_put(f, SSH_CONFIG, c.text, c.len, e) < 0))
                return EXIT_OS;
        fflush(stdout);
        r = ssh_service_up(p, w, changed);
        e->text[0] = '\0';
        if (r == 0)
                say_listen(p, listen, n);
        return r;
}

int ssh_enable(const struct ssh_places *p, const struct ssh_words *w) {
        _cleanup_(ssh_folder_done) struct ssh_folder f = { .fd = -1 };
        struct errmsg e;
        int r = look(p, &e);

        if (r == 0)
                r = ssh_folder_open(p, &f, &e) < 0 ? EXIT_OS : enable(p, w, &f, &e);
        return r == 0 || e.text[0] == '\0' ? r : ssh_fail(r, "enable: %s", e.text);
}

int ssh_disable(const struct ssh_places *p, const struct ssh_words *w) {
        _cleanup_(ssh_folder_done) struct ssh_folder f = { .fd = -1 };
        struct errmsg e;
        int r;

        if (ssh_folder_open(p, &f, &e) < 0)
                return ssh_fail(EXIT_OS, "disable: %s", e.text);
        r = ssh_service_down(p, w);
        if (r != 0)
                return r;
        if (unlinkat(f.fd, SSH_CONFIG, 0) < 0 && errno != ENOENT)
                return ssh_fail(EXIT_OS, "disable: cannot remove %s/" SSH_CONFIG ": %s", p->dir,
                                strerror(errno));
        printf("disabled; the keys and the host key stay in %s\n", p->dir);
        return 0;
}

static size_t count_keys(const char *text, size_t len) {
        struct sshkey_span line;
        struct sshkey_line x;
        size_t n = 0;

        for (size_t pos = 0; sshkey_next_line(text, len, &pos, &line);)
                n += sshkey_line_parse(line.p, line.len, &x);
        return n;
}

static void say_host_key(const struct ssh_places *p) {
        char path[PATH_MAX];
        const char *const argv[] = { p->ssh_keygen, "-l", "-f", path, NULL };
        _cleanup_free_ char *said = NULL;

        snprintf(path, sizeof(path), "%s/" SSH_HOST_KEY ".pub", p->dir);
        if (spawn_read(argv, &said) == 0)
                printf("host key:  %.*s\n", (int)strcspn(said, "\n"), said);
}

int ssh_status(const struct ssh_places *p, const struct ssh_words *w) {
        struct ssh_listen listen[SSH_LISTEN_MAX];
        struct errmsg e;
        ssize_t len = read_file(p, SSH_CONFIG, before, &e);
        size_t n, up = 0;

        (void)w;
        if (len == -ENOENT) {
                printf("ssh:       disabled\n");
                return 0;
        }
        if (len < 0)
                return ssh_fail(EXIT_OS, "status: %s", e.text);
        printf("ssh:       enabled\n");
        n = ssh_listen_find(before, (size_t)len, listen);
        for (size_t i = 0; i < n; i++) {
                bool answers = ssh_listen_answers(&listen[i]);

                printf("listens:   %s%s\n", listen[i].text, answers ? "" : ", and does not answer");
                up += answers;
        }
        say_host_key(p);
        len = read_file(p, SSH_KEYS, before, &e);
        if (len < 0 && len != -ENOENT)
                return ssh_fail(EXIT_OS, "status: %s", e.text);
        printf("keys:      %zu\n", len > 0 ? count_keys(before, (size_t)len) : 0);
        return up == n ? 0
                       : ssh_fail(EXIT_NO_MANAGER,
                                  "status: sshd does not run as it should: " SSH_PROGRAM " enable");
}
