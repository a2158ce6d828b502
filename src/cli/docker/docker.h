/*
 * docker, as a program that speaks to it expects it: its subcommands, words, formats and exit statuses, on top of
 * sessions of one profile. A session is the container, and the profile says what docker's flags may not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "common/errmsg.h"

struct docker {
        struct cli cli;
        const char *profile; /* of the sessions */
};

/* What docker exits with where neither a command nor our own table decides. */
#define DOCKER_FAILED 1  /* it could not be done */
#define DOCKER_USAGE 125 /* words that it does not take; for run everything but the command's own end */

struct docker_command {
        char name[8];
        char operands[40];                                         /* as the usage line has them */
        const char *summary;                                       /* one line */
        int (*run)(const struct docker *d, int argc, char **argv); /* argv[0] is the command's name */
};

/* The whole program. */
int docker_main(struct docker *d, int argc, char **argv);

/* Says @message, "docker: …". Returns DOCKER_FAILED. */
int docker_fail(const char *message);
/* Too few operands: says how many @command needs, and its usage. Returns DOCKER_FAILED. */
int docker_too_few(const char *command, int needed);
/* Words that a command does not take: the line in @e, and where help is. Returns DOCKER_USAGE. */
int docker_bad_words(const char *command, const struct errmsg *e);
/* Prints the usage of a command of the table; @more may be NULL. Returns an exit status. */
int docker_help(const char *command, const char *more);

/* Says what the manager refused of the container @word, in docker's own words where docker has some. @reason is an enum
 * reject_reason, @message the manager's line. */
void docker_say_refusal(uint8_t reason, const char *message, const char *word);

int docker_exec(const struct docker *d, int argc, char **argv);
int docker_run(const struct docker *d, int argc, char **argv);
int docker_create(const struct docker *d, int argc, char **argv);
int docker_start(const struct docker *d, int argc, char **argv);
int docker_stop(const struct docker *d, int argc, char **argv);
int docker_rm(const struct docker *d, int argc, char **argv);
int docker_ps(const struct docker *d, int argc, char **argv);
int docker_inspect(const struct docker *d, int argc, char **argv);
int docker_image(const struct docker *d, int argc, char **argv);
int docker_images(const struct docker *d, int argc, char **argv);
int docker_pull(const struct docker *d, int argc, char **argv);
int docker_version(const struct docker *d, int argc, char **argv);
int docker_info(const struct docker *d, int argc, char **argv);
