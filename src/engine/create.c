/*
 * The states of one create, each waiting for one call:
 *
 *     RESOLVING -> CREATING -> STARTING -> INSPECTING -> (answered)
 *         \___________\___________\____________\_____-> failed: the container, if any, is removed in the background
 *
 * The image's name is resolved first: the container is created from an id, and compared with it before anybody has it.
 * Before the call that creates, the record is on disk and the folder is there with its listening socket. While
 * the create lives its record is marked busy: events and comparisons leave it to this file.
 */
#include "engine/create.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "config/profile.h"
#include "engine/agenthash.h"
#include "engine/apijson.h"
#include "engine/body.h"
#include "engine/create_for.h"
#include "engine/elink.h"
#include "engine/image.h"
#include "engine/mounts.h"
#include "engine/removal.h"

struct create {
        struct broker *broker;
        struct request *request;
        struct record *record;
        int listen_fd;
        bool asked;            /* the engine may have a container of that name */
        struct mounts *mounts; /* NULL: no host folders */
        struct narrow_kept narrow;
        struct api_call *call;
        struct image_look look;
        uint8_t recipe[ENGINE_RECIPE];
        char profile[ENGINE_PROFILE_MAX + 1];
        char image[256];                        /* as the config has it */
        char image_id[ENGINE_IMAGE_ID_MAX + 1]; /* which that is */
};

static void create_free(struct create *c) {
        api_cancel(c->call);
        close_fd(c->listen_fd);
        mounts_free(c->mounts);
        free(c);
}

/* Removes what there is of the sandbox. */
static void undo(struct create *c) {
        struct record *rec = c->record;

        if (!rec)
                return;
        rec->busy = false;
        c->record = NULL;
        if (!c->asked)
                removal_forget(c->broker, rec);
        else if (removal_start(c->broker, rec, NULL, NULL) < 0)
                log_line(LOG_P_DEBUG, "record %s stays for the next start", rec->name);
}

__attribute__((format(printf, 3, 4))) static void fail(struct create *c, enum engine_error error,
                                                       const char *fmt, ...) {
        char text[ENGINE_TEXT_MAX + 1];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        undo(c);
        request_fail(c->request, error, "sandbox of profile \"%s\": %s", c->profile, text);
        create_free(c);
}

/* The kernel's words for ENOSPC and EDQUOT, wherever the engine met them. */
static bool is_full(const char *words) {
        return strcasestr(words, "no space left on device") || strcasestr(words, "disk quota exceeded");
}

static void fail_absent(struct create *c) {
        char mend[400];

        image_mend(c->image, mend, sizeof(mend));
        fail(c, ENGINE_E_NO_IMAGE, "image \"%s\" is not there: %s", c->image, mend);
}

/* True when the call did what it should; else everything is over. */
static bool good(struct create *c, const struct api_reply *reply, const char *what, long want) {
        char words[600];

        c->call = NULL;
        if (reply->error) {
                char text[128];

                c->record->unsure = !c->record->id[0];
                snprintf(text, sizeof(text), "%s of a sandbox of profile \"%s\"", what, c->profile);
                undo(c);
                request_fail_call(c->request, reply, text);
                create_free(c);
                return false;
        }
        if (reply->status == want)
                return true;
        apijson_message(reply->body, reply->len, words, sizeof(words));
        if (is_full(words))
                fail(c, ENGINE_E_REFUSED,
                     "%s: the engine has no room: %s: make some (docker system df shows what takes it); "
                     "it is tried again",
                     what, words);
        else if (reply->status == 404 && strstr(words, "No such image"))
                fail_absent(c);
        else
                fail(c, ENGINE_E_REFUSED,
                     "%s from image \"%s\": the engine says: %s: mend the profile in "
                     "sandbox.yaml",
                     what, c->image, words);
        return false;
}

/*
 * No other folder can be there, as the engine mounts our descriptors, if our pid means the same process to it as to
 * us. Where it does not (the engine in a pid namespace of its own) or where an engine resolves the descriptor's name
 * first, this finds out, before anybody can run a command. What is compared is the kernel's own table of the
 * container's mounts: the agent's word would not do, as it runs as the caller, who may have traced it from its first
 * instruction on.
 */
static bool has_its_mounts(struct create *c, pid_t pid) {
        struct errmsg e = { "" };
        int r;

        if (!c->mounts)
                return true;
        r = mounts_verify(c->mounts, c->broker->config, pid, &e);
        if (r < 0) {
                log_line(LOG_P_ERROR, "container %.12s of uid %u is removed: %s", c->record->id,
                         c->mounts->uid, e.text);
                fail(c, r == -EPERM ? ENGINE_E_NOT_ALLOWED : ENGINE_E_REFUSED, "%s", e.text);
                return false;
        }
        log_line(LOG_P_INFO, "container %.12s: %zu host folders of uid %u", c->record->id, c->mounts->n,
                 c->mounts->uid);
        return true;
}

