/* A row says where a field goes and in which form it must stand; anything else is not ours. */
#include "cli/audit/review_fields.h"

#include <string.h>

enum form { WORD, ID, NUMBER32, NUMBER64, CODE, TEXT, EXE, SEQ, ADDRESS };

struct row {
        const char *name;
        enum form form;
        size_t offset, size;
};

#define AT(form, name, member)                                      \
        {                                                           \
                name, form, offsetof(struct review_record, member), \
                        sizeof(((struct review_record *)0)->member) \
        }

static const struct row rows[] = {
        AT(WORD, "op", op_word),
        AT(ID, "exec", exec),
        AT(NUMBER32, "uid", uid),
        AT(NUMBER32, "sauid", loginuid),
        AT(NUMBER32, "pid", pid),
        AT(ID, "cid", cid),
        AT(TEXT, "profile", profile),
        AT(TEXT, "session", session),
        AT(TEXT, "fp", fp),
        AT(ADDRESS, "addr", address),
        AT(NUMBER32, "port", port),
        AT(NUMBER64, "processes", processes),
        AT(WORD, "pool", pool),
        AT(TEXT, "cmd", command),
        AT(NUMBER64, "cmd_len", command_len),
        AT(ID, "cmd_sha256", sha256),
        AT(WORD, "cause", cause),
        AT(CODE, "rc", rc),
        AT(SEQ, "seq", seq),
        AT(ID, "hash", hash),
        AT(WORD, "reason", reason),
        AT(NUMBER64, "bytes", bytes),
        AT(WORD, "check", check),
        AT(WORD, "by", by),
        AT(TEXT, "place", place),
        AT(NUMBER64, "requests", requests),
        AT(NUMBER64, "ms", ms),
        AT(NUMBER64, "containers", containers),
        AT(TEXT, "acct", account),
        AT(TEXT, "grp", group),
        AT(WORD, "res", res),
        { "exe", EXE, 0, 0 },
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct {
        const char *word;
        enum review_op op;
} ops[] = {
        { "trail-open", REVIEW_TRAIL_OPEN },     { "pool-start", REVIEW_POOL_START },
        { "pool-stop", REVIEW_POOL_STOP },       { "exec-start", REVIEW_EXEC_START },
        { "exec-end", REVIEW_EXEC_END },         { "exec-rejected", REVIEW_EXEC_REJECTED },
        { "scrub-failed", REVIEW_SCRUB_FAILED }, { "exec-suppressed", REVIEW_EXEC_SUPPRESSED },
        { "session-open", REVIEW_SESSION_OPEN }, { "session-close", REVIEW_SESSION_CLOSE },
        { "session-stop", REVIEW_SESSION_STOP }, { "session-start", REVIEW_SESSION_START },
        { "ssh-login", REVIEW_SSH_LOGIN },
};

static bool number(const char *s, uint64_t max, uint64_t *ret) {
        uint64_t v = 0;

        if (!*s)
                return false;
        for (; *s; s++) {
                if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
                        return false;
        }
        if (v > max)
                return false;
        *ret = v;
        return true;
}

bool review_fields_u32(const char *s, uint32_t *ret) {
        uint64_t v;

        if (!number(s, UINT32_MAX, &v))
                return false;
        *ret = (uint32_t)v;
        return true;
}

static bool copy(char *to, size_t size, const char *s, size_t len, const char *allowed) {
        if (len == 0 || len >= size || strspn(s, allowed) < len)
                return false;
        memcpy(to, s, len);
        to[len] = 0;
        return true;
}

static bool word(char *to, size_t size, const char *s) {
        return copy(to, size, s, strlen(s),
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-?");
}

/* Of a network, or "UNKNOWN", as sshd has it. */
static bool address(char *to, size_t size, const char *s) {
        return copy(to, size, s, strlen(s),
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:%_-?");
}

/* Hex digits between quotes or bare, or "?". */
static bool id(char *to, size_t size, const char *s) {
        size_t len = strlen(s);

        if (len >= 2 && s[0] == '"' && s[len - 1] == '"') {
                s++;
                len -= 2;
        }
        if (len == 1 && *s == '?')
                return copy(to, size, s, len, "?");
        return copy(to, size, s, len, "0123456789abcdef");
}

static int hex(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Between quotes as it is, else hex digits (upper case, as libaudit and the manager write them). */
static bool text(struct review_arena *a, const char *s, struct review_bytes *ret) {
        uint8_t *to = a->bytes + a->len;
        size_t len = strlen(s);

        if (len > sizeof(a->bytes) - a->len)
                return false;
        if (len >= 2 && s[0] == '"' && s[len - 1] == '"') {
                len -= 2;
                memcpy(to, s + 1, len);
        } else {
                if (len % 2 != 0)
                        return false;
                for (size_t i = 0; i < len; i += 2) {
                        int high = hex(s[i]), low = hex(s[i + 1]);

                        if (high < 0 || low < 0)
                                return false;
                        to[i / 2] = (uint8_t)(high << 4 | low);
                }
                len /= 2;
        }
        *ret = (struct review_bytes){ .p = to, .len = len };
        a->len += len;
        return true;
}

void review_fields_clear(struct review_record *r) {
        memset(r, 0, sizeof(*r));
        r->uid = r->loginuid = REVIEW_NO_ID;
        r->rc = -1;
}

void review_fields_init(struct review_fields *f, struct review_arena *a, struct review_record *r,
                        struct review_bytes *exe) {
        a->len = 0;
        *f = (struct review_fields){ .record = r, .exe = exe, .arena = a };
}

static bool put(struct review_fields *f, const struct row *row, const char *value) {
        void *to = (char *)f->record + row->offset;
        uint64_t v = 0;

        switch (row->form) {
        case WORD:
                return word(to, row->size, value);
        case ID:
                return id(to, row->size, value);
        case NUMBER32:
                return review_fields_u32(value, to);
        case NUMBER64:
                return number(value, UINT64_MAX, to);
        case CODE:
                if (strcmp(value, "?") == 0)
                        return true;
                if (!number(value, 255, &v))
                        return false;
                *(int *)to = (int)v;
                return true;
        case SEQ:
                f->record->stamped = true;
                return strcmp(value, "?") == 0 || number(value, UINT64_MAX, to);
        case TEXT:
                return text(f->arena, value, to);
        case ADDRESS:
                return address(to, row->size, value);
        case EXE:
                return text(f->arena, value, f->exe);
        }
        return false;
}

bool review_fields_put(struct review_fields *f, const char *name, const char *value) {
        for (size_t i = 0; i < N_ROWS; i++) {
                if (strcmp(rows[i].name, name) != 0)
                        continue;
                if (f->seen & UINT64_C(1) << i)
                        return false;
                f->seen |= UINT64_C(1) << i;
                if (!put(f, &rows[i], value))
                        return false;
                if (i > 0)
                        return true;
                for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
                        if (strcmp(ops[k].word, f->record->op_word) == 0)
                                f->record->op = ops[k].op;
                return true;
        }
        return true;
}

bool review_fields_complete(const struct review_record *r) {
        if (r->res[0] == 0 || (r->seq > 0 && strlen(r->hash) != REVIEW_HASH))
                return false;
        switch (r->op) {
        case REVIEW_EXEC_START:
                return r->exec[0] && r->uid != REVIEW_NO_ID && r->command.p;
        case REVIEW_EXEC_END:
                return r->exec[0] && r->cause[0] && r->stamped;
        case REVIEW_EXEC_REJECTED:
                return r->reason[0] && r->stamped;
        case REVIEW_EXEC_SUPPRESSED:
                return r->uid != REVIEW_NO_ID && r->stamped;
        case REVIEW_SESSION_OPEN:
        case REVIEW_SESSION_STOP:
        case REVIEW_SESSION_START:
                return r->uid != REVIEW_NO_ID && r->session.p && r->stamped;
        case REVIEW_SSH_LOGIN:
                return r->uid != REVIEW_NO_ID && r->fp.p && r->stamped;
        case REVIEW_SESSION_CLOSE:
                return r->uid != REVIEW_NO_ID && r->session.p && r->reason[0] && r->stamped;
        case REVIEW_SCRUB_FAILED:
        case REVIEW_POOL_START:
        case REVIEW_POOL_STOP:
        case REVIEW_TRAIL_OPEN:
                return r->stamped;
        default:
                return true;
        }
}
