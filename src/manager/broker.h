/* The manager's side of the engine protocol: requests with an answer each, over one connection that is
 * made again when it breaks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "common/engine_msg.h"

/* The final answer to a request: @m is the broker's message, or FAILED with ENGINE_E_UNREACHABLE where
 * the broker went away. @fd: CREATED's descriptor, the handler's from now on; else -1. */
typedef void broker_answer(void *userdata, const struct engine_msg *m, int fd);

/* What is said of a request while it goes on: @m is PROGRESS. */
typedef void broker_progress(void *userdata, const struct engine_msg *m);

struct broker_request {
        LIST_ENTRY(broker_request) link;
        uint32_t id;
        bool pull;                 /* it may take as long as a registry does */
        broker_progress *progress; /* or NULL */
        broker_answer *answer;
        void *userdata;
};

struct broker_events {
        void (*connected)(void *userdata);                   /* WELCOME has come, its fields are there */
        void (*gone)(void *userdata);                        /* after every open request was answered */
        void (*state)(void *userdata);                       /* the engine's state has changed */
        void (*died)(void *userdata, const char *container); /* one of our containers has ended */
};

struct broker {
        sd_event *event;
        const char *socket_path;
        const struct broker_events *on;
        void *userdata;
        int fd;
        sd_event_source *io, *retry;
        bool welcomed;
        uint32_t next_id;
        LIST_HEAD(, broker_request) requests;
        uint64_t retry_us;

        bool known;     /* how the engine is has been said, or nobody could be asked */
        bool last_word; /* the broker cannot start, and has said why: that stays until another says more */
        enum engine_state state;
        char state_text[ENGINE_TEXT_MAX + 1]; /* why, when it is not up */
        uint8_t agent_hash[ENGINE_RECIPE];
        char installation[ENGINE_INSTALLATION_LEN + 1];
        char info[ENGINE_INFO_MAX + 1]; /* engine_info.h's lines, "" until known */
};

/* Starts to connect. @socket_path and @on stay the caller's. 0 or -errno. */
int broker_init(struct broker *b, sd_event *event, const char *socket_path,
                const struct broker_events *on, void *userdata);
void broker_done(struct broker *b);

/* Sends @m with an id of its own. @answer is called exactly once, never from within this call where it
 * returns 0; -errno: not sent, and not called. */
int broker_ask(struct broker *b, struct engine_msg *m, broker_answer *answer, void *userdata);

/* The same with a descriptor, which stays the caller's; -1: none. */
int broker_ask_passing(struct broker *b, struct engine_msg *m, int pass_fd, broker_answer *answer,
                       void *userdata);

/* The same, and @progress (may be NULL) hears how it goes on. */
int broker_ask_watched(struct broker *b, struct engine_msg *m, broker_progress *progress,
                       broker_answer *answer, void *userdata);

/* Is every request answered, but for pulls? */
bool broker_idle(const struct broker *b);

/* Asks for WELCOME again: the agent binary's hash may have changed with a reload of the broker. */
void broker_greet(struct broker *b);

/* An answer that nobody waits for; closes what came with it. */
void broker_ignore(void *userdata, const struct engine_msg *m, int fd);
