#include "cli/image/image_archive.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* "jq socat", or NULL. */
static json_t *extra_packages(const struct image_facts *f) {
        json_t *all = json_string("");

        for (size_t i = 0; i < f->n_extra && all; i++) {
                json_t *more = json_sprintf("%s%s%s", json_string_value(all), i ? " " : "", f->extra[i]);

                json_decref(all);
                all = more;
        }
        return all;
}

static json_t *labels(const struct image_facts *f) {
        json_t *l = json_pack("{s:s, s:s, s:s}", IMAGE_LABEL "flavour", f->flavour->name,
                              IMAGE_LABEL "suite", f->suite->name, IMAGE_LABEL "packages", f->packages);

        if (l && f->n_extra > 0 && json_object_set_new(l, IMAGE_LABEL "extra", extra_packages(f)) < 0) {
                json_decref(l);
                return NULL;
        }
        return l;
}

char *image_archive_config(const struct image_facts *f) {
        static const char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        json_t *l = labels(f), *j;
        char *text;

        if (!l)
                return NULL;
        j = json_pack("{s:s, s:s, s:s}", "architecture", f->architecture, "os", "linux", "created",
                      f->suite->created);
        if (json_object_set_new(
                    j, "config",
                    json_pack("{s:[s], s:[s], s:o}", "Cmd", "bash", "Env", path, "Labels", l)) < 0 ||
            json_object_set_new(j, "history",
                                json_pack("[{s:s, s:s}]", "created", f->suite->created, "created_by",
                                          "hermes-sandbox image build")) < 0 ||
            json_object_set_new(j, "rootfs",
                                json_pack("{s:s, s:[o]}", "type", "layers", "diff_ids",
                                          json_sprintf("sha256:%s", f->layer))) < 0) {
                json_decref(j);
                return NULL;
        }
        text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(j);
        return text;
}

/* --- the tar ------------------------------------------------------------------------------------ */

static int put_entry(struct image_archive *a, const char *name, uint64_t size) {
        struct image_tar_entry e = { .type = IMAGE_TAR_FILE, .mode = 0644, .size = size };
        int n;

        strcpy(e.name, name);
        n = image_tar_put_header(&e, a->head + a->head_len);
        if (n > 0)
                a->head_len += (size_t)n;
        return n < 0 ? n : 0;
}

static int put_file(struct image_archive *a, const char *name, const char *text) {
        size_t len = strlen(text);
        int r = put_entry(a, name, len);

        if (r < 0)
                return r;
        memcpy(a->head + a->head_len, text, len);
        a->head_len += len;
        memset(a->head + a->head_len, 0, image_tar_padding(len));
        a->head_len += image_tar_padding(len);
        return 0;
}

int image_archive_init(struct image_archive *a, const char *config, int layer_fd, uint64_t layer_size) {
        static const char manifest[] =
                "[{\"Config\":\"config.json\",\"RepoTags\":null,\"Layers\":[\"layer.tar\"]}]";
        int r;

        *a = (struct image_archive){ .layer_fd = layer_fd, .layer_size = layer_size };
        a->head = malloc(strlen(config) + sizeof(manifest) + 2 * IMAGE_TAR_BLOCK +
                         3 * IMAGE_TAR_HEADER_MAX);
        if (!a->head)
                return -ENOMEM;
        r = put_file(a, "config.json", config);
        if (r == 0)
                r = put_file(a, "manifest.json", manifest);
        if (r == 0)
                r = put_entry(a, "layer.tar", layer_size);
        a->size = a->head_len + layer_size + image_tar_padding(layer_size) + IMAGE_TAR_END;
        return r;
}

void image_archive_done(struct image_archive *a) {
        free(a->head);
        a->head = NULL;
}

ssize_t image_archive_read(struct image_archive *a, void *buf, size_t cap) {
        uint64_t layer_end = a->head_len + a->layer_size;
        uint64_t end = a->at < a->head_len ? a->head_len : a->at < layer_end ? layer_end : a->size;
        ssize_t n;

        if (cap > end - a->at)
                cap = (size_t)(end - a->at);
        if (end == a->head_len) {
                memcpy(buf, a->head + a->at, cap);
                n = (ssize_t)cap;
        } else if (end == layer_end) {
                n = pread(a->layer_fd, buf, cap, (off_t)(a->at - a->head_len));
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
        } else {
                memset(buf, 0, cap);
                n = (ssize_t)cap;
        }
        a->at += (uint64_t)n;
        return n;
}
