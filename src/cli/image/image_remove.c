#include <errno.h>

#include "cli/image/image.h"

static void say_line(void *userdata, const char *line) {
        fprintf(userdata, "%s\n", line);
}

int image_remove(const struct image_options *o, struct image_engine *g, FILE *out, struct errmsg *e) {
        struct image_found found;
        char user[128];
        size_t n;
        int r = image_engine_inspect(g, o->name, &found, e);

        if (r == IMAGE_E_MISSING)
                return errmsg_set(e, -ENOENT, "there is no image %s: see docker image ls", o->name);
        if (r == 0)
                r = image_engine_users(g, found.id, &n, user, sizeof(user), e);
        /* A tag less would be enough for the engine, but the next container that asks for the name would not start. */
        if (r == 0 && n > 0)
                return errmsg_set(
                        e, -EBUSY,
                        "%s is in use: %zu container%s of it, such as %s: remove %s first (hermes-sandbox "
                        "stop, or docker rm)",
                        o->name, n, n == 1 ? "" : "s", user, n == 1 ? "it" : "them");
        if (r == 0)
                r = image_engine_remove(g, o->name, say_line, out, e);
        return r > 0 ? -EBUSY : r;
}
