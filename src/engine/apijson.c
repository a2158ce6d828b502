/*
 * Replies of the engine, from JSON to plain structs with fixed bounds. The engine is trusted as far as
 * root is, but an image's labels, a registry's error texts and other people's containers stand in its
 * replies, so every string is taken only in the form that is expected of it.
 */
#include "engine/apijson.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/engine_info.h"

static void cleanup_json(json_t **j) {
        json_decref(*j);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

static json_t *load(const char *body, size_t len, struct errmsg *e) {
        json_error_t err;
        json_t *j = json_loadb(body, len, 0, &err);

        if (!j)
                errmsg_set(e, 0, "the engine's answer is not JSON: line %d: %s", err.line, err.text);
        return j;
}

static const char *text_of(const json_t *object, const char *key) {
        const char *s = json_string_value(json_object_get(object, key));

        return s ? s : "";
}

/* The whole string or nothing: half an identifier is another one. */
static void copy_whole(char *to, size_t cap, const char *from) {
        size_t n = strlen(from);

        if (n >= cap)
                n = 0;
        memcpy(to, from, n);
        to[n] = '\0';
}

/* For people: cut where it is too long, in front of a character that does not fit, no control characters. */
static void copy_words(char *to, size_t cap, const char *from) {
        size_t n = 0;

        for (; *from && n + 1 < cap; from++)
                to[n++] = (unsigned char)*from < 0x20 || *from == 0x7f ? '?' : *from;
        if (*from)
                while (n > 0 && ((unsigned char)*from & 0xc0) == 0x80)
                        from--, n--;
        while (n > 0 && to[n - 1] == '?')
                n--;
        to[n] = '\0';
}

static uint32_t number_of(const json_t *object, const char *key, uint32_t missing) {
        const json_t *j = json_object_get(object, key);
        json_int_t v = json_integer_value(j);

        return json_is_integer(j) && v >= 0 && v < UINT32_MAX ? (uint32_t)v : missing;
}

static int get_id(const json_t *object, const char *key, char ret[ENGINE_ID_LEN + 1]) {
        const char *s = text_of(object, key);

        if (!engine_is_hex(s, ENGINE_ID_LEN))
                return -EPROTO;
        memcpy(ret, s, ENGINE_ID_LEN + 1);
        return 0;
}

/* "sha256:00ff", or what an engine has in its place; else "". */
static void get_image_id(const json_t *object, const char *key, char ret[ENGINE_IMAGE_ID_MAX + 1]) {
        copy_whole(ret, ENGINE_IMAGE_ID_MAX + 1, text_of(object, key));
        if (strspn(ret, "abcdefghijklmnopqrstuvwxyz0123456789:") != strlen(ret))
                ret[0] = '\0';
}

static void get_labels(const json_t *labels, struct apijson_container *c) {
        const char *s = text_of(labels, LABEL_INSTALLATION);

        if (engine_is_hex(s, ENGINE_INSTALLATION_LEN))
                copy_whole(c->installation, sizeof(c->installation), s);
        copy_whole(c->profile, sizeof(c->profile), text_of(labels, LABEL_PROFILE));
}

static void get_name(const char *name, struct apijson_container *c) {
        copy_whole(c->name, sizeof(c->name), name[0] == '/' ? name + 1 : name);
}

int apijson_created(const char *body, size_t len, char ret_id[ENGINE_ID_LEN + 1], struct errmsg *e) {
        _cleanup_json_ json_t *j = load(body, len, e);

        if (!j)
                return -EPROTO;
        if (get_id(j, "Id", ret_id) < 0)
                return errmsg_set(e, -EPROTO, "the engine's answer has no container id");
        return 0;
}

void apijson_message(const char *body, size_t len, char *ret, size_t cap) {
        _cleanup_json_ json_t *j = json_loadb(body, len, 0, NULL);
        const char *s = text_of(j, "message");
        char start[200];

        if (*s) {
                copy_words(ret, cap, s);
                return;
        }
        if (len >= sizeof(start))
                len = sizeof(start) - 1;
        memcpy(start, body, len);
        start[len] = '\0';
        copy_words(ret, cap, *start ? start : "(it gave no reason)");
}

int apijson_inspect(const char *body, size_t len, struct apijson_container *ret, struct errmsg *e) {
        _cleanup_json_ json_t *j = load(body, len, e);
        struct apijson_container c = { 0 };
        const json_t *state;

        if (!j)
                return -EPROTO;
        state = json_object_get(j, "State");
        if (get_id(j, "Id", c.id) < 0 || !json_is_object(state))
                return errmsg_set(e, -EPROTO, "the engine's inspection has no Id or State");
        get_name(text_of(j, "Name"), &c);
        get_labels(json_object_get(json_object_get(j, "Config"), "Labels"), &c);
        copy_whole(c.state, sizeof(c.state), text_of(state, "Status"));
        c.running = json_is_true(json_object_get(state, "Running"));
        c.oom_killed = json_is_true(json_object_get(state, "OOMKilled"));
        c.pid = number_of(state, "Pid", 0);
        c.exit_code = number_of(state, "ExitCode", ENGINE_EXIT_UNKNOWN);
        get_image_id(j, "Image", c.image);
        *ret = c;
        return 0;
}

int apijson_list(const char *body, size_t len, struct apijson_container **ret, size_t *ret_n,
                 struct errmsg *e) {
        _cleanup_json_ json_t *j = load(body, len, e);
        struct apijson_container *list;
        const json_t *item;
        size_t i;

        if (!j)
                return -EPROTO;
        if (!json_is_array(j))
                return errmsg_set(e, -EPROTO, "the engine's list is not a list");
        list = calloc(json_array_size(j) + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        json_array_foreach(j, i, item) {
                const char *name = json_string_value(json_array_get(json_object_get(item, "Names"), 0));

                if (get_id(item, "Id", list[i].id) < 0) {
                        free(list);
                        return errmsg_set(e, -EPROTO, "the engine's list has an entry without an Id");
                }
                get_name(name ? name : "", &list[i]);
                get_labels(json_object_get(item, "Labels"), &list[i]);
                copy_whole(list[i].state, sizeof(list[i].state), text_of(item, "State"));
        }
        *ret_n = json_array_size(j);
        *ret = list;
        return 0;
}

/* A name may hold what a registry chose: only what a reference can be made of is taken. */
static bool is_digest(const char *s) {
        const char *at = strchr(s, '@');

        return at && at > s && strncmp(at, "@sha256:", 8) == 0 && engine_is_hex(at + 8, 64) &&
               strlen(s) <= ENGINE_DIGEST_MAX &&
               strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@") ==
                       strlen(s);
}

/* Of several, that with the digest which @name asks for; else one of @name's own repository; else the first. */
static void get_digest(const json_t *list, const char *name, struct apijson_image *ret) {
        const char *asked = strchr(name, '@'), *colon = strrchr(name, ':');
        size_t i, n = colon && !strchr(colon, '/') ? (size_t)(colon - name) : strlen(name);
        int best = 0;
        const json_t *item;

        json_array_foreach(list, i, item) {
                const char *s = json_string_value(item), *at;
                int rank = 1;

                if (!s || !is_digest(s))
                        continue;
                at = strchr(s, '@');
                if (asked)
                        rank += strcmp(at, asked) == 0;
                else
                        rank += (size_t)(at - s) == n && memcmp(s, name, n) == 0;
                ret->has_digest |= asked && rank == 2;
                if (rank > best)
                        copy_whole(ret->digest, sizeof(ret->digest), s);
                best = rank > best ? rank : best;
        }
}

/* As JSON in printable ASCII: jansson leaves DEL as it is. False: out of memory, or too long. */
static bool put_words(const json_t *words, char ret[ENGINE_ENTRYPOINT_MAX + 1]) {
        _cleanup_free_ char *text = json_dumps(words, JSON_COMPACT | JSON_ENSURE_ASCII);
        char all[ENGINE_ENTRYPOINT_MAX + 1];
        size_t n = 0;

        for (const char *p = text; p && *p; p++) {
                const char one[] = { *p, '\0' }, *piece = *p == '\177' ? "\\u007f" : one;
                size_t len = strlen(piece);

                if (n + len > ENGINE_ENTRYPOINT_MAX)
                        return false;
                memcpy(all + n, piece, len);
                n += len;
        }
        if (n == 0)
                return false;
        memcpy(ret, all, n);
        ret[n] = '\0';
        return true;
}

/* What is too long loses its last words: it is the first that says which program it is. */
static void get_entrypoint(const json_t *list, char ret[ENGINE_ENTRYPOINT_MAX + 1]) {
        _cleanup_json_ json_t *words = json_array();
        json_t *item;
        size_t i;

        strcpy(ret, "null");
        json_array_foreach(list, i, item) {
                if (!json_is_string(item) || json_array_append(words, item) < 0 ||
                    !put_words(words, ret))
                        return;
        }
}

int apijson_image(const char *body, size_t len, const char *name, struct apijson_image *ret,
                  struct errmsg *e) {
        _cleanup_json_ json_t *j = load(body, len, e);
        struct apijson_image m = { 0 };
        const json_t *size;

        if (!j)
                return -EPROTO;
        get_image_id(j, "Id", m.id);
        if (!m.id[0])
                return errmsg_set(e, -EPROTO, "the engine's image has no Id");
        get_digest(json_object_get(j, "RepoDigests"), name, &m);
        size = json_object_get(j, "Size");
        if (json_integer_value(size) > 0)
                m.bytes = (uint64_t)json_integer_value(size);
        copy_whole(m.created, sizeof(m.created), text_of(j, "Created"));
        if (strspn(m.created, "0123456789-+:.TZ") != strlen(m.created))
                m.created[0] = '\0';
        get_entrypoint(json_object_get(json_object_get(j, "Config"), "Entrypoint"), m.entrypoint);
        *ret = m;
        return 0;
}

int apijson_event(const char *line, size_t len, struct apijson_event *ret) {
        _cleanup_json_ json_t *j = json_loadb(line, len, 0, NULL);
        struct apijson_event v = { .exit_code = ENGINE_EXIT_UNKNOWN };
        const char *action = text_of(j, "Action"), *code;
        const json_t *actor = json_object_get(j, "Actor");

        if (!json_is_object(j))
                return -EPROTO;
        if (strcmp(text_of(j, "Type"), "container") != 0) {
                *ret = v;
                return 0;
        }
        if (get_id(actor, "ID", v.id) < 0)
                return -EPROTO;
        if (strcmp(action, "die") == 0)
                v.kind = EVENT_DIE;
        else if (strcmp(action, "oom") == 0)
                v.kind = EVENT_OOM;
        else if (strcmp(action, "destroy") == 0)
                v.kind = EVENT_DESTROY;
        code = text_of(json_object_get(actor, "Attributes"), "exitCode");
        if (v.kind == EVENT_DIE && *code && strlen(code) < 6 &&
            strspn(code, "0123456789") == strlen(code))
                v.exit_code = (uint32_t)strtoul(code, NULL, 10);
        *ret = v;
        return 0;
}

/* An id that is a layer's stands by itself; another, such as a tag, is part of the text. */
int apijson_progress(const char *line, size_t len, struct apijson_progress *ret) {
        _cleanup_json_ json_t *j = json_loadb(line, len, 0, NULL);
        const char *id = text_of(j, "id"), *status = text_of(j, "status"), *error = text_of(j, "error");
        const json_t *detail = json_object_get(j, "progressDetail");
        json_int_t done = json_integer_value(json_object_get(detail, "current"));
        json_int_t total = json_integer_value(json_object_get(detail, "total"));
        struct apijson_progress p = { 0 };
        char text[400];

        if (!json_is_object(j))
                return -EPROTO;
        if (engine_is_hex(id, 12))
                memcpy(p.layer, id, 13);
        snprintf(text, sizeof(text), "%.80s%s%.200s", p.layer[0] ? "" : id,
                 *id && !p.layer[0] ? ": " : "", status);
        if (*status)
                copy_words(p.text, sizeof(p.text), text);
        if (done > 0 && total >= done) {
                p.done = (uint64_t)done;
                p.total = (uint64_t)total;
        }
        copy_words(p.error, sizeof(p.error), error);
        *ret = p;
        return 0;
}

/* --- /info
 * ------------------------------------------------------------------------------------------- */

struct lines {
        char *p;
        size_t cap, len;
        bool full;
};

static void add_line(struct lines *out, const char *key, const char *value) {
        char words[512];
        int n;

        copy_words(words, sizeof(words), value);
        if (!*words || out->full)
                return;
        n = snprintf(out->p + out->len, out->cap - out->len, "%s=%s\n", key, words);
        if (n < 0 || (size_t)n >= out->cap - out->len) {
                out->p[out->len] = '\0';
                out->full = true;
                return;
        }
        out->len += (size_t)n;
}

/* Security options look like "name=seccomp,profile=default". */
static bool has_option(const json_t *options, const char *name) {
        const json_t *item;
        size_t i, n = strlen(name);

        json_array_foreach(options, i, item) {
                const char *s = json_string_value(item);

                if (s && strncmp(s, "name=", 5) == 0 && strncmp(s + 5, name, n) == 0 &&
                    (s[5 + n] == '\0' || s[5 + n] == ','))
                        return true;
        }
        return false;
}

static void add_each(struct lines *out, const char *key, const json_t *list) {
        const json_t *item;
        size_t i;

        json_array_foreach(list, i, item) {
                const char *s = json_string_value(item);

                add_line(out, key, s ? s : "");
        }
}

int apijson_info(const char *body, size_t len, const char *api_version, bool *ret_cgroup_v2, char *text,
                 size_t cap, struct errmsg *e) {
        static const char *const options[] = { ENGINE_INFO_SECCOMP, ENGINE_INFO_APPARMOR,
                                               ENGINE_INFO_USERNS, ENGINE_INFO_ROOTLESS };
        _cleanup_json_ json_t *j = load(body, len, e);
        struct lines out = { .p = text, .cap = cap };
        const json_t *security;
        const char *cgroup;

        if (!j)
                return -EPROTO;
        if (!json_is_object(j))
                return errmsg_set(e, -EPROTO, "the engine's info is not an object");
        cgroup = text_of(j, "CgroupVersion");
        *ret_cgroup_v2 = strcmp(cgroup, "2") == 0;
        if (!text)
                return 0;
        text[0] = '\0';
        security = json_object_get(j, "SecurityOptions");
        add_line(&out, ENGINE_INFO_VERSION, text_of(j, "ServerVersion"));
        add_line(&out, ENGINE_INFO_API, api_version);
        add_line(&out, ENGINE_INFO_KERNEL, text_of(j, "KernelVersion"));
        /* Engines that do not say know only version 1. */
        add_line(&out, ENGINE_INFO_CGROUP_VERSION, *cgroup ? cgroup : "1");
        add_line(&out, ENGINE_INFO_CGROUP_DRIVER, text_of(j, "CgroupDriver"));
        add_line(&out, ENGINE_INFO_STORAGE, text_of(j, "Driver"));
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                add_line(&out, options[i], has_option(security, options[i]) ? "yes" : "no");
        add_each(&out, ENGINE_INFO_SECURITY, security);
        add_each(&out, ENGINE_INFO_WARNING, json_object_get(j, "Warnings"));
        return 0;
}
