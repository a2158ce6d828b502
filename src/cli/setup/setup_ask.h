/* Questions to a person on a terminal. */
#pragma once

#include <stdio.h>

#include "cli/setup/setup.h"

/* Asks for each setting in turn; what is in force is what an empty answer leaves. *@now is the profile as it is in force;
 * @check says in one line on stderr what is wrong with the options as they are by then, and the question comes again.
 * New strings go into @o->values. 0, or -ENODATA: the input has ended. */
int setup_ask_settings(struct setup_options *o, const struct config_profile *now,
                       bool (*check)(void *userdata, const struct setup_options *o), void *userdata,
                       FILE *in, FILE *out);

/* The users that may use the sandbox: an empty answer adds nobody. @usable says of a name whether there is such a user.
 * A new string goes into @o->add_user. As above. */
int setup_ask_user(struct setup_options *o, bool (*usable)(const char *name), FILE *in, FILE *out);

/* 1: yes, which an empty answer is, too; 0: no, or the input has ended. */
int setup_ask_yes(const char *question, FILE *in, FILE *out);
