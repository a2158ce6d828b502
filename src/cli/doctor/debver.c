#include "cli/doctor/debver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* The order of what is no digit: ~ comes before the end, letters before all others. */
static int weight(char c) {
        if (c == '~')
                return -1;
        if (c == '\0' || is_digit(c))
                return 0;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
                return (unsigned char)c;
        return (unsigned char)c + 256;
}

/* Runs of digits as numbers, all else by weight, in turn. */
static int compare_part(const char *a, size_t a_len, const char *b, size_t b_len) {
        const char *a_end = a + a_len, *b_end = b + b_len;

        while (a < a_end || b < b_end) {
                int first = 0;

                while ((a < a_end && !is_digit(*a)) || (b < b_end && !is_digit(*b))) {
                        int wa = a < a_end ? weight(*a) : 0, wb = b < b_end ? weight(*b) : 0;

                        if (wa != wb)
                                return wa - wb;
                        a += a < a_end;
                        b += b < b_end;
                }
                while (a < a_end && *a == '0')
                        a++;
                while (b < b_end && *b == '0')
                        b++;
                while (a < a_end && is_digit(*a) && b < b_end && is_digit(*b)) {
                        if (first == 0)
                                first = *a - *b;
                        a++;
                        b++;
                }
                if (a < a_end && is_digit(*a))
                        return 1;
                if (b < b_end && is_digit(*b))
                        return -1;
                if (first != 0)
                        return first;
        }
        return 0;
}

static unsigned long epoch(const char **version) {
        const char *colon = strchr(*version, ':');
        unsigned long n;

        if (!colon)
                return 0;
        n = strtoul(*version, NULL, 10);
        *version = colon + 1;
        return n;
}

size_t debver_upstream(const char *version) {
        const char *dash = strrchr(version, '-');

        return dash ? (size_t)(dash - version) : strlen(version);
}

int debver_compare(const char *a, const char *b) {
        unsigned long ea = epoch(&a), eb = epoch(&b);
        size_t ua = debver_upstream(a), ub = debver_upstream(b);
        int r;

        if (ea != eb)
                return ea < eb ? -1 : 1;
        r = compare_part(a, ua, b, ub);
        if (r != 0)
                return r;
        a += ua + (a[ua] == '-');
        b += ub + (b[ub] == '-');
        return compare_part(a, strlen(a), b, strlen(b));
}

/* The value of the field @name in @line, or NULL; the newline is cut off. */
static const char *value(char *line, const char *name) {
        size_t n = strlen(name);

        if (strncmp(line, name, n) != 0 || line[n] != ':' || line[n + 1] != ' ')
                return NULL;
        line[strcspn(line, "\n")] = '\0';
        return line + n + 2;
}

int debver_installed(const struct doctor *d, const char *name, char *buf, size_t cap) {
        bool ours = false, installed = false, found = false;
        FILE *f = doctor_open(d, "/var/lib/dpkg/status");
        char *line = NULL;
        const char *v;
        size_t n = 0;

        if (!f)
                return -errno;
        buf[0] = '\0';
        /* Status stands before Version. */
        while (!found && getline(&line, &n, f) > 0) {
                if (line[0] == '\n')
                        ours = installed = false;
                else if ((v = value(line, "Package")))
                        ours = strcmp(v, name) == 0;
                else if (ours && (v = value(line, "Status")))
                        installed = strstr(v, " installed") != NULL;
                else if (ours && installed && (v = value(line, "Version")))
                        found = snprintf(buf, cap, "%s", v) < (int)cap;
        }
        free(line);
        fclose(f);
        return found ? 0 : -ENOENT;
}
