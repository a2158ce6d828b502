/*
 * A line of the gateway's authorized_keys (sshd(8), AUTHORIZED_KEYS FILE FORMAT), as `hermes-sandbox ssh add-key` writes
 * it and as the gateway's program finds it again:
 *
 *     restrict,pty TYPE BLOB fp=SHA256:… [profile=P] [ttl=D] NAME
 *
 * What stands behind the blob is a comment to sshd. Root writes the file; what is wrong in it is a person's mistake and
 * is told as such.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errmsg.h"
#include "common/keyfp.h"
#include "common/proto.h"

#define SSHKEY_FILE_MAX (1u << 20) /* bytes of the whole file */
#define SSHKEY_BLOB_MAX 8192       /* of one key in base64: RSA of 16384 bits takes 2800 */
#define SSHKEY_NAME_MAX 64
#define SSHKEY_SESSION_LEN 47 /* "ssh-" and 43 characters */

struct sshkey_span {
        const char *p;
        size_t len;
};

struct sshkey_line {
        struct sshkey_span options, type, blob, notes; /* of those that are missing len is 0 */
};

struct sshkey_notes {
        char fp[KEYFP_LEN + 1];
        char profile[PROTO_NAME_MAX + 1]; /* "": the default */
        char ttl[16];                     /* as it stands there, "": the profile's */
        uint64_t ttl_ms;                  /* 0: the profile's */
        char name[SSHKEY_NAME_MAX + 1];
};

/* Splits @line, without its newline; the spans point into it. False: it holds no key (blank, a comment, or no type and
 * blob to be seen). */
bool sshkey_line_parse(const char *line, size_t len, struct sshkey_line *ret);

/* What add-key wrote behind the blob. 0, or -EINVAL and a line in *e that says what about the line is wrong. */
int sshkey_notes_parse(struct sshkey_span notes, struct sshkey_notes *ret, struct errmsg *e);

/* 1 to 64 of A-Z a-z 0-9 _ . @ -, not beginning with - or . */
bool sshkey_name_valid(const char *s);
/* The name of the session of the key with this valid fingerprint: @ret has SSHKEY_SESSION_LEN + 1 bytes. */
void sshkey_session(const char *fp, char *ret);

/* All of the file at @path into @buf (of SSHKEY_FILE_MAX bytes), judged by its descriptor: a regular file of @owner, which
 * nobody else can write, at most SSHKEY_FILE_MAX bytes. Their number, or -errno and a line in *e. */
ssize_t sshkey_file_read(const char *path, uid_t owner, char *buf, struct errmsg *e);

/* The next line of @text[*pos, len) without its newline; false at the end. */
bool sshkey_next_line(const char *text, size_t len, size_t *pos, struct sshkey_span *ret);
/* Equal bytes? */
bool sshkey_same(struct sshkey_span a, struct sshkey_span b);
