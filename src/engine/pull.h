/* ENGINE_IMAGE: an image is there, or is pulled, with progress. */
#pragma once

#include "engine/requests.h"

void pull_request(struct broker *b, struct request *q, const struct engine_msg *m);

/* "debian:12" -> "debian", "12"; no tag -> "latest"; "x@sha256:…" -> "x", "sha256:…". *ret_tag
 * points into @image or to a constant; *ret_name is a new string. -EINVAL: an id, which no registry knows. */
int pull_split(const char *image, char **ret_name, const char **ret_tag);
