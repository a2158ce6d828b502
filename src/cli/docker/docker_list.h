/* What ps, inspect and the like print: through a template, or as docker prints it without one. */
#pragma once

#include <stdio.h>

#include "cli/docker/docker_doc.h"
#include "common/proto_open.h"

/* All that is printed goes to memory first, as one write at the end. */
struct docker_out {
        FILE *f;
        char *p;
        size_t len;
};
void docker_out_init(struct docker_out *o);
/* Writes and frees it; what could drive a terminal is made harmless where stdout is one. Returns an exit status. */
int docker_out_done(struct docker_out *o);

/* "running", "exited", "created". */
const char *docker_state(const struct session_info *s);
/* The id, or what stands for it while there is none. */
const char *docker_id(const struct session_info *s);
/* "Less than a second", "5 minutes", …, in @buf. */
const char *docker_span(uint64_t seconds, char *buf, size_t cap);

/* A row of ps. @now: seconds since 1970. */
void docker_doc_row(struct doc *d, const struct session_info *s, bool whole_id, uint64_t now);
/* What docker inspect says of a container, and of an image. @image_id may be NULL: not known. */
void docker_doc_container(struct doc *d, const struct session_info *s, const char *image_id);
void docker_doc_image(struct doc *d, const struct image_info *i);
