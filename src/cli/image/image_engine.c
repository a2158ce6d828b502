#include "cli/image/image_engine.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define REPLY_MAX (16u << 20)
#define CONNECT_MS 5000L
#define CALL_MS 60000L
/* An engine that unpacks a layer onto a slow disk says nothing meanwhile. */
#define LOAD_MS 1800000L

struct image_engine {
        CURL *easy;
        const char *socket; /* a copy */
        int signal_fd;
        char version[16];
        char error[CURL_ERROR_SIZE];
        /* of the call that runs */
        struct image_archive *sending;
        int send_error;
        char *body;
        size_t len, cap;
        long status;
};

static size_t on_body(char *p, size_t size, size_t n, void *userdata) {
        struct image_engine *g = userdata;

        n *= size;
        if (n > REPLY_MAX - g->len)
                return CURL_WRITEFUNC_ERROR;
        if (g->len + n + 1 > g->cap) {
                size_t cap = 2 * (g->len + n + 1);
                char *s = realloc(g->body, cap);

                if (!s)
                        return CURL_WRITEFUNC_ERROR;
                g->body = s;
                g->cap = cap;
        }
        memcpy(g->body + g->len, p, n);
        g->len += n;
        g->body[g->len] = '\0';
        return n;
}

static size_t on_send(char *buf, size_t size, size_t n, void *userdata) {
        struct image_engine *g = userdata;
        ssize_t got = image_archive_read(g->sending, buf, size * n);

        if (got >= 0)
                return (size_t)got;
        g->send_error = (int)got;
        return CURL_READFUNC_ABORT;
}

/* What the engine has got in full it will load, whether we wait or not: we do, so that it can be taken out again. */
static int on_progress(void *userdata, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal,
                       curl_off_t ulnow) {
        struct image_engine *g = userdata;
        struct pollfd p = { .fd = g->signal_fd, .events = POLLIN };

        (void)dltotal;
        (void)dlnow;
        (void)ultotal;
        (void)ulnow;
        if (g->sending && g->sending->at == g->sending->size)
                return 0;
        return poll(&p, 1, 0) == 1;
}

/* The environment must not change where a call goes: no proxy, no netrc, no redirects, plain HTTP alone. */
static bool set_options(struct image_engine *g, const char *method, const char *url,
                        struct curl_slist *headers) {
        CURL *e = g->easy;
        bool ok = true;

        curl_easy_reset(e);
#define SET(option, value) ok = ok && curl_easy_setopt(e, option, value) == CURLE_OK
        SET(CURLOPT_URL, url);
        SET(CURLOPT_UNIX_SOCKET_PATH, g->socket);
        SET(CURLOPT_PROTOCOLS_STR, "http");
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
        SET(CURLOPT_FOLLOWLOCATION, 0L);
        SET(CURLOPT_NOSIGNAL, 1L);
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        SET(CURLOPT_USERAGENT, "hermes-sandbox-image/" VERSION);
        SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
        SET(CURLOPT_TIMEOUT_MS, g->sending ? LOAD_MS : CALL_MS);
        SET(CURLOPT_PATH_AS_IS, 1L);
        SET(CURLOPT_ERRORBUFFER, g->error);
        SET(CURLOPT_WRITEFUNCTION, on_body);
        SET(CURLOPT_WRITEDATA, g);
        SET(CURLOPT_NOPROGRESS, 0L);
        SET(CURLOPT_XFERINFOFUNCTION, on_progress);
        SET(CURLOPT_XFERINFODATA, g);
        SET(CURLOPT_HTTPHEADER, headers);
        if (strcmp(method, "POST") == 0) {
                SET(CURLOPT_POST, 1L);
                SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(g->sending ? g->sending->size : 0));
                if (g->sending) {
                        SET(CURLOPT_READFUNCTION, on_send);
                        SET(CURLOPT_READDATA, g);
                        SET(CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
                } else {
                        SET(CURLOPT_POSTFIELDS, "");
                }
        } else {
                SET(CURLOPT_CUSTOMREQUEST, method);
        }
#undef SET
        return ok;
}

static int lost(const struct image_engine *g, CURLcode c, struct errmsg *e) {
        const char *why = g->error[0] ? g->error : curl_easy_strerror(c);

        switch (c) {
        case CURLE_ABORTED_BY_CALLBACK:
                if (g->send_error == 0)
                        return errmsg_set(e, -EINTR, "interrupted");
                return errmsg_set(e, g->send_error, "cannot read the layer: %s",
                                  strerror(-g->send_error));
        case CURLE_COULDNT_CONNECT:
                return errmsg_set(
                        e, -ECONNREFUSED,
                        "no engine answers at %s: start it (systemctl start docker), or say where it is "
                        "(engine.socket of the configuration)",
                        g->socket);
        case CURLE_OUT_OF_MEMORY:
                return errmsg_set(e, -ENOMEM, "out of memory");
        default:
                return errmsg_set(e, c == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -ECONNRESET,
                                  "the engine at %s gave no answer: %s", g->socket, why);
        }
}

