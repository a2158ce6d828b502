/*
 * The images that the config names. A member asks by profile and never by an image's name, so he gets nothing that the
 * administrator has not chosen, and nothing moves a tag: what is there is not pulled again.
 *
 * A request is a job that goes through its rows one by one. To list and to verify it waits for looks, which it shares with
 * others (image_look.c), and ends when its caller has gone; lists are bounded by the connections of their user. A pull is
 * the job's own: it ends with the broker's answer, whether the caller still waits or not.
 *
 * Whatever is learnt on the way of what an image's name stands for is compared with what the pool's sandboxes were made
 * from, and a tag that somebody has moved is noticed by looking at it now and then.
 */
#include "manager/image.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/escape.h"
#include "common/exitcode.h"
#include "common/log.h"
#include "manager/exec.h"
#include "manager/image_look.h"

/* Pulls and verifications at once, and pulls alone: of one uid, and of all. */
#define JOBS_PER_UID 4
#define JOBS_MAX 16
#define PULLS_PER_UID 1
#define PULLS_MAX 4
/* How often a tag is looked at. */
#define LOOK_MS 30000

struct image_job {
        LIST_ENTRY(image_job) link;
        struct manager *m;
        struct client *client; /* NULL: it has gone, and this pulls */
        struct image_wait wait;
        struct audit_caller caller;
        uint16_t op;
        uint8_t form;                      /* enum answer_form */
        char failure[ENGINE_TEXT_MAX + 1]; /* of the first row that failed */
        size_t n, at;
        struct image_row rows[];
};

static const char *op_name(uint16_t op) {
        return op == ASK_PROFILES     ? "profiles"
               : op == ASK_IMAGE_LIST ? "image list"
               : op == ASK_IMAGE_PULL ? "image pull"
                                      : "image verify";
}

/* --- what a name stands for ---------------------------------------------------------------------- */

void image_is(struct pool *p, const char *id) {
        if (!id[0] || engine_same_image(p->image_id, id))
                return;
        if (p->image_id[0] && p->profile)
                log_line(LOG_P_INFO, "pool %s: image %s is another one now: idle sandboxes are replaced",
                         p->name, p->profile->image);
        snprintf(p->image_id, sizeof(p->image_id), "%s", id);
        pool_changed(p);
}

void image_seen(struct pool *p, const char *id) {
        if (!p->image_id[0])
                image_is(p, id);
        else if (!engine_same_image(p->image_id, id))
                p->image_looked_ms = 0;
}

static void looked(void *userdata, const struct engine_msg *m, int fd) {
        struct pool *p = userdata;

        close_fd(fd);
        p->image_looking = false;
        if (m->type == ENGINE_IMAGE_IS && m->present)
                image_is(p, m->image);
}

void image_check(struct manager *m, uint64_t now) {
        struct pool *p;

        if (m->draining || !m->swept || m->broker.state != ENGINE_UP)
                return;
        LIST_FOREACH(p, &m->pools, link) {
                struct engine_msg ask = { .type = ENGINE_IMAGE_LOOK, .profile = p->name };

                if (!p->profile || p->n_warm == 0 || p->image_looking ||
                    (p->image_looked_ms && now - p->image_looked_ms < LOOK_MS))
                        continue;
                p->image_looked_ms = now;
                p->image_looking = broker_ask(&m->broker, &ask, looked, p) == 0;
        }
}

/* --- a job --------------------------------------------------------------------------------------- */

static void job_free(struct image_job *job) {
        if (job->client)
                job->client->images = NULL;
        image_look_leave(&job->wait);
        LIST_REMOVE(job, link);
        free(job);
}

void image_hangup(struct image_job *job) {
        job->client = NULL;
        if (job->op != ASK_IMAGE_PULL)
                job_free(job);
}

void image_refuse_all(struct manager *m) {
        struct image_job *job, *after;

        for (job = LIST_FIRST(&m->image_jobs); job; job = after) {
                after = LIST_NEXT(job, link);
                if (!job->client)
                        continue;
                client_reject(job->client, EXIT_SANDBOX, "%s: " STOPPING_LINE, op_name(job->op));
                image_hangup(job);
        }
}

