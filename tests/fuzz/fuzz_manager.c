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

static const char *const names[] = { "", "a", "b", "c", "-bad" };

static void step_client_exec(struct rig *r, struct program *g, bool in_session) {
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

        if (in_session) {
                uint8_t more = byte(g);

                q.session = names[1 + more % 4];
                q.open = more & 4;
                q.detach = more & 8;
                q.tty = more & 16;
                q.files = more & 32;
                q.rows = more & 64 ? 24 : 0;
                if (more & 128) {
                        q.user = true;
                        q.uid = how & 1 ? 0 : 10000;
                        q.gid = how & 4 ? UINT32_MAX : 10000;
                }
        }
        c->detach = q.detach;
        p = bytes(g, &n);
        for (size_t i = 0; i < n; i++)
                word[i] = p[i] ? (char)p[i] : '.';
        if (n > 0)
                word[n] = '\0';
        rig_frame(c, FRAME_EXEC, 0, 1, payload,
                  (size_t)exec_request_encode(&q, payload, sizeof(payload)));
}

/* With a descriptor, or two, where it is of mounts, and sometimes where it is not. */
static void send_passing(struct rig_end *c, const void *frame, size_t len, unsigned n_fds) {
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(2 * sizeof(int))];
        } control = { .room = { 0 } };
        struct iovec iov = { (void *)(uintptr_t)frame, len };
        struct msghdr mh = { .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)) };
        int pair[2];

        check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                         .cmsg_type = SCM_RIGHTS,
                                         .cmsg_len = CMSG_LEN(n_fds * sizeof(int)) };
        memcpy(CMSG_DATA(&control.head), pair, n_fds * sizeof(int));
        if (c->fd >= 0)
                (void)!sendmsg(c->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(pair[0]);
        close(pair[1]);
}

static const char *const labels[] = { "k=v", "empty=" };

static void step_open(struct rig *r, struct rig_end *c, uint8_t how, uint8_t what) {
        static const char *const images[] = { "", "one:2", "docker.io/library/debian:bookworm-slim",
                                              "x" };
        const char *env[] = { "A=b", "B=" };
        uint8_t buf[FRAME_HEADER + 2048];
        struct open_request q = { .form = how & 1,
                                  .mounts = how & 4,
                                  .name = names[what % 5],
                                  .profile = how & 16 ? "once" : "",
                                  .image = images[what / 64],
                                  .workdir = how & 2 ? "/tmp" : "",
                                  .ttl_ms = how & 32 ? what * UINT64_C(100) : 0,
                                  .n_labels = how & 64 ? 2 : 0,
                                  .labels = { labels[0], labels[1] },
                                  .n_env = how & 8 ? 2 : 0,
                                  .env = env };
        ssize_t n;

        if (how & 8 && what & 32)
                q.narrow = (struct narrow){ .pids_limit = what,
                                            .n_tmpfs = what & 8 ? 1 : 0,
                                            .tmpfs = { { "/tmp", what * UINT64_C(10000) + 1 } } };
        if (how & 8 && what & 16)
                q.narrow.user = true, q.narrow.uid = q.narrow.gid = FIRST_UID;
        n = open_request_encode(&q, buf + FRAME_HEADER, sizeof(buf) - FRAME_HEADER);
        check(n > 0);
        frame_put_header(buf, FRAME_OPEN, 0, 1, (uint32_t)n);
        if (q.mounts || how & 128)
                send_passing(c, buf, FRAME_HEADER + (size_t)n, 1 + (how >> 7));
        else
                rig_send(c, buf, FRAME_HEADER + (size_t)n);
        (void)r;
}

