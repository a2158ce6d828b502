/* ENGINE_CREATE_FOR: a sandbox for one session alone, with less than its profile gives, or with host folders in it. */
#pragma once

#include "common/errmsg.h"
#include "config/config.h"
#include "engine/mounts.h"
#include "engine/requests.h"

/* What was asked for, for as long as it is being made (narrow_copy()): it must not be moved. */
struct narrow_kept {
        struct narrow narrow;
        char paths[NARROW_TMPFS_MAX][NARROW_PATH_MAX + 1];
};

/*
 * The profile that the create body is built from: @p with what @n asks for laid over it (config_profile_done() frees
 * *ret). @m, which may be NULL, are the host folders. Returns 0, or -errno with a line in *e and what it is in
 * *ret_error: ENGINE_E_NOT_ALLOWED, for root inside where @p has none, for another user than the caller's own beside his
 * folders, and for what he may not mount; else ENGINE_E_REFUSED.
 */
int create_for_profile(struct broker *b, const struct config_profile *p, const struct narrow *n,
                       const struct mounts *m, struct config_profile *ret, enum engine_error *ret_error,
                       struct errmsg *e);

/* Answers the request @q, which @m brought: at once, or when the caller's mounts are read and the sandbox is made. */
void create_for_request(struct broker *b, struct request *q, const struct engine_msg *m);
