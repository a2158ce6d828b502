/*
 * libcurl's multi interface on sd-event. libcurl says by callbacks which descriptors and which time it
 * waits for; each becomes an event source that hands control back to curl_multi_socket_action().
 *
 * Nothing of ours runs inside of libcurl's callbacks but copying bytes: they only note what came. The
 * "pump", a deferred event source, later calls the handlers, reaps finished and cancelled calls and
 * starts waiting ones. So a handler may start and cancel calls, its own included.
 */
#include "engine/api.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

enum call_state { CALL_WAITING, CALL_RUNNING, CALL_FINISHED };

struct api_call {
        struct api *api;
        struct api_call *next, **prev;
        enum call_state state;
        bool cancelled, uncounted, open_told, open_seen, too_long;
        CURL *easy;
        CURLcode result;
        struct curl_slist *headers;
        char error[CURL_ERROR_SIZE];
        char *buf; /* the reply so far; of a stream what is not handed on yet */
        size_t len, cap;
        const struct api_handler *handler;
        void *userdata;
};

struct api {
        sd_event *event;
        sd_event_source *timer, *pump;
        CURLM *multi;
        char *socket_path;
        char version[API_VERSION_LEN];
        struct api_call *calls, **tail; /* in the order of their start */
        unsigned in_flight;
        bool ending;
};

static void pump_soon(struct api *a) {
        sd_event_source_set_enabled(a->pump, SD_EVENT_ONESHOT);
}

static void call_free(struct api_call *c) {
        struct api *a = c->api;

        if (c->state == CALL_RUNNING) {
                curl_multi_remove_handle(a->multi, c->easy);
                a->in_flight -= !c->uncounted;
        }
        *c->prev = c->next;
        if (c->next)
                c->next->prev = c->prev;
        else
                a->tail = c->prev;
        curl_easy_cleanup(c->easy);
        curl_slist_free_all(c->headers);
        free(c->buf);
        free(c);
}

/* --- bytes that come in
 * ------------------------------------------------------------------------------ */

static bool is_stream(const struct api_call *c) {
        long status = 0;

        if (!c->handler->on_line)
                return false;
        curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        return status < 400;
}

static size_t on_write(char *p, size_t size, size_t n, void *userdata) {
        struct api_call *c = userdata;

        n *= size;
        if (n > API_REPLY_MAX - c->len) {
                c->too_long = true;
                return CURL_WRITEFUNC_ERROR;
        }
        if (c->len + n + 1 > c->cap) {
                size_t cap = c->cap ? c->cap : 4096;
                char *buf;

                while (cap < c->len + n + 1)
                        cap *= 2;
                buf = realloc(c->buf, cap);
                if (!buf)
                        return CURL_WRITEFUNC_ERROR;
                c->buf = buf;
                c->cap = cap;
        }
        memcpy(c->buf + c->len, p, n);
        c->len += n;
        c->buf[c->len] = '\0';
        if (c->handler->on_line)
                pump_soon(c->api);
        return n;
}

static size_t on_header(char *p, size_t size, size_t n, void *userdata) {
        struct api_call *c = userdata;

        n *= size;
        if (n <= 2 && (n == 0 || p[0] == '\r' || p[0] == '\n') && is_stream(c)) {
                c->open_seen = true;
                pump_soon(c->api);
        }
        return n;
}

/* --- libcurl's wishes
 * -------------------------------------------------------------------------------- */

