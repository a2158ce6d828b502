/*
 * One HTTP/1.1 exchange over two descriptors, as a socket-activated program has it: a request is read, answered, and the
 * connection ends (RFC 9110, RFC 9112). Whoever is at the other end may be hostile: the request's head has at most
 * CLI_HTTP_HEAD bytes, its body is never read, and all has to be over in time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_HTTP_HEAD 8192

/* What is answered. The text stays the caller's. */
struct cli_http_answer {
        int status;
        const char *type; /* of the text, such as "text/plain; charset=utf-8" */
        const char *text;
        size_t len;
};

/* Bytes of the head, its empty line included, or 0 where that has not come yet. */
size_t cli_http_head(const char *p, size_t len);

/* What a head deserves that asks for @path or something else, with GET or HEAD or something else: 200, 400, 404, 405 or
 * 505. *ret_head_only: it is HEAD, no text is to follow. */
int cli_http_judge(const char *head, size_t len, const char *path, bool *ret_head_only);

/*
 * Reads a request from @in and answers on @out: with what @page fills in where it is for @path, else with the status that
 * it deserves, 408 where it has not come within @deadline_ms, 431 where it is too long. Returns 0, also where the other
 * end left without a word, or -errno of a failed write.
 */
int cli_http_serve(int in, int out, unsigned deadline_ms, const char *path,
                   void (*page)(void *userdata, struct cli_http_answer *ret), void *userdata);
