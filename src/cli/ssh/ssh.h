/*
 * `hermes-sandbox ssh`: the ssh gateway's sshd and its keys, for root. hermes-sandbox-ssh(1).
 *
 * What is root's is one folder of plain files; each is written beside its place and renamed. Other programs are run by their
 * fixed paths, without a shell, under an environment of ours.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/cli_opts.h"
#include "common/errmsg.h"

#define SSH_PROGRAM "hermes-sandbox ssh"
#define SSH_UNIT "hermes-sandbox-ssh.service"
#define SSH_LISTEN_MAX 16

/* Where everything is: main() fills it in, tests otherwise. */
struct ssh_places {
        const char *dir; /* of keys, host key and sshd_config */
        const char *template;
        const char *home;
        const char *run;     /* of the pid file that the template names */
        const char *privsep; /* sshd's own empty folder */
        const char *log_dir; /* without systemd */
        const char *account;
        const char *systemd_dir; /* exists where systemd is PID 1 (sd_booted(3)) */
        const char *sshd, *ssh_keygen, *systemctl;
        uid_t root; /* whose folder and files have to be, and who may change them */
};

#define SSH_CONFIG "sshd_config"
#define SSH_KEYS "authorized_keys"
#define SSH_HOST_KEY "ssh_host_ed25519_key"

/* The whole program. Returns its exit status. */
int ssh_main(const struct ssh_places *p, int argc, char **argv);

/* One line on stderr, "hermes-sandbox ssh: …"; returns @code. */
__attribute__((format(printf, 2, 3))) int ssh_fail(int code, const char *fmt, ...);

/* --- the folder (ssh_folder.c) --- */

struct ssh_folder {
        int fd;
        const char *path;
};

/* Opens the folder, made where it is missing, and waits for whoever else changes something in it. 0, or -errno and a line
 * in *e. */
int ssh_folder_open(const struct ssh_places *p, struct ssh_folder *ret, struct errmsg *e);
void ssh_folder_done(struct ssh_folder *f);
/* @name has these bytes from now on, for everybody to read; at once, and on disk. 0, or -errno and a line in *e; then it is
 * as it was. */
int ssh_folder_put(const struct ssh_folder *f, const char *name, const char *data, size_t len,
                   struct errmsg *e);

/* --- the configuration (ssh_config.c) --- */

struct ssh_listen {
        char text[64]; /* "127.0.0.1:2222", "[::1]:2222": as ListenAddress has it */
};

/* "ADDR", "ADDR:PORT", "[ADDR]:PORT": an address in numbers. 0, or -EINVAL and a line in *e. */
int ssh_listen_parse(const char *s, struct ssh_listen *ret, struct errmsg *e);
/* Does it reach further than this machine? */
bool ssh_listen_is_wide(const struct ssh_listen *l);
/* Does an sshd answer there, within a second? */
bool ssh_listen_answers(const struct ssh_listen *l);
/* The ListenAddress lines of a configuration that was written from the template. Returns how many. */
size_t ssh_listen_find(const char *config, size_t len, struct ssh_listen *ret);

/* @template with the addresses in it, into a new *ret (free(3) it) of *ret_len bytes. @newer: with the lines that only newer
 * versions of sshd know. 0, or -EINVAL where the template has no place for the addresses. */
int ssh_config_make(const char *template, size_t len, const struct ssh_listen *listen, size_t n,
                    bool newer, char **ret, size_t *ret_len);

/* --- commands: each returns the exit status --- */

struct ssh_words {
        const char *command;
        bool no_systemd, json;
        struct ssh_listen listen[SSH_LISTEN_MAX];
        size_t n_listen;
        const char *profile, *ttl, *name; /* NULL: not said */
        const char *operand;
};

int ssh_enable(const struct ssh_places *p, const struct ssh_words *w);
int ssh_disable(const struct ssh_places *p, const struct ssh_words *w);
int ssh_status(const struct ssh_places *p, const struct ssh_words *w);
int ssh_add_key(const struct ssh_places *p, const struct ssh_words *w);
int ssh_remove_key(const struct ssh_places *p, const struct ssh_words *w);
int ssh_list_keys(const struct ssh_places *p, const struct ssh_words *w);

/* --- the service (ssh_service.c) --- */

/* Does systemd run it, as a unit? */
bool ssh_service_is_units(const struct ssh_places *p, const struct ssh_words *w);
/* The pid of the sshd that runs without systemd, 0: none. */
pid_t ssh_service_pid(const struct ssh_places *p);
/* Starts it, or has it read a configuration that has @changed. 0, or the exit status, its line said. */
int ssh_service_up(const struct ssh_places *p, const struct ssh_words *w, bool changed);
/* Stops it, and ends each connection. 0, or the exit status, its line said. */
int ssh_service_down(const struct ssh_places *p, const struct ssh_words *w);
