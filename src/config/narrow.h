/*
 * A profile with less: what a caller asks of one session (common/narrow.h) laid over it. Manager and broker do it each
 * for itself.
 */
#pragma once

#include "common/errmsg.h"
#include "common/narrow.h"
#include "config/config.h"

/*
 * Makes *ret the sandbox's own profile: a copy of @p (config_profile_done() frees it) in which each number that @n has is
 * the smaller of the two, tmpfs and shm that do not fit below a smaller memory limit any more are scaled down with it,
 * and uid and gid are those that @n names, and the only ones where they are not the profile's own. Its recipe stays
 * @p's.
 *
 * Returns 0, or -EINVAL and a line in *e that names flag, value and key: a tmpfs that the profile does not have, numbers
 * under the config's own smallest, uid 0 where neither user nor users has it. (Whether another uid may be had is for the
 * caller to say: see config_profile_has_user().)
 */
int config_narrow(const struct config_profile *p, const struct narrow *n, struct config_profile *ret,
                  struct errmsg *e);

/* Would config_narrow() make just such a sandbox as the profile's are? */
bool config_narrow_changes_nothing(const struct config_profile *p, const struct narrow *n);

/* Is it the profile's user, or among its users? @gid UINT32_MAX: any that goes with @uid; *ret_gid (may be NULL) is it. */
bool config_profile_has_user(const struct config_profile *p, uint32_t uid, uint32_t gid,
                             uint32_t *ret_gid);
