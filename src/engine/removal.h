/* Removing a container of ours, with its folder and its record. */
#pragma once

#include "engine/requests.h"

/*
 * Kills and removes the container of @rec in the background; then its folder and record go too. One that
 * is gone already is a success. @done (may be NULL) is called once: @error 0, or an enum engine_error
 * and one line. A failed removal keeps the record and marks it as unwanted, so that the next comparison with the
 * engine's list tries again.
 */
int removal_start(struct broker *b, const struct record *rec,
                  void (*done)(void *userdata, int error, const char *text), void *userdata);
bool removal_is_under_way(const struct broker *b, const struct record *rec);
void removal_drop_all(struct broker *b);

/* The container is gone: folder and record go. */
void removal_forget(struct broker *b, struct record *rec);

/* ENGINE_REMOVE. */
void removal_request(struct broker *b, struct request *q, const struct engine_msg *m);
