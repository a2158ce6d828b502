/*
 * The frame layer: what manager, agent and CLI say to each other, independent of what carries it.
 *
 * A stream is a sequence of frames. Each has a 12-byte header, little-endian:
 *
 *     u32 len       payload bytes that follow, at most FRAME_PAYLOAD_MAX
 *     u32 channel   which command it belongs to; 0 is the connection itself
 *     u8  type      enum frame_type
 *     u8  flags     FRAME_MORE, FRAME_EOF
 *     u16 zero      reserved
 *
 * The first frame of each side is HELLO and carries the version. Numbers are never reused.
 * Payloads are described in proto.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION 3
#define FRAME_HEADER 12
#define FRAME_PAYLOAD_MAX 65536
#define FRAME_MAX (FRAME_HEADER + FRAME_PAYLOAD_MAX)

/* Bytes of one stream (stdin, stdout or stderr of one channel) that a sender may send before its
 * receiver has granted more with WINDOW. Both sides assume it at the start of a channel. */
#define FRAME_CREDIT 262144

/* The payload goes on in the next frame of the same channel and type. */
#define FRAME_MORE 0x01
/* The stream ends after this payload. */
#define FRAME_EOF 0x02

enum frame_type {
        FRAME_HELLO = 1,     /* any -> any: version and who is speaking */
        FRAME_EXEC = 2,      /* client -> manager -> agent: run a command */
        FRAME_STDIN = 3,     /* client -> manager -> agent: bytes, EOF */
        FRAME_STDOUT = 4,    /* agent -> manager -> client: bytes */
        FRAME_STDERR = 5,    /* agent -> manager -> client: bytes */
        FRAME_WINDOW = 6,    /* receiver -> sender: more bytes may come */
        FRAME_SIGNAL = 7,    /* client -> manager -> agent: signal the command */
        FRAME_RESIZE = 8,    /* client -> manager -> agent: the terminal has another size */
        FRAME_STARTED = 9,   /* manager -> client: the id of the exec and of its sandbox */
        FRAME_EXITED = 10,   /* agent -> manager: the command's end and its numbers */
        FRAME_RESULT = 11,   /* manager -> client: the same, judged */
        FRAME_REJECT = 12,   /* manager -> client: exit code and one line; ends the channel */
        FRAME_CANCEL = 13,   /* manager -> agent: kill the command's whole tree now */
        FRAME_PING = 14,     /* manager -> agent */
        FRAME_PONG = 15,     /* agent -> manager, the ping's payload */
        FRAME_STATUS = 16,   /* client -> manager: ask; manager -> client: text (MORE) */
        FRAME_BYE = 17,      /* manager -> agent: kill everything and exit */
        FRAME_SCRUBBED = 18, /* agent -> manager: is the sandbox as it was at the handshake? */
        FRAME_ASK = 19,      /* client -> manager: a question or an order that runs no command */
        FRAME_ANSWER = 20,   /* manager -> client: its answer, text (MORE) */
        FRAME_ATTACH = 21, /* client -> manager -> agent: the output and the end of a detached command */
        FRAME_ATTACHED = 22, /* agent -> manager -> client: where that output begins */
        FRAME_HELD = 23,     /* agent -> manager: the detached commands that it has */
        FRAME_FORGET = 24, /* manager -> agent: a detached command that has ended is asked for no more */
        FRAME_OPEN = 25,   /* client -> manager: a session */
        FRAME_HALT = 26,   /* manager -> agent: end all that runs, keep all files */
        FRAME_HALTED = 27, /* agent -> manager: nothing runs any more */
};

/* Who sent the bytes: decides which types are allowed and how large they may be. */
enum frame_from {
        FRAME_FROM_CLIENT,
        FRAME_FROM_MANAGER,
        FRAME_FROM_AGENT,
};

struct frame {
        uint8_t type;
        uint8_t flags;
        uint32_t channel;
        uint32_t len;
        const uint8_t *payload; /* into the buffer that was parsed */
};

/*
 * Reads one header from the front of @buf[0..len), with all that frame_parse() checks in it. Returns 1 and
 * fills *ret but for its payload, 0 when more bytes are needed, or -EPROTO.
 */
int frame_parse_header(const uint8_t *buf, size_t len, enum frame_from from, struct frame *ret);

/*
 * Reads one frame from the front of @buf[0..len).
 *
 * Returns 1 and fills *ret and *ret_used (bytes taken), 0 when more bytes are needed, or -EPROTO:
 * unknown type, a type that @from may not send, a length over the type's bound, an unknown flag, a
 * reserved field that is not 0. Never reads past @len. *ret points into @buf.
 */
int frame_parse(const uint8_t *buf, size_t len, enum frame_from from, struct frame *ret,
                size_t *ret_used);

/* Writes the 12 bytes of a header into @buf. @len must be at most FRAME_PAYLOAD_MAX. */
void frame_put_header(uint8_t buf[FRAME_HEADER], uint8_t type, uint8_t flags, uint32_t channel,
                      uint32_t len);
