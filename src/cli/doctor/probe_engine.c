/* One GET over the engine's Unix socket. The engine is the one that the administrator trusts; what it says is bounded
 * all the same. */
#include "cli/doctor/probe.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_MAX (1u << 20)

struct reply {
        char *p;
        size_t len;
};

static size_t on_write(char *p, size_t size, size_t n, void *userdata) {
        struct reply *r = userdata;
        char *more;

        n *= size;
        if (n > REPLY_MAX - r->len)
                return CURL_WRITEFUNC_ERROR;
        more = realloc(r->p, r->len + n + 1);
        if (!more)
                return CURL_WRITEFUNC_ERROR;
        r->p = more;
        memcpy(r->p + r->len, p, n);
        r->len += n;
        return n;
}

static int to_errno(CURLcode c) {
        switch (c) {
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        case CURLE_COULDNT_CONNECT:
                return -ECONNREFUSED;
        default:
                return -EIO;
        }
}

static CURLcode perform(CURL *curl, const char *socket, const char *url, long ms, struct reply *body) {
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket);
        /* No environment variable sends it elsewhere. */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ms);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
        return curl_easy_perform(curl);
}

int probe_engine(const char *socket, const char *path, int64_t end_ms, long *ret_http, json_t **ret,
                 struct errmsg *e) {
        int64_t left = end_ms - doctor_now_ms();
        struct reply body = { 0 };
        char url[1024];
        CURLcode code;
        CURL *curl;

        if (left <= 0)
                return errmsg_set(e, -ETIMEDOUT, "no time is left to ask the engine");
        /* The host's name goes into a header, and nowhere else. */
        if (snprintf(url, sizeof(url), "http://engine%s", path) >= (int)sizeof(url))
                return errmsg_set(e, -ENAMETOOLONG, "too long a path");
        curl = curl_easy_init();
        if (!curl)
                return errmsg_set(e, -ENOMEM, "out of memory");
        code = perform(curl, socket, url, (long)left, &body);
        if (code == CURLE_OK) {
                curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_http);
                *ret = json_loadb(body.p ? body.p : "", body.len, 0, NULL);
        }
        curl_easy_cleanup(curl);
        free(body.p);
        if (code != CURLE_OK)
                return errmsg_set(e, to_errno(code), "the engine does not answer at %s: %s", socket,
                                  curl_easy_strerror(code));
        return 0;
}
