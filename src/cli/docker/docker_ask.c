#include "cli/docker/docker_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_ask.h"
#include "common/exitcode.h"
#include "common/frame.h"

static int keep(void *userdata, const uint8_t *p, size_t len, bool last) {
        struct docker_answer *a = userdata;

        (void)last;
        if (len > a->cap - a->len) {
                size_t cap = a->cap + len + FRAME_PAYLOAD_MAX;
                uint8_t *grown = cap > DOCKER_ANSWER_MAX ? NULL : realloc(a->p, cap);

                if (!grown)
                        return errmsg_set(&a->error, EXIT_SANDBOX,
                                          "the manager's answer is longer than this program takes");
                a->p = grown;
                a->cap = cap;
        }
        memcpy(a->p + a->len, p, len);
        a->len += len;
        return 0;
}

static int ask(const struct docker *d, uint8_t type, const uint8_t *payload, ssize_t len, int fd,
               struct docker_answer *ret) {
        const struct cli_question q = { type, payload, (size_t)len, fd };

        memset(ret, 0, sizeof(*ret));
        if (len < 0)
                return errmsg_set(&ret->error, EXIT_USAGE,
                                  "names, labels and environment are longer than a request may be");
        return cli_ask_bytes(&d->cli, &q, keep, ret, &ret->reason, &ret->error);
}

int docker_ask(const struct docker *d, const struct ask *asked, struct docker_answer *ret) {
        static uint8_t payload[16384];
        struct ask a = *asked;

        a.name = a.name ? a.name : "";
        a.profile = a.profile ? a.profile : "";
        return ask(d, FRAME_ASK, payload, ask_encode(&a, payload, sizeof(payload)), -1, ret);
}

int docker_ask_open(const struct docker *d, const struct open_request *q, int fd,
                    struct docker_answer *ret) {
        static uint8_t payload[FRAME_PAYLOAD_MAX];

        return ask(d, FRAME_OPEN, payload, open_request_encode(q, payload, sizeof(payload)), fd, ret);
}

void docker_answer_done(struct docker_answer *a) {
        free(a->p);
        a->p = NULL;
}

static int next(struct docker_answer *a, const uint8_t **ret, size_t *ret_len) {
        const uint8_t *p = a->p + a->at;
        size_t left = a->len - a->at;
        int r = record_next(&p, &left, ret, ret_len);

        a->at = a->len - left;
        return r;
}

static int judged(struct docker_answer *a, int r) {
        if (r < 0)
                errmsg_set(&a->error, r, "protocol error: the manager's answer makes no sense");
        return r;
}

int docker_answer_session(struct docker_answer *a, struct session_info *ret) {
        const uint8_t *p;
        size_t len;
        int r = next(a, &p, &len);

        if (r > 0 && session_info_decode(p, len, ret) < 0)
                r = -EPROTO;
        return judged(a, r);
}

int docker_answer_image(struct docker_answer *a, struct image_info *ret) {
        const uint8_t *p;
        size_t len;
        int r = next(a, &p, &len);

        if (r > 0 && image_info_decode(p, len, ret) < 0)
                r = -EPROTO;
        return judged(a, r);
}

int docker_ask_session(const struct docker *d, const char *word, struct docker_answer *a,
                       struct session_info *ret) {
        const struct ask q = { .op = ASK_SESSION_INFO, .form = ANSWER_RECORDS, .name = word };
        int r;

        /* What is longer than any name or id is none. */
        if (word[0] == '\0' || strlen(word) > PROTO_NAME_MAX) {
                memset(a, 0, sizeof(*a));
                a->reason = REJECT_NO_SESSION;
                return errmsg_set(&a->error, EXIT_SANDBOX, "no such session");
        }
        r = docker_ask(d, &q, a);
        if (r != 0)
                return r;
        r = docker_answer_session(a, ret);
        if (r == 0)
                return errmsg_set(&a->error, EXIT_SANDBOX, "protocol error: the manager says nothing");
        return r < 0 ? EXIT_SANDBOX : 0;
}

int docker_ask_profile(const struct docker *d, const char *name, bool image, struct docker_answer *a,
                       struct image_info *ret) {
        const struct ask q = { .op = image ? ASK_IMAGE_LIST : ASK_PROFILES, .form = ANSWER_RECORDS };
        int r = docker_ask(d, &q, a);

        if (r != 0)
                return r;
        while ((r = docker_answer_image(a, ret)) > 0)
                if (strcmp(ret->profile, name) == 0)
                        return 0;
        if (r < 0)
                return EXIT_SANDBOX;
        return errmsg_set(&a->error, EXIT_CONFIG,
                          "profile \"%.64s\" is not in the config, or not for you (its allow_users and "
                          "allow_groups): $HERMES_SANDBOX_PROFILE names another",
                          name);
}

void docker_tell_refused(const struct docker *d, const char *flag) {
        const struct ask q = { .op = ASK_REFUSED, .name = flag, .profile = d->profile };
        struct docker_answer a;

        (void)docker_ask(d, &q, &a);
        docker_answer_done(&a);
}
