/*
 * A command as the trails show it: the string itself where it is one for sh -c, else its arguments
 * quoted for a shell and joined by blanks, so that a reader can tell `rm 'a b'` from `rm a b`.
 *
 * Only the start is kept, however long the command is; of a longer one the length and SHA-256 of the
 * whole text are known as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nettle/sha2.h>

/* Bytes of text in one kernel record, before they are encoded (twice as many after it). */
#define AUDIT_COMMAND_HEAD 2048

struct audit_command {
        uint64_t total; /* bytes of the whole text */
        size_t len;     /* bytes in head */
        char sha256[2 * SHA256_DIGEST_SIZE +
                    1]; /* hex, of the whole text; "" where head has all of it */
        struct sha256_ctx ctx;
        uint8_t head[AUDIT_COMMAND_HEAD];
};

/* Reads @n_args strings off @wire (wire_put_str() form). What is not well-formed ends the text: a record
 * of what can be read is better than none. @shell: they are a line for sh -c; @files: they are for the file tool, whose
 * name is put before them. */
void audit_command_read(struct audit_command *c, const uint8_t *wire, size_t len, uint32_t n_args,
                        bool shell, bool files);

/* @digest as hex digits with NUL. */
void audit_hex(const uint8_t digest[SHA256_DIGEST_SIZE], char ret[2 * SHA256_DIGEST_SIZE + 1]);
