/*
 * The link to the engine: is it there, which version does it speak, what happens in it.
 *
 * Down: every second, with a back-off to five, the socket is tried. Up: the event stream is open and
 * what the records say has been compared with what the engine has.
 */
#pragma once

#include "engine/engined.h"

int elink_new(struct broker *b, struct elink **ret);
void elink_free(struct elink *l);

/* Where the link stands, and one line for people: "" while up. */
enum engine_state elink_state(const struct elink *l, const char **ret_text);
/* False until the first try has come to an end. */
bool elink_known(const struct elink *l);
/* True where the engine's machine is on cgroup v2. Known while up. */
bool elink_cgroup_v2(const struct elink *l);
/* True where the engine runs in a user namespace, as a single user's. Known while up. */
bool elink_rootless(const struct elink *l);
/* True where it maps the uids of containers to others. Known while up. */
bool elink_userns(const struct elink *l);
/* What stands behind "systemctl" in a line for people: "" or " --user". */
const char *elink_systemctl(const struct broker *b);
/* A call was not answered in time: looks now, and not only at the next comparison, whether the engine answers
 * anything. */
void elink_doubt(struct elink *l);
/* Something is left to be done for the next comparison: it comes within seconds. */
void elink_look_again(struct elink *l);
/* Begins anew, after a change of the socket's path. */
void elink_restart(struct elink *l);
