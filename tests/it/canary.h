/* What the parts of the canary program share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The writable places of the shipped config. */
#define HOME "/home/sandbox"
#define SHM "/dev/shm"

#define MB (1 << 20)
/* What a place's top is given for its times: long ago, in seconds. */
#define CHOSEN_TIME 1000000001

/* One kind of residue; the last row of a table has no name. */
struct residue {
        const char *name;
        void (*leave)(const char *arg);
        const char *arg;
        void (*body)(void); /* instead of leave: of a process in the background */
};
extern const struct residue file_residues[];

/* Ends with 77 where errno says that this kernel cannot, else with 1. */
_Noreturn void give_up(const char *what);
void need(bool ok, const char *what);
/* It is there, and it is as it was made. */
void check(bool ok, const char *what);

/* Both end the program where they fail. The new file holds some bytes and is open. */
int make_file(int dir, const char *name);
int open_dir(const char *dir);

/* Prints what a command can see of those that ran before it: the tops of the writable places, IPC objects,
 * processes, sockets, mounts, and what a process is born with. Two looks at a clean sandbox are equal. */
void look(void);
