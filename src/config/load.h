/* The ways into the reader that are not the daemons': for the config program, the tests and the fuzzer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/*
 * config_load() with a choice: @trusted asks that the file, the drop-in folder and each drop-in are no
 * symbolic links, belong to root or to the effective uid, and are writable by nobody else; the files
 * must be regular ones. -EPERM otherwise. Not @trusted: whatever can be read is read.
 */
int config_load_files(const char *path, const char *dropin_dir, bool trusted, struct config **ret,
                      struct errmsg *e);

/* A drop-in that is not written yet. The strings and bytes are borrowed for as long as the call lasts. */
struct config_draft {
        const char *name;  /* its file name in the folder of drop-ins */
        const char *shown; /* stands for it in messages */
        const void *data;
        size_t len;
};

/* config_load() as it will be with @draft in @dropin_dir, in the place of a file of that name if there is one. The
 * folder need not be there. */
int config_load_draft(const char *path, const char *dropin_dir, const struct config_draft *draft,
                      struct config **ret, struct errmsg *e);

/* What engine.socket and audit.file are from now on where no file says it, as absolute paths that stay valid. Without
 * it they are the system's. */
void config_set_defaults(const char *engine_socket, const char *audit_file);

/* One file's bytes, from memory; @name stands for it in messages. As config_load() else. */
int config_load_memory(const char *name, const void *data, size_t len, struct config **ret,
                       struct errmsg *e);
