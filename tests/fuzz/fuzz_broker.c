/*
 * The broker under a hostile manager: its requests in whatever order the input says, with ids used twice, descriptors
 * attached, callers' pairs that are none, connections that go away in between, and an engine in changing moods. An
 * input is a program: a byte names the step, the bytes after it are its arguments. Whatever happens, nothing is created but what the
 * config says, nothing is changed that this broker has not created (engine_rig.h), each request has one answer and no
 * descriptor is left open.
 */
#include "fuzz/engine_rig.h"

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

/* --- the manager's end
 * ------------------------------------------------------------------------------- */

static void hang_up(struct rig *r) {
        r->manager = close_fd(r->manager);
        r->raw = false;
        memset(r->asked, 0, sizeof(r->asked));
}

static void connect_manager(struct rig *r) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };

        hang_up(r);
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", rig_path("run/" SERVE_SOCKET));
        r->manager = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check(r->manager >= 0);
        if (connect(r->manager, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                hang_up(r);
}

static bool is_one_of(const struct rig *r, const char *id, bool created) {
        for (unsigned i = 0; i < r->n_containers; i++)
                if (strcmp(r->containers[i].id, id) == 0)
                        return !(created && r->containers[i].other_image);
        return false;
}

/* What the broker says fits what it was asked, and names no container but its own. */
static void check_answer(struct rig *r, const struct engine_msg *m, int fd) {
        check((fd >= 0) == (m->type == ENGINE_CREATED || m->type == ENGINE_LISTENING));
        if (m->type == ENGINE_CREATED || m->type == ENGINE_DIED)
                check(is_one_of(r, m->container, m->type == ENGINE_CREATED));
        for (uint16_t i = 0; m->type == ENGINE_LISTED && i < m->n_listed; i++)
                check(is_one_of(r, m->listed[i].container, false));
        if (m->type == ENGINE_STATE || m->type == ENGINE_DIED) {
                check(m->id == 0);
                return;
        }
        if (r->raw)
                return;
        check(m->id >= 1 && m->id <= IDS && r->asked[m->id - 1]);
        if (m->type != ENGINE_PROGRESS)
                r->asked[m->id - 1]--;
}

static void read_answers(struct rig *r) {
        static struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];

        while (r->manager >= 0) {
                _cleanup_fd_ int fd = -1;
                ssize_t n = engine_msg_recv(r->manager, buf, sizeof(buf), &fd);

                if (n == -EAGAIN)
                        return;
                if (n <= 0) {
                        hang_up(r);
                        return;
                }
                check(engine_msg_decode(buf, (size_t)n, ENGINE_FROM_BROKER, &m) == 0);
                check_answer(r, &m, fd);
        }
}

static void send_packet(struct rig *r, const uint8_t *buf, size_t len, int fd) {
        if (r->manager >= 0 && engine_msg_send(r->manager, buf, len, fd) < 0)
                hang_up(r);
}

/* An id that is used twice ends the connection, but for that of a HELLO, which is answered at once. */
static void ask(struct rig *r, struct engine_msg *m, int fd) {
        uint8_t buf[ENGINE_MSG_MAX];
        ssize_t n = engine_msg_encode(m, buf, sizeof(buf));

        check(n > 0);
        if (r->manager < 0)
                connect_manager(r);
        if (m->id >= 1 && m->id <= IDS)
                r->asked[m->id - 1]++;
        send_packet(r, buf, (size_t)n, fd);
}

/* --- steps
 * ------------------------------------------------------------------------------------------- */

static const char *container(const struct rig *r, uint8_t which) {
        static const char nobodys[] = "0000000000000000000000000000000000000000000000000000000000000000";

        switch (which % 4) {
        case 0:
                return FOREIGN;
        case 1:
                return which & 128 ? FORGED : nobodys;
        default:
                return r->n_containers ? r->containers[(which >> 2) % r->n_containers].id : nobodys;
        }
}

