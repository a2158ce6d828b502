#include "engine/membership.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

struct watch {
        void (*changed)(void *userdata);
        void *userdata;
};

static bool has_group(gid_t gid) {
        gid_t groups[1024];
        int n = getgroups(sizeof(groups) / sizeof(groups[0]), groups);

        for (int i = 0; i < n; i++)
                if (groups[i] == gid)
                        return true;
        return getegid() == gid;
}

static bool is_listed(const struct group *gr, const struct passwd *pw) {
        for (char **m = gr->gr_mem; *m; m++)
                if (strcmp(*m, pw->pw_name) == 0)
                        return true;
        return pw->pw_gid == gr->gr_gid;
}

enum membership membership_now(void) {
        static gid_t known = (gid_t)-1; /* the group's, when it was last seen */
        struct passwd *pw = getpwuid(geteuid());
        struct group *gr;
        bool listed, has;

        errno = 0;
        gr = getgrnam(DOCKER_GROUP);
        if (!pw || (!gr && errno && errno != ENOENT && errno != ESRCH))
                return has_group(known) ? MEMBER_YES : MEMBER_NO;
        if (gr)
                known = gr->gr_gid;
        listed = gr && is_listed(gr, pw);
        has = has_group(known);
        if (listed == has)
                return has ? MEMBER_YES : MEMBER_NO;
        return listed ? MEMBER_JOINED : MEMBER_LEFT;
}

static int on_change(sd_event_source *s, const struct inotify_event *event, void *userdata) {
        const struct watch *w = userdata;

        (void)s;
        /* An overflow names no file, and may have hidden ours. */
        if (event->mask & IN_Q_OVERFLOW || (event->len > 0 && strcmp(event->name, "group") == 0))
                w->changed(w->userdata);
        return 0;
}

int membership_watch(sd_event *event, sd_event_source **ret, void (*changed)(void *userdata),
                     void *userdata) {
        struct watch *w = malloc(sizeof(*w));
        sd_event_source *s;
        int r;

        if (!w)
                return -ENOMEM;
        *w = (struct watch){ changed, userdata };
        /* The folder, as the tools write a new file and rename it. */
        r = sd_event_add_inotify(event, &s, "/etc", IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR, on_change,
                                 w);
        if (r < 0) {
                free(w);
                return r;
        }
        sd_event_source_set_destroy_callback(s, free);
        *ret = s;
        return 0;
}
