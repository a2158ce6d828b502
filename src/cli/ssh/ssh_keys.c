/*
 * The list of keys. A line that we did not write is kept as it stands, and so are the options in front of a key: they are
 * sshd's and the administrator's. What a key is, ssh-keygen says.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli_sshkey.h"
#include "cli/cli_spawn.h"
#include "cli/ssh/ssh.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/jsonw.h"

#define OPTIONS "restrict,pty"
#define KEY_FILE_MAX 65536
#define EXIT_NONE 1

/* The list as it is, and what stands in it. */
struct list {
        size_t len;
        char text[SSHKEY_FILE_MAX];
};
static struct list keys;

/* One that is to be added. */
struct key {
        char text[SSHKEY_BLOB_MAX + 1024]; /* its line */
        struct sshkey_line line;
        char fp[KEYFP_LEN + 1];
};

/* A list that is not there is an empty one. */
static int load(const struct ssh_places *p, struct list *l, struct errmsg *e) {
        char path[PATH_MAX];
        ssize_t len;

        snprintf(path, sizeof(path), "%s/" SSH_KEYS, p->dir);
        len = sshkey_file_read(path, p->root, l->text, e);
        l->len = len > 0 ? (size_t)len : 0;
        return len < 0 && len != -ENOENT ? (int)len : 0;
}

static int open_file(const char *name) {
        return strcmp(name, "-") == 0 ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_NOCTTY | O_CLOEXEC);
}

/* All of it, with a NUL behind it. */
static int slurp(const char *name, char *buf, size_t cap, struct errmsg *e) {
        _cleanup_fd_ int fd = open_file(name);
        size_t len = 0;
        ssize_t n = fd < 0 ? -1 : 1;

        while (n > 0 && len < cap - 1) {
                n = read(fd, buf + len, cap - 1 - len);
                if (n < 0 && errno == EINTR)
                        n = 1;
                else if (n > 0)
                        len += (size_t)n;
        }
        if (n < 0)
                return errmsg_set(e, -errno, "cannot read %.200s: %s", name, strerror(errno));
        if (len == cap - 1)
                return errmsg_set(e, -EFBIG, "%.200s is larger than %zu bytes: no public key is", name,
                                  cap - 2);
        buf[len] = '\0';
        return strlen(buf) == len
                       ? 0
                       : errmsg_set(e, -EINVAL, "%.200s is no text: expected a public key", name);
}

/* The one key in @text, the contents of @name. */
static int find_one(const char *name, const char *text, struct key *ret, struct errmsg *e) {
        struct sshkey_span line;
        size_t n = 0, len = strlen(text);

        if (strstr(text, "PRIVATE KEY-----") || strncmp(text, "PuTTY-User-Key-File", 19) == 0)
                return errmsg_set(
                        e, -EINVAL,
                        "%.200s is a private key, which stays with its owner: expected the file "
                        "beside it, .pub",
                        name);
        for (size_t pos = 0; sshkey_next_line(text, len, &pos, &line);) {
                if (!sshkey_line_parse(line.p, line.len, &ret->line))
                        continue;
                if (++n > 1 || line.len >= sizeof(ret->text))
                        continue;
                memcpy(ret->text, line.p, line.len);
                ret->text[line.len] = '\0';
        }
        if (n != 1 || !sshkey_line_parse(ret->text, strlen(ret->text), &ret->line))
                return errmsg_set(
                        e, -EINVAL, "%.200s has %s: expected one line, such as ssh-ed25519 AAAA… name",
                        name, n == 0 ? "no public key" : "more than one key, or one that is too long");
        if (ret->line.options.len > 0)
                return errmsg_set(e, -EINVAL, "%.200s has options in front of the key: take them away",
                                  name);
        if (memmem(ret->line.type.p, ret->line.type.len, "-cert-", 6))
                return errmsg_set(e, -EINVAL, "%.200s is a certificate: expected the public key itself",
                                  name);
        return 0;
}

