/* A manager with two profiles and trails of its own, for what is told of it: no engine, no sockets. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

static struct manager m;
static struct pool dev, web;
static char dir[64], trail[96], state_file[96];

static void add_pool(struct pool *p, const char *name) {
        *p = (struct pool){ .m = &m, .name = (char *)(uintptr_t)name };
        TAILQ_INIT(&p->sandboxes);
        TAILQ_INIT(&p->turns);
        LIST_INSERT_HEAD(&m.pools, p, link);
}

static int begin(void **state) {
        struct config c = { .log_max_bytes = 1 << 20, .audit_required = TRI_FALSE };
        struct errmsg e = { "" };

        (void)state;
        memset(&m, 0, sizeof(m));
        TAILQ_INIT(&m.sessions);
        add_pool(&dev, "dev");
        add_pool(&web, "web-1.x");
        m.started_ms = now_ms() - 61000;
        snprintf(dir, sizeof(dir), "/tmp/test-counts-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(trail, sizeof(trail), "%s/log", dir);
        snprintf(state_file, sizeof(state_file), "%s/open", dir);
        c.audit_file = trail;
        return audit_new(&c, false, state_file, &m.audit, &e);
}

static int end(void **state) {
        (void)state;
        audit_free(m.audit);
        unlink(trail);
        unlink(state_file);
        return rmdir(dir);
}

/* A command of @p that began after @start_us, warm or not, and ended after @wall_us. */
static inline void ran(struct pool *p, bool hit, uint64_t start_us, enum cause cause, uint64_t wall_us) {
        struct exec x = { .m = &m, .pool = p, .pool_hit = hit, .begun_us = 1000000 };
        struct result r = { .cause = cause, .wall_us = wall_us, .bytes = { 1 << 30, 1 << 30 } };

        x.bytes[0] = 100;
        x.bytes[1] = 7;
        stats_started(&x, 1000000 + start_us);
        stats_ended(&x, &r);
}

static inline void refused(const char *reason) {
        struct audit_exec a = { .profile = "dev", .exec_id = "", .caller = { .uid = 7 } };

        audit_rejected(m.audit, &a, reason, 0);
        m.n_rejected++;
}

/* Two sessions were opened, and one is closed. */
static inline void sessions_came_and_went(void) {
        struct audit_session s = { .name = "one", .container_id = "", .profile = "dev" };

        audit_session_opened(m.audit, &s);
        audit_session_opened(m.audit, &s);
        audit_session_closed(m.audit, &s, "idle", NULL);
}

/* The answer of one of the three, NUL-terminated; it must have no NUL and end with a newline. */
static inline const char *checked(char *text, size_t len) {
        static char *last;

        free(last);
        last = text;
        if (!text || strlen(text) != len || len == 0 || text[len - 1] != '\n')
                fail_msg("no text: %s", text ? text : "NULL");
        return text;
}

static inline size_t widest(const char *text) {
        size_t max = 0;

        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                max = n > max ? n : max;
        }
        return max;
}

static inline void has(const char *text, const char *what) {
        if (!strstr(text, what))
                fail_msg("\"%s\" is not in:\n%s", what, text);
}

static inline void has_not(const char *text, const char *what) {
        if (strstr(text, what))
                fail_msg("\"%s\" is in:\n%s", what, text);
}
