/* cli_http.h: what is a request for /metrics and what is not, and an exchange with the slow, the loud and the absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_http.h"

static void judged(void **state) {
        static const struct {
                const char *head;
                int status;
                bool head_only;
        } cases[] = {
                { "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 200, false },
                { "GET /metrics HTTP/1.1\r\nAccept: */*\r\nhOST:a\r\n\r\n", 200, false },
                { "GET /metrics HTTP/1.0\r\n\r\n", 200, false },
                { "GET /metrics HTTP/1.0\n\n", 200, false },
                { "HEAD /metrics HTTP/1.0\r\n\r\n", 200, true },
                { "GET /metrics?name=x HTTP/1.0\r\n\r\n", 200, false },
                { "GET /metrics? HTTP/1.0\r\n\r\n", 200, false },
                { "GET http://localhost:9468/metrics?x HTTP/1.0\r\n\r\n", 200, false },
                { "GET HTTP://h/metrics HTTP/1.0\r\n\r\n", 200, false },
                { "GET / HTTP/1.0\r\n\r\n", 404, false },
                { "GET http://localhost HTTP/1.0\r\n\r\n", 404, false },
                { "GET http:// HTTP/1.0\r\n\r\n", 404, false },
                { "GET /metrics/ HTTP/1.0\r\n\r\n", 404, false },
                { "GET /metric HTTP/1.0\r\n\r\n", 404, false },
                { "GET /metrics%00 HTTP/1.0\r\n\r\n", 404, false },
                { "GET /../metrics HTTP/1.0\r\n\r\n", 404, false },
                { "POST /x HTTP/1.0\r\n\r\n", 404, false },
                { "HEAD /x HTTP/1.0\r\n\r\n", 404, true },
                { "POST /metrics HTTP/1.0\r\n\r\n", 405, false },
                { "get /metrics HTTP/1.0\r\n\r\n", 405, false },
                { "GETX /metrics HTTP/1.0\r\n\r\n", 405, false },
                { "PRI * HTTP/2.0\r\n\r\n", 505, false },
                { "GET /metrics HTTP/0.9\r\n\r\n", 505, false },
                { "GET /metrics HTTP/1.1\r\n\r\n", 400, false },
                { "GET /metrics HTTP/1.1\r\nX-Host: a\r\n\r\n", 400, false },
                { "GET /metrics HTTP/1.\r\n\r\n", 400, false },
                { "GET /metrics http/1.0\r\n\r\n", 400, false },
                { "GET /metrics HTTP/1.0 \r\n\r\n", 400, false },
                { "GET /metrics  HTTP/1.0\r\n\r\n", 400, false },
                { "GET  /metrics HTTP/1.0\r\n\r\n", 400, false },
                { "GET /metrics\r\n\r\n", 400, false },
                { "GET /met\x01rics HTTP/1.0\r\n\r\n", 400, false },
                { "GET /met\xc3\xa4 HTTP/1.0\r\n\r\n", 400, false },
                { "GET /metrics HTTP/1.0\r\r\n\r\n", 400, false },
                { " GET /metrics HTTP/1.0\r\n\r\n", 400, false },
                { "\r\n\r\n", 400, false },
                { "", 400, false },
        };
        bool head_only;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int r = cli_http_judge(cases[i].head, strlen(cases[i].head), "/metrics", &head_only);

                if (r != cases[i].status || head_only != cases[i].head_only)
                        fail_msg("%s: %d, %d", cases[i].head, r, head_only);
        }
}

static void heads(void **state) {
        static const char whole[] = "GET / HTTP/1.0\r\nA: b\r\n\r\n";

        (void)state;
        for (size_t i = 0; i < sizeof(whole) - 1; i++)
                assert_int_equal(cli_http_head(whole, i), 0);
        assert_int_equal(cli_http_head(whole, sizeof(whole) - 1), sizeof(whole) - 1);
        assert_int_equal(cli_http_head("GET /\n\nmore", 11), 7);
        assert_int_equal(cli_http_head("GET /\n\r\nmore", 12), 8);
        /* Empty lines before a request end nothing. */
        assert_int_equal(cli_http_head("\r\n\r\nG", 5), 4);
        assert_int_equal(cli_http_head("GET /\n\r\r\n", 9), 0);
}

/* Whatever comes is judged, and nothing is read behind its end (the sanitizers look). */
static void mutated(void **state) {
        static const char good[] = "GET http://h/metrics?x HTTP/1.1\r\nHost: a\r\n\r\n";
        unsigned seed = 1;
        bool head_only;

        (void)state;
        for (int i = 0; i < 50000; i++) {
                size_t len = (size_t)rand_r(&seed) % sizeof(good);
                char *p = malloc(len ? len : 1);

                assert_non_null(p);
                memcpy(p, good, len);
                for (int k = rand_r(&seed) % 4; k > 0 && len > 0; k--)
                        p[(size_t)rand_r(&seed) % len] = "\r\n /:?H\0\x7f"[rand_r(&seed) % 9];
                assert_true(cli_http_head(p, len) <= len);
                assert_in_range(cli_http_judge(p, len, "/metrics", &head_only), 200, 505);
                free(p);
        }
}

