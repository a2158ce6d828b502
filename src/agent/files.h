/*
 * Files in and out of a sandbox. The agent's binary is in each of them anyway; as a command, under a name of its own,
 * it reads and writes files with that command's rights: uid, group, limits and end are any other command's (child.c).
 */
#pragma once

/* The name that it is called by: argv[0]. */
#define FILES_NAME "hermes-files"

/* argv[1] is a verb, its operands follow. Returns an exit code: 64 for an unknown verb. */
int files_main(int argc, char **argv);