/* "256 SHA256:… comment (ED25519)" */
static bool take_fp(const char *said, char *ret) {
        const char *fp = strstr(said, " " KEYFP_PREFIX);

        if (!fp || strlen(fp + 1) < KEYFP_LEN)
                return false;
        memcpy(ret, fp + 1, KEYFP_LEN);
        ret[KEYFP_LEN] = '\0';
        return keyfp_valid(ret);
}

/* What ssh-keygen makes of the type and the blob alone. */
static int fingerprint(const struct ssh_places *p, const char *name, struct key *k, struct errmsg *e) {
        /* It opens it by this name, which means its own descriptor there. */
        _cleanup_fd_ int fd = memfd_create("key", 0);
        _cleanup_free_ char *said = NULL;
        char path[64];
        const char *const argv[] = { p->ssh_keygen, "-l", "-E", "sha256", "-f", path, NULL };
        int r;

        if (fd < 0 || dprintf(fd, "%.*s %.*s\n", (int)k->line.type.len, k->line.type.p,
                              (int)k->line.blob.len, k->line.blob.p) < 0)
                return errmsg_set(e, -errno, "cannot make a memory file: %s", strerror(errno));
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = spawn_read(argv, &said);
        if (r < 0 || r == EXIT_NOT_FOUND)
                return errmsg_set(e, -ENOENT, "cannot run %s: apt install openssh-client",
                                  p->ssh_keygen);
        if (r != 0 || !take_fp(said, k->fp))
                return errmsg_set(e, -EINVAL, "%.200s: ssh-keygen takes it for no public key", name);
        return 0;
}

static void default_name(const struct key *k, char *ret) {
        struct sshkey_span c = k->line.notes;

        if (c.len <= SSHKEY_NAME_MAX) {
                memcpy(ret, c.p, c.len);
                ret[c.len] = '\0';
                if (sshkey_name_valid(ret))
                        return;
        }
        /* As much of the session's name as a person can tell from another. */
        sshkey_session(k->fp, ret);
        ret[16] = '\0';
        memcpy(ret, "key-", 4);
}

static bool same_key(const struct sshkey_line *a, const struct sshkey_line *b) {
        return sshkey_same(a->type, b->type) && sshkey_same(a->blob, b->blob);
}

/* What is known of it from a line of the list, and what has just been said. */
static void make_notes(const struct ssh_words *w, const struct key *k, const struct sshkey_line *was,
                       struct sshkey_notes *ret) {
        struct sshkey_notes n = { 0 };
        struct errmsg e;

        if (!was || sshkey_notes_parse(was->notes, &n, &e) < 0)
                memset(&n, 0, sizeof(n));
        strcpy(n.fp, k->fp);
        if (w->profile)
                snprintf(n.profile, sizeof(n.profile), "%s", w->profile);
        if (w->ttl)
                snprintf(n.ttl, sizeof(n.ttl), "%s", w->ttl);
        if (w->name)
                snprintf(n.name, sizeof(n.name), "%s", w->name);
        else if (n.name[0] == '\0')
                default_name(k, n.name);
        *ret = n;
}

static void print_line(FILE *f, const struct key *k, const struct sshkey_line *was,
                       const struct sshkey_notes *n) {
        struct sshkey_span options = { OPTIONS, strlen(OPTIONS) };

        if (was && was->options.len > 0)
                options = was->options;
        fprintf(f, "%.*s %.*s %.*s fp=%s", (int)options.len, options.p, (int)k->line.type.len,
                k->line.type.p, (int)k->line.blob.len, k->line.blob.p, n->fp);
        if (n->profile[0] != '\0')
                fprintf(f, " profile=%s", n->profile);
        if (n->ttl[0] != '\0')
                fprintf(f, " ttl=%s", n->ttl);
        fprintf(f, " %s\n", n->name);
}