/* The ids that a caller's pair is made under. */
static void become(uid_t uid, gid_t gid) {
        if (getuid() == 0)
                check(seteuid(0) == 0 && setegid(gid) == 0 && seteuid(uid) == 0);
}

static int make_pair(uint8_t how, int *ret_mine) {
        static const int types[] = { SOCK_SEQPACKET, SOCK_SEQPACKET, SOCK_SEQPACKET, SOCK_STREAM };
        int pair[2];

        if (how % 8 != 7)
                become(CALLER_UID, CALLER_GID);
        check(socketpair(AF_UNIX, types[how / 8 % 4] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        become(getuid(), getgid());
        *ret_mine = pair[0];
        return pair[1];
}

/* What the caller writes: @how says how many, where to, what of, and what is wrong with it. */
static void write_mounts(int sock, struct program *g) {
        static const char *const places[] = {
                "/work", "/srv/a", "/etc", "/proc/x", "/tmp/a", "/tmp", "/work/b", "/.hermes-sandbox",
        };
        static const char *const folders[] = { "allowed/a", "allowed", "secret", "" };
        uint8_t n = byte(g) % 20;

        for (uint8_t i = 0; i < n; i++) {
                uint8_t how = byte(g), where = byte(g);
                struct mount_msg m = { how & 128 ? how % 16 : i, how & 64 ? 16 : n, how & 1,
                                       places[where % 8] };
                int flags = how & 32 ? O_RDONLY : O_PATH;
                int fd = open(rig_path(folders[where / 8 % 4]), flags | O_DIRECTORY | O_CLOEXEC);
                uint8_t buf[MOUNT_MSG_MAX];
                ssize_t len = mount_msg_encode(&m, buf, sizeof(buf));

                if (len > 0 && how & 16)
                        buf[where % (size_t)len] ^= how;
                if (len > 0)
                        engine_msg_send(sock, buf, (size_t)len, how & 8 ? -1 : fd);
                close_fd(fd);
        }
}

/* What one session shall have less of: a bit of the first byte says which, and its highest that @mounts is a lie. */
static void read_narrow(struct program *g, struct narrow *n, bool *mounts) {
        static const char *const places[] = { "/tmp", "/home/sandbox", "/var", "/root" };
        uint8_t which = byte(g);

        *mounts ^= which >> 7;
        if (which & 1)
                n->memory_bytes = (uint64_t)byte(g) << 20;
        if (which & 2)
                n->cpu_nano = (uint64_t)byte(g) << 23;
        if (which & 4)
                n->pids_limit = byte(g) * 4u;
        if (which & 8)
                n->shm_bytes = (uint64_t)byte(g) << 17;
        n->no_network = which & 16;
        if (which & 32) {
                n->user = true;
                n->uid = n->gid = byte(g);
                if (n->uid == 4)
                        n->gid = AGENT_EXEC_GID_FIRST;
        }
        if (which & 64)
                n->n_tmpfs = byte(g) % NARROW_TMPFS_MAX + 1;
        for (uint8_t i = 0; i < n->n_tmpfs; i++) {
                uint8_t how = byte(g);

                n->tmpfs[i].path = places[how % 4];
                n->tmpfs[i].bytes = ((uint64_t)how << 17) + 1;
        }
}

static void step_create(struct rig *r, struct program *g, bool mounted) {
        static const char *const profiles[] = { "", "root", "other", "none" };
        uint8_t how = byte(g), id = byte(g) % (IDS + 1), recipe[ENGINE_RECIPE] = { 0 };
        struct engine_msg m = { .id = id,
                                .type = mounted ? ENGINE_CREATE_FOR : ENGINE_CREATE,
                                .profile = profiles[how % 4],
                                .hash = recipe };
        const struct config_profile *p = config_profile_find(rig_config, m.profile);
        _cleanup_fd_ int fd = -1;
        int mine = -1;

        if (p && !(how & 128))
                config_recipe_with_agent(p, r->b.agent_hash, recipe);
        m.mounts = mounted && (how & 64) == 0;
        if (m.mounts) {
                fd = make_pair(byte(g), &mine);
                write_mounts(mine, g);
        } else if (how & 32) {
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        if (mounted)
                read_narrow(g, &m.narrow, &m.mounts);
        ask(r, &m, fd);
        if (mine >= 0) {
                close_fd(r->callers[id % IDS]);
                r->callers[id % IDS] = how & 16 ? mine : close_fd(mine);
        }
}

static void step_request(struct rig *r, struct program *g) {
        static const uint16_t types[] = {
                ENGINE_HELLO, ENGINE_REMOVE, ENGINE_LIST,   ENGINE_INSPECT,
                ENGINE_IMAGE, ENGINE_INFO,   ENGINE_LISTEN, ENGINE_IMAGE_LOOK
        };
        uint8_t how = byte(g), which = byte(g);
        struct engine_msg m = { .id = byte(g) % (IDS + 1),
                                .type = types[how % 8],
                                .version = how & 128 ? 1 : ENGINE_PROTO_VERSION,
                                .profile = how & 64 ? "other" : "none",
                                .container = container(r, which) };
        _cleanup_fd_ int fd = (how & 56) == 56 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

        ask(r, &m, fd);
}

/* Bytes of the input as a packet. */
static void step_raw(struct rig *r, struct program *g) {
        size_t n = byte(g);

        if (n > g->left)
                n = g->left;
        if (r->manager < 0)
                connect_manager(r);
        r->raw = true;
        send_packet(r, g->p, n, -1);
        g->p += n;
        g->left -= n;
}

static void step_event(struct rig *r, struct program *g) {
        static const char *const actions[] = { "die", "oom", "destroy", "start" };
        uint8_t which = byte(g), how = byte(g);
        const char *id = container(r, which);
        struct rig_container *c = rig_find(r, id, strlen(id));

        if (c && how % 4 != 1)
                c->running = false;
        if (c && how % 4 == 2)
                c->there = false;
        rig_event(r, id, actions[how % 4]);
}

static void step(struct rig *r, struct program *g) {
        switch (byte(g) % 10) {
        case 0:
        case 1:
                step_create(r, g, false);
                break;
        case 2:
        case 3:
                step_create(r, g, true);
                break;
        case 4:
        case 5:
                step_request(r, g);
                break;
        case 6:
                step_raw(r, g);
                break;
        case 7:
                connect_manager(r);
                ask(r,
                    &(struct engine_msg){
                            .id = 1, .type = ENGINE_HELLO, .version = ENGINE_PROTO_VERSION },
                    -1);
                break;
        case 8:
                r->mood = byte(g) % MOODS;
                /* Some of it while requests are under way. */
                return;
        case 9:
                step_event(r, g);
                break;
        }
        if (byte(g) & 1)
                return;
        rig_settle(r);
        read_answers(r);
}

/* The engine is well again and the callers go: then nobody waits any more, but for an engine that was silent. */
static void check_answered(struct rig *r) {
        for (unsigned i = 0; i < IDS; i++)
                r->callers[i] = close_fd(r->callers[i]);
        for (unsigned i = 0; i < CONNS; i++)
                if (r->conns[i].fd >= 0 && !r->conns[i].events)
                        shutdown(r->conns[i].fd, SHUT_RDWR);
        rig_settle(r);
        read_answers(r);
        check(r->b.mounts_readers == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct program g = { data, size };
        struct rig *r = rig_begin();

        for (int i = 0; i < 100 && g.left > 0; i++)
                step(r, &g);
        r->mood = GOOD;
        check_answered(r);
        if (!r->raw && r->manager >= 0)
                for (unsigned i = 0; i < IDS; i++)
                        check(!r->asked[i]);
        rig_finish(r);
        return 0;
}
