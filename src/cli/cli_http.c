#include "cli/cli_http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

/* What is still read, and thrown away, of one who goes on to send: with data left unread the kernel would reset the
 * connection, and with it what the other end has not read of the answer. */
#define DRAIN_MAX 65536

static const struct {
        int status;
        const char *reason;
} reasons[] = {
        { 200, "OK" },
        { 400, "Bad Request" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 431, "Request Header Fields Too Large" },
        { 503, "Service Unavailable" },
        { 505, "HTTP Version Not Supported" },
};

static const char *reason_of(int status) {
        for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
                if (reasons[i].status == status)
                        return reasons[i].reason;
        return "Internal Server Error";
}

size_t cli_http_head(const char *p, size_t len) {
        const char *end = p + len, *line = p, *nl;

        for (; (nl = memchr(line, '\n', (size_t)(end - line))); line = nl + 1)
                if (line > p && (nl == line || (nl == line + 1 && *line == '\r')))
                        return (size_t)(nl + 1 - p);
        return 0;
}

/* --- the request -------------------------------------------------------------------------------- */

struct word {
        const char *p;
        size_t len;
};

static bool is(const struct word *w, const char *s) {
        return w->len == strlen(s) && memcmp(w->p, s, w->len) == 0;
}

/* The next word of a line, which one blank ends, or the line's end does. Visible ASCII alone. */
static bool next_word(const char **p, const char *end, struct word *ret) {
        const char *start = *p;

        while (*p < end && **p != ' ') {
                if (**p <= 0x20 || **p >= 0x7f)
                        return false;
                (*p)++;
        }
        *ret = (struct word){ start, (size_t)(*p - start) };
        if (*p < end)
                (*p)++;
        return ret->len > 0;
}

/* The path without a query, also of an absolute URL. */
static struct word path_of(struct word target) {
        static const char scheme[] = "http://";
        const char *p = target.p, *end = p + target.len;

        if (target.len > strlen(scheme) && strncasecmp(p, scheme, strlen(scheme)) == 0) {
                p = memchr(p + strlen(scheme), '/', target.len - strlen(scheme));
                if (!p)
                        return (struct word){ "/", 1 };
        }
        target = (struct word){ p, (size_t)(end - p) };
        end = memchr(p, '?', target.len);
        if (end)
                target.len = (size_t)(end - p);
        return target;
}

static bool has_host(const char *p, const char *end) {
        static const char host[] = "host:";

        for (; (p = memchr(p, '\n', (size_t)(end - p))); p++)
                if ((size_t)(end - p) > sizeof(host) && strncasecmp(p + 1, host, strlen(host)) == 0)
                        return true;
        return false;
}

int cli_http_judge(const char *head, size_t len, const char *path, bool *ret_head_only) {
        const char *p = head, *nl = memchr(head, '\n', len), *end;
        struct word method, target, version, wanted;

        *ret_head_only = false;
        if (!nl)
                return 400;
        end = nl > head && nl[-1] == '\r' ? nl - 1 : nl;
        if (!next_word(&p, end, &method) || !next_word(&p, end, &target) ||
            !next_word(&p, end, &version) || p < end || end[-1] == ' ')
                return 400;
        if (version.len != 8 || memcmp(version.p, "HTTP/", 5) != 0 || version.p[6] != '.')
                return 400;
        if (version.p[5] != '1')
                return 505;
        if (version.p[7] != '0' && !has_host(nl, head + len))
                return 400;
        *ret_head_only = is(&method, "HEAD");
        wanted = path_of(target);
        if (!is(&wanted, path))
                return 404;
        return is(&method, "GET") || is(&method, "HEAD") ? 200 : 405;
}

/* --- the exchange ------------------------------------------------------------------------------- */

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* As read(), or -ETIMEDOUT at @until_ms. */
static ssize_t read_until(int fd, void *buf, size_t len, uint64_t until_ms) {
        for (;;) {
                uint64_t now = now_ms();
                struct pollfd in = { .fd = fd, .events = POLLIN };
                int r = now < until_ms ? poll(&in, 1, (int)(until_ms - now)) : 0;
                ssize_t n;

                if (r == 0)
                        return -ETIMEDOUT;
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r < 0)
                        continue;
                n = read(fd, buf, len);
                if (n >= 0)
                        return n;
                if (errno != EINTR && errno != EAGAIN)
                        return -errno;
        }
}

static void drain(int in, int out, uint64_t until_ms) {
        char buf[4096];
        ssize_t n;

        if (shutdown(out, SHUT_WR) < 0)
                return;
        for (size_t sum = 0; sum < DRAIN_MAX; sum += (size_t)n) {
                n = read_until(in, buf, sizeof(buf), until_ms);
                if (n <= 0)
                        return;
        }
}

static int answer(int out, const struct cli_http_answer *a, bool head_only) {
        char head[512], date[64];
        time_t now = time(NULL);
        struct tm tm;
        int n, r;

        gmtime_r(&now, &tm);
        strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        n = snprintf(head, sizeof(head),
                     "HTTP/1.1 %d %s\r\nDate: %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n"
                     "Connection: close\r\n\r\n",
                     a->status, reason_of(a->status), date,
                     a->status == 405 ? "Allow: GET, HEAD\r\n" : "", a->type, a->len);
        r = cli_write_all(out, head, (size_t)n);
        return r == 0 && !head_only ? cli_write_all(out, a->text, a->len) : r;
}

/* The head, of which *ret_len bytes came. 0 where there is one to be judged, a status where there is not, -1 where nobody
 * waits for one. */
static int read_head(int in, char *head, size_t *ret_len, uint64_t until_ms) {
        size_t len = 0, whole;

        while ((whole = cli_http_head(head, len)) == 0) {
                ssize_t n;

                if (len == CLI_HTTP_HEAD)
                        return 431;
                n = read_until(in, head + len, CLI_HTTP_HEAD - len, until_ms);
                if (n == -ETIMEDOUT)
                        return 408;
                if (n <= 0)
                        return -1;
                len += (size_t)n;
        }
        *ret_len = whole;
        return 0;
}

int cli_http_serve(int in, int out, unsigned deadline_ms, const char *path,
                   void (*page)(void *userdata, struct cli_http_answer *ret), void *userdata) {
        uint64_t until_ms = now_ms() + deadline_ms;
        struct cli_http_answer a = { .type = "text/plain; charset=utf-8" };
        char head[CLI_HTTP_HEAD], line[128];
        bool head_only = false;
        size_t len;
        int r = read_head(in, head, &len, until_ms);

        if (r < 0)
                return 0;
        a.status = r ? r : cli_http_judge(head, len, path, &head_only);
        if (a.status == 200)
                page(userdata, &a);
        else {
                a.len = (size_t)snprintf(line, sizeof(line), "%d %s: GET %s is all there is\n", a.status,
                                         reason_of(a.status), path);
                a.text = line;
        }
        r = answer(out, &a, head_only);
        if (r == 0)
                drain(in, out, until_ms);
        return r;
}
