/*
 * Is the account in the group docker? /etc/group says what shall be, and a process keeps what it was started
 * with. Where the two differ the way to the former is a new process: whoever supervises this one starts it again.
 */
#pragma once

#include <systemd/sd-event.h>

#define DOCKER_GROUP "docker"

enum membership {
        MEMBER_NO,
        MEMBER_YES,
        MEMBER_JOINED, /* since this process was started: it has not got the group */
        MEMBER_LEFT,   /* the other way round */
};

/* Reads the user database anew. Where that cannot be read now it is taken to say what the process has. */
enum membership membership_now(void);

/* Calls @changed from the loop after each change of /etc/group, which may be a new file under the old name. 0 and
 * the source, which the caller unrefs, or -errno. */
int membership_watch(sd_event *event, sd_event_source **ret, void (*changed)(void *userdata),
                     void *userdata);
