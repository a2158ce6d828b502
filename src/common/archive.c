/*
 * The two halves of the format. The reader is one table: each type's longest record, where it may stand, and what
 * takes it apart; whatever the table does not know is wrong. DATA alone is passed on without being collected.
 */
#include "common/archive.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/wire.h"

#define MAGIC 0x52415348u /* "HSAR" */
#define KINDS "-dlbcps?"

bool archive_name_ok(const char *name) {
        size_t len = strnlen(name, ARCHIVE_NAME_MAX + 1);

        return len > 0 && len <= ARCHIVE_NAME_MAX && !memchr(name, '/', len) && strcmp(name, ".") != 0 &&
               strcmp(name, "..") != 0;
}

/* --- writing ------------------------------------------------------------------------------------ */

int archive_flush(struct archive_out *o) {
        size_t done = 0;

        while (done < o->len && o->error == 0) {
                ssize_t n = write(o->fd, o->buf + done, o->len - done);

                if (n >= 0)
                        done += (size_t)n;
                else if (errno != EINTR)
                        o->error = -errno;
        }
        o->sent += done;
        o->len = 0;
        return o->error;
}

/* Room for a record of at most @len bytes, its header included. */
static uint8_t *room(struct archive_out *o, size_t len) {
        if (sizeof(o->buf) - o->len < len)
                archive_flush(o);
        return o->buf + o->len;
}

static void put_header(uint8_t *p, enum archive_type type, size_t len) {
        p[0] = (uint8_t)type;
        for (int i = 0; i < 4; i++)
                p[1 + i] = (uint8_t)(len >> 8 * i);
}

/* Begins a record in @w; put_end() puts it, unless it did not fit. */
static void put_begin(struct archive_out *o, struct wire_out *w) {
        wire_out_init(w, room(o, ARCHIVE_HEADER + ARCHIVE_RECORD_MAX) + ARCHIVE_HEADER,
                      ARCHIVE_RECORD_MAX);
}

static int put_end(struct archive_out *o, enum archive_type type, const struct wire_out *w) {
        if (w->bad)
                return -ENAMETOOLONG;
        put_header(o->buf + o->len, type, w->len);
        o->len += ARCHIVE_HEADER + w->len;
        return 0;
}

static void put_u64(struct archive_out *o, enum archive_type type, uint64_t v) {
        struct wire_out w;

        put_begin(o, &w);
        wire_put_u64(&w, v);
        put_end(o, type, &w);
}

void archive_out_init(struct archive_out *o, int fd) {
        struct wire_out w;

        o->fd = fd;
        o->error = 0;
        o->entries = o->sent = 0;
        o->len = 0;
        put_begin(o, &w);
        wire_put_u32(&w, MAGIC);
        wire_put_u16(&w, ARCHIVE_VERSION);
        put_end(o, ARCHIVE_HEAD, &w);
}

int archive_put_entry(struct archive_out *o, enum archive_type type, const struct archive_entry *e) {
        struct wire_out w;
        int r;

        if ((type != ARCHIVE_ITEM && strlen(e->name) > ARCHIVE_NAME_MAX) ||
            strlen(e->target ? e->target : "") > ARCHIVE_TARGET_MAX)
                return -ENAMETOOLONG;
        put_begin(o, &w);
        if (type == ARCHIVE_ITEM)
                wire_put_u8(&w, (uint8_t)e->kind);
        wire_put_u32(&w, e->mode & 07777);
        wire_put_u64(&w, (uint64_t)e->mtime_s);
        wire_put_u32(&w, e->mtime_ns);
        if (type == ARCHIVE_FILE || type == ARCHIVE_ITEM)
                wire_put_u64(&w, e->size);
        if (type == ARCHIVE_ITEM) {
                wire_put_u32(&w, e->links);
                wire_put_u32(&w, e->uid);
                wire_put_u32(&w, e->gid);
        }
        wire_put_str(&w, e->name);
        if (type == ARCHIVE_LINK || type == ARCHIVE_ITEM)
                wire_put_str(&w, e->target);
        r = put_end(o, type, &w);
        o->entries += r == 0;
        return r;
}

void archive_put_up(struct archive_out *o) {
        put_header(room(o, ARCHIVE_HEADER), ARCHIVE_UP, 0);
        o->len += ARCHIVE_HEADER;
}

uint8_t *archive_data_room(struct archive_out *o) {
        return room(o, ARCHIVE_HEADER + ARCHIVE_DATA_MAX) + ARCHIVE_HEADER;
}

void archive_put_data(struct archive_out *o, size_t len) {
        if (len == 0)
                return;
        put_header(o->buf + o->len, ARCHIVE_DATA, len);
        o->len += ARCHIVE_HEADER + len;
}

void archive_put_hole(struct archive_out *o, uint64_t len) {
        put_u64(o, ARCHIVE_HOLE, len);
}