void image_free_all(struct manager *m) {
        while (!LIST_EMPTY(&m->image_jobs))
                job_free(LIST_FIRST(&m->image_jobs));
        image_looks_free(m);
}

/* One more line of an answer that goes on. */
__attribute__((format(printf, 2, 3))) static void say(struct image_job *job, const char *fmt, ...) {
        char line[2048];
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
        va_end(ap);
        if (n < 0)
                return;
        n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
        line[n++] = '\n';
        conn_send(&job->client->conn, FRAME_ANSWER, FRAME_MORE, job->client->channel, line, (size_t)n);
}

/* The whole text, and that it is bad news. */
static void answer_bad(struct client *c, const char *text, size_t len, const char *line) {
        struct reject r = { 1, REJECT_OTHER, line };
        uint8_t buf[PROTO_LINE_MAX + 64];

        for (size_t done = 0, n; done < len; done += n) {
                n = len - done < FRAME_PAYLOAD_MAX ? len - done : FRAME_PAYLOAD_MAX;
                conn_queue(&c->conn, FRAME_ANSWER, FRAME_MORE, c->channel, text + done, n);
        }
        client_finish(c, FRAME_REJECT, buf, (size_t)reject_encode(&r, buf, sizeof(buf)));
}

static void finish(struct image_job *job) {
        _cleanup_free_ char *text = NULL;
        struct client *c = job->client;
        size_t len, bad = 0;
        char line[128];

        if (job->op == ASK_IMAGE_PULL) {
                if (job->failure[0])
                        client_reject(c, EXIT_SANDBOX, "image pull: %s", job->failure);
                else
                        client_answer(c, FRAME_ANSWER, "", 0);
                return;
        }
        if (job->op != ASK_IMAGE_VERIFY)
                text = job->form == ANSWER_RECORDS
                               ? image_list_records(job->m, job->rows, job->n, &len)
                               : image_list_text(job->rows, job->n, job->form == ANSWER_JSON, &len);
        else
                text = image_verify_text(job->m, job->rows, job->n, &job->caller,
                                         job->form == ANSWER_JSON, &len, &bad);
        if (!text)
                abort();
        if (bad == 0) {
                client_answer(c, FRAME_ANSWER, text, len);
                return;
        }
        snprintf(line, sizeof(line), "image verify: %zu of %zu profile%s not as %s should be", bad,
                 job->n, job->n == 1 ? " is" : "s are", job->n == 1 ? "it" : "they");
        answer_bad(c, text, len, line);
}

static void step(struct image_job *job);

/* Answered, or given up: the next one. */
static void next(struct image_job *job) {
        job->at++;
        step(job);
}

/* A line in which every word can be a registry's. */
static const char *shown(const char *text, char *buf, size_t cap) {
        struct text t;

        text_init(&t, buf, cap);
        text_add_shown(&t, text, strlen(text));
        return buf;
}

static void failed(struct image_job *job, const struct engine_msg *m) {
        bool told = m->type == ENGINE_FAILED;
        char text[4 * ENGINE_TEXT_MAX + 1];

        shown(told ? m->text : "the broker answered nonsense", text, sizeof(text));
        if (job->op != ASK_IMAGE_PULL || (told && m->error == ENGINE_E_UNREACHABLE)) {
                client_reject(job->client, EXIT_SANDBOX, "%s: %s", op_name(job->op), text);
                job_free(job);
                return;
        }
        if (job->failure[0])
                say(job, "%s", text);
        else
                snprintf(job->failure, sizeof(job->failure), "%.1000s", text);
        next(job);
}

/* --- pull ---------------------------------------------------------------------------------------- */

static void on_progress(void *userdata, const struct engine_msg *m) {
        struct image_job *job = userdata;
        char text[4 * ENGINE_TEXT_MAX + 1];

        if (!job->client)
                return;
        shown(m->text, text, sizeof(text));
        if (!m->layer[0])
                say(job, "%s", text);
        else if (m->total)
                say(job, "%.12s: %.200s %llu of %llu kB", m->layer, text,
                    (unsigned long long)m->done / 1000, (unsigned long long)m->total / 1000);
        else
                say(job, "%.12s: %.200s", m->layer, text);
}