/* The line of another key that has this name? */
static bool is_taken(const struct list *l, const struct key *k, const char *name) {
        struct sshkey_span line;
        struct sshkey_notes n;
        struct sshkey_line x;
        struct errmsg e;

        for (size_t pos = 0; sshkey_next_line(l->text, l->len, &pos, &line);)
                if (sshkey_line_parse(line.p, line.len, &x) && !same_key(&x, &k->line) &&
                    sshkey_notes_parse(x.notes, &n, &e) == 0 && strcmp(n.name, name) == 0)
                        return true;
        return false;
}

static bool find_same(const struct list *l, const struct key *k, struct sshkey_line *ret) {
        struct sshkey_span line;

        for (size_t pos = 0; sshkey_next_line(l->text, l->len, &pos, &line);)
                if (sshkey_line_parse(line.p, line.len, ret) && same_key(ret, &k->line))
                        return true;
        return false;
}

/* The list with this key in it: at its place, or at the end. */
static char *with_key(const struct list *l, const struct key *k, const struct sshkey_line *was,
                      const struct sshkey_notes *n, size_t *ret_len) {
        struct sshkey_span line;
        struct sshkey_line x;
        bool done = false;
        char *text;
        FILE *f = open_memstream(&text, ret_len);

        if (!f)
                abort();
        for (size_t pos = 0; sshkey_next_line(l->text, l->len, &pos, &line);)
                if (!sshkey_line_parse(line.p, line.len, &x) || !same_key(&x, &k->line))
                        fprintf(f, "%.*s\n", (int)line.len, line.p);
                else if (!done) {
                        print_line(f, k, was, n);
                        done = true;
                }
        if (!done)
                print_line(f, k, NULL, n);
        if (fclose(f) != 0)
                abort();
        return text;
}

static int put(const struct ssh_folder *f, const char *text, size_t len, struct errmsg *e) {
        if (len > SSHKEY_FILE_MAX)
                return errmsg_set(e, -EFBIG,
                                  "%s/" SSH_KEYS " would be larger than %u bytes: remove keys first",
                                  f->path, SSHKEY_FILE_MAX);
        return ssh_folder_put(f, SSH_KEYS, text, len, e);
}

static int add(const struct ssh_places *p, const struct ssh_words *w, const struct key *k,
               struct errmsg *e) {
        _cleanup_(ssh_folder_done) struct ssh_folder folder = { .fd = -1 };
        _cleanup_free_ char *text = NULL;
        struct sshkey_notes n;
        struct sshkey_line was;
        size_t len;
        bool there;

        if (ssh_folder_open(p, &folder, e) < 0 || load(p, &keys, e) < 0)
                return EXIT_OS;
        there = find_same(&keys, k, &was);
        make_notes(w, k, there ? &was : NULL, &n);
        if (is_taken(&keys, k, n.name))
                return errmsg_set(e, EXIT_USAGE, "another key has the name %s: say --name", n.name);
        text = with_key(&keys, k, there ? &was : NULL, &n, &len);
        if (put(&folder, text, len, e) < 0)
                return EXIT_OS;
        printf("%s %s %s, profile %s%s%s\n", there ? "was there, and is now" : "added", n.name, n.fp,
               n.profile[0] != '\0' ? n.profile : "default", n.ttl[0] != '\0' ? ", ttl " : "", n.ttl);
        return 0;
}

int ssh_add_key(const struct ssh_places *p, const struct ssh_words *w) {
        static char text[KEY_FILE_MAX + 2];
        static struct key k;
        struct errmsg e;
        int r;

        if (slurp(w->operand, text, sizeof(text), &e) < 0 || find_one(w->operand, text, &k, &e) < 0 ||
            fingerprint(p, w->operand, &k, &e) < 0)
                return ssh_fail(EXIT_USAGE, "%s: %s", w->command, e.text);
        r = add(p, w, &k, &e);
        return r == 0 ? 0 : ssh_fail(r, "%s: %s", w->command, e.text);
}

/* Is it the key that is meant by its name or its fingerprint? */
static bool is_meant(struct sshkey_span line, const char *word) {
        struct sshkey_notes n;
        struct sshkey_line x;
        struct errmsg e;

        return sshkey_line_parse(line.p, line.len, &x) && sshkey_notes_parse(x.notes, &n, &e) == 0 &&
               (strcmp(n.name, word) == 0 || strcmp(n.fp, word) == 0);
}

