/* The doctor's probes of manager and engine against those who answer well, badly, or not at all: each within its time. */
#include "unit/doctor_rig.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cli/doctor/probe.h"
#include "common/exitcode.h"
#include "common/frame.h"
#include "common/proto.h"

#define LIMIT_MS 150

/* A server for one connection: takes what comes, sends what it has, and closes or waits. */
static struct server {
        char path[128];
        int fd;
        const void *bytes;
        size_t len;
        bool drip; /* then one byte at a time, for ever */
        bool keep; /* the connection stays open until the client goes */
        pthread_t thread;
} server;

static void *serve(void *userdata) {
        char buf[4096];
        int fd = accept(server.fd, NULL, NULL);

        (void)userdata;
        if (recv(fd, buf, sizeof(buf), 0) > 0 && server.len > 0)
                send(fd, server.bytes, server.len, MSG_NOSIGNAL);
        while (server.drip && send(fd, server.bytes, 1, MSG_NOSIGNAL) == 1)
                usleep(5000);
        while (server.keep && recv(fd, buf, sizeof(buf), 0) > 0)
                ;
        close(fd);
        return NULL;
}

static void start(const void *bytes, size_t len, bool drip, bool keep) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };

        snprintf(server.path, sizeof(server.path), "%s/socket", rig.root);
        unlink(server.path);
        strcpy(sa.sun_path, server.path);
        server.bytes = bytes;
        server.len = len;
        server.drip = drip;
        server.keep = keep;
        server.fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(0, bind(server.fd, (struct sockaddr *)&sa, sizeof(sa)));
        assert_int_equal(0, listen(server.fd, 1));
        assert_int_equal(0, pthread_create(&server.thread, NULL, serve, NULL));
}

static void stop(void) {
        pthread_join(server.thread, NULL);
        close(server.fd);
}

/* --- the manager ----------------------------------------------------------------------------------- */

static uint8_t frames[2 * FRAME_MAX];
static size_t n_frames;

static void frame(uint8_t type, uint8_t flags, uint32_t channel, const void *payload, size_t len) {
        frame_put_header(frames + n_frames, type, flags, channel, (uint32_t)len);
        memcpy(frames + n_frames + FRAME_HEADER, payload, len);
        n_frames += FRAME_HEADER + len;
}

static void hello(uint16_t version, uint8_t role) {
        const struct hello h = { version, role, "x" };
        uint8_t buf[64];
        ssize_t n = hello_encode(&h, buf, sizeof(buf));

        n_frames = 0;
        assert_true(n > 0);
        frame(FRAME_HELLO, 0, 0, buf, (size_t)n);
}

static struct errmsg e;

/* What the probe makes of a manager that says what is in frames[]. */
static int ask_manager(bool keep, json_t **ret) {
        int64_t begin = doctor_now_ms();
        int r;

        *ret = NULL;
        e.text[0] = '\0';
        start(frames, n_frames, false, keep);
        r = probe_manager(server.path, begin + LIMIT_MS, ret, &e);
        assert_true(doctor_now_ms() - begin < 10 * LIMIT_MS);
        assert_true(r == 0 || (!*ret && e.text[0]));
        stop();
        return r;
}

static void manager_answers(void **state) {
        json_t *status;

        (void)state;
        hello(FRAME_VERSION, HELLO_MANAGER);
        frame(FRAME_STATUS, FRAME_MORE, 1, "{\"version\": ", 12);
        frame(FRAME_STATUS, 0, 1, "\"7\"}", 4);
        assert_int_equal(0, ask_manager(true, &status));
        assert_string_equal("7", doctor_json_str(status, "version"));
        json_decref(status);
}

static void manager_refuses(void **state) {
        struct reject r = { EXIT_NOT_ALLOWED, REJECT_OTHER, "not you" };
        uint8_t buf[128];
        json_t *status;
        ssize_t n;

        (void)state;
        hello(FRAME_VERSION, HELLO_MANAGER);
        n = reject_encode(&r, buf, sizeof(buf));
        assert_true(n > 0);
        frame(FRAME_REJECT, 0, 1, buf, (size_t)n);
        assert_int_equal(-EACCES, ask_manager(true, &status));
        assert_string_equal("not you", e.text);
}