static void note_results(struct api *a) {
        CURLMsg *m;
        int left;

        while ((m = curl_multi_info_read(a->multi, &left))) {
                struct api_call *c = NULL;

                if (m->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
                c->result = m->data.result;
                curl_multi_remove_handle(a->multi, c->easy);
                a->in_flight -= !c->uncounted;
                c->state = CALL_FINISHED;
                pump_soon(a);
        }
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct api *a = userdata;
        int mask = 0, running;

        (void)s;
        if (revents & (EPOLLIN | EPOLLHUP))
                mask |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                mask |= CURL_CSELECT_OUT;
        if (revents & EPOLLERR)
                mask |= CURL_CSELECT_ERR;
        curl_multi_socket_action(a->multi, fd, mask, &running);
        note_results(a);
        return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct api *a = userdata;
        int running;

        (void)s;
        (void)usec;
        curl_multi_socket_action(a->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        note_results(a);
        return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *per_socket) {
        sd_event_source *s = per_socket;
        struct api *a = userdata;
        uint32_t events = 0;

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(s);
                curl_multi_assign(a->multi, fd, NULL);
                return 0;
        }
        if (what & CURL_POLL_IN)
                events |= EPOLLIN;
        if (what & CURL_POLL_OUT)
                events |= EPOLLOUT;
        if (s)
                return sd_event_source_set_io_events(s, events) < 0 ? -1 : 0;
        if (sd_event_add_io(a->event, &s, fd, events, on_io, a) < 0)
                return -1;
        curl_multi_assign(a->multi, fd, s);
        return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *userdata) {
        struct api *a = userdata;

        (void)multi;
        if (timeout_ms < 0)
                return sd_event_source_set_enabled(a->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(a->timer, (uint64_t)timeout_ms * 1000) < 0)
                return -1;
        return sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

/* --- the pump
 * ---------------------------------------------------------------------------------------- */

static int result_errno(const struct api_call *c) {
        if (c->too_long)
                return -EMSGSIZE;
        switch (c->result) {
        case CURLE_OK:
                return 0;
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        case CURLE_COULDNT_CONNECT:
                return -ECONNREFUSED;
        case CURLE_OUT_OF_MEMORY:
                return -ENOMEM;
        default:
                return -ECONNRESET;
        }
}

static const char *result_words(const struct api_call *c) {
        if (c->too_long)
                return "its answer is longer than 1 MiB";
        if (c->result == CURLE_OK)
                return "";
        return c->error[0] ? c->error : curl_easy_strerror(c->result);
}

static void tell_done(struct api_call *c) {
        struct api_reply reply = { .error = result_errno(c), .why = result_words(c), .api_version = "" };
        struct curl_header *h;

        if (reply.error == 0) {
                curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &reply.status);
                if (curl_easy_header(c->easy, "Api-Version", 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
                        reply.api_version = h->value;
        }
        reply.body = c->buf ? c->buf : "";
        reply.len = c->len;
        c->handler->on_done(c->userdata, &reply);
}

static void tell_lines(struct api_call *c) {
        size_t at = 0;
        char *end;

        if (!c->buf)
                return;
        while (!c->cancelled && (end = memchr(c->buf + at, '\n', c->len - at))) {
                size_t n = (size_t)(end - (c->buf + at));

                *end = '\0';
                if (n > 0)
                        c->handler->on_line(c->userdata, c->buf + at, n);
                at += n + 1;
        }
        memmove(c->buf, c->buf + at, c->len - at + 1);
        c->len -= at;
}

static void start_waiting(struct api *a) {
        for (struct api_call *c = a->calls; c; c = c->next) {
                if (c->state != CALL_WAITING || c->cancelled ||
                    (!c->uncounted && a->in_flight >= API_IN_FLIGHT))
                        continue;
                if (curl_multi_add_handle(a->multi, c->easy) != CURLM_OK) {
                        c->result = CURLE_OUT_OF_MEMORY;
                        c->state = CALL_FINISHED;
                        pump_soon(a);
                        continue;
                }
                c->state = CALL_RUNNING;
                a->in_flight += !c->uncounted;
        }
}

/* One handler at a time may free or add any call: the walk starts anew after each. */
static bool serve_one(struct api *a) {
        for (struct api_call *c = a->calls; c; c = c->next) {
                if (c->cancelled) {
                        call_free(c);
                        return true;
                }
                if (c->open_seen && !c->open_told) {
                        c->open_told = true;
                        if (c->handler->on_open)
                                c->handler->on_open(c->userdata);
                        return true;
                }
                if (c->handler->on_line && c->buf && memchr(c->buf, '\n', c->len) && is_stream(c)) {
                        tell_lines(c);
                        return true;
                }
                if (c->state == CALL_FINISHED) {
                        tell_done(c);
                        call_free(c);
                        return true;
                }
        }
        return false;
}

static int on_pump(sd_event_source *s, void *userdata) {
        struct api *a = userdata;

        (void)s;
        while (serve_one(a))
                ;
        start_waiting(a);
        return 0;
}

/* --- public
 * ------------------------------------------------------------------------------------------ */

int api_new(sd_event *event, const char *socket_path, struct api **ret) {
        struct api *a = calloc(1, sizeof(*a));
        int r = -ENOMEM;

        if (!a)
                return -ENOMEM;
        a->tail = &a->calls;
        a->event = sd_event_ref(event);
        a->socket_path = strdup(socket_path);
        a->multi = curl_multi_init();
        if (!a->socket_path || !a->multi)
                goto fail;
        r = sd_event_add_time(event, &a->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, a);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &a->pump, on_pump, a);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->pump, SD_EVENT_OFF);
        if (r < 0)
                goto fail;
        curl_multi_setopt(a->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
        curl_multi_setopt(a->multi, CURLMOPT_SOCKETDATA, a);
        curl_multi_setopt(a->multi, CURLMOPT_TIMERFUNCTION, want_timer);
        curl_multi_setopt(a->multi, CURLMOPT_TIMERDATA, a);
        *ret = a;
        return 0;
fail:
        api_free(a);
        return r;
}

void api_shutdown(struct api *a) {
        struct api_reply reply = {
                .error = -ECANCELED, .body = "", .api_version = "", .why = "the broker ends"
        };

        if (!a)
                return;
        a->ending = true;
        while (a->calls) {
                struct api_call *c = a->calls;

                if (!c->cancelled)
                        c->handler->on_done(c->userdata, &reply);
                call_free(c);
        }
}

void api_free(struct api *a) {
        if (!a)
                return;
        while (a->calls)
                call_free(a->calls);
        if (a->multi)
                curl_multi_cleanup(a->multi);
        sd_event_source_disable_unref(a->timer);
        sd_event_source_disable_unref(a->pump);
        sd_event_unref(a->event);
        free(a->socket_path);
        free(a);
}

int api_set_socket(struct api *a, const char *socket_path) {
        char *s = strdup(socket_path);

        if (!s)
                return -ENOMEM;
        free(a->socket_path);
        a->socket_path = s;
        return 0;
}

const char *api_socket(const struct api *a) {
        return a->socket_path;
}

void api_set_version(struct api *a, const char *version) {
        snprintf(a->version, sizeof(a->version), "%s", version);
}

const char *api_version(const struct api *a) {
        return a->version;
}

/* The environment must not change where a call goes: no proxy, no netrc, no redirects, plain HTTP
 * alone. */
static bool set_options(struct api_call *c, const struct api_request *q, const char *url) {
        CURL *e = c->easy;
        bool ok = true;

#define SET(option, value) ok = ok && curl_easy_setopt(e, option, value) == CURLE_OK
        SET(CURLOPT_URL, url);
        SET(CURLOPT_UNIX_SOCKET_PATH, c->api->socket_path);
        SET(CURLOPT_PROTOCOLS_STR, "http");
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
        SET(CURLOPT_FOLLOWLOCATION, 0L);
        SET(CURLOPT_NOSIGNAL, 1L);
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        SET(CURLOPT_USERAGENT, "hermes-engined/" VERSION);
        SET(CURLOPT_CONNECTTIMEOUT_MS, (long)API_CONNECT_MS);
        SET(CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
        if (q->timeout_ms == 0 && !q->endless) {
                SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
                SET(CURLOPT_LOW_SPEED_TIME, (long)API_QUIET_S);
        }
        SET(CURLOPT_PATH_AS_IS, 1L);
        SET(CURLOPT_PRIVATE, c);
        SET(CURLOPT_ERRORBUFFER, c->error);
        SET(CURLOPT_WRITEFUNCTION, on_write);
        SET(CURLOPT_WRITEDATA, c);
        SET(CURLOPT_HEADERFUNCTION, on_header);
        SET(CURLOPT_HEADERDATA, c);
        if (strcmp(q->method, "POST") == 0) {
                const char *body = q->body ? q->body : "";

                SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
                SET(CURLOPT_COPYPOSTFIELDS, body);
                c->headers = curl_slist_append(NULL, "Content-Type: application/json");
                ok = ok && c->headers && curl_slist_append(c->headers, "Expect:");
                SET(CURLOPT_HTTPHEADER, c->headers);
        } else {
                SET(CURLOPT_CUSTOMREQUEST, q->method);
        }
#undef SET
        return ok;
}

int api_start(struct api *a, const struct api_request *request, const struct api_handler *handler,
              void *userdata, struct api_call **ret) {
        _cleanup_free_ char *url = NULL;
        struct api_call *c;
        int r;

        if (a->ending)
                return -ESHUTDOWN;
        if (request->unversioned)
                r = asprintf(&url, "http://engine%s", request->path);
        else
                r = asprintf(&url, "http://engine/v%s%s", a->version, request->path);
        if (r < 0) {
                url = NULL;
                return -ENOMEM;
        }
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->api = a;
        c->handler = handler;
        c->userdata = userdata;
        c->uncounted = request->endless || request->urgent;
        c->prev = a->tail;
        *a->tail = c;
        a->tail = &c->next;
        c->easy = curl_easy_init();
        if (!c->easy || !set_options(c, request, url)) {
                call_free(c);
                return -ENOMEM;
        }
        pump_soon(a);
        if (ret)
                *ret = c;
        return 0;
}

void api_cancel(struct api_call *c) {
        if (!c)
                return;
        c->cancelled = true;
        pump_soon(c->api);
}
