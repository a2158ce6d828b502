/*
 * What one key of sandbox.yaml takes: a row in a table (schema.c) and the reader that turns its node
 * into a field. Each reader returns 0, or -EINVAL with the complaint set, and leaves the object usable.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "config/node.h"
#include "config/report.h"

struct config_key {
        const char *name; /* NULL ends a table */
        int (*read)(struct config_reader *r, const struct config_node *n, const struct config_key *k,
                    void *object);
        size_t offset;                  /* of the field in the object */
        uint64_t min, max;              /* numbers, in the field's unit */
        const char *const *words;       /* config_read_word: NULL-terminated, in the order of the enum */
        const struct config_key *table; /* config_read_table */
};

/* The mapping @n into @object by @table: an unknown key is refused. */
int config_read_mapping(struct config_reader *r, const struct config_node *n,
                        const struct config_key *table, void *object);

#define CONFIG_READER(name)                                                          \
        int config_read_##name(struct config_reader *r, const struct config_node *n, \
                               const struct config_key *k, void *object)

CONFIG_READER(table);     /* a mapping with a table of its own */
CONFIG_READER(u32);       /* uint32_t, min to max */
CONFIG_READER(size);      /* uint64_t bytes, min to max */
CONFIG_READER(reserve);   /* uint64_t bytes, 0 or what docker takes */
CONFIG_READER(megabytes); /* uint64_t bytes, from a whole number of MiB */
CONFIG_READER(duration);  /* uint64_t ms, min to max */
CONFIG_READER(cpus);      /* uint64_t nano CPUs, min to max */
CONFIG_READER(bool);      /* bool */
CONFIG_READER(word);      /* an enum, by its place in words */
CONFIG_READER(word_text); /* char *, one of words */

CONFIG_READER(image);     /* char * */
CONFIG_READER(network);   /* char * */
CONFIG_READER(runtime);   /* char *, may be empty */
CONFIG_READER(path);      /* char *, normalised; max: bytes it may have */
CONFIG_READER(file_name); /* char * */
CONFIG_READER(socket);    /* char *, a path, unix:// in front allowed */
CONFIG_READER(paths);     /* char **, normalised */
CONFIG_READER(accounts);  /* char ** */

CONFIG_READER(user);         /* struct config_profile: uid, gid */
CONFIG_READER(users);        /* struct config_profile: users */
CONFIG_READER(capabilities); /* struct config_profile: capabilities */
CONFIG_READER(tmpfs);        /* struct config_profile: tmpfs */
CONFIG_READER(env);          /* struct config_profile: env */
CONFIG_READER(ulimits);      /* struct config_profile: ulimits */

CONFIG_READER(overrides); /* tool_overrides: {} alone */
