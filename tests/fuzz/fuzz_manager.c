/*
 * The manager's handlers behind the decoder: callers, agents and the broker's answers against pool,
 * queue, execs and scrub, all over real sockets, in whatever order the input says. An input is a
 * program: a byte names the step, the bytes after it are its arguments. After each step everything must
 * fit together (manager_rig.h).
 */
#include "fuzz/manager_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
        const uint8_t *p;
        size_t left;
};

static uint8_t byte(struct program *g) {
        if (g->left == 0)
                return 0;
        g->left--;
        return *g->p++;
}

/* A length and so many bytes, of what is there. */
static const uint8_t *bytes(struct program *g, size_t *ret_len) {
        size_t n = byte(g);
        const uint8_t *p;

        if (n > g->left)
                n = g->left;
        p = g->p;
        g->p += n;
        g->left -= n;
        *ret_len = n;
        return p;
}

static void step_client_exec(struct rig *r, struct program *g) {
        static const char *const profiles[] = { "", "default", "once", "wait", "none" };
        struct rig_end *c = &r->clients[byte(g) % CLIENTS];
        uint8_t how = byte(g), payload[1024];
        char word[256] = "true";
        const char *args[] = { word, "b" }, *env[] = { "A=b" };
        struct exec_request q = { .use_stdin = how & 1,
                                  .shell = how & 2,
                                  .profile = profiles[(how >> 2) % 5],
                                  .workdir = how & 32 ? "/tmp" : "",
                                  .timeout_ms = how & 64 ? 1000 : 0,
                                  .n_args = how & 2 ? 1 : 1 + (how >> 7),
                                  .n_env = how >> 7,
                                  .args = args,
                                  .env = env };
        const uint8_t *p;
        size_t n;

        p = bytes(g, &n);
        for (size_t i = 0; i < n; i++)
                word[i] = p[i] ? (char)p[i] : '.';
        if (n > 0)
                word[n] = '\0';
        rig_frame(c, FRAME_EXEC, 0, 1, payload,
                  (size_t)exec_request_encode(&q, payload, sizeof(payload)));
}

static void step_frame(struct rig_end *e, uint32_t channel, struct program *g) {
        uint8_t type = byte(g) % 20, flags = byte(g), buf[256];
        size_t n;
        const uint8_t *p = bytes(g, &n);

        memcpy(buf, p, n);
        rig_frame(e, type, flags & 128 ? flags : flags & 3, flags & 64 ? channel + 1 : channel, buf, n);
}

static void step_exited(struct rig *r, struct program *g) {
        struct rig_end *a = &r->agents[byte(g) % AGENTS];
        uint8_t cause = byte(g), payload[256];
        struct exited e = { .cause = cause % 11, .code = byte(g), .signaled = cause & 128 };

        rig_frame(a, FRAME_EXITED, 0, rig_channel(r, a), payload,
                  (size_t)exited_encode(&e, payload, sizeof(payload)));
}

static void step_scrubbed(struct rig *r, struct program *g) {
        struct rig_end *a = &r->agents[byte(g) % AGENTS];
        uint8_t check = byte(g), payload[128];
        struct scrubbed s = { .check = check % 16 < 10 ? SCRUB_CLEAN : check % 16 - 9,
                              .emptied = check & 16,
                              .us = byte(g),
                              .place = check & 32 ? "/t\"mp" : "" };

        rig_frame(a, FRAME_SCRUBBED, 0, 0, payload,
                  (size_t)scrubbed_encode(&s, payload, sizeof(payload)));
        if (s.check != SCRUB_CLEAN)
                a->may_be_clean = false;
}

static void step(struct rig *r, struct program *g) {
        const uint8_t *p;
        uint8_t slot;
        size_t n;

        switch (byte(g) % 14) {
        case 0:
                slot = byte(g);
                rig_client(r, slot % CLIENTS, slot / CLIENTS % 2);
                break;
        case 1:
                step_client_exec(r, g);
                break;
        case 2:
                slot = byte(g);
                step_frame(&r->clients[slot % CLIENTS], 1, g);
                break;
        case 3:
                slot = byte(g);
                p = bytes(g, &n);
                rig_send(slot & 128 ? &r->agents[slot % AGENTS] : &r->clients[slot % CLIENTS], p, n);
                break;
        case 4:
                slot = byte(g);
                rig_agent(r, slot % AGENTS, slot & 128 ? "scrub=no: because\n" : "scrub=yes\n");
                break;
        case 5:
                slot = byte(g);
                step_frame(&r->agents[slot % AGENTS], rig_channel(r, &r->agents[slot % AGENTS]), g);
                break;
        case 6:
                step_exited(r, g);
                break;
        case 7:
                step_scrubbed(r, g);
                break;
        case 8:
        case 9:
                rig_answer(r, byte(g));
                break;
        case 10:
                client_announce(NULL, 0, &r->m);
                sandbox_retire(NULL, 0, &r->m);
                break;
        case 11:
                rig_later(r, (uint64_t)byte(g) * 200);
                break;
        case 12:
                rig_reload(r, byte(g));
                break;
        case 13:
                rig_status(r, byte(g) & 1);
                break;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct program g = { data, size };
        struct rig *r = rig_begin();

        for (int i = 0; i < 200 && g.left > 0; i++) {
                step(r, &g);
                rig_settle(r);
                rig_check(r);
        }
        rig_finish(r);
        return 0;
}
