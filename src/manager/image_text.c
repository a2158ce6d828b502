/* What is shown of images: the answers to image list and image verify. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonw.h"
#include "common/wire.h"
#include "manager/image.h"
#include "manager/session.h"

const char *image_short(const char *name, char buf[IMAGE_SHORT]) {
        const char *digest = strstr(name, "sha256:");
        int n = digest == name ? 0 : digest ? (int)(digest - name) : -1;

        /* A bare id, with or without "sha256:"; a name with a digest; a name. */
        if (n > 0)
                snprintf(buf, IMAGE_SHORT, "%.*ssha256:%.12s", n < 200 ? n : 200, name, digest + 7);
        else if (n == 0)
                snprintf(buf, IMAGE_SHORT, "%.12s", digest + 7);
        else
                snprintf(buf, IMAGE_SHORT, "%.*s", engine_is_hex(name, 64) ? 12 : 255, name);
        return buf;
}

static const char *pin_name(enum image_pin pin) {
        return pin == IMAGE_PIN_DIGEST ? "digest" : pin == IMAGE_PIN_ID ? "id" : NULL;
}

static void key_str(struct jsonw *j, const char *key, const char *v) {
        jsonw_key_str(j, key, v && v[0] ? v : NULL);
}

static void json_image(struct jsonw *j, const struct image_row *row) {
        key_str(j, "image", row->image);
        key_str(j, "pinned", pin_name(row->pin));
        jsonw_key(j, "present");
        jsonw_bool(j, row->present);
        key_str(j, "id", row->id);
        key_str(j, "digest", row->digest);
        jsonw_key_uint(j, "size_bytes", row->present, row->bytes);
        key_str(j, "created", row->created);
}

/* --- list ---------------------------------------------------------------------------------------- */

/* An image's first row stands for it. */
static bool is_first(const struct image_row *rows, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (strcmp(rows[i].image, rows[at].image) == 0)
                        return false;
        return true;
}

/* The names of its profiles: as many of them as fit, then "…". */
static void profiles_of(const struct image_row *rows, size_t n, size_t at, char *buf, size_t cap) {
        size_t len = 0;

        buf[0] = '\0';
        for (size_t i = at; i < n; i++) {
                size_t more = strlen(rows[i].profile) + (len > 0);

                if (strcmp(rows[i].image, rows[at].image) != 0)
                        continue;
                if (len + more + 5 > cap) {
                        snprintf(buf + len, cap - len, ",…");
                        return;
                }
                len += (size_t)snprintf(buf + len, cap - len, "%s%s", len > 0 ? "," : "",
                                        rows[i].profile);
        }
}

static void size_cell(const struct image_row *row, char *buf, size_t cap) {
        uint64_t kb = (row->bytes + 500) / 1000;

        if (!row->present)
                snprintf(buf, cap, "-");
        else if (kb < 10000)
                snprintf(buf, cap, "%" PRIu64 "kB", kb);
        else if (kb < 10000000)
                snprintf(buf, cap, "%" PRIu64 "MB", (kb + 500) / 1000);
        else
                snprintf(buf, cap, "%" PRIu64 "GB", (kb + 500000) / 1000000);
}

static void list_text(FILE *f, const struct image_row *rows, size_t n) {
        int wide = 5, wide_profiles = 8;
        char name[IMAGE_SHORT], profiles[40], id[IMAGE_SHORT], size[24];

        for (size_t i = 0; i < n; i++) {
                int len = (int)strlen(image_short(rows[i].image, name)), k;

                profiles_of(rows, n, i, profiles, sizeof(profiles));
                k = (int)strlen(profiles);
                wide = len > wide ? len : wide;
                wide_profiles = k > wide_profiles ? k : wide_profiles;
        }
        fprintf(f, "%-*s  %-*s  %-7s  %-12s  %6s  %-10s  %s\n", wide, "IMAGE", wide_profiles, "PROFILES",
                "STATE", "ID", "SIZE", "CREATED", "PINNED");
        for (size_t i = 0; i < n; i++) {
                const struct image_row *r = &rows[i];

                if (!is_first(rows, i))
                        continue;
                profiles_of(rows, n, i, profiles, sizeof(profiles));
                size_cell(r, size, sizeof(size));
                fprintf(f, "%-*s  %-*s  %-7s  %-12s  %6s  %-10.10s  %s\n", wide,
                        image_short(r->image, name), wide_profiles, profiles,
                        r->present ? "present" : "missing", r->present ? image_short(r->id, id) : "-",
                        size, r->created[0] ? r->created : "-", r->pin ? pin_name(r->pin) : "no");
        }
}

