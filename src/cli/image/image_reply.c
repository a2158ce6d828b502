/* The engine's answers. It is trusted as far as root is, but names and labels in them are other people's. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/image/image_engine.h"
#include "common/cleanup.h"

static void cleanup_json(json_t **j) {
        json_decref(*j);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

static const char *text_of(const json_t *object, const char *key) {
        const char *s = json_string_value(json_object_get(object, key));

        return s ? s : "";
}

/* One line for people. */
static void words(char *ret, size_t cap, const char *s, size_t len) {
        size_t n = 0;

        for (; len > 0 && *s && n + 1 < cap; s++, len--)
                ret[n++] = (unsigned char)*s < 0x20 || *s == 0x7f ? ' ' : *s;
        while (n > 0 && ret[n - 1] == ' ')
                n--;
        ret[n] = '\0';
}

void image_reply_message(const char *body, size_t len, char *ret, size_t cap) {
        _cleanup_json_ json_t *j = json_loadb(body, len, 0, NULL);
        const char *s = text_of(j, "message");

        if (*s)
                words(ret, cap, s, strlen(s));
        else
                words(ret, cap, body, len);
}

static bool copy_id(char ret[IMAGE_ID_MAX + 1], const char *s) {
        size_t n = strspn(s, "0123456789abcdef:sh");

        if (strncmp(s, "sha256:", 7) != 0 || n != IMAGE_ID_MAX ||
            strspn(s + 7, "0123456789abcdef") != 64)
                return false;
        memcpy(ret, s, IMAGE_ID_MAX);
        ret[IMAGE_ID_MAX] = '\0';
        return true;
}

int image_reply_found(const char *body, size_t len, struct image_found *ret) {
        _cleanup_json_ json_t *j = json_loadb(body, len, 0, NULL);
        json_int_t size = json_integer_value(json_object_get(j, "Size"));

        if (!copy_id(ret->id, text_of(j, "Id")))
                return -EPROTO;
        ret->n_tags = json_array_size(json_object_get(j, "RepoTags"));
        ret->size = size > 0 ? (uint64_t)size : 0;
        return 0;
}

int image_reply_loaded(const char *body, size_t len, char ret_id[IMAGE_ID_MAX + 1], char *ret_why,
                       size_t cap) {
        static const char loaded[] = "Loaded image ID: ";
        size_t at = 0;

        ret_id[0] = '\0';
        while (at < len) {
                json_error_t err;
                _cleanup_json_ json_t *j = json_loadb(body + at, len - at, JSON_DISABLE_EOF_CHECK, &err);
                const char *s;

                if (!j)
                        break;
                at += (size_t)err.position;
                s = text_of(j, "error");
                if (*s) {
                        words(ret_why, cap, s, strlen(s));
                        return IMAGE_E_REFUSED;
                }
                s = text_of(j, "stream");
                if (strncmp(s, loaded, sizeof(loaded) - 1) == 0)
                        copy_id(ret_id, s + sizeof(loaded) - 1);
        }
        return 0;
}

int image_reply_removed(const char *body, size_t len, void (*said)(void *userdata, const char *what),
                        void *userdata) {
        _cleanup_json_ json_t *j = json_loadb(body, len, 0, NULL);
        json_t *one;
        size_t i;

        if (!json_is_array(j))
                return -EPROTO;
        json_array_foreach(j, i, one) {
                const char *untagged = text_of(one, "Untagged"), *deleted = text_of(one, "Deleted");
                char name[300], line[320];

                words(name, sizeof(name), *untagged ? untagged : deleted, sizeof(name));
                snprintf(line, sizeof(line), "%s: %s", *untagged ? "untagged" : "deleted", name);
                if (name[0] && said)
                        said(userdata, line);
        }
        return 0;
}

int image_reply_users(const char *body, size_t len, const char *id, size_t *ret_n, char *ret_name,
                      size_t cap) {
        _cleanup_json_ json_t *j = json_loadb(body, len, 0, NULL);
        json_t *one;
        size_t i;

        if (!json_is_array(j))
                return -EPROTO;
        *ret_n = 0;
        ret_name[0] = '\0';
        json_array_foreach(j, i, one) {
                const char *name = json_string_value(json_array_get(json_object_get(one, "Names"), 0));

                if (strcmp(text_of(one, "ImageID"), id) != 0)
                        continue;
                if ((*ret_n)++ > 0)
                        continue;
                if (!name)
                        name = text_of(one, "Id");
                words(ret_name, cap, name + (*name == '/'), cap);
        }
        return 0;
}

int image_reply_version(const char *body, size_t len, char ret[16]) {
        _cleanup_json_ json_t *j = json_loadb(body, len, 0, NULL);
        const char *s = text_of(j, "ApiVersion");
        unsigned minor;
        int end = 0;

        if (sscanf(s, "1.%3u%n", &minor, &end) != 1 || s[end] != '\0' || minor < 40)
                return -EPROTO;
        snprintf(ret, 16, "1.%u", minor < 47 ? minor : 47);
        return 0;
}
