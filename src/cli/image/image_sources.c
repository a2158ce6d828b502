/*
 * Both of apt's formats are read into one struct and written as deb822. What this does not understand is no source of
 * ours: the worst that comes of it is a line that asks for --mirror.
 */
#include "cli/image/image_sources.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

struct source {
        char *types, *uris, *suites, *components, *signed_by, *valid,
                *enabled; /* into the file's text, or NULL */
};

struct wanted {
        const char *from, *suite; /* entries of @from are taken for @suite */
        FILE *out;
        size_t n;
};

static bool has_word(const char *list, const char *word) {
        size_t len = strlen(word);

        for (const char *s = list; s && *s;) {
                size_t n;

                s += strspn(s, " \t\n");
                n = strcspn(s, " \t\n");
                if (n == len && strncmp(s, word, n) == 0)
                        return true;
                s += n;
        }
        return false;
}

static bool ours(const struct source *s) {
        return has_word(s->types, "deb") && has_word(s->components, "main") && s->uris && s->suites &&
               !(s->enabled && (strcasecmp(s->enabled, "no") == 0 ||
                                strcasecmp(s->enabled, "false") == 0 || strcmp(s->enabled, "0") == 0)) &&
               (!s->signed_by || strstr(s->signed_by, "debian-archive"));
}

/* The suites that @s has of those that are wanted, as the wanted suite names them. Returns how many. */
static int put_suites(const struct source *s, const struct wanted *w, char *to) {
        static const char *const parts[] = { "", "-updates", "-security" };
        int n = 0;

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                char name[64];

                snprintf(name, sizeof(name), "%s%s", w->from, parts[i]);
                if (!has_word(s->suites, name))
                        continue;
                to += sprintf(to, " %s%s", w->suite, parts[i]);
                n++;
        }
        return n;
}

static void put_source(const struct source *s, struct wanted *w) {
        char suites[256], *save = NULL;
        bool any = false;

        if (!ours(s) || put_suites(s, w, suites) == 0)
                return;
        for (char *uri = strtok_r(s->uris, " \t\n", &save); uri; uri = strtok_r(NULL, " \t\n", &save)) {
                if (strncmp(uri, "cdrom:", 6) == 0)
                        continue;
                fprintf(w->out, "%s %s", any ? "" : "Types: deb\nURIs:", uri);
                any = true;
        }
        if (!any)
                return;
        fprintf(w->out, "\nSuites:%s\nComponents: main\n", suites);
        if (s->signed_by)
                fprintf(w->out, "Signed-By: %s\n", s->signed_by);
        if (s->valid)
                fprintf(w->out, "Check-Valid-Until: %s\n", s->valid);
        fputc('\n', w->out);
        w->n++;
}

static char *trim(char *s) {
        char *end;

        s += strspn(s, " \t\n");
        for (end = s + strlen(s); end > s && isspace((unsigned char)end[-1]); end--)
                ;
        *end = '\0';
        return s;
}

/* --- deb822 ------------------------------------------------------------------------------------- */

static void set_field(struct source *s, char *line) {
        static const struct {
                const char *name;
                size_t offset;
        } fields[] = {
                { "Types", offsetof(struct source, types) },
                { "URIs", offsetof(struct source, uris) },
                { "Suites", offsetof(struct source, suites) },
                { "Components", offsetof(struct source, components) },
                { "Signed-By", offsetof(struct source, signed_by) },
                { "Check-Valid-Until", offsetof(struct source, valid) },
                { "Enabled", offsetof(struct source, enabled) },
        };
        char *colon = strchr(line, ':');

        if (!colon)
                return;
        *colon = '\0';
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
                if (strcasecmp(line, fields[i].name) == 0)
                        *(char **)((char *)s + fields[i].offset) = trim(colon + 1);
}

/* Takes comments out of @text, and joins the lines of a field. Then each line is a field, an empty one a stanza's end. */
static void unfold(char *text) {
        char *to = text, *next;

        for (char *line = text; line; line = next) {
                size_t len = strcspn(line, "\n");

                next = line[len] ? line + len + 1 : NULL;
                if (line[0] == '#')
                        continue;
                if ((line[0] == ' ' || line[0] == '\t') && to > text)
                        to[-1] = ' ';
                memmove(to, line, len);
                to += len;
                *to++ = '\n';
                if (!next)
                        break;
        }
        /* What was read has room for one more newline. */
        *to = '\0';
}

static void read_stanzas(char *text, struct wanted *w) {
        struct source s = { 0 };
        char *next;

        unfold(text);
        for (char *line = text; *line; line = next) {
                size_t len = strcspn(line, "\n");

                next = line + len + (line[len] == '\n');
                line[len] = '\0';
                if (*trim(line) == '\0') {
                        put_source(&s, w);
                        s = (struct source){ 0 };
                } else {
                        set_field(&s, line);
                }
        }
        put_source(&s, w);
}

/* --- one line ----------------------------------------------------------------------------------- */

