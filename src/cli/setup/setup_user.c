#include "cli/setup/setup_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_spawn.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define GROUP "hermes-sandbox"
#define USERMOD "/usr/sbin/usermod"

bool setup_user_exists(const char *name) {
        return getpwnam(name) != NULL;
}

/* Is @pw in the group of that name, by the account files? */
static bool member(const struct passwd *pw, const char *group) {
        const struct group *gr = getgrnam(group);
        gid_t gid = gr ? gr->gr_gid : (gid_t)-1;
        _cleanup_free_ gid_t *gids = NULL;
        int n = 64;

        if (!gr)
                return false;
        for (;;) {
                int had = n;

                gids = reallocarray(gids, (size_t)n, sizeof(*gids));
                if (!gids)
                        abort();
                if (getgrouplist(pw->pw_name, pw->pw_gid, gids, &n) >= 0)
                        break;
                n = n > had ? n : had * 2;
        }
        for (int i = 0; i < n; i++)
                if (gids[i] == gid)
                        return true;
        return false;
}

int setup_user_add(const char *name, bool dry_run) {
        const char *const argv[] = { USERMOD, "-aG", GROUP, "--", name, NULL };
        const struct passwd *pw = getpwnam(name);
        int r;

        if (!pw)
                return setup_fail(EXIT_USAGE, "--add-user: there is no user %s: adduser makes one",
                                  name);
        if (member(pw, "docker"))
                setup_warn(
                        "warning: %s is in the group docker, which is root on this machine: gpasswd -d %s docker",
                        name, name);
        if (member(pw, GROUP)) {
                setup_say("user:    %s may use the sandbox already", name);
                return 0;
        }
        if (dry_run) {
                setup_say("user:    %s would come into the group " GROUP, name);
                return 0;
        }
        r = spawn_run(argv, -1, -1);
        if (r < 0)
                return setup_fail(EXIT_OS, "cannot run " USERMOD ": %s", strerror(-r));
        if (r != 0)
                return setup_fail(EXIT_OS,
                                  "%s is not in the group " GROUP ": usermod failed (status %d)", name,
                                  r);
        setup_say("user:    %s is in the group " GROUP
                  " now; a login or an agent of his must be started again for it",
                  name);
        return 0;
}
