#include "manager/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire.h"

#define HEAD_MAX (PROTO_PATH_MAX + 128)
#define BASE_ENV 3
/* Its bytes on the wire, HOME's being the longest. */
#define BASE_ENV_MAX (PROTO_PATH_MAX + 64)

size_t order_args_len(const struct exec_request *r) {
        struct wire_in in;

        wire_in_init(&in, r->args_wire, r->strings_len);
        for (uint32_t i = 0; i < r->n_args; i++)
                wire_get_str(&in, PROTO_EXEC_MAX);
        return r->strings_len - in.left;
}

uint64_t order_command_bytes(const struct exec_request *r) {
        /* Each string stands behind a length of four bytes and has its NUL. */
        return order_args_len(r) - 5 * (uint64_t)r->n_args + (r->n_args - 1);
}

bool order_fits(const struct config_profile *p, uint32_t n_env, size_t env_len,
                const struct exec_request *r) {
        size_t size = HEAD_MAX + r->strings_len + BASE_ENV_MAX + env_len;
        size_t n = BASE_ENV + n_env + r->n_env;

        for (size_t i = 0; p->env[i]; i++, n++)
                size += 5 + strlen(p->env[i]);
        return n <= PROTO_ENV_MAX && size <= PROTO_EXEC_MAX;
}

/* Who asks for no time-out has the profile's: but a terminal, a job, a transfer and a login last as long as they last. */
uint64_t order_timeout_ms(const struct config_profile *p, const struct exec_request *r) {
        if (r->timeout_ms)
                return r->timeout_ms;
        return r->detach || r->tty || r->files || r->login ? 0 : p->limits.timeout_ms;
}

/* What a transfer brings is as large as it is: whoever receives it has a bound of his own. */
uint64_t order_output_bytes(const struct config_profile *p, const struct exec_request *r) {
        return r->files ? 0 : p->limits.output_bytes;
}

uint8_t *order_encode(const struct config_profile *p, const struct order_place *at,
                      const struct exec_request *r, size_t args_len, bool one_shot, bool scrub,
                      const char *exec_id, size_t *ret_len) {
        char home[PROTO_PATH_MAX + 8];
        const char *base[BASE_ENV] = { "LANG=C.UTF-8", home, "TMPDIR=/tmp" };
        size_t size = HEAD_MAX + r->strings_len + at->env_len, n_profile = 0;
        struct exec_order o = {
                .use_stdin = r->use_stdin || r->tty,
                .shell = r->shell,
                .one_shot = one_shot,
                .scrub = scrub,
                .detached = r->detach,
                .tty = r->tty,
                .files = r->files,
                .uid = at->user.uid,
                .gid = at->user.gid,
                .rows = r->rows,
                .cols = r->cols,
                .exec_id = exec_id,
                .timeout_ms = order_timeout_ms(p, r),
                .grace_ms = (uint32_t)(p->limits.grace_ms < UINT32_MAX ? p->limits.grace_ms
                                                                       : UINT32_MAX),
                .output_bytes = order_output_bytes(p, r),
                .workdir = r->workdir[0] ? r->workdir : at->workdir,
                .n_args = r->n_args,
        };
        struct wire_out out;
        uint8_t *buf;
        ssize_t n;

        snprintf(home, sizeof(home), "HOME=%s", p->home);
        for (int i = 0; i < BASE_ENV; i++)
                size += 5 + strlen(base[i]);
        for (; p->env[n_profile]; n_profile++)
                size += 5 + strlen(p->env[n_profile]);
        o.n_env = BASE_ENV + (uint32_t)n_profile + at->n_env + r->n_env;
        buf = malloc(size);
        if (!buf)
                abort();
        n = exec_order_encode_head(&o, buf, size);
        if (n < 0)
                abort(); /* HEAD_MAX holds the longest head */
        wire_out_init(&out, buf + n, size - (size_t)n);
        wire_put_raw(&out, r->args_wire, args_len);
        for (int i = 0; i < BASE_ENV; i++)
                wire_put_str(&out, base[i]);
        for (size_t i = 0; i < n_profile; i++)
                wire_put_str(&out, p->env[i]);
        wire_put_raw(&out, at->env, at->env_len);
        wire_put_raw(&out, r->args_wire + args_len, r->strings_len - args_len);
        if (out.bad)
                abort();
        *ret_len = (size_t)n + out.len;
        return buf;
}