static void pulled(void *userdata, const struct engine_msg *m, int fd) {
        struct image_job *job = userdata;
        struct pool *p = pool_find(job->m, job->rows[job->at].profile);
        char id[IMAGE_SHORT];

        close_fd(fd);
        if (m->type == ENGINE_IMAGE_READY && p && p->profile &&
            strcmp(p->profile->image, job->rows[job->at].image) == 0) {
                p->image_ready = true;
                p->retry_ms = 0;
                image_is(p, m->image);
                pool_changed(p);
        }
        if (!job->client) {
                job_free(job);
                return;
        }
        if (m->type != ENGINE_IMAGE_READY) {
                failed(job, m);
                return;
        }
        image_short(m->image, id);
        if (m->pulled)
                say(job, "pulled %s (%s)", job->rows[job->at].image, id);
        else
                say(job, "%s is there already (%s): nothing is pulled", job->rows[job->at].image, id);
        next(job);
}

/* --- list, verify -------------------------------------------------------------------------------- */

static void found(struct image_wait *w, const struct engine_msg *m) {
        struct image_job *job = (struct image_job *)((char *)w - offsetof(struct image_job, wait));
        struct image_row *row = &job->rows[job->at];

        if (m->type != ENGINE_IMAGE_IS) {
                failed(job, m);
                return;
        }
        row->present = m->present;
        row->bytes = m->bytes;
        snprintf(row->id, sizeof(row->id), "%s", m->image);
        snprintf(row->digest, sizeof(row->digest), "%s", m->digest);
        snprintf(row->created, sizeof(row->created), "%s", m->created);
        snprintf(row->entrypoint, sizeof(row->entrypoint), "%s", m->entrypoint ? m->entrypoint : "");
        next(job);
}

/* What was found out of the same image already: true. */
static bool known(struct image_job *job) {
        struct image_row *row = &job->rows[job->at];

        for (size_t i = 0; i < job->at; i++) {
                const struct image_row *r = &job->rows[i];

                if (strcmp(r->image, row->image) != 0)
                        continue;
                row->present = r->present;
                row->bytes = r->bytes;
                memcpy(row->id, r->id, sizeof(row->id));
                memcpy(row->digest, r->digest, sizeof(row->digest));
                memcpy(row->created, r->created, sizeof(row->created));
                memcpy(row->entrypoint, r->entrypoint, sizeof(row->entrypoint));
                return true;
        }
        return false;
}

static void step(struct image_job *job) {
        struct engine_msg ask = { .type = ENGINE_IMAGE };
        int r;

        while (job->at < job->n && known(job))
                job->at++;
        if (job->at == job->n) {
                finish(job);
                job_free(job);
                return;
        }
        if (job->op != ASK_IMAGE_PULL) {
                image_look(job->m, job->rows[job->at].profile, job->rows[job->at].image, &job->wait);
                return;
        }
        ask.profile = job->rows[job->at].profile;
        r = broker_ask_watched(&job->m->broker, &ask, on_progress, pulled, job);
        if (r == 0)
                return;
        client_reject(job->client, EXIT_SANDBOX, "%s: the engine broker takes no request: %s",
                      op_name(job->op), strerror(-r));
        job_free(job);
}

/* --- the request --------------------------------------------------------------------------------- */

/* Room for one more pull or verification of this user; else it is told. */
static bool has_room(struct client *c, uint16_t op) {
        unsigned mine = 0, all = 0, my_pulls = 0, pulls = 0;
        const struct image_job *job;

        LIST_FOREACH(job, &c->m->image_jobs, link) {
                bool pull = job->op == ASK_IMAGE_PULL, my = job->caller.uid == c->peer.uid;

                if (job->op == ASK_IMAGE_LIST)
                        continue;
                all++;
                mine += my;
                pulls += pull;
                my_pulls += pull && my;
        }
        if (op == ASK_IMAGE_PULL && my_pulls >= PULLS_PER_UID)
                client_reject(c, EXIT_SANDBOX, "rejected: image pull: uid %u pulls already: wait for it",
                              (unsigned)c->peer.uid);
        else if (all >= JOBS_MAX || mine >= JOBS_PER_UID || (op == ASK_IMAGE_PULL && pulls >= PULLS_MAX))
                client_reject(c, EXIT_SANDBOX,
                              "rejected: %s: there are too many requests about images: ask again",
                              op_name(op));
        else
                return true;
        return false;
}

