/*
 * One connection, one EXEC, the loop. What is large is static, and used only by a large command: each page that is
 * touched for the first time costs microseconds, so that a short one gets by with the stack.
 */
#include <string.h>

#include "cli/cli_conn.h"
#include "cli/cli_run.h"
#include "common/exitcode.h"
#include "common/proto.h"

void cli_exec_send(const struct cli *c, const struct exec_request *q, const struct cli_way *way,
                   struct cli_sink *sink, struct cli_outcome *o) {
        static uint8_t large[PROTO_EXEC_MAX];
        static _Alignas(4096) struct cli_conn
                conn; /* so that a short answer is in one page with what is before it */
        static struct errmsg e;
        uint8_t small[1024];
        uint8_t *payload = small;
        ssize_t len = exec_request_encode(q, small, sizeof(small));
        int r;

        if (len < 0) {
                payload = large;
                len = exec_request_encode(q, large, sizeof(large));
        }
        if (len < 0) {
                errmsg_set(&e, 0, "the command and its environment have %zu bytes, at most %u",
                           exec_request_size(q), PROTO_EXEC_MAX);
                cli_outcome_refused(o, EXIT_USAGE, e.text);
                return;
        }
        r = cli_conn_open(&conn, c, &e);
        if (r != 0) {
                cli_outcome_refused(o, r, e.text);
                return;
        }
        r = cli_conn_request(&conn, FRAME_EXEC, payload, (size_t)len);
        if (r < 0) {
                errmsg_set(&e, 0, "cannot send to the manager: %s", strerror(-r));
                cli_outcome_refused(o, EXIT_SANDBOX, e.text);
                return;
        }
        cli_run_way(&conn, way, sink, o);
}
