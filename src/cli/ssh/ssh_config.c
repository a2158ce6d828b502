/*
 * The template is a file of the package with two marks: a line for the addresses, and lines that only newer versions of
 * sshd know. All else in it goes into the configuration as it stands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli_sshkey.h"
#include "cli/ssh/ssh.h"
#include "common/cleanup.h"

#define LISTEN "@LISTEN@"
#define IF_KNOWN "@IF-KNOWN@ "
#define KEYWORD "ListenAddress "
#define PORT 2222
#define ANSWER_MS 1000

struct address {
        int family;
        char host[INET6_ADDRSTRLEN];
        unsigned port;
        bool loopback;
};

/* 0: none. */
static unsigned parse_port(const char *s) {
        size_t len = strspn(s, "0123456789");
        unsigned long port = len > 0 && len <= 5 && s[len] == '\0' ? strtoul(s, NULL, 10) : 0;

        return port <= 65535 ? (unsigned)port : 0;
}

/* Splits "ADDR:PORT", "[ADDR]:PORT", "ADDR" and "[ADDR]". False where it is none of them. */
static bool split(const char *s, struct address *a) {
        const char *colon = strrchr(s, ':'), *end = s + strlen(s), *port = NULL;

        if (s[0] == '[') {
                end = strchr(++s, ']');
                if (!end || (end[1] != '\0' && end[1] != ':'))
                        return false;
                port = end[1] == ':' ? end + 2 : NULL;
        } else if (colon && strchr(s, ':') == colon) {
                end = colon;
                port = colon + 1;
        }
        if ((size_t)(end - s) >= sizeof(a->host))
                return false;
        memcpy(a->host, s, (size_t)(end - s));
        a->host[end - s] = '\0';
        a->port = port ? parse_port(port) : PORT;
        return a->port != 0;
}

static bool understand(const char *s, struct address *a) {
        struct in6_addr v6;
        struct in_addr v4;

        if (!split(s, a))
                return false;
        if (inet_pton(AF_INET, a->host, &v4) == 1) {
                a->family = AF_INET;
                a->loopback = ntohl(v4.s_addr) >> 24 == 127;
                return true;
        }
        if (inet_pton(AF_INET6, a->host, &v6) != 1)
                return false;
        a->family = AF_INET6;
        a->loopback = IN6_IS_ADDR_LOOPBACK(&v6);
        return true;
}

int ssh_listen_parse(const char *s, struct ssh_listen *ret, struct errmsg *e) {
        struct address a;

        if (!understand(s, &a))
                return errmsg_set(
                        e, -EINVAL,
                        "--listen '%.80s': expected an address in numbers, and a port, such as "
                        "127.0.0.1:2222, 10.0.0.5 or [::1]:2222",
                        s);
        snprintf(ret->text, sizeof(ret->text), a.family == AF_INET6 ? "[%s]:%u" : "%s:%u", a.host,
                 a.port);
        return 0;
}

bool ssh_listen_is_wide(const struct ssh_listen *l) {
        struct address a;

        return understand(l->text, &a) && !a.loopback;
}

static socklen_t socket_address(const struct address *a, struct sockaddr_storage *ret) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret;

        memset(ret, 0, sizeof(*ret));
        ret->ss_family = (sa_family_t)a->family;
        if (a->family == AF_INET) {
                v4->sin_port = htons((uint16_t)a->port);
                inet_pton(AF_INET, a->host, &v4->sin_addr);
                return sizeof(*v4);
        }
        v6->sin6_port = htons((uint16_t)a->port);
        inet_pton(AF_INET6, a->host, &v6->sin6_addr);
        return sizeof(*v6);
}

/* sshd says who it is as soon as somebody connects (RFC 4253, 4.2). */
bool ssh_listen_answers(const struct ssh_listen *l) {
        struct sockaddr_storage to;
        struct address a;
        struct pollfd p;
        char begin[4];
        _cleanup_fd_ int fd = -1;
        socklen_t len;

        if (!understand(l->text, &a))
                return false;
        len = socket_address(&a, &to);
        fd = socket(a.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS))
                return false;
        p = (struct pollfd){ .fd = fd, .events = POLLIN };
        return poll(&p, 1, ANSWER_MS) == 1 && recv(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
               memcmp(begin, "SSH-", 4) == 0;
}

size_t ssh_listen_find(const char *config, size_t len, struct ssh_listen *ret) {
        struct sshkey_span line;
        struct errmsg e;
        size_t n = 0, front = strlen(KEYWORD);

        for (size_t pos = 0; n < SSH_LISTEN_MAX && sshkey_next_line(config, len, &pos, &line);) {
                char text[sizeof(ret->text)];

                if (line.len <= front || memcmp(line.p, KEYWORD, front) != 0 ||
                    line.len - front >= sizeof(text))
                        continue;
                memcpy(text, line.p + front, line.len - front);
                text[line.len - front] = '\0';
                n += ssh_listen_parse(text, &ret[n], &e) == 0;
        }
        return n;
}

int ssh_config_make(const char *template, size_t len, const struct ssh_listen *listen, size_t n,
                    bool newer, char **ret, size_t *ret_len) {
        struct sshkey_span line;
        bool listens = false;
        FILE *f = open_memstream(ret, ret_len);

        if (!f)
                abort();
        for (size_t pos = 0; sshkey_next_line(template, len, &pos, &line);) {
                size_t front = strlen(IF_KNOWN);
                bool mark = line.len >= front && memcmp(line.p, IF_KNOWN, front) == 0;

                if (line.len == strlen(LISTEN) && memcmp(line.p, LISTEN, line.len) == 0) {
                        listens = true;
                        for (size_t i = 0; i < n; i++)
                                fprintf(f, KEYWORD "%s\n", listen[i].text);
                } else if (!mark || newer)
                        fprintf(f, "%.*s\n", (int)(line.len - (mark ? front : 0)),
                                line.p + (mark ? front : 0));
        }
        if (fclose(f) != 0)
                abort();
        if (listens)
                return 0;
        free(*ret);
        *ret = NULL;
        return -EINVAL;
}