static void step_ask(struct rig *r, struct program *g) {
        static const char *const profiles[] = { "profile=once", "profile=default" };
        struct rig_end *c = &r->clients[byte(g) % CLIENTS];
        uint8_t op = byte(g), how = byte(g), what = byte(g), buf[FRAME_HEADER + 2048];
        bool image = op % 17 >= ASK_IMAGE_LIST && op % 17 <= ASK_IMAGE_VERIFY && how & 128;
        struct ask a = { .op = op % 17,
                         .form = how & 1   ? ANSWER_JSON
                                 : how & 4 ? ANSWER_RECORDS
                                           : ANSWER_TEXT,
                         .all = how & 2,
                         .signal = how & 8 ? what % 70 : 0,
                         .profile = how & 16 ? "once" : "",
                         .grace_ms = how & 32 ? what * UINT64_C(100) : 0,
                         .n_labels = how & 64 ? 2 : 0,
                         .labels = { image ? profiles[what % 2] : labels[0],
                                     image ? profiles[0] : labels[1] } };
        ssize_t n;

        if (a.op == 1) { /* once the way to open a session */
                step_open(r, c, how, what);
                return;
        }
        a.name = a.op == ASK_KILL ? r->ids[what % IDS] : what & 128 ? "0" : names[what % 5];
        n = ask_encode(&a, buf + FRAME_HEADER, sizeof(buf) - FRAME_HEADER);
        frame_put_header(buf, FRAME_ASK, 0, 1, (uint32_t)n);
        if (how & 128 && !image)
                send_passing(c, buf, FRAME_HEADER + (size_t)n, 1 + (how >> 7));
        else
                rig_send(c, buf, FRAME_HEADER + (size_t)n);
}

static void step_halted(struct rig *r, struct program *g) {
        struct rig_end *a = &r->agents[byte(g) % AGENTS];
        uint8_t payload[4] = { byte(g) };

        rig_frame(a, FRAME_HALTED, 0, 0, payload, sizeof(payload));
}

static void step_attach(struct rig *r, struct program *g) {
        struct rig_end *c = &r->clients[byte(g) % CLIENTS];
        uint8_t which = byte(g), payload[64];
        struct attach a = { .exec_id = r->ids[which % IDS],
                            .output = which & 16,
                            .offset = { which & 32 ? 7 : 0, which & 64 ? ATTACH_END : 0 } };

        if (!a.exec_id[0])
                a.exec_id = "0123456789abcdef";
        rig_frame(c, FRAME_ATTACH, 0, 1, payload, (size_t)attach_encode(&a, payload, sizeof(payload)));
}

static void step_attached(struct rig *r, struct program *g) {
        struct rig_end *a = &r->agents[byte(g) % AGENTS];
        uint8_t from = byte(g), payload[ATTACHED_SIZE];

        attached_encode(&(struct attached){ { from, from } }, payload);
        rig_frame(a, FRAME_ATTACHED, 0, rig_channel(r, a, from), payload, sizeof(payload));
}

static void step_frame(struct rig_end *e, uint32_t channel, struct program *g) {
        uint8_t type = byte(g) % 28, flags = byte(g), buf[256];
        size_t n;
        const uint8_t *p = bytes(g, &n);

        memcpy(buf, p, n);
        rig_frame(e, type, flags & 128 ? flags : flags & 3, flags & 64 ? channel + 1 : channel, buf, n);
}

static void step_exited(struct rig *r, struct program *g) {
        struct rig_end *a = &r->agents[byte(g) % AGENTS];
        uint8_t cause = byte(g), payload[256];
        struct exited e = { .cause = cause % 11, .code = byte(g), .signaled = cause & 128 };

        rig_frame(a, FRAME_EXITED, 0, rig_channel(r, a, cause >> 4), payload,
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

        switch (byte(g) % 22) {
        case 0:
                slot = byte(g);
                if (slot & 128)
                        rig_gateway(r, slot % CLIENTS, slot / 16 % 2);
                else
                        rig_client(r, slot % CLIENTS, slot / CLIENTS % USERS);
                break;
        case 1:
                step_client_exec(r, g, false);
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
                if (r->agents[slot % AGENTS].fd >= 0)
                        rig_held(r, &r->agents[slot % AGENTS], slot / AGENTS % 16, 1);
                break;
        case 5:
                slot = byte(g);
                step_frame(&r->agents[slot % AGENTS],
                           rig_channel(r, &r->agents[slot % AGENTS], slot / AGENTS), g);
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
        case 14:
                step_client_exec(r, g, true);
                break;
        case 15:
        case 16:
                step_ask(r, g);
                break;
        case 17:
                step_attach(r, g);
                break;
        case 18:
                step_attached(r, g);
                break;
        case 19:
                slot = byte(g);
                rig_held(r, &r->agents[slot % AGENTS], slot / AGENTS, byte(g));
                break;
        case 20:
                rig_restart(r);
                break;
        case 21:
                step_halted(r, g);
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