/* --- an exchange --------------------------------------------------------------------------------- */

static void page(void *userdata, struct cli_http_answer *ret) {
        ret->status = *(int *)userdata;
        ret->type = "text/x-test";
        ret->text = "the page\n";
        ret->len = 9;
}

/* Sends @len bytes and, with @leave, no more; returns what came back. */
static const char *exchange(const char *request, size_t len, bool leave, unsigned deadline_ms,
                            int status) {
        static char got[4096];
        size_t n = 0;
        ssize_t r;
        int fds[2], rc;
        pid_t pid;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        pid = fork();
        if (pid == 0) {
                close(fds[0]);
                alarm(20);
                signal(SIGPIPE, SIG_IGN);
                rc = cli_http_serve(fds[1], fds[1], deadline_ms, "/metrics", page, &status);
                _exit(rc == 0 ? 0 : 1);
        }
        close(fds[1]);
        while (len > 0 && (r = send(fds[0], request, len, MSG_NOSIGNAL)) > 0) {
                request += r;
                len -= (size_t)r;
        }
        if (leave)
                shutdown(fds[0], SHUT_WR);
        while (n < sizeof(got) - 1 && (r = read(fds[0], got + n, sizeof(got) - 1 - n)) > 0)
                n += (size_t)r;
        got[n] = '\0';
        close(fds[0]);
        assert_int_equal(waitpid(pid, &rc, 0), pid);
        assert_int_equal(rc, 0);
        return got;
}

static void begins(const char *s, const char *with) {
        if (strncmp(s, with, strlen(with)) != 0)
                fail_msg("no \"%s\" here: %s", with, s);
}

static void ends(const char *s, const char *with) {
        if (strlen(s) < strlen(with) || strcmp(s + strlen(s) - strlen(with), with) != 0)
                fail_msg("no \"%s\" at the end of: %s", with, s);
}

#define GOOD "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"

static void served(void **state) {
        const char *got = exchange(GOOD, strlen(GOOD), false, 20000, 200);

        (void)state;
        begins(got, "HTTP/1.1 200 OK\r\nDate: ");
        ends(got,
             " GMT\r\nContent-Type: text/x-test\r\nContent-Length: 9\r\nConnection: close\r\n\r\nthe page\n");
        got = exchange("HEAD /metrics HTTP/1.0\r\n\r\n", 26, true, 20000, 200);
        ends(got, "Content-Length: 9\r\nConnection: close\r\n\r\n");
        got = exchange(GOOD, strlen(GOOD), true, 20000, 503);
        begins(got, "HTTP/1.1 503 Service Unavailable\r\n");
        got = exchange("POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", 47, true, 20000, 200);
        begins(got, "HTTP/1.1 405 Method Not Allowed\r\nDate: ");
        assert_non_null(strstr(got, "\r\nAllow: GET, HEAD\r\n"));
        got = exchange("GET / HTTP/1.0\r\n\r\n", 18, true, 20000, 200);
        begins(got, "HTTP/1.1 404 Not Found\r\n");
        ends(got, "\r\n\r\n404 Not Found: GET /metrics is all there is\n");
}

static void slow(void **state) {
        (void)state;
        begins(exchange(GOOD, strlen(GOOD) - 1, false, 100, 200), "HTTP/1.1 408 Request Timeout\r\n");
        begins(exchange("", 0, false, 1, 200), "HTTP/1.1 408 Request Timeout\r\n");
        /* Half a request, or none, and away. */
        assert_string_equal(exchange(GOOD, 5, true, 20000, 200), "");
        assert_string_equal(exchange("", 0, true, 20000, 200), "");
}

/* One that sends more than is read gets his answer all the same, and cannot keep the program. */
static void loud(void **state) {
        size_t len = 60000;
        char *p = malloc(len);

        (void)state;
        assert_non_null(p);
        memset(p, 'a', len);
        begins(exchange(p, len, true, 20000, 200), "HTTP/1.1 431 Request Header Fields Too Large\r\n");
        memcpy(p, GOOD, strlen(GOOD));
        begins(exchange(p, len, true, 20000, 200), "HTTP/1.1 200 OK\r\n");
        begins(exchange(p, len, false, 300, 200), "HTTP/1.1 200 OK\r\n");
        free(p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(judged), cmocka_unit_test(heads), cmocka_unit_test(mutated),
                cmocka_unit_test(served), cmocka_unit_test(slow),  cmocka_unit_test(loud),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