static int remove_key(const struct ssh_places *p, const char *word, struct errmsg *e) {
        _cleanup_(ssh_folder_done) struct ssh_folder folder = { .fd = -1 };
        _cleanup_free_ char *text = NULL;
        struct sshkey_span line;
        size_t len, removed = 0;
        FILE *f;

        if (ssh_folder_open(p, &folder, e) < 0 || load(p, &keys, e) < 0)
                return EXIT_OS;
        f = open_memstream(&text, &len);
        if (!f)
                abort();
        for (size_t pos = 0; sshkey_next_line(keys.text, keys.len, &pos, &line);)
                if (is_meant(line, word))
                        removed++;
                else
                        fprintf(f, "%.*s\n", (int)line.len, line.p);
        if (fclose(f) != 0)
                abort();
        if (removed == 0)
                return errmsg_set(e, EXIT_NONE, "no key '%.100s': " SSH_PROGRAM " list-keys shows them",
                                  word);
        if (put(&folder, text, len, e) < 0)
                return EXIT_OS;
        printf("removed %s\n", word);
        return 0;
}

int ssh_remove_key(const struct ssh_places *p, const struct ssh_words *w) {
        struct errmsg e;
        int r = remove_key(p, w->operand, &e);

        return r == 0 ? 0 : ssh_fail(r, "%s: %s", w->command, e.text);
}

static void list_json(const struct list *l) {
        struct sshkey_span line;
        struct sshkey_notes n;
        struct sshkey_line x;
        struct errmsg e;
        struct jsonw j;

        jsonw_init_file(&j, stdout);
        jsonw_array(&j);
        for (size_t pos = 0; sshkey_next_line(l->text, l->len, &pos, &line);) {
                if (!sshkey_line_parse(line.p, line.len, &x))
                        continue;
                bool ours = sshkey_notes_parse(x.notes, &n, &e) == 0;

                jsonw_object(&j);
                jsonw_key_str(&j, "name", ours ? n.name : NULL);
                jsonw_key_str(&j, "fingerprint", ours ? n.fp : NULL);
                jsonw_key(&j, "type");
                jsonw_strn(&j, x.type.p, x.type.len);
                jsonw_key_str(&j, "profile",
                              !ours                  ? NULL
                              : n.profile[0] != '\0' ? n.profile
                                                     : "default");
                jsonw_key_str(&j, "ttl", ours && n.ttl[0] != '\0' ? n.ttl : NULL);
                jsonw_key_str(&j, "error", ours ? NULL : e.text);
                jsonw_object_end(&j);
        }
        jsonw_array_end(&j);
        jsonw_done(&j);
        fputc('\n', stdout);
}

static void list_text(const struct list *l) {
        struct sshkey_span line;
        struct sshkey_notes n;
        struct sshkey_line x;
        struct errmsg e;
        size_t number = 0;

        for (size_t pos = 0; sshkey_next_line(l->text, l->len, &pos, &line);) {
                number++;
                if (!sshkey_line_parse(line.p, line.len, &x))
                        continue;
                if (sshkey_notes_parse(x.notes, &n, &e) < 0)
                        ssh_fail(0, SSH_KEYS " line %zu: %s: nobody logs in with it", number, e.text);
                else
                        printf("%-24s %s  profile %s%s%s\n", n.name, n.fp,
                               n.profile[0] != '\0' ? n.profile : "default",
                               n.ttl[0] != '\0' ? "  ttl " : "", n.ttl);
        }
}

int ssh_list_keys(const struct ssh_places *p, const struct ssh_words *w) {
        struct errmsg e;

        if (load(p, &keys, &e) < 0)
                return ssh_fail(EXIT_OS, "%s: %s", w->command, e.text);
        if (w->json)
                list_json(&keys);
        else
                list_text(&keys);
        return 0;
}
