/*
 * The readable trail as anybody who could write to it may have left it: as two files, verified by itself
 * and against a kernel's trail that has every third line. What is said of it is one printable line each,
 * and a file that agrees in all is one that chains.
 *
 * The same lines also go through the reader of a kernel record's fields, word for word.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "cli/audit/review_fields.h"
#include "cli/audit/review_line.h"
#include "cli/audit/review_verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok) {
        if (!ok)
                abort();
}

static uint64_t said;

static void found(void *userdata, const struct review_finding *f) {
        (void)userdata;
        check(f->kind && f->text[0]);
        for (const char *p = f->text; *p; p++)
                check((unsigned char)*p >= 0x20 && *p != 0x7f);
        said += strcmp(f->kind, "note") != 0;
}

static void add_file(struct review_files *f, const uint8_t *p, size_t len) {
        struct review_file *v = &f->v[f->n++];

        v->path = (char *)"trail";
        v->size = len;
        v->fd = memfd_create("trail", MFD_CLOEXEC);
        check(v->fd >= 0 && write(v->fd, p, len) == (ssize_t)len);
}

/* Every third line as the kernel would have recorded it. */
static void add_stamps(struct review_stamps *s, const uint8_t *p, size_t len) {
        struct review_trail_line l;
        unsigned n = 0;

        while (len > 0) {
                const uint8_t *nl = memchr(p, '\n', len);
                size_t line = nl ? (size_t)(nl - p) : len;

                if (n++ % 3 == 0 && review_line_parse((const char *)p, line, &l) == 0) {
                        struct review_record r = { .stamped = true,
                                                   .op = REVIEW_EXEC_END,
                                                   .seq = l.seq };
                        static const char digits[] = "0123456789abcdef";
                        uint8_t hash[SHA256_DIGEST_SIZE];
                        struct sha256_ctx ctx;

                        sha256_init(&ctx);
                        sha256_update(&ctx, line, p);
                        sha256_digest(&ctx, sizeof(hash), hash);
                        for (size_t i = 0; i < sizeof(hash); i++) {
                                r.hash[2 * i] = digits[hash[i] >> 4];
                                r.hash[2 * i + 1] = digits[hash[i] & 15];
                        }
                        if (n % 2 == 0)
                                r.op = REVIEW_TRAIL_OPEN;
                        check(review_stamps_add(s, &r) == 0);
                }
                len -= nl ? line + 1 : line;
                p += nl ? line + 1 : line;
        }
        for (size_t i = 1; i < s->n; i++)
                check(s->v[i - 1].seq < s->v[i].seq);
}

static void fields(const uint8_t *data, size_t size) {
        static struct review_arena arena;
        struct review_record record;
        struct review_bytes exe = { 0 };
        struct review_fields f;
        char *text = malloc(size + 1), *save = NULL;

        check(text != NULL);
        memcpy(text, data, size);
        text[size] = 0;
        review_fields_clear(&record);
        review_fields_init(&f, &arena, &record, &exe);
        for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
                char *value = strchr(word, '=');

                if (!value)
                        continue;
                *value++ = 0;
                review_fields_put(&f, word, value);
        }
        check(arena.len <= sizeof(arena.bytes) && strlen(record.exec) < sizeof(record.exec));
        if (review_fields_complete(&record) && record.op == REVIEW_EXEC_START)
                check(record.command.p && record.uid != REVIEW_NO_ID);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct review_file two[2];
        struct review_files files = { .v = two };
        struct review_stamps stamps = { 0 };
        struct review_verify v = { .files = &files, .found = found };
        struct review_verdict alone, both;
        size_t half = size / 2;
        struct errmsg e;

        /* Mostly behind a line, as a rotation would. */
        if (size > 0 && data[0] != 'x')
                while (half < size && half > 0 && data[half - 1] != '\n')
                        half++;
        add_file(&files, data, half);
        add_file(&files, data + half, size - half);
        add_stamps(&stamps, data, size);
        said = 0;
        check(review_verify_run(&v, &alone, &e) == 0 && alone.findings == said);
        check(alone.lines <= size / 80);
        v.stamps = &stamps;
        said = 0;
        check(review_verify_run(&v, &both, &e) == 0 && both.findings == said);
        check(both.lines == alone.lines && both.agreed <= both.lines);
        if (alone.findings == 0 && alone.lines > 0)
                check(alone.last - alone.first + 1 == alone.lines);
        review_stamps_done(&stamps);
        close(two[0].fd);
        close(two[1].fd);
        fields(data, size);
        return 0;
}
