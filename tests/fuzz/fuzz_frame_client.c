/*
 * What the manager reads from a client: frames as they come, through the decoder and through the
 * manager's connection, the EXEC's joined to one request, and of it the order for the agent, which the
 * agent must take.
 */
#include <stdint.h>

#include "config/config.h"
#include "fuzz/readers.h"
#include "manager/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void forward(const uint8_t *p, size_t len) {
        char *env[] = { (char *)"LANG=de", (char *)"X=", NULL }, path[] = "/work";
        static const uint8_t more[] = { 4, 0, 0, 0, 'Y', '=', '1', 0 };
        const struct config_profile profile = { .home = path, .workdir = path, .env = env };
        const struct order_place place = {
                .workdir = path, .n_env = 1, .env = more, .env_len = sizeof(more)
        };
        struct exec_request r;
        struct exec_order o;
        bool one_shot, scrub;
        uint8_t *order;
        size_t n;

        if (exec_request_decode(p, len, &r) < 0 || !order_fits(&profile, 1, sizeof(more), &r))
                return;
        check(order_args_len(&r) <= r.strings_len && order_command_bytes(&r) <= r.strings_len);
        one_shot = !r.session[0];
        scrub = one_shot && len % 2;
        order = order_encode(&profile, &place, &r, order_args_len(&r), one_shot, scrub,
                             "0123456789abcdef", &n);
        check(exec_order_decode(order, n, &o) == 0);
        check(o.n_args == r.n_args && o.n_env == r.n_env + 6 && o.shell == r.shell &&
              o.one_shot == one_shot && o.scrub == scrub);
        free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint8_t *joined = malloc(size + 1);
        size_t n = 0;
        struct frame f;

        check(joined);
        stream(data, size, FRAME_FROM_CLIENT);
        if (size > 0)
                through_conn(data, size, FRAME_FROM_CLIENT);
        for (size_t used = 0; size > 0; data += used, size -= used) {
                if (frame_parse(data, size, FRAME_FROM_CLIENT, &f, &used) <= 0)
                        break;
                if (f.type != FRAME_EXEC)
                        continue;
                memcpy(joined + n, f.payload, f.len);
                n += f.len;
                if (f.flags & FRAME_MORE)
                        continue;
                forward(joined, n);
                n = 0;
        }
        free(joined);
        return 0;
}
