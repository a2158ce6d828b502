/*
 * Two bounded buffers and the object's keys, in one place. README.md tells what each key means. The buffers
 * are static: what is not touched costs nothing.
 */
#include "cli/cli_capture.h"

#include <errno.h>
#include <string.h>

#include "common/jsonw.h"
#include "common/utf8.h"

static uint8_t store[2][CLI_CAPTURE_MAX];

static void keep(struct cli_captured *c, const uint8_t *p, size_t len) {
        size_t fits = CLI_CAPTURE_MAX - c->len < len ? CLI_CAPTURE_MAX - c->len : len;

        c->bytes += len;
        for (const uint8_t *q = p, *end = p + len; (q = memchr(q, '\n', (size_t)(end - q))); q++)
                c->lines++;
        if (c->bytes != c->len + len)
                return; /* something is missing already: nothing may follow the gap */

        if (fits > 0)
                memcpy(c->p + c->len, p, fits);
        c->len += fits;
}

static int take(struct cli_sink *s, uint8_t stream, const void *p, size_t len) {
        struct cli_capture *c = (struct cli_capture *)s;

        keep(stream == STREAM_STDOUT ? &c->out : &c->err, p, len);
        return 0;
}

void cli_capture_init(struct cli_capture *c) {
        memset(c, 0, sizeof(*c));
        c->sink.take = take;
        c->out.p = store[0];
        c->err.p = store[1];
}

static void key_uint(struct jsonw *j, const char *key, uint64_t v) {
        jsonw_key(j, key);
        jsonw_uint(j, v);
}

static void key_str(struct jsonw *j, const char *key, const char *s) {
        jsonw_key(j, key);
        jsonw_str(j, s && s[0] ? s : NULL);
}

/* A number that only a result has. */
static void key_known(struct jsonw *j, const char *key, bool known, uint64_t v) {
        jsonw_key(j, key);
        if (known)
                jsonw_uint(j, v);
        else
                jsonw_null(j);
}

/* Without the bytes of a character that the bound has cut: it would turn all of a text into base64. */
static size_t whole_chars(const struct cli_captured *c) {
        return c->len < c->bytes ? utf8_whole(c->p, c->len) : c->len;
}

/* @c is NULL where nothing was asked for. */
static void put_stream(struct jsonw *j, const char *name, const struct cli_captured *c, bool known,
                       uint64_t bytes, uint64_t lines) {
        size_t len = c ? whole_chars(c) : 0;
        bool text = !c || utf8_valid(c->p, len);
        char key[32];

        jsonw_key(j, name);
        if (!c)
                jsonw_null(j);
        else if (text)
                jsonw_strn(j, c->p, len);
        else
                jsonw_base64(j, c->p, c->len);
        snprintf(key, sizeof(key), "%s_encoding", name);
        key_str(j, key, !c ? NULL : text ? "utf-8" : "base64");
        snprintf(key, sizeof(key), "%s_bytes", name);
        key_known(j, key, known || c, known ? bytes : c ? c->bytes : 0);
        snprintf(key, sizeof(key), "%s_lines", name);
        key_known(j, key, known || c, known ? lines : c ? c->lines : 0);
}

static const char *cause_of(const struct cli_outcome *o) {
        if (o->end == CLI_END_RESULT)
                return cause_name(o->result.cause);
        if (o->end == CLI_END_DETACHED)
                return NULL;
        return cause_name(o->end == CLI_END_REJECT ? CAUSE_REJECTED : CAUSE_SANDBOX_LOST);
}

static const char *error_of(const struct cli_outcome *o) {
        if (o->end == CLI_END_RESULT)
                return o->result.message;
        if (o->end == CLI_END_DETACHED)
                return NULL;
        return o->end == CLI_END_REJECT ? o->reject.message : o->error.text;
}

static bool cut(const struct cli_captured *c) {
        return c->len != c->bytes;
}

int cli_capture_print(const struct cli_capture *c, const struct cli_outcome *o, const char *session,
                      bool offsets, FILE *f) {
        const struct result *r = &o->result;
        bool known = o->end == CLI_END_RESULT;
        struct jsonw j;

        jsonw_init_file(&j, f);
        jsonw_object(&j);
        key_uint(&j, "exit_code", (uint64_t)o->exit_code);
        key_str(&j, "cause", cause_of(o));
        key_known(&j, "signal", known && r->signaled, r->code);
        key_known(&j, "wall_us", known, r->wall_us);
        key_known(&j, "user_us", known, r->user_us);
        key_known(&j, "system_us", known, r->system_us);
        key_known(&j, "maxrss_bytes", known, r->maxrss_bytes);
        /* The peak of a sandbox that served others before says nothing of this command. */
        key_known(&j, "sandbox_peak_bytes", known && !r->reused && r->sandbox_peak_bytes != 0,
                  r->sandbox_peak_bytes);
        put_stream(&j, "stdout", c ? &c->out : NULL, known, r->bytes[0], r->lines[0]);
        put_stream(&j, "stderr", c ? &c->err : NULL, known, r->bytes[1], r->lines[1]);
        jsonw_key(&j, "truncated");
        jsonw_bool(&j, known && r->truncated);
        jsonw_key(&j, "captured_truncated");
        jsonw_bool(&j, c && (cut(&c->out) || cut(&c->err)));
        key_known(&j, "background_left", known, r->background_left);
        key_str(&j, "exec_id", known ? r->exec_id : o->exec_id);
        key_str(&j, "sandbox", known ? r->container_id : o->container_id);
        key_str(&j, "profile", known ? r->profile : o->profile);
        key_str(&j, "session", known ? r->session : session);
        jsonw_key(&j, "pool_hit");
        jsonw_bool(&j, known ? r->pool_hit : o->pool_hit);
        key_str(&j, "error", error_of(o));
        if (offsets) {
                key_known(&j, "stdout_offset", o->attached, o->from[0]);
                key_known(&j, "stderr_offset", o->attached, o->from[1]);
        }
        jsonw_object_end(&j);
        if (fputc('\n', f) == EOF && j.error == 0)
                j.error = -EIO;
        return jsonw_done(&j);
}