static void inspected(void *userdata, const struct api_reply *reply) {
        struct engine_msg m = { .type = ENGINE_CREATED };
        struct apijson_container seen;
        struct create *c = userdata;
        struct record *rec = c->record;
        struct errmsg e;

        /* With auto-remove one that ends at once may be gone by now. */
        if (reply->error == 0 && (reply->status == 404 || rec->died)) {
                c->call = NULL;
                fail(c, ENGINE_E_REFUSED,
                     "it ended right after its start (exit code %d): does image \"%s\" fit "
                     "this machine, and the agent at %s?",
                     rec->died ? (int)rec->exit_code : -1, c->image, c->broker->options.agent_path);
                return;
        }
        if (!good(c, reply, "inspection", 200))
                return;
        if (apijson_inspect(reply->body, reply->len, &seen, &e) < 0) {
                fail(c, ENGINE_E_REFUSED, "inspection: %s", e.text);
                return;
        }
        if (strcmp(seen.id, rec->id) != 0 || strcmp(seen.name, rec->name) != 0 ||
            strcmp(seen.installation, c->broker->records.installation) != 0 || !seen.running ||
            seen.pid < 2) {
                fail(c, ENGINE_E_REFUSED, "it does not run after its start (state %s, exit code %d)",
                     seen.state, (int)seen.exit_code);
                return;
        }
        if (!engine_same_image(seen.image, c->image_id)) {
                log_line(LOG_P_ERROR, "container %.12s was made from %.80s and not from %.80s: removed",
                         rec->id, seen.image, c->image_id);
                fail(c, ENGINE_E_REFUSED,
                     "the engine made it from another image than \"%s\": it is removed", c->image);
                return;
        }
        if (request_orphaned(c->request)) {
                fail(c, ENGINE_E_REFUSED, "the manager went away");
                return;
        }
        if (!has_its_mounts(c, (pid_t)seen.pid))
                return;
        m.container = rec->id;
        m.pid = seen.pid;
        m.image = c->image_id;
        rec->busy = false;
        if (!request_answer(c->request, &m, c->listen_fd))
                undo(c);
        create_free(c);
}

static const struct api_handler inspected_handler = { .on_done = inspected };

static void next_call(struct create *c, const char *method, const char *suffix,
                      const struct api_handler *h) {
        struct api_request q = { .method = method, .timeout_ms = API_START_MS };
        char path[160];

        snprintf(path, sizeof(path), "/containers/%s/%s", c->record->id, suffix);
        q.path = path;
        if (api_start(c->broker->api, &q, h, c, &c->call) < 0)
                fail(c, ENGINE_E_REFUSED, "out of memory");
}

static void started(void *userdata, const struct api_reply *reply) {
        struct create *c = userdata;

        if (good(c, reply, "start", 204))
                next_call(c, "GET", "json", &inspected_handler);
}

static const struct api_handler started_handler = { .on_done = started };

static void created(void *userdata, const struct api_reply *reply) {
        char id[ENGINE_ID_LEN + 1];
        struct create *c = userdata;
        struct errmsg e;
        int r;

        if (!good(c, reply, "creation", 201))
                return;
        if (apijson_created(reply->body, reply->len, id, &e) < 0) {
                fail(c, ENGINE_E_REFUSED, "creation: %s", e.text);
                return;
        }
        /* Only a hint for the next start: the name finds it as well. */
        r = records_set_id(&c->broker->records, c->record, id);
        if (r < 0)
                log_line(LOG_P_WARNING, "record %s: %s", c->record->name, strerror(-r));
        next_call(c, "POST", "start", &started_handler);
}

static const struct api_handler created_handler = { .on_done = created };

/* The descriptors stay open until the create is over: the engine mounts what they stand for when it starts the
 * container. */
static char *make_body(struct create *c, const struct config_profile *p) {
        struct broker *b = c->broker;
        _cleanup_free_ char *folder = sockdir_path(&b->sockdir, record_tag(c->record));
        struct body_mount mounts[MOUNT_MAX];
        struct body_caller caller = { .pid = getpid(), .mounts = mounts };
        struct body_context ctx = {
                .image = c->image_id,
                .installation = b->records.installation,
                .recipe = c->recipe,
                .agent_path = b->options.agent_path,
                .stream_folder = folder,
                .stream_gid = b->manager_gid,
                .cgroup_v2 = elink_cgroup_v2(b->link),
                .rootless = elink_rootless(b->link),
                .caller = c->mounts ? &caller : NULL,
        };

        if (c->mounts) {
                caller.uid = c->mounts->uid;
                caller.gid = c->mounts->gid;
                caller.n = c->mounts->n;
                for (size_t i = 0; i < caller.n; i++)
                        mounts[i] = (struct body_mount){ c->mounts->of[i].dst, c->mounts->of[i].fd,
                                                         c->mounts->of[i].read_only };
        }
        return folder ? body_create(p, &ctx) : NULL;
}

