/*
 * Replies of the engine and messages of the manager. The first byte chooses the parser, the rest is what
 * it reads. Whatever is taken must hold what its header promises.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine_msg.h"
#include "engine/apijson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
        if (!ok)
                abort();
}

static void container(const struct apijson_container *c) {
        check(engine_is_hex(c->id, ENGINE_ID_LEN));
        check(!c->installation[0] || engine_is_hex(c->installation, ENGINE_INSTALLATION_LEN));
        check(strlen(c->name) <= APIJSON_NAME_MAX && strlen(c->profile) <= ENGINE_PROFILE_MAX);
}

static void list(const char *p, size_t n) {
        struct apijson_container *l;
        struct errmsg e;
        size_t count;

        if (apijson_list(p, n, &l, &count, &e) < 0)
                return;
        for (size_t i = 0; i < count; i++)
                container(&l[i]);
        free(l);
}

static void one_line(const char *s) {
        for (; *s; s++)
                check((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void message(const uint8_t *p, size_t n, enum engine_from from) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];

        if (n <= sizeof(buf) && engine_msg_decode(p, n, from, &m) == 0) {
                check(engine_msg_encode(&m, buf, sizeof(buf)) == (ssize_t)n);
                check(memcmp(buf, p, n) == 0);
        }
}

static void image(const char *p, size_t n) {
        static const char digest[] = "registry.example/x/deb@sha256:"
                                     "996d51289a7c7a6cfb292d4dda4030214beed7db480ab49eacddcedf4cece912";
        struct apijson_image m;
        struct errmsg e;

        for (int pinned = 0; pinned < 2; pinned++) {
                if (apijson_image(p, n, pinned ? digest : "registry.example/x/deb:1", &m, &e) < 0)
                        return;
                check(m.id[0] && strlen(m.id) <= ENGINE_IMAGE_ID_MAX);
                check(!m.has_digest || (pinned && strstr(m.digest, strchr(digest, '@'))));
                check(!m.digest[0] || (strstr(m.digest, "@sha256:") &&
                                       engine_is_hex(strstr(m.digest, "@sha256:") + 8, 64)));
                one_line(m.digest);
                one_line(m.created);
                one_line(m.entrypoint);
                check(strcmp(m.entrypoint, "null") == 0 ||
                      (m.entrypoint[0] == '[' && m.entrypoint[strlen(m.entrypoint) - 1] == ']'));
        }
}

static void info(const char *p, size_t n) {
        char text[512];
        struct errmsg e;
        bool v2;

        if (apijson_info(p, n, "1.41", &v2, text, sizeof(text), &e) == 0)
                check(!text[0] || text[strlen(text) - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *p = (const char *)data + 1;
        char id[ENGINE_IMAGE_ID_MAX + 1];
        struct apijson_container c;
        struct apijson_progress progress;
        struct apijson_event event;
        struct errmsg e;

        if (size < 1)
                return 0;
        size--;
        switch (data[0]) {
        case 'c':
                if (apijson_created(p, size, id, &e) == 0)
                        check(engine_is_hex(id, ENGINE_ID_LEN));
                break;
        case 'm':
                apijson_message(p, size, id, sizeof(id));
                one_line(id);
                break;
        case 'i':
                if (apijson_inspect(p, size, &c, &e) == 0)
                        container(&c);
                break;
        case 'l':
                list(p, size);
                break;
        case 'e':
                if (apijson_event(p, size, &event) == 0 && event.kind != EVENT_OTHER)
                        check(engine_is_hex(event.id, ENGINE_ID_LEN));
                break;
        case 'p':
                if (apijson_progress(p, size, &progress) == 0) {
                        check(!progress.layer[0] || engine_is_hex(progress.layer, 12));
                        check(progress.done <= progress.total);
                        one_line(progress.text);
                        one_line(progress.error);
                }
                break;
        case 'g':
                image(p, size);
                break;
        case 'n':
                info(p, size);
                break;
        case 'M':
                message(data + 1, size, ENGINE_FROM_MANAGER);
                break;
        case 'B':
                message(data + 1, size, ENGINE_FROM_BROKER);
                break;
        }
        return 0;
}
