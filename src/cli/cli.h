/*
 * hermes-sandbox, the command line: a table of subcommands and what they share.
 *
 * Everything that names a place of the system stands in struct cli; main() fills it, tests fill it
 * otherwise. A command's function returns the exit status of the program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cli {
        const char *libexec;       /* folder of the programs that we exec */
        const char *system_socket; /* the system's manager */
        const char *systemd_dir;   /* exists where systemd is PID 1 (sd_booted(3)) */
        const char *group_file;    /* group(5) */
        const char *log_dir;       /* of the daemons where the supervisor runs them */
        const char *socket;        /* --socket, or NULL */
};

/* The headings under which the list of commands has them, in this order. */
enum cli_group { CLI_RUN, CLI_SESSIONS, CLI_FILES, CLI_LOOK, CLI_ADMINISTER };

struct cli_command {
        const char *name;
        enum cli_group group;
        const char *summary;                                    /* one line for the list of commands */
        const char *help;                                       /* text of --help, with examples */
        int (*run)(const struct cli *c, int argc, char **argv); /* argv[0] is the command's name */
};

/* The whole program: global options, then the command. */
int cli_main(struct cli *c, int argc, char **argv);

/* Becomes the program @name of the folder libexec: what needs a library is another program, as exec must not pay for
 * it. Returns EXIT_SANDBOX and a line on stderr where that cannot be. */
int cli_run_program(const struct cli *c, const char *name, char **argv);

/* One line on stderr, "hermes-sandbox: …", control characters made harmless, in one write. */
__attribute__((format(printf, 1, 2))) void cli_error(const char *fmt, ...);
/* Another name in its place, of at most 15 bytes. */
void cli_error_name(const char *name);
/* The same line without a name. */
__attribute__((format(printf, 1, 2))) void cli_line(const char *fmt, ...);

/* Makes what could drive a terminal harmless, in place: control characters, C0 but newline and tab, and C1;
 * what turns the direction of text; bytes that are no UTF-8. Each becomes '?'s of the same length. Returns the
 * bytes that are whole characters: less than @len where a character goes on behind it. */
size_t cli_disarm(char *text, size_t len);

/* Writes all of @text to stdout. Returns 0, or EXIT_SANDBOX after a line on stderr. */
int cli_say(const char *text);

/* Writes all of it to @fd, waiting where it is non-blocking. 0 or -errno; SIGPIPE is left to its
 * default, which ends us as it ends any filter. */
int cli_write_all(int fd, const void *p, size_t len);

/* The same to a standard stream that may be a terminal, which takes less than poll promises. */
int cli_write_terminal(int fd, const void *p, size_t len);

/* Is the standard stream @fd a pipe? */
bool cli_write_is_pipe(int fd);
/* Moves at most @len bytes from the socket @from to a standard stream that is a pipe; they never come into our
 * memory. Waits for room in the pipe, not for the socket. Returns how many, 0 at the end of the socket, -EAGAIN
 * when there is nothing to be read from it, or another -errno. */
ssize_t cli_write_move(int fd, int from, size_t len);

/* exit_code for a write to a standard stream that failed with @r (-errno): 128 + SIGPIPE and silence
 * for -EPIPE, else EXIT_SANDBOX and a line that names @what. */
int cli_write_failed(const char *what, int r);

extern const struct cli_command cli_exec_command;
extern const struct cli_command cli_ps_command;
extern const struct cli_command cli_attach_command;
extern const struct cli_command cli_wait_command;
extern const struct cli_command cli_kill_command;
extern const struct cli_command cli_cp_command;
extern const struct cli_command cli_cat_command;
extern const struct cli_command cli_ls_command;
extern const struct cli_command cli_rm_command;
extern const struct cli_command cli_session_command;
extern const struct cli_command cli_status_command;
extern const struct cli_command cli_top_command;
extern const struct cli_command cli_stats_command;
extern const struct cli_command cli_metrics_command;
extern const struct cli_command cli_logs_command;
extern const struct cli_command cli_start_command;
extern const struct cli_command cli_stop_command;
extern const struct cli_command cli_image_command;