static void manager_is_none(void **state) {
        json_t *status;

        (void)state;
        n_frames = 0; /* it says nothing, and stays */
        assert_int_equal(-ETIMEDOUT, ask_manager(true, &status));
        n_frames = 0;
        assert_int_equal(-ECONNRESET, ask_manager(false, &status));
        hello(FRAME_VERSION + 1, HELLO_MANAGER);
        assert_int_equal(-EPROTO, ask_manager(true, &status));
        hello(FRAME_VERSION, HELLO_AGENT);
        assert_int_equal(-EPROTO, ask_manager(true, &status));
        hello(FRAME_VERSION, HELLO_MANAGER);
        frame(FRAME_ANSWER, 0, 1, "{}", 2);
        assert_int_equal(-EPROTO, ask_manager(true, &status));
        hello(FRAME_VERSION, HELLO_MANAGER);
        frame(FRAME_STATUS, 0, 2, "{}", 2);
        assert_int_equal(-EPROTO, ask_manager(true, &status));
        hello(FRAME_VERSION, HELLO_MANAGER);
        frame(FRAME_STATUS, 0, 1, "[1,", 3);
        assert_int_equal(-EPROTO, ask_manager(true, &status));
        memset(frames, 0xff, n_frames = 100);
        assert_int_equal(-EPROTO, ask_manager(true, &status));
        assert_int_equal(-ENOENT, probe_manager("/nonexistent/socket", INT64_MAX, &status, &e));
        memset(server.path, 'x', sizeof(server.path) - 1);
        assert_int_equal(-ENAMETOOLONG, probe_manager(server.path, INT64_MAX, &status, &e));
}

/* --- the engine ------------------------------------------------------------------------------------ */

#define HEAD "HTTP/1.1 200 OK\r\n"

static int ask_engine(const char *reply, bool drip, long *ret_http, json_t **ret) {
        int64_t begin = doctor_now_ms();
        int r;

        *ret = NULL;
        *ret_http = 0;
        start(reply, strlen(reply), drip, true);
        r = probe_engine(server.path, "/version", begin + LIMIT_MS, ret_http, ret, &e);
        assert_true(doctor_now_ms() - begin < 10 * LIMIT_MS);
        stop();
        return r;
}

static void engine(void **state) {
        json_t *reply;
        long http;
        char *huge;

        (void)state;
        assert_int_equal(
                0, ask_engine(HEAD "Content-Length: 13\r\n\r\n{\"Version\":1}", false, &http, &reply));
        assert_int_equal(200, http);
        assert_int_equal(1, json_integer_value(json_object_get(reply, "Version")));
        json_decref(reply);
        assert_int_equal(
                0, ask_engine("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", false, &http, &reply));
        assert_int_equal(404, http);
        assert_null(reply);
        assert_int_equal(-ETIMEDOUT, ask_engine("", false, &http, &reply));
        /* Slow, not silent: the whole has the time, not each byte. */
        assert_int_equal(-ETIMEDOUT, ask_engine(HEAD "\r\n", true, &http, &reply));
        /* It never ends. */
        huge = malloc((2 << 20) + 100);
        assert_non_null(huge);
        memset(huge, ' ', (2 << 20) + 99);
        memcpy(huge, HEAD "\r\n", strlen(HEAD "\r\n"));
        huge[(2 << 20) + 99] = '\0';
        assert_int_equal(-EIO, ask_engine(huge, false, &http, &reply));
        free(huge);
        assert_int_equal(-ECONNREFUSED,
                         probe_engine("/nonexistent/socket", "/", INT64_MAX / 2, &http, &reply, &e));
        assert_int_equal(-ETIMEDOUT, probe_engine("/nonexistent/socket", "/", 0, &http, &reply, &e));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                RIG_TEST(manager_answers),
                RIG_TEST(manager_refuses),
                RIG_TEST(manager_is_none),
                RIG_TEST(engine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
