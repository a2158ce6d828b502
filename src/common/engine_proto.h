/*
 * What manager and broker say to each other: small, bounded messages over a SOCK_SEQPACKET socket, one
 * message a packet, so that a descriptor belongs to exactly one of them.
 *
 *     u32 id     chosen by the manager, repeated in every answer; 0 in what the broker says unasked
 *     u16 type   enum engine_type
 *     …          fields (wire.h), nothing after them
 *
 * The manager asks; the broker answers each request with exactly one final message (WELCOME, CREATED,
 * DONE, LISTED, INSPECTED, IMAGE_READY, IMAGE_IS, INFO_IS, LISTENING or FAILED); PROGRESS may stand before it. A request
 * names a profile, never a recipe: the broker builds every container from its own reading of the config.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENGINE_PROTO_VERSION 4
#define ENGINE_MSG_MAX 8192
#define ENGINE_HEADER 6
#define ENGINE_LIST_MAX 64 /* containers in one LISTED */
#define ENGINE_RECIPE 32   /* SHA-256 */

enum engine_type {
        /* manager -> broker */
        ENGINE_HELLO = 1,   /* u16 version */
        ENGINE_CREATE = 2,  /* str profile, raw recipe[32]: create, start, inspect a sandbox */
        ENGINE_REMOVE = 3,  /* str container id: kill and remove it; one that is gone is a success */
        ENGINE_LIST = 4,    /* str after: our containers whose id sorts behind it ("": from the first) */
        ENGINE_INSPECT = 5, /* str container id */
        ENGINE_IMAGE = 6,   /* str profile: make sure that its image is there, pull it if not */
        ENGINE_INFO = 7,    /* nothing */
        ENGINE_LISTEN =
                8, /* str container id: a new listening socket in the folder of that running sandbox */
        /* as CREATE, then struct narrow (narrow.h) and u8 mounts: for one session alone, with less than the
         * profile gives, or with host folders in it: then one descriptor comes along, an end of a caller's socket
         * pair on which he has written what to mount (engine/mounts.h) */
        ENGINE_CREATE_FOR = 9,
        ENGINE_IMAGE_LOOK = 10, /* str profile: is its image there, and which is it; nothing is pulled */

        /* broker -> manager */
        ENGINE_WELCOME = 32,   /* u16 version, str installation id, raw agent SHA-256[32] */
        ENGINE_CREATED = 33,   /* str container id, u32 pid, str image id; one descriptor: the listening
                                    socket */
        ENGINE_DONE = 34,      /* nothing */
        ENGINE_LISTED = 35,    /* u8 more, u16 n, n x (str id, str profile, str state) */
        ENGINE_INSPECTED = 36, /* str state, u32 pid, u32 exit code, u8 oom killed */
        ENGINE_IMAGE_READY = 37, /* str image id, u8 pulled: it was not there before */
        ENGINE_INFO_IS = 38,     /* str "key=value\n" lines: see engine_info.h */
        ENGINE_FAILED = 39,      /* u16 enum engine_error, str one line */
        ENGINE_PROGRESS = 40,    /* str layer or "", str one line, u64 bytes done, u64 of how many */
        ENGINE_LISTENING = 41,   /* u32 pid of its init process, str image id; one descriptor: the
                                    listening socket */
        ENGINE_IMAGE_IS =
                42, /* u8 present, str image id, str repository digest, u64 bytes, str created, str entrypoint */

        /* broker -> manager, unasked (id 0) */
        ENGINE_STATE =
                48,       /* u8 enum engine_state, str one line: sent after WELCOME and at each change */
        ENGINE_DIED = 49, /* str container id, u32 exit code, u8 oom killed: one of ours has ended */
};

enum engine_error {
        ENGINE_E_UNREACHABLE = 1, /* no engine at its socket, or it went away meanwhile */
        ENGINE_E_NOT_ENABLED = 2, /* the broker may not open the engine's socket */
        ENGINE_E_NO_IMAGE = 3,    /* the image is not there and cannot be pulled */
        ENGINE_E_STALE = 4,       /* the recipe's hash is not ours: one of us has an older config */
        ENGINE_E_NO_PROFILE = 5,  /* no such profile */
        ENGINE_E_NOT_OURS = 6,    /* not one of our containers */
        ENGINE_E_REFUSED = 7,     /* the engine said no; the line says why */
        ENGINE_E_BUSY = 8,        /* too many requests at once */
        ENGINE_E_NOT_ALLOWED = 9, /* the caller may not: what he asks to mount, or who he is */
};

enum engine_state {
        ENGINE_UP = 1,
        ENGINE_DOWN = 2,        /* unreachable */
        ENGINE_NOT_ENABLED = 3, /* permission denied: the broker is not in group docker */
};