void archive_put_close(struct archive_out *o, uint64_t size, bool whole) {
        struct wire_out w;

        put_begin(o, &w);
        wire_put_u64(&w, size);
        wire_put_u8(&w, whole);
        put_end(o, ARCHIVE_CLOSE, &w);
}

int archive_out_end(struct archive_out *o) {
        put_u64(o, ARCHIVE_END, o->entries);
        return archive_flush(o);
}

/* --- reading ------------------------------------------------------------------------------------ */

static int bad(struct archive_in *in, const char *why) {
        in->bad = true;
        in->why = why;
        return -EPROTO;
}

static int get_head(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        uint32_t magic = wire_get_u32(w);
        uint16_t version = wire_get_u16(w);

        (void)s;
        if (in->begun || magic != MAGIC)
                return bad(in, "it does not begin as one");
        if (version != ARCHIVE_VERSION)
                return bad(in, "it is of another version");
        in->begun = true;
        return 0;
}

static void get_attributes(struct archive_in *in, struct wire_in *w, struct archive_entry *e) {
        e->mode = wire_get_u32(w);
        e->mtime_s = (int64_t)wire_get_u64(w);
        e->mtime_ns = wire_get_u32(w);
        e->target = "";
        in->entries++;
}

static int check_entry(struct archive_in *in, const struct wire_in *w, const struct archive_entry *e,
                       bool any_name) {
        if (w->bad)
                return bad(in, "an entry makes no sense");
        if (e->mode > 07777 || e->mtime_ns > 999999999)
                return bad(in, "an entry with a mode or a time that there is not");
        if (!any_name && !archive_name_ok(e->name))
                return bad(in, "a name that is no name of an entry");
        return 1;
}

static int get_dir(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        get_attributes(in, w, &s->entry);
        s->entry.name = wire_get_str(w, ARCHIVE_NAME_MAX);
        if (in->depth >= ARCHIVE_DEPTH_MAX)
                return bad(in, "too many folders within folders");
        in->depth++;
        return check_entry(in, w, &s->entry, !w->bad && in->depth == 1 && s->entry.name[0] == '\0');
}

static int get_up(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        (void)w;
        (void)s;
        if (in->depth == 0)
                return bad(in, "the end of a folder that did not begin");
        in->depth--;
        return 1;
}

static int get_file(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        get_attributes(in, w, &s->entry);
        s->entry.size = in->size = wire_get_u64(w);
        s->entry.name = wire_get_str(w, ARCHIVE_NAME_MAX);
        if (in->size > ARCHIVE_SIZE_MAX && in->size != ARCHIVE_SIZE_UNKNOWN)
                return bad(in, "a size that no file has");
        in->in_file = true;
        in->after_hole = false;
        in->at = 0;
        return check_entry(in, w, &s->entry, false);
}

/* So many bytes more, data or hole. */
static int advance(struct archive_in *in, uint64_t n) {
        uint64_t most = in->size < ARCHIVE_SIZE_MAX ? in->size : ARCHIVE_SIZE_MAX;

        if (n == 0 || n > most - in->at)
                return bad(in, "a file is longer than was told");
        in->at += n;
        return 0;
}

static int get_hole(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        s->bytes = wire_get_u64(w);
        if (in->after_hole)
                return bad(in, "a hole behind a hole");
        in->after_hole = true;
        return advance(in, s->bytes) < 0 ? -EPROTO : 1;
}

static int get_close(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        s->bytes = wire_get_u64(w);
        s->whole = wire_get_bool(w);
        if (s->bytes != in->at || (s->whole && in->size != ARCHIVE_SIZE_UNKNOWN && in->size != in->at))
                return bad(in, "a file's size is not what was told");
        in->in_file = false;
        return 1;
}

static int get_link(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        get_attributes(in, w, &s->entry);
        s->entry.name = wire_get_str(w, ARCHIVE_NAME_MAX);
        s->entry.target = wire_get_str(w, ARCHIVE_TARGET_MAX);
        if (!w->bad && s->entry.target[0] == '\0')
                return bad(in, "a link that leads nowhere");
        return check_entry(in, w, &s->entry, false);
}

static int get_item(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        s->entry.kind = (char)wire_get_u8(w);
        get_attributes(in, w, &s->entry);
        s->entry.size = wire_get_u64(w);
        s->entry.links = wire_get_u32(w);
        s->entry.uid = wire_get_u32(w);
        s->entry.gid = wire_get_u32(w);
        s->entry.name = wire_get_str(w, ARCHIVE_TARGET_MAX);
        s->entry.target = wire_get_str(w, ARCHIVE_TARGET_MAX);
        if (s->entry.kind == '\0' || !strchr(KINDS, s->entry.kind))
                return bad(in, "an entry of a kind that there is not");
        return check_entry(in, w, &s->entry, true);
}

static int get_end(struct archive_in *in, struct wire_in *w, struct archive_step *s) {
        s->bytes = wire_get_u64(w);
        if (in->depth > 0 || s->bytes != in->entries)
                return bad(in, "entries are missing");
        in->ended = true;
        return 1;
}