/* One call; its answer is in g. 0 for a status below 400, else one of IMAGE_E_*, or -errno. */
static int call(struct image_engine *g, const char *method, const char *path, struct errmsg *e) {
        struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
        char url[2048], why[400];
        CURLcode c = CURLE_OUT_OF_MEMORY;

        g->len = 0;
        g->status = 0;
        g->send_error = 0;
        g->error[0] = '\0';
        snprintf(url, sizeof(url), "http://engine%s%s%s", g->version[0] ? "/v" : "", g->version, path);
        if (headers && g->sending)
                curl_slist_append(headers, "Content-Type: application/x-tar");
        if (headers && set_options(g, method, url, headers))
                c = curl_easy_perform(g->easy);
        curl_slist_free_all(headers);
        if (c != CURLE_OK)
                return lost(g, c, e);
        curl_easy_getinfo(g->easy, CURLINFO_RESPONSE_CODE, &g->status);
        if (g->status < 400)
                return 0;
        image_reply_message(g->body ? g->body : "", g->len, why, sizeof(why));
        return errmsg_set(e,
                          g->status == 404   ? IMAGE_E_MISSING
                          : g->status == 409 ? IMAGE_E_IN_USE
                                             : IMAGE_E_REFUSED,
                          "the engine refuses it (status %ld): %s", g->status, why);
}

static int strange(int r, struct errmsg *e) {
        return r == -EPROTO ? errmsg_set(e, r, "the engine's answer is not one of the Engine API's") : r;
}

static const char *body(const struct image_engine *g) {
        return g->body ? g->body : "";
}

int image_engine_open(const char *socket, int signal_fd, struct image_engine **ret, struct errmsg *e) {
        struct image_engine *g = calloc(1, sizeof(*g));
        char version[16];
        int r = -ENOMEM;

        if (g) {
                g->signal_fd = signal_fd;
                g->socket = strdup(socket);
                g->easy = curl_easy_init();
        }
        if (!g || !g->socket || !g->easy)
                errmsg_set(e, r, "out of memory");
        else
                r = call(g, "GET", "/version", e);
        if (r == 0) {
                r = strange(image_reply_version(body(g), g->len, version), e);
                if (r == 0)
                        memcpy(g->version, version, sizeof(version));
        }
        if (r != 0) {
                image_engine_close(g);
                return r < 0 ? r : -EPROTO;
        }
        *ret = g;
        return 0;
}

void image_engine_close(struct image_engine *g) {
        if (!g)
                return;
        curl_easy_cleanup(g->easy);
        free((char *)g->socket);
        free(g->body);
        free(g);
}

int image_engine_inspect(struct image_engine *g, const char *name, struct image_found *ret,
                         struct errmsg *e) {
        char path[512];
        int r;

        snprintf(path, sizeof(path), "/images/%s/json", name);
        r = call(g, "GET", path, e);
        return r != 0 ? r : strange(image_reply_found(body(g), g->len, ret), e);
}

int image_engine_load(struct image_engine *g, struct image_archive *a, char ret_id[IMAGE_ID_MAX + 1],
                      struct errmsg *e) {
        char why[400];
        int r;

        g->sending = a;
        r = call(g, "POST", "/images/load?quiet=1", e);
        g->sending = NULL;
        if (r != 0)
                return r;
        r = image_reply_loaded(body(g), g->len, ret_id, why, sizeof(why));
        return r == 0 ? 0 : errmsg_set(e, r, "the engine cannot load it: %s", why);
}

int image_engine_tag(struct image_engine *g, const char *id, const char *name, struct errmsg *e) {
        const char *colon = strrchr(name, ':');
        char path[512];

        snprintf(path, sizeof(path), "/images/%s/tag?repo=%.*s&tag=%s", id, (int)(colon - name), name,
                 colon + 1);
        return call(g, "POST", path, e);
}

int image_engine_remove(struct image_engine *g, const char *name,
                        void (*said)(void *userdata, const char *what), void *userdata,
                        struct errmsg *e) {
        char path[512];
        int r;

        snprintf(path, sizeof(path), "/images/%s", name);
        r = call(g, "DELETE", path, e);
        return r != 0 ? r : strange(image_reply_removed(body(g), g->len, said, userdata), e);
}

int image_engine_users(struct image_engine *g, const char *id, size_t *ret_n, char *ret_name, size_t cap,
                       struct errmsg *e) {
        int r = call(g, "GET", "/containers/json?all=1", e);

        return r != 0 ? r : strange(image_reply_users(body(g), g->len, id, ret_n, ret_name, cap), e);
}