static int send_create(struct create *c, const struct config_profile *p) {
        _cleanup_free_ char *body = make_body(c, p);
        struct api_request q = { .method = "POST", .body = body, .timeout_ms = API_START_MS };
        char path[160];
        int r;

        if (!body)
                return -ENOMEM;
        snprintf(path, sizeof(path), "/containers/create?name=%s", c->record->name);
        q.path = path;
        r = api_start(c->broker->api, &q, &created_handler, c, &c->call);
        c->asked = r == 0;
        return r;
}

static void resolved(void *userdata, const struct apijson_image *image, const struct api_reply *reply,
                     const char *why);

/* @mounts, which may be NULL, belongs to the new create. */
static struct create *create_new(struct broker *b, struct request *q, const struct config_profile *p,
                                 const uint8_t *recipe, const struct narrow *narrow,
                                 struct mounts *mounts) {
        struct create *c = calloc(1, sizeof(*c));

        if (!c) {
                mounts_free(mounts);
                return NULL;
        }
        c->broker = b;
        c->request = q;
        c->listen_fd = -1;
        c->mounts = mounts;
        narrow_copy(narrow, &c->narrow.narrow, c->narrow.paths);
        memcpy(c->recipe, recipe, sizeof(c->recipe));
        snprintf(c->profile, sizeof(c->profile), "%s", p->name);
        snprintf(c->image, sizeof(c->image), "%s", p->image);
        c->look = (struct image_look){ c->image, resolved, c };
        return c;
}

/* Record, folder, socket, then the call. */
static void begin(struct create *c, const struct config_profile *p) {
        enum sockdir_for whom = c->mounts ? SOCKDIR_CALLER : SOCKDIR_GROUP;
        struct broker *b = c->broker;
        int r = records_add(&b->records, &c->record);

        if (r < 0) {
                fail(c, ENGINE_E_REFUSED, "record in %s/containers: %s", b->options.state_dir,
                     strerror(-r));
                return;
        }
        c->record->busy = true;
        r = sockdir_make(&b->sockdir, record_tag(c->record), whom, &c->listen_fd);
        if (r < 0) {
                fail(c, ENGINE_E_REFUSED, "folder in %s: %s", b->sockdir.path, strerror(-r));
                return;
        }
        r = send_create(c, p);
        if (r < 0)
                fail(c, ENGINE_E_REFUSED, "creation: %s", strerror(-r));
}

/* NULL: it is answered, as there is no such profile, or not with that recipe. */
static const struct config_profile *wanted(struct broker *b, struct request *q, const char *profile,
                                           const uint8_t *hash) {
        const struct config_profile *p = config_profile_find(b->config, profile);
        uint8_t recipe[ENGINE_RECIPE];

        if (!p) {
                request_fail(q, ENGINE_E_NO_PROFILE,
                             "create: no profile \"%.64s\" in %s: add it under profiles:", profile,
                             b->options.config_path);
                return NULL;
        }
        config_recipe_with_agent(p, b->agent_hash, recipe);
        if (memcmp(recipe, hash, ENGINE_RECIPE) == 0)
                return p;
        request_fail(q, ENGINE_E_STALE,
                     "create: profile \"%s\": manager and broker have read different "
                     "configs or agents: restart both (hermes-sandbox stop, hermes-sandbox "
                     "start)",
                     p->name);
        return NULL;
}

/* The config may be another one by now. */
static void resolved(void *userdata, const struct apijson_image *image, const struct api_reply *reply,
                     const char *why) {
        struct create *c = userdata;
        const struct config_profile *p;
        struct config_profile own;
        struct errmsg e = { "" };
        enum engine_error error;

        c->call = NULL;
        if (reply) {
                request_fail_call(c->request, reply, "image of a new sandbox");
                create_free(c);
                return;
        }
        if (!image && why[0]) {
                fail(c, ENGINE_E_REFUSED, "%s", why);
                return;
        }
        if (!image) {
                fail_absent(c);
                return;
        }
        p = wanted(c->broker, c->request, c->profile, c->recipe);
        if (!p) {
                create_free(c);
                return;
        }
        memcpy(c->image_id, image->id, sizeof(c->image_id));
        if (create_for_profile(c->broker, p, &c->narrow.narrow, c->mounts, &own, &error, &e) < 0) {
                fail(c, error, "%s", e.text);
                return;
        }
        begin(c, &own);
        config_profile_done(&own);
}

void create_begin(struct broker *b, struct request *q, const char *profile, const uint8_t *hash,
                  const struct narrow *narrow, struct mounts *mounts) {
        const struct config_profile *p = wanted(b, q, profile, hash);
        struct create *c;

        if (!p) {
                mounts_free(mounts);
                return;
        }
        c = create_new(b, q, p, hash, narrow, mounts);
        if (!c)
                request_fail(q, ENGINE_E_REFUSED, "create: out of memory");
        else if (image_look_start(b, &c->look, &c->call) < 0)
                fail(c, ENGINE_E_REFUSED, "out of memory");
}

void create_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        const struct narrow none = { 0 };

        create_begin(b, q, m->profile, m->hash, &none, NULL);
}