static void add_row(struct image_job *job, const struct config_profile *p, bool named) {
        struct image_row *row = &job->rows[job->n];

        for (size_t i = 0; i < job->n; i++)
                if (strcmp(job->rows[i].profile, p->name) == 0)
                        return;
        snprintf(row->profile, sizeof(row->profile), "%s", p->name);
        snprintf(row->image, sizeof(row->image), "%s", p->image);
        row->pin = config_image_pin(p->image);
        row->needed = named || p->size > 0;
        job->n++;
}

/* Each label is a profile. False: it is refused. */
static bool add_named(struct image_job *job, struct client *c, const struct ask *a) {
        for (uint32_t i = 0; i < a->n_labels; i++) {
                static const char key[] = "profile=";
                const char *name = a->labels[i] + sizeof(key) - 1;
                const struct config_profile *p = NULL;

                if (strncmp(a->labels[i], key, sizeof(key) - 1) == 0 && name[0])
                        p = config_profile_find(c->m->config, name);
                else
                        name = a->labels[i];
                if (!p)
                        client_reject(
                                c, EXIT_USAGE,
                                "%s: no profile \"%.64s\" in the config: give a profile's name, not an "
                                "image's; see hermes-sandbox image list",
                                op_name(a->op), name);
                else if (a->op == ASK_IMAGE_PULL && !peer_profile_allowed(&c->peer, p))
                        request_not_allowed(c, "image pull", "", p->name,
                                            "uid %u may not use profile \"%s\": its allow_users or "
                                            "allow_groups decides",
                                            (unsigned)c->peer.uid, p->name);
                else {
                        add_row(job, p, true);
                        continue;
                }
                return false;
        }
        return true;
}

/* Nobody pulls by the way what no sandbox is kept of, and records are for whoever uses the profiles. */
static void add_all(struct image_job *job, struct client *c) {
        const struct config *config = c->m->config;

        for (size_t i = 0; i < config->n_profiles; i++) {
                const struct config_profile *p = &config->profiles[i];

                if (job->op == ASK_IMAGE_PULL
                            ? p->size > 0 && peer_profile_allowed(&c->peer, p)
                            : job->form != ANSWER_RECORDS || peer_profile_allowed(&c->peer, p))
                        add_row(job, p, false);
        }
}

void image_ask(struct client *c, const struct ask *a) {
        const struct config *config = c->m->config;
        const struct broker *b = &c->m->broker;
        struct image_job *job;

        if (a->op == ASK_IMAGE_PULL && !request_within_rate(c, NULL))
                return;
        if (c->m->refusing) {
                client_reject(c, EXIT_SANDBOX, "%s: " STOPPING_LINE, op_name(a->op));
                return;
        }
        if ((a->op == ASK_IMAGE_PULL || a->op == ASK_IMAGE_VERIFY) && !has_room(c, a->op))
                return;
        job = calloc(1, sizeof(*job) + config->n_profiles * sizeof(job->rows[0]));
        if (!job)
                abort();
        *job = (struct image_job){ .m = c->m,
                                   .wait.found = found,
                                   .caller = peer_caller(&c->peer),
                                   .op = a->op,
                                   .form = a->op == ASK_PROFILES ? ANSWER_RECORDS : a->form };
        LIST_INSERT_HEAD(&c->m->image_jobs, job, link);
        if (!add_named(job, c, a)) {
                job_free(job);
                return;
        }
        if (a->n_labels == 0)
                add_all(job, c);
        if (job->n == 0)
                request_not_allowed(
                        c, op_name(a->op), "", "",
                        a->op == ASK_IMAGE_PULL
                                ? "uid %u may use no profile that keeps sandboxes warm: name one"
                                : "uid %u may use no profile",
                        (unsigned)c->peer.uid);
        else if (!b->welcomed || b->state != ENGINE_UP)
                client_reject(c, EXIT_SANDBOX, "%s: %s", op_name(a->op), b->state_text);
        else
                job->client = c;
        if (!job->client) {
                job_free(job);
                return;
        }
        c->images = job;
        conn_pause(&c->conn, true);
        if (job->op == ASK_PROFILES)
                job->at = job->n; /* the config says it all */
        step(job);
}
