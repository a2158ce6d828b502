/*
 * The tool's stdout goes where the command wants it; what it says on stderr becomes lines of ours, harmless on a
 * terminal whatever is in them.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/files/files.h"
#include "common/escape.h"
#include "common/exitcode.h"

/* --- lines ----------------------------------------------------------------------------------------- */

/* "hermes-sandbox: VERB: [in SESSION: ]TEXT" in one write. */
static void put_line(struct files_run *r, bool inside, const char *text, size_t len, bool cut) {
        char line[4 * sizeof(r->line) + 256];
        struct text t;

        if (r->before_line)
                r->before_line(r);
        text_init(&t, line, sizeof(line));
        text_addf(&t, "hermes-sandbox: %s: ", r->verb);
        if (inside)
                text_addf(&t, "in %s: ", r->words->session);
        text_add_shown(&t, text, len);
        text_addf(&t, "%s\n", cut ? "\\..." : "");
        cli_write_all(STDERR_FILENO, t.p, t.len);
}

void files_local_say(void *run, const char *what, const char *path, const char *why) {
        struct files_run *r = run;
        char line[sizeof(r->line)];
        struct text t;
        size_t most = sizeof(line) - strlen(what) - strlen(why) - 16, len = strlen(path);

        text_init(&t, line, sizeof(line));
        text_addf(&t, "%s '%.*s%s': %s", what, (int)(len < most ? len : most), path,
                  len < most ? "" : "...", why);
        put_line(r, false, t.p, t.len, false);
}

static void end_line(struct files_run *r) {
        if (r->len > 0)
                put_line(r, true, r->line, r->len, r->cut);
        r->len = 0;
        r->cut = false;
}

static void take_stderr(struct files_run *r, const char *p, size_t len) {
        for (size_t i = 0; i < len; i++) {
                if (p[i] == '\0')
                        end_line(r);
                else if (r->len < sizeof(r->line))
                        r->line[r->len++] = p[i];
                else
                        r->cut = true;
        }
}

/* --- the run --------------------------------------------------------------------------------------- */

static int take(struct cli_sink *s, uint8_t stream, const void *p, size_t len) {
        struct files_run *r = (struct files_run *)s;

        if (stream == STREAM_STDERR) {
                take_stderr(r, p, len);
                return 0;
        }
        return r->take ? r->take(r, p, len) : cli_raw_sink.take(&cli_raw_sink, stream, p, len);
}

static bool moves_stdout(uint8_t stream) {
        return stream == STREAM_STDOUT && cli_raw_sink.moves(stream);
}

int files_connect(struct files_run *r, const struct cli *c) {
        static struct cli_conn conn;
        struct errmsg e;
        int status = cli_conn_open(&conn, c, &e);

        if (status != 0)
                cli_error("%s", e.text);
        r->conn = &conn;
        return status;
}

static int refuse(struct files_run *r, int status, const struct errmsg *e) {
        close(r->conn->fd);
        cli_error("%s: %s", r->verb, e->text);
        return status;
}

int files_go(struct files_run *r) {
        static uint8_t payload[PROTO_EXEC_MAX];
        struct exec_request request = {
                .use_stdin = r->use_stdin,
                .files = true,
                .timeout_ms = r->timeout_ms,
                .profile = "",
                .workdir = "",
                .session = r->words->session,
                .n_args = r->words->n,
                .args = (const char **)r->words->args,
        };
        ssize_t len = exec_request_encode(&request, payload, sizeof(payload));
        struct errmsg e;
        int n;

        if (len < 0) {
                errmsg_set(&e, 0, "the paths have %zu bytes, at most %u", exec_request_size(&request),
                           PROTO_EXEC_MAX);
                return refuse(r, EXIT_USAGE, &e);
        }
        n = cli_conn_request(r->conn, FRAME_EXEC, payload, (size_t)len);
        if (n < 0) {
                errmsg_set(&e, 0, "cannot send to the manager: %s", strerror(-n));
                return refuse(r, EXIT_SANDBOX, &e);
        }
        r->sink.take = take;
        if (!r->take) {
                r->sink.moves = moves_stdout;
                r->sink.move = cli_raw_sink.move;
        }
        cli_run(r->conn, r->use_stdin, &r->sink, &r->outcome);
        end_line(r);
        if (r->before_line)
                r->before_line(r);
        cli_outcome_say(&r->outcome);
        close(r->conn->fd);
        return r->outcome.exit_code;
}

int files_bad_usage(const struct errmsg *e) {
        cli_error("%s", e->text);
        return EXIT_USAGE;
}
