/* Operands. The rule for SESSION:PATH is scp's: a ':' behind a '/' is part of a file's name. */
#include <errno.h>
#include <string.h>

#include "cli/cli_words.h"
#include "cli/files/files.h"

bool files_is_place(const char *word) {
        size_t len = strcspn(word, ":/");

        return len > 0 && word[len] == ':';
}

int files_add(struct files_words *w, const char *what, const char *arg, struct errmsg *e) {
        if (w->n >= PROTO_ARGS_MAX)
                return errmsg_set(e, -EINVAL, "%s: too many operands", what);
        w->args[w->n++] = arg;
        return 0;
}

int files_add_place(struct files_words *w, const char *what, const char *word, struct errmsg *e) {
        size_t len = strcspn(word, ":/");
        char session[sizeof(w->session)];

        if (!files_is_place(word))
                return errmsg_set(e, -EINVAL, "%s: '%.80s': expected SESSION:PATH", what, word);
        if (len >= sizeof(session))
                return errmsg_set(e, -EINVAL, "%s: '%.80s': a session's name has at most %d bytes", what,
                                  word, PROTO_NAME_MAX);
        memcpy(session, word, len);
        session[len] = '\0';
        if (cli_check_session(what, session, e) < 0)
                return -EINVAL;
        if (w->session[0] && strcmp(w->session, session) != 0)
                return errmsg_set(e, -EINVAL, "%s: '%s' and '%s': expected one session at a time", what,
                                  w->session, session);
        strcpy(w->session, session);
        return files_add(w, what, word + len + 1, e);
}
