/* The answer to `hermes-sandbox top`: one look; the caller asks again for the next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct manager;
struct peer;

/*
 * A line, or an object, for each sandbox: profile, state, session, owner, commands that run, CPU, memory, processes, age.
 * Of @who's sandboxes alone, or with @all of every one. CPU is what has been used since the look before, where there was
 * one, else "-". What cannot be read is "?", and null in JSON. Allocated, NULL when out of memory.
 */
char *top_text(struct manager *m, const struct peer *who, bool all, bool as_json, size_t *ret_len);