static void list_json(struct jsonw *j, const struct image_row *rows, size_t n) {
        jsonw_array(j);
        for (size_t i = 0; i < n; i++) {
                if (!is_first(rows, i))
                        continue;
                jsonw_object(j);
                json_image(j, &rows[i]);
                jsonw_key(j, "profiles");
                jsonw_array(j);
                for (size_t k = i; k < n; k++)
                        if (strcmp(rows[k].image, rows[i].image) == 0)
                                jsonw_str(j, rows[k].profile);
                jsonw_array_end(j);
                jsonw_object_end(j);
        }
        jsonw_array_end(j);
}

char *image_list_text(const struct image_row *rows, size_t n, bool json, size_t *ret_len) {
        char *buf = NULL;
        struct jsonw j;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        if (json) {
                jsonw_init_file(&j, f);
                list_json(&j, rows, n);
                fputc('\n', f);
        } else
                list_text(f, rows, n);
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}

char *image_list_records(struct manager *m, const struct image_row *rows, size_t n, size_t *ret_len) {
        static uint8_t record[4 + 4096 + PROTO_PATH_MAX + NARROW_TMPFS_MAX * (NARROW_PATH_MAX + 16)];
        char *buf = NULL;
        FILE *f = open_memstream(&buf, ret_len);

        for (size_t i = 0; f && i < n; i++) {
                const struct image_row *r = &rows[i];
                const struct config_profile *p = config_profile_find(m->config, r->profile);
                struct image_info info = { .profile = r->profile,
                                           .name = r->image,
                                           .present = r->present,
                                           .id = r->id,
                                           .digest = r->digest,
                                           .bytes = r->bytes,
                                           .created = r->created,
                                           .entrypoint = r->entrypoint };
                struct wire_out out;
                ssize_t len;

                if (!p)
                        continue; /* a reload has dropped it meanwhile */
                info.network = strlen(p->network) <= PROTO_NAME_MAX ? p->network : "";
                info.uid = p->uid;
                info.gid = p->gid;
                info.memory_bytes = p->memory_bytes;
                info.cpu_nano = p->cpu_nano;
                info.shm_bytes = p->shm_bytes;
                info.pids_limit = p->pids_limit;
                info.capabilities = p->capabilities;
                info.workdir = p->workdir;
                info.read_only = p->read_only;
                for (size_t t = 0; t < p->n_tmpfs && t < NARROW_TMPFS_MAX; t++) {
                        info.tmpfs[t].path = p->tmpfs[t].path;
                        info.tmpfs[t].bytes = p->tmpfs[t].bytes;
                        info.n_tmpfs++;
                }
                len = image_info_encode(&info, record + 4, sizeof(record) - 4);
                if (len < 0)
                        abort(); /* every field has a bound */
                wire_out_init(&out, record, 4);
                wire_put_u32(&out, (uint32_t)len);
                fwrite(record, 1, 4 + (size_t)len, f);
        }
        if (!f || fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}

/* --- verify -------------------------------------------------------------------------------------- */

struct verdict {
        const char *state;        /* "ok", "missing", "unused", "other" */
        unsigned all, other;      /* sandboxes */
        char session[96];         /* one of them that is a session's, in words; "" if none is */
        char why[512], mend[512]; /* mend: a command, or "" */
};

static bool is_other(const struct sandbox *sb, const struct image_row *row) {
        return sb->state != SANDBOX_GONE && !engine_same_image(sb->image, row->id);
}

static bool may_see(const struct sandbox *sb, const struct audit_caller *who) {
        const struct audit_caller *owner = sb->session ? &sb->session->owner : NULL;

        return owner && (who->uid == 0 || (owner->uid == who->uid && strcmp(owner->fp, who->fp) == 0));
}

static void count(const struct pool *p, const struct image_row *row, const struct audit_caller *who,
                  struct verdict *v) {
        const struct sandbox *sb, *leased = NULL;

        TAILQ_FOREACH(sb, &p->sandboxes, link) {
                v->all += sb->state != SANDBOX_GONE;
                v->other += is_other(sb, row);
                if (is_other(sb, row) && sb->session && (!leased || may_see(sb, who)))
                        leased = sb;
        }
        if (leased && may_see(leased, who)) {
                snprintf(v->session, sizeof(v->session), "session %s", leased->session->name);
                snprintf(v->mend, sizeof(v->mend), "hermes-sandbox session close %s",
                         leased->session->name);
        } else if (leased)
                snprintf(v->session, sizeof(v->session), "a session of another user");
}

static void judge(const struct pool *p, const struct image_row *row, const struct audit_caller *who,
                  struct verdict *v) {
        char name[IMAGE_SHORT], id[IMAGE_SHORT];

        *v = (struct verdict){ .state = "missing" };
        image_short(row->image, name);
        if (!row->present) {
                bool unused = !row->needed && (!p || TAILQ_EMPTY(&p->sandboxes));

                if (unused)
                        v->state = "unused";
                snprintf(v->why, sizeof(v->why), "%.300s is not there%s", name,
                         unused ? ", and no sandbox of it is kept warm" : "");
                if (row->pin == IMAGE_PIN_ID)
                        snprintf(v->mend, sizeof(v->mend), "docker load the image with that id");
                else
                        snprintf(v->mend, sizeof(v->mend), "hermes-sandbox image pull %s", row->profile);
                return;
        }
        if (p)
                count(p, row, who, v);
        image_short(row->id, id);
        v->state = v->other ? "other" : "ok";
        if (v->other == 0)
                snprintf(v->why, sizeof(v->why), "%.300s%s is %.12s, and so %s %u sandbox%s", name,
                         row->pin ? "" : " (not pinned)", id, v->all == 1 ? "is" : "are", v->all,
                         v->all == 1 ? "" : "es");
        else if (v->session[0])
                snprintf(v->why, sizeof(v->why),
                         "%.200s is %.12s, but not in %u of %u sandboxes: one is %s", name, id, v->other,
                         v->all, v->session);
        else {
                snprintf(v->why, sizeof(v->why),
                         "%.200s is %.12s, but not in %u of %u sandboxes, which are being replaced",
                         name, id, v->other, v->all);
                snprintf(v->mend, sizeof(v->mend), "hermes-sandbox image verify %s", row->profile);
        }
}

static void verify_json(struct jsonw *j, const struct pool *p, const struct image_row *row,
                        const struct audit_caller *who, const struct verdict *v) {
        const struct sandbox *sb;

        jsonw_object(j);
        key_str(j, "profile", row->profile);
        key_str(j, "state", v->state);
        json_image(j, row);
        jsonw_key_uint(j, "sandboxes", true, v->all);
        jsonw_key(j, "others");
        jsonw_array(j);
        sb = p && row->present ? TAILQ_FIRST(&p->sandboxes) : NULL;
        for (; sb; sb = TAILQ_NEXT(sb, link)) {
                if (!is_other(sb, row))
                        continue;
                jsonw_object(j);
                key_str(j, "container", sb->id);
                key_str(j, "id", sb->image);
                key_str(j, "state", stats_state_name(sb->state));
                key_str(j, "session", may_see(sb, who) ? sb->session->name : NULL);
                jsonw_object_end(j);
        }
        jsonw_array_end(j);
        key_str(j, "message", v->why);
        key_str(j, "mend", v->mend);
        jsonw_object_end(j);
}

char *image_verify_text(struct manager *m, const struct image_row *rows, size_t n,
                        const struct audit_caller *who, bool json, size_t *ret_len, size_t *ret_bad) {
        char *buf = NULL;
        struct jsonw j;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        *ret_bad = 0;
        if (json) {
                jsonw_init_file(&j, f);
                jsonw_array(&j);
        }
        for (size_t i = 0; i < n; i++) {
                const struct pool *p = pool_find(m, rows[i].profile);
                struct verdict v;

                judge(p, &rows[i], who, &v);
                *ret_bad += strcmp(v.state, "ok") != 0 && strcmp(v.state, "unused") != 0;
                if (json)
                        verify_json(&j, p, &rows[i], who, &v);
                else
                        fprintf(f, "%-7s  %s: %s%s%s\n", v.state, rows[i].profile, v.why,
                                v.mend[0] ? ": " : "", v.mend);
        }
        if (json) {
                jsonw_array_end(&j);
                fputc('\n', f);
        }
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
