/*
 * Whom commands may run as: the agent's own arguments say it, which the broker wrote. An order names one of these
 * pairs, or breaks the protocol.
 */
#include "agent/ids.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIT(cap) (UINT64_C(1) << (cap))
/* What a command may ever have. With SETUID or SETGID it could shed the gid by which its processes are found, and with
 * KILL or SYS_PTRACE reach the agent's. The broker's list is the config's; this one is the agent's own. */
#define CAPS_MAX                                                                      \
        (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | \
         BIT(CAP_NET_BIND_SERVICE))
#define CAPS_DIGITS 16
/* ARGV[0], five numbers and CAPS. */
#define ARGS_MIN 7

/* A decimal number of at most INT32_MAX and then the character @end: what follows it, or NULL. */
static const char *parse_number(const char *s, char end, uint32_t *ret) {
        char *rest;
        unsigned long v;

        if (s[0] < '0' || s[0] > '9')
                return NULL;
        errno = 0;
        v = strtoul(s, &rest, 10);
        if (*rest != end || errno || v > INT32_MAX)
                return NULL;
        *ret = (uint32_t)v;
        return rest + 1;
}

static int parse_caps(const char *s, uint64_t *ret) {
        if (strlen(s) != CAPS_DIGITS || strspn(s, "0123456789abcdef") != CAPS_DIGITS)
                return -EINVAL;
        *ret = strtoull(s, NULL, 16);
        return *ret & ~CAPS_MAX ? -EINVAL : 0;
}

static int parse_more(struct agent_ids *ids, int n, char *pairs[]) {
        if (n > AGENT_USERS_MAX)
                return -EINVAL;
        for (int i = 0; i < n; i++) {
                const char *gid = parse_number(pairs[i], ':', &ids->more[i].uid);

                if (!gid || !parse_number(gid, '\0', &ids->more[i].gid))
                        return -EINVAL;
        }
        ids->n_more = (uint32_t)n;
        return 0;
}

/* Without gids for them commands can be nobody else, and with them it is root that gives them out. */
static bool fits_agent(const struct agent_ids *ids) {
        if (ids->exec_gid_count > 0)
                return ids->exec_gid_first > 0 &&
                       ids->exec_gid_count <= INT32_MAX - ids->exec_gid_first && getuid() == 0;
        return ids->user.uid != 0 && ids->user.uid == getuid() && ids->user.gid == getgid() &&
               ids->caps == 0 && ids->n_more == 0;
}

int ids_parse(struct agent_ids *ids, int argc, char *args[], uint32_t *ret_reconnect_ms) {
        struct agent_ids i = { 0 };
        uint32_t *const numbers[] = { &i.user.uid, &i.user.gid, &i.exec_gid_first, &i.exec_gid_count,
                                      ret_reconnect_ms };

        if (argc < ARGS_MIN)
                return -EINVAL;
        for (int k = 0; k < 5; k++)
                if (!parse_number(args[k + 1], '\0', numbers[k]))
                        return -EINVAL;
        if (parse_caps(args[6], &i.caps) < 0 || parse_more(&i, argc - ARGS_MIN, args + ARGS_MIN) < 0 ||
            !fits_agent(&i))
                return -EINVAL;
        *ids = i;
        return 0;
}

const struct agent_user *ids_find(const struct agent_ids *ids, uid_t uid, gid_t gid) {
        if (ids->user.uid == uid && ids->user.gid == gid)
                return &ids->user;
        for (uint32_t i = 0; i < ids->n_more; i++)
                if (ids->more[i].uid == uid && ids->more[i].gid == gid)
                        return &ids->more[i];
        return NULL;
}

static bool has_root(const struct agent_ids *ids) {
        bool yes = ids->user.uid == 0;

        for (uint32_t i = 0; i < ids->n_more; i++)
                yes |= ids->more[i].uid == 0;
        return yes;
}

bool ids_exposed(const struct agent_ids *ids) {
        return ids->exec_gid_count == 0 || has_root(ids);
}

const char *ids_no_scrub(const struct agent_ids *ids) {
        if (ids->exec_gid_count == 0)
                return "commands run as the agent itself";
        if (has_root(ids))
                return "commands run as root";
        return ids->n_more > 0 ? "commands run as several users" : NULL;
}
