/* Where a walk through folders is, for the lines that people read; nothing is ever opened by it. */
#pragma once

#include <stddef.h>

#define FILEPATH_MAX 8192

struct filepath {
        size_t len;
        char text[FILEPATH_MAX];
};

/* Begins at @path ("" is shown as "."). */
void filepath_init(struct filepath *p, const char *path);
/* Goes to @name in it. Returns the length to give to filepath_pop(). What is too long is left out. */
size_t filepath_push(struct filepath *p, const char *name);
void filepath_pop(struct filepath *p, size_t len);

/* One line on a file: @what is not done ("cannot read"), to @path, @why. */
typedef void filepath_say_fn(void *userdata, const char *what, const char *path, const char *why);
