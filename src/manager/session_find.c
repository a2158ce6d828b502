/*
 * Which session is meant, and may its asker have it. A name is one user's in all of the manager, as its file's is; of a
 * sandbox's id the first digits do, but only to its owner: nobody learns so which sandboxes others have, and nobody can
 * take what another means for himself by giving his own session such a name.
 */
#include <string.h>

#include "common/exitcode.h"
#include "manager/session.h"

bool session_name_valid(const char *name) {
        size_t n = strlen(name);

        if (n == 0 || n > PROTO_NAME_MAX || name[0] == '-' || name[0] == '.')
                return false;
        for (; *name; name++)
                if (!(*name >= 'a' && *name <= 'z') && !(*name >= 'A' && *name <= 'Z') &&
                    !(*name >= '0' && *name <= '9') && !strchr("_.-", *name))
                        return false;
        return true;
}

struct session *session_find(struct manager *m, const char *name) {
        struct session *s;

        TAILQ_FOREACH(s, &m->sessions, link)
        if (strcmp(s->name, name) == 0)
                return s;
        return NULL;
}

/* A key's holder does not even hear that there is one of another key's. */
static bool is_shown(const struct peer *p, const struct session *s) {
        return p->uid == 0 || s->owner.uid != p->uid || peer_is(p, &s->owner);
}

uint8_t session_lookup(struct manager *m, const struct peer *p, const char *text, struct session **ret) {
        struct session *named = session_find(m, text), *s, *found = NULL;
        size_t n = strlen(text);

        if (named && peer_is(p, &named->owner)) {
                *ret = named;
                return 0;
        }
        if (n > 0 && strspn(text, "0123456789abcdef") == n)
                TAILQ_FOREACH(s, &m->sessions, link) {
                        if (!peer_is(p, &s->owner) || strncmp(s->container, text, n) != 0)
                                continue;
                        if (found)
                                return REJECT_AMBIGUOUS;
                        found = s;
                }
        if (!found && named && is_shown(p, named))
                found = named;
        if (!found)
                return REJECT_NO_SESSION;
        *ret = found;
        return 0;
}

struct session *session_for(struct client *c, const char *what, const char *text) {
        struct session *s;
        uint8_t r = session_lookup(c->m, &c->peer, text, &s);

        if (r == REJECT_AMBIGUOUS)
                client_refuse(
                        c, EXIT_SANDBOX, "ambiguous",
                        "%s: several sandboxes' ids begin with \"%.64s\": give more digits, or the "
                        "session's name",
                        what, text);
        else if (r != 0)
                client_refuse(c, EXIT_SANDBOX, "no_session",
                              "%s: no session \"%.64s\": see hermes-sandbox session list", what, text);
        else if (!peer_is(&c->peer, &s->owner) && c->peer.uid != 0)
                request_not_allowed(c, what, s->name, s->pool->name, "session \"%s\" is another user's",
                                    s->name);
        else
                return s;
        return NULL;
}