/* The value of an option between brackets, or NULL. */
static char *option(char *options, const char *name) {
        char *save = NULL, *copy = options ? strdup(options) : NULL, *value = NULL;
        size_t len = strlen(name);

        if (!copy)
                return NULL;
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
                if (strncasecmp(word, name, len) == 0 && word[len] == '=')
                        value = options + (word - copy) + len + 1;
        free(copy);
        if (value)
                value[strcspn(value, " \t")] = '\0';
        return value;
}

static void read_line(char *line, struct wanted *w) {
        struct source s = { 0 };
        _cleanup_free_ char *signed_by = NULL, *valid = NULL;
        char *options = NULL, *end;

        line[strcspn(line, "#")] = '\0';
        line = trim(line);
        if (strncmp(line, "deb", 3) != 0 || !isblank((unsigned char)line[3]))
                return;
        line[3] = '\0';
        s.types = line;
        line = trim(line + 4);
        if (*line == '[') {
                end = strchr(line, ']');
                if (!end)
                        return;
                *end = '\0';
                options = line + 1;
                line = trim(end + 1);
        }
        s.uris = line;
        line += strcspn(line, " \t");
        if (*line)
                *line++ = '\0';
        s.suites = line = trim(line);
        line += strcspn(line, " \t");
        if (*line)
                *line++ = '\0';
        s.components = trim(line);
        /* Copies, as each look at the options ends one of them. */
        valid = options ? strdup(options) : NULL;
        signed_by = options ? strdup(options) : NULL;
        s.valid = option(valid, "check-valid-until");
        s.signed_by = option(signed_by, "signed-by");
        put_source(&s, w);
}

static void read_lines(char *text, struct wanted *w) {
        char *next;

        for (char *line = text; *line; line = next) {
                size_t len = strcspn(line, "\n");

                next = line + len + (line[len] == '\n');
                line[len] = '\0';
                read_line(line, w);
        }
}

/* --- files -------------------------------------------------------------------------------------- */

/* The first mebibyte, into @text. */
static int read_text(const char *path, char *text, size_t cap) {
        FILE *f = fopen(path, "re");
        int r = 0;

        text[0] = '\0';
        if (!f)
                return errno == ENOENT ? 0 : -errno;
        text[fread(text, 1, cap - 2, f)] = '\0';
        if (ferror(f))
                r = -EIO;
        fclose(f);
        return r;
}

static int read_file(const char *path, struct wanted *w) {
        size_t len = strlen(path), cap = 1u << 20;
        _cleanup_free_ char *text = malloc(cap);
        int r = text ? read_text(path, text, cap) : -ENOMEM;

        if (r < 0)
                return r;
        if (len > 8 && strcmp(path + len - 8, ".sources") == 0)
                read_stanzas(text, w);
        else
                read_lines(text, w);
        return 0;
}

static int is_source(const struct dirent *d) {
        const char *dot = strrchr(d->d_name, '.');

        return d->d_name[0] != '.' && dot && (strcmp(dot, ".list") == 0 || strcmp(dot, ".sources") == 0);
}

static int read_all(const char *apt_dir, struct wanted *w, struct errmsg *e) {
        struct dirent **names = NULL;
        char dir[2048], path[4096];
        int n, r;

        snprintf(path, sizeof(path), "%s/sources.list", apt_dir);
        snprintf(dir, sizeof(dir), "%s/sources.list.d", apt_dir);
        r = read_file(path, w);
        n = scandir(dir, &names, is_source, alphasort);
        for (int i = 0; i < n; i++) {
                if (r == 0) {
                        snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
                        r = read_file(path, w);
                }
                free(names[i]);
        }
        free(names);
        return r < 0 ? errmsg_set(e, r, "cannot read %s: %s", path, strerror(-r)) : 0;
}

int image_sources_read(const char *apt_dir, const char *codename, const char *suite, char **ret,
                       struct errmsg *e) {
        char *text = NULL;
        size_t len = 0;
        struct wanted w = { .from = suite, .suite = suite, .out = open_memstream(&text, &len) };
        int r;

        if (!w.out)
                return errmsg_set(e, -ENOMEM, "out of memory");
        r = read_all(apt_dir, &w, e);
        if (r == 0 && w.n == 0 && codename[0]) {
                w.from = codename;
                r = read_all(apt_dir, &w, e);
        }
        if (fclose(w.out) != 0 && r == 0)
                r = errmsg_set(e, -ENOMEM, "out of memory");
        if (r == 0 && w.n == 0)
                r = errmsg_set(
                        e, -ENOENT,
                        "no apt source in %s gives Debian's %s: say where it is with --mirror URL",
                        apt_dir, suite);
        if (r < 0)
                free(text);
        else
                *ret = text;
        return r;
}

void image_sources_codename(const char *os_release, char *ret, size_t cap) {
        char line[512];
        FILE *f = fopen(os_release, "re");

        ret[0] = '\0';
        while (f && fgets(line, sizeof(line), f)) {
                char *s = line + strlen("VERSION_CODENAME=");

                if (strncmp(line, "VERSION_CODENAME=", strlen("VERSION_CODENAME=")) != 0)
                        continue;
                s += strspn(s, "\"'");
                s[strcspn(s, "\"'\n")] = '\0';
                if (strlen(s) < cap && strlen(s) < 32)
                        strcpy(ret, s);
        }
        if (f)
                fclose(f);
}