#define IN_FILES 1 /* between entries */
#define IN_FILE 2  /* between FILE and CLOSE */
#define IN_ITEMS 4
#define AT_FRONT 8

static const struct {
        uint32_t max;
        unsigned where;
        int (*get)(struct archive_in *in, struct wire_in *w, struct archive_step *s);
} records[] = {
        [ARCHIVE_HEAD] = { 6, AT_FRONT, get_head },
        [ARCHIVE_DIR] = { ARCHIVE_RECORD_MAX, IN_FILES, get_dir },
        [ARCHIVE_UP] = { 0, IN_FILES, get_up },
        [ARCHIVE_FILE] = { ARCHIVE_RECORD_MAX, IN_FILES, get_file },
        [ARCHIVE_DATA] = { ARCHIVE_DATA_MAX, IN_FILE, NULL },
        [ARCHIVE_HOLE] = { 8, IN_FILE, get_hole },
        [ARCHIVE_CLOSE] = { 9, IN_FILE, get_close },
        [ARCHIVE_LINK] = { ARCHIVE_RECORD_MAX, IN_FILES, get_link },
        [ARCHIVE_ITEM] = { ARCHIVE_RECORD_MAX, IN_ITEMS, get_item },
        [ARCHIVE_END] = { 8, IN_FILES | IN_ITEMS, get_end },
};

static unsigned where(const struct archive_in *in) {
        if (!in->begun)
                return AT_FRONT;
        if (in->in_file)
                return IN_FILE;
        return in->content == ARCHIVE_OF_ITEMS ? IN_ITEMS : IN_FILES;
}

void archive_in_init(struct archive_in *in, enum archive_content content) {
        memset(in, 0, offsetof(struct archive_in, buf));
        in->content = content;
}

bool archive_ended(const struct archive_in *in) {
        return in->ended && !in->bad;
}

/* Up to @want bytes in buf. False: there are no more. */
static bool collect(struct archive_in *in, const uint8_t **p, size_t *len, size_t want) {
        size_t n = want - in->len < *len ? want - in->len : *len;

        if (n > 0)
                memcpy(in->buf + in->len, *p, n);
        in->len += n;
        *p += n;
        *len -= n;
        return in->len == want;
}

static int give_data(struct archive_in *in, const uint8_t **p, size_t *len, struct archive_step *ret) {
        size_t n = in->data_left < *len ? in->data_left : *len;

        if (n == 0)
                return 0;
        *ret = (struct archive_step){ .type = ARCHIVE_DATA, .data = *p, .len = n };
        in->data_left -= (uint32_t)n;
        *p += n;
        *len -= n;
        return 1;
}

/* A whole header stands in buf. 1 when the record may stand here. */
static int judge_header(struct archive_in *in, uint32_t *ret_len) {
        struct wire_in w;
        uint8_t type;
        uint32_t n;

        wire_in_init(&w, in->buf, ARCHIVE_HEADER);
        type = wire_get_u8(&w);
        n = wire_get_u32(&w);
        if (type >= sizeof(records) / sizeof(records[0]) || !(records[type].where & where(in)))
                return bad(in, in->begun ? "a record that has no place where it stands"
                                         : "it does not begin as one");
        if (n > records[type].max)
                return bad(in, "a record is too long");
        *ret_len = n;
        return 1;
}

static int take_record(struct archive_in *in, size_t len, struct archive_step *ret) {
        uint8_t type = in->buf[0];
        struct archive_step s = { .type = type };
        struct wire_in w;
        int r;

        wire_in_init(&w, in->buf + ARCHIVE_HEADER, len);
        r = records[type].get(in, &w, &s);
        if (r >= 0 && !wire_in_done(&w))
                return bad(in, "a record of a wrong length");
        if (r > 0)
                *ret = s;
        return r;
}

int archive_next(struct archive_in *in, const uint8_t **p, size_t *len, struct archive_step *ret) {
        while (!in->bad) {
                uint32_t n;
                int r;

                if (in->data_left > 0)
                        return give_data(in, p, len, ret);
                if (*len == 0)
                        return 0;
                if (in->ended)
                        return bad(in, "there is more behind its end");
                if (in->len < ARCHIVE_HEADER && !collect(in, p, len, ARCHIVE_HEADER))
                        return 0;
                r = judge_header(in, &n);
                if (r < 0)
                        return r;
                if (in->buf[0] == ARCHIVE_DATA) {
                        in->len = 0;
                        in->after_hole = false;
                        if (advance(in, n) < 0)
                                return -EPROTO;
                        in->data_left = n;
                        continue;
                }
                if (!collect(in, p, len, ARCHIVE_HEADER + n))
                        return 0;
                in->len = 0;
                r = take_record(in, n, ret);
                if (r != 0)
                        return r;
        }
        return -EPROTO;
}
