/* Every refusal of sandbox.yaml, with its exact line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/load.h"
#include "config/tree.h"

#define POOL_KEYS                                                                                  \
        "size, image, memory_limit, memory_reserve, cpus, network, read_only, pids_limit, tmpfs, " \
        "shm_size, reuse, max_uses, max_age, on_empty, cold_after, max_sandboxes, queue_limit, "   \
        "queue_timeout, session_ttl, session_ttl_max, reconnect_grace, runtime, user, users, capabilities, workdir, home, env, ulimits, allow_users, allow_groups, limits"

struct refusal {
        const char *yaml, *line;
};

static void refuse_len(const char *yaml, size_t len, const char *line) {
        struct config *c = NULL;
        struct errmsg e = { "" };
        int r = config_load_memory("f", yaml, len, &c, &e);

        if (r == 0)
                config_free(c);
        if (r != -EINVAL || strcmp(e.text, line) != 0)
                fail_msg("%.200s\n got %d: %s\nwant -22: %s", yaml, r, e.text, line);
}

static void refuse(const struct refusal *rows, size_t n) {
        for (size_t i = 0; i < n; i++)
                refuse_len(rows[i].yaml, strlen(rows[i].yaml), rows[i].line);
}

#define REFUSE(rows) refuse(rows, sizeof(rows) / sizeof((rows)[0]))

static void yaml_itself(void **state) {
        static const struct refusal rows[] = {
                { "a: b: c\n",
                  "f:1:5: file: found bad YAML (mapping values are not allowed in this context), "
                  "expected well-formed YAML" },
                { "pool:\n\tsize: 1\n",
                  "f:2:1: pool: found bad YAML (while scanning for the next token: found "
                  "character that cannot start any token), expected well-formed YAML" },
                { "- a\n", "f:1:1: file: found a list, expected keys such as \"pool:\"" },
                { "text\n", "f:1:1: file: found \"text\", expected keys such as \"pool:\"" },
                { "pool: {}\n---\npool: {}\n",
                  "f:2:1: file: found a second document, expected one document in a file" },
                { "pool: &x {size: 1}\n", "f:1:7: pool: found an anchor, expected the value alone" },
                { "pool: *x\n", "f:1:7: pool: found an alias, expected the value itself" },
                { "pool:\n  size: !!int 3\n",
                  "f:2:9: pool.size: found a tag, expected the value alone" },
                { "pool:\n  size: ! 3\n", "f:2:9: pool.size: found a tag, expected the value alone" },
                { "%TAG !e! tag:example.com,2000:\n---\npool: {}\n",
                  "f:1:1: file: found a tag directive, expected a file without tags" },
                { "pool: {}\nwaf_mode: off\npool: {}\n",
                  "f:3:1: pool: found a repeated key, expected each key once" },
                { "pool:\n  size: 1\n  \"size\": 2\n",
                  "f:3:3: pool.size: found a repeated key, expected each key once" },
                { "pool:\n  env: {A: \"1\", A: \"1\"}\n",
                  "f:2:17: pool.env.A: found a repeated key, expected each key once" },
                { "? [a]\n: b\n", "f:1:3: file: found a list, expected a name as the key" },
                { "? {a: b}\n: c\n", "f:1:3: file: found a mapping, expected a name as the key" },
                { "pool:\n  env:\n    A: \"x\\0y\"\n",
                  "f:3:8: pool.env.A: found a NUL byte, expected text without it" },
                { "pool: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: "
                  "1}}}}}}}}}}}}}}}}}\n",
                  "f:1:68: pool.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: found too deep a nesting, expected at "
                  "most "
                  "16 levels" },
                { "a\x01: b\n", "f:1:2: file: found a control character, expected UTF-8 text" },
                { "# \xff\n", "f:1:3: file: found a byte that is not UTF-8, expected UTF-8 text" },
        };

        (void)state;
        REFUSE(rows);
        refuse_len("pool: {}\n\0", 10, "f:2:1: file: found a NUL byte, expected UTF-8 text");
}

static char *repeated(const char *head, const char *unit, size_t n, const char *tail) {
        char *s = calloc(1, strlen(head) + n * strlen(unit) + strlen(tail) + 1), *p = s;

        assert_non_null(s);
        p = stpcpy(p, head);
        while (n--)
                p = stpcpy(p, unit);
        stpcpy(p, tail);
        return s;
}

static void bounds(void **state) {
        char *s = repeated("", "#\n", CONFIG_FILE_MAX / 2, "");
        struct config *c;

        (void)state;
        assert_int_equal(config_load_memory("f", s, CONFIG_FILE_MAX, &c, NULL), 0);
        config_free(c);
        free(s);
        s = repeated("#", "#\n", CONFIG_FILE_MAX / 2, "");
        refuse_len(s, CONFIG_FILE_MAX + 1,
                   "f:1:1: file: found more than 1 MiB, expected a smaller file");
        free(s);
        s = repeated("waf_mode: ", "x", CONFIG_SCALAR_MAX + 1, "\n");
        refuse_len(s, strlen(s),
                   "f:1:11: waf_mode: found a value too long, expected at most 65536 bytes");
        free(s);
        s = repeated("", "k", 256, ": 1\n");
        refuse_len(s, strlen(s), "f:1:1: file: found a key too long, expected at most 255 bytes");
        free(s);
        s = repeated("allowed_file_paths: [", "/a,", 1025, "]\n");
        refuse_len(s, strlen(s),
                   "f:1:3094: allowed_file_paths: found too many entries, expected at most 1024 in "
                   "one place");
        free(s);
        s = repeated("allowed_file_paths: [", "/a,", 257, "]\n");
        refuse_len(s, strlen(s),
                   "f:1:21: allowed_file_paths: found too long a list, expected at most 256 entries");
        free(s);
        s = repeated("tool_overrides: [", "[1,1,1,1,1,1,1,1,1],", 1001, "]\n");
        refuse_len(s, strlen(s),
                   "f:1:20011: tool_overrides: found too many values, expected at most 10000 in a "
                   "file");
        free(s);
        s = repeated("pool:\n  env:\n    A: \"", "x", 8193, "\"\n");
        refuse_len(s, strlen(s),
                   "f:3:8: pool.env.A: found a value too long, expected at most 8192 bytes");
        free(s);
}

static void keys(void **state) {
        static const struct refusal rows[] = {
                { "pol: {}\n",
                  "f:1:1: pol: found an unknown key, expected one of: pool, profiles, limits, "
                  "waf_mode, allowed_file_paths, tool_overrides, logging, audit, engine" },
                { "<<: {}\n",
                  "f:1:1: <<: found an unknown key, expected one of: pool, profiles, limits, "
                  "waf_mode, allowed_file_paths, tool_overrides, logging, audit, engine" },
                { "pool:\n  sise: 1\n",
                  "f:2:3: pool.sise: found an unknown key, expected one of: " POOL_KEYS },
                { "profiles:\n  dev:\n    sise: 1\n",
                  "f:3:5: profiles.dev.sise: found an unknown key, expected one of: " POOL_KEYS },
                { "limits:\n  time: 1\n",
                  "f:2:3: limits.time: found an unknown key, expected one of: "
                  "command_bytes, timeout, timeout_max, output_bytes, grace, exec_rate, sessions, execs, "
                  "queued" },
                { "logging: {x: 1}\n",
                  "f:1:11: logging.x: found an unknown key, expected one of: level, "
                  "backup_count, max_size_mb, file" },
                { "audit: {x: 1}\n",
                  "f:1:9: audit.x: found an unknown key, expected one of: required, file" },
                { "engine: {x: 1}\n",
                  "f:1:10: engine.x: found an unknown key, expected one of: socket" },
                { "pool:\n", "f:1:6: pool: found nothing, expected a mapping" },
                { "pool: []\n", "f:1:7: pool: found a list, expected a mapping" },
                { "profiles: 3\n", "f:1:11: profiles: found \"3\", expected a mapping" },
                { "profiles: {dev: }\n", "f:1:17: profiles.dev: found nothing, expected a mapping" },
                { "limits: ~\n", "f:1:9: limits: found nothing, expected a mapping" },
                { "logging: null\n", "f:1:10: logging: found nothing, expected a mapping" },
                { "pool: {limits: 3}\n", "f:1:16: pool.limits: found \"3\", expected a mapping" },
                { "profiles: {default: {}}\n",
                  "f:1:12: profiles.default: found \"default\", expected another "
                  "name (the default profile is pool:)" },
                { "profiles: {Dev: {}}\n",
                  "f:1:12: profiles.Dev: found \"Dev\", expected a name of a-z, 0-9, _ "
                  "and -, at most 32 bytes, _ or - not in front" },
        };

        (void)state;
        REFUSE(rows);
}

static void numbers(void **state) {
        static const struct refusal rows[] = {
                { "pool: {size: 1001}\n",
                  "f:1:14: pool.size: found \"1001\", expected a whole number from 0 to 1000" },
                { "pool: {size: -1}\n",
                  "f:1:14: pool.size: found \"-1\", expected a whole number from 0 to 1000" },
                { "pool: {size: [1]}\n",
                  "f:1:14: pool.size: found a list, expected a whole number from 0 to 1000" },
                { "pool: {size: {a: 1}}\n",
                  "f:1:14: pool.size: found a mapping, expected a whole number from 0 to 1000" },
                { "pool: {size: }\n",
                  "f:1:14: pool.size: found nothing, expected a whole number from 0 to 1000" },
                { "pool: {pids_limit: 15}\n",
                  "f:1:20: pool.pids_limit: found \"15\", expected a whole number from 16 to 4194304" },
                { "pool: {max_sandboxes: 0}\n",
                  "f:1:23: pool.max_sandboxes: found \"0\", expected a whole number from 1 to 10000" },
                { "pool: {queue_limit: 100001}\n", "f:1:21: pool.queue_limit: found \"100001\", "
                                                   "expected a whole number from 0 to 100000" },
                { "pool: {max_uses: many}\n", "f:1:18: pool.max_uses: found \"many\", expected a whole "
                                              "number from 0 to 1000000000" },
                { "limits: {exec_rate: 0.5}\n",
                  "f:1:21: limits.exec_rate: found \"0.5\", expected a whole number from 0 to 1000000" },
                { "logging: {backup_count: 101}\n",
                  "f:1:25: logging.backup_count: found \"101\", expected a whole number from 0 to 100" },
                { "logging: {max_size_mb: 0}\n",
                  "f:1:24: logging.max_size_mb: found \"0\", expected a whole number from 1 to 1024" },
                { "pool:\n  memory_limit: \"128x\"\n",
                  "f:2:17: pool.memory_limit: found \"128x\", expected a size "
                  "from 16m to 1048576g, such as 512k, 128m or 1g" },
                { "pool: {memory_limit: 16383k}\n",
                  "f:1:22: pool.memory_limit: found \"16383k\", expected a size "
                  "from 16m to 1048576g, such as 512k, 128m or 1g" },
                { "pool: {memory_limit: 1048577g}\n",
                  "f:1:22: pool.memory_limit: found \"1048577g\", expected a "
                  "size from 16m to 1048576g, such as 512k, 128m or 1g" },
                { "pool: {memory_limit: 18446744073709551616g}\n",
                  "f:1:22: pool.memory_limit: found \"18446744073709551616g\", expected a size from 16m "
                  "to "
                  "1048576g, such as 512k, 128m or 1g" },
                { "pool: {memory_reserve: 5m}\n",
                  "f:1:24: pool.memory_reserve: found \"5m\", expected a size from "
                  "6m to memory_limit, or 0 (none)" },
                { "pool: {shm_size: 0}\n",
                  "f:1:18: pool.shm_size: found \"0\", expected a size from 64k to "
                  "1048576g, such as 512k, 128m or 1g" },
                { "limits: {command_bytes: 0}\n",
                  "f:1:25: limits.command_bytes: found \"0\", expected a size from "
                  "1 to 3m, such as 512k, 128m or 1g" },
                { "limits: {command_bytes: 3145729}\n",
                  "f:1:25: limits.command_bytes: found \"3145729\", expected "
                  "a size from 1 to 3m, such as 512k, 128m or 1g" },
                { "profiles: {dev: {limits: {timeout: 5x}}}\n",
                  "f:1:36: profiles.dev.limits.timeout: found \"5x\", expected a duration from 0 to "
                  "365d, such as "
                  "500ms, 30s, 5m or 1h" },
                { "limits: {grace: 61m}\n",
                  "f:1:17: limits.grace: found \"61m\", expected a duration from 0 to 1h, "
                  "such as 500ms, 30s, 5m or 1h" },
                { "pool: {cold_after: 1h}\n",
                  "f:1:20: pool.cold_after: found \"1h\", expected a duration from 0 to "
                  "1m, such as 500ms, 30s, 5m or 1h" },
                { "pool: {cpus: 0}\n",
                  "f:1:14: pool.cpus: found \"0\", expected a number of CPUs from 0.01 to 1024, "
                  "such as 0.5 or 2" },
                { "pool: {cpus: 1024.1}\n",
                  "f:1:14: pool.cpus: found \"1024.1\", expected a number of CPUs from "
                  "0.01 to 1024, such as 0.5 or 2" },
                { "pool: {cpus: half}\n",
                  "f:1:14: pool.cpus: found \"half\", expected a number of CPUs from 0.01 to "
                  "1024, such as 0.5 or 2" },
        };

        (void)state;
        REFUSE(rows);
}

static void words(void **state) {
        static const struct refusal rows[] = {
                { "pool: {read_only: yes}\n",
                  "f:1:19: pool.read_only: found \"yes\", expected true or false" },
                { "pool: {read_only: True}\n",
                  "f:1:19: pool.read_only: found \"True\", expected true or false" },
                { "pool: {reuse: keep}\n",
                  "f:1:15: pool.reuse: found \"keep\", expected replace or scrub" },
                { "pool: {on_empty: }\n",
                  "f:1:18: pool.on_empty: found nothing, expected cold or wait" },
                { "waf_mode: on\n",
                  "f:1:11: waf_mode: found \"on\", expected read-only, read-write or off" },
                { "logging: {level: debug}\n",
                  "f:1:18: logging.level: found \"debug\", expected DEBUG, INFO, WARNING or ERROR" },
                { "audit: {required: yes}\n",
                  "f:1:19: audit.required: found \"yes\", expected auto, true or false" },
                { "pool: {image: \"a b\"}\n",
                  "f:1:15: pool.image: found \"a b\", expected an image such as debian:bookworm-slim, "
                  "NAME@sha256:HEX or sha256:HEX (64 hex digits)" },
                { "pool: {image: \"\"}\n",
                  "f:1:15: pool.image: found \"\", expected an image such as debian:bookworm-slim, "
                  "NAME@sha256:HEX or sha256:HEX (64 hex digits)" },
                { "pool: {network: host}\n", "f:1:17: pool.network: found \"host\", expected none, "
                                             "bridge or a network's name (host would put "
                                             "the sandbox on the machine's own network)" },
                { "pool: {network: \"container:abc\"}\n",
                  "f:1:17: pool.network: found \"container:abc\", expected none, bridge or a network's "
                  "name "
                  "(container: would put the sandbox on another container's network)" },
                { "pool: {network: \"a/b\"}\n",
                  "f:1:17: pool.network: found \"a/b\", expected none, bridge or a network's name" },
                { "pool: {runtime: /bin/x}\n",
                  "f:1:17: pool.runtime: found \"/bin/x\", expected a runtime's name "
                  "such as runsc, or \"\" (the engine's default)" },
                { "pool: {workdir: tmp}\n",
                  "f:1:17: pool.workdir: found \"tmp\", expected an absolute path without \"..\"" },
                { "pool: {home: /a/../b}\n",
                  "f:1:14: pool.home: found \"/a/../b\", expected an absolute path without \"..\"" },
                { "audit: {file: /}\n",
                  "f:1:15: audit.file: found \"/\", expected an absolute path without \"..\"" },
                { "logging: {file: a/b}\n",
                  "f:1:17: logging.file: found \"a/b\", expected a file name without "
                  "\"/\", or \"\" (no file)" },
                { "engine: {socket: \"tcp://x\"}\n",
                  "f:1:18: engine.socket: found \"tcp://x\", expected the absolute "
                  "path of a Unix socket, at most 107 bytes" },
                { "waf_mode: \"a\\\"\\\\\\e\\u00e4\\n\"\n",
                  "f:1:11: waf_mode: found \"a\\\"\\\\\\x1b\\xc3\\xa4\\x0a\", expected read-only, "
                  "read-write or off" },
                { "waf_mode: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
                  "f:1:11: waf_mode: found \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\", expected "
                  "read-only, "
                  "read-write or off" },
        };

        (void)state;
        REFUSE(rows);
}

static void sets(void **state) {
        static const struct refusal rows[] = {
                { "pool: {user: auto}\n",
                  "f:1:14: pool.user: found \"auto\", expected UID or UID:GID in numbers "
                  "(auto is not in this version)" },
                { "pool: {user: nobody}\n",
                  "f:1:14: pool.user: found \"nobody\", expected UID or UID:GID in numbers "
                  "(names are not looked up)" },
                { "pool: {user: 5:0}\n", "f:1:14: pool.user: found \"5:0\", expected UID or UID:GID in "
                                         "numbers from 0 to 2147483647, without 65535 and the gids "
                                         "1900000000 to 1900065535; gid 0 with uid 0 alone" },
                { "pool: {user: []}\n",
                  "f:1:14: pool.user: found a list, expected UID or UID:GID in numbers" },
                { "pool: {users: 0}\n",
                  "f:1:15: pool.users: found \"0\", expected a list of \"UID:GID\"" },
                { "pool: {users: [1, root]}\n",
                  "f:1:19: pool.users: found \"root\", expected UID or UID:GID in numbers (names are "
                  "not looked up)" },
                { "pool: {users: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n",
                  "f:1:15: pool.users: found too many users, expected at most 8" },
                { "pool: {capabilities: ALL}\n",
                  "f:1:22: pool.capabilities: found \"ALL\", expected a list of capabilities" },
                { "pool: {capabilities: [CHOWN, CAP_SETUID]}\n",
                  "f:1:30: pool.capabilities: found \"CAP_SETUID\", expected one of CHOWN, DAC_OVERRIDE, "
                  "FOWNER, FSETID and NET_BIND_SERVICE (any other could free a command of its agent, or of "
                  "its sandbox)" },
                { "pool: {tmpfs: 48m}\n",
                  "f:1:15: pool.tmpfs: found \"48m\", expected a mapping of paths to sizes" },
                { "pool: {tmpfs: {/tmp/: 1m}}\n",
                  "f:1:16: pool.tmpfs./tmp/: found \"/tmp/\", expected an absolute path in normal form, "
                  "without "
                  "\":\" or \",\", not / and not below /proc, /sys, /dev or /.hermes-sandbox" },
                { "pool: {tmpfs: {/proc/x: 1m}}\n",
                  "f:1:16: pool.tmpfs./proc/x: found \"/proc/x\", expected an absolute path in normal "
                  "form, without "
                  "\":\" or \",\", not / and not below /proc, /sys, /dev or /.hermes-sandbox" },
                { "pool: {tmpfs: {/tmp: 4095}}\n",
                  "f:1:22: pool.tmpfs./tmp: found \"4095\", expected a size from 4k "
                  "to 1048576g, such as 48m, or 0 (no tmpfs there)" },
                { "pool: {env: [A]}\n",
                  "f:1:13: pool.env: found a list, expected a mapping of names to values" },
                { "pool: {env: {1A: x}}\n",
                  "f:1:14: pool.env.1A: found \"1A\", expected a name of letters, digits "
                  "and _, no digit in front" },
                { "pool: {env: {A: }}\n",
                  "f:1:17: pool.env.A: found nothing, expected a text (\"\" for an empty one)" },
                { "pool: {env: {A: [b]}}\n",
                  "f:1:17: pool.env.A: found a list, expected a text (\"\" for an empty one)" },
                { "pool: {ulimits: 3}\n",
                  "f:1:17: pool.ulimits: found \"3\", expected a mapping of names to limits" },
                { "pool: {ulimits: {nproc: 3}}\n",
                  "f:1:18: pool.ulimits.nproc: found \"nproc\", expected pids_limit instead (nproc "
                  "counts a uid over "
                  "the whole machine)" },
                { "pool: {ulimits: {files: 3}}\n",
                  "f:1:18: pool.ulimits.files: found \"files\", expected a name of "
                  "docker's --ulimit, such as nofile or core" },
                { "pool: {ulimits: {nofile: \"5:4\"}}\n",
                  "f:1:26: pool.ulimits.nofile: found \"5:4\", expected N or \"SOFT:HARD\", soft at "
                  "most hard" },
                { "pool: {ulimits: {nofile: 9223372036854775808}}\n",
                  "f:1:26: pool.ulimits.nofile: found \"9223372036854775808\", expected N or "
                  "\"SOFT:HARD\", soft at "
                  "most hard" },
                { "pool: {allow_users: hermes}\n",
                  "f:1:21: pool.allow_users: found \"hermes\", expected a list" },
                { "pool: {allow_groups: [a, \"b:c\"]}\n",
                  "f:1:26: pool.allow_groups: found \"b:c\", expected a user's or group's name" },
                { "allowed_file_paths:\n  - /a\n  - b\n",
                  "f:3:5: allowed_file_paths: found \"b\", expected an "
                  "absolute path without \"..\", and not / itself" },
                { "allowed_file_paths: [/]\n",
                  "f:1:22: allowed_file_paths: found \"/\", expected an absolute path "
                  "without \"..\", and not / itself" },
                { "tool_overrides: {a: b}\n",
                  "f:1:17: tool_overrides: found a mapping, expected {} (tool overrides "
                  "are not in this version)" },
                { "tool_overrides:\n",
                  "f:1:16: tool_overrides: found nothing, expected {} (tool overrides are not "
                  "in this version)" },
        };

        (void)state;
        REFUSE(rows);
}

static void between_values(void **state) {
        static const struct refusal rows[] = {
                { "pool: {memory_limit: 64m}\n",
                  "f:1:22: pool.memory_limit: found tmpfs 80m and shm_size 16m with memory_limit 64m, "
                  "expected at "
                  "most 48m for tmpfs and shm_size together (memory_limit less 16m)" },
                { "pool:\n  tmpfs:\n    /tmp: 64m\n    /x: 1\n",
                  "f:4:9: pool.tmpfs./x: found \"1\", expected a size from 4k to 1048576g, such as 48m, "
                  "or 0 (no "
                  "tmpfs there)" },
                { "pool:\n  tmpfs:\n    /tmp: 65m\n",
                  "f:3:5: pool.tmpfs: found tmpfs 97m and shm_size 16m with memory_limit 128m, expected "
                  "at most "
                  "112m for tmpfs and shm_size together (memory_limit less 16m)" },
                { "profiles: {dev: {shm_size: 33m}}\n",
                  "f:1:28: profiles.dev.shm_size: found tmpfs 80m and shm_size 33m with memory_limit "
                  "128m, expected "
                  "at most 112m for tmpfs and shm_size together (memory_limit less 16m)" },
                { "pool: {memory_reserve: 129m}\n",
                  "f:1:24: pool.memory_reserve: found memory_reserve 129m with "
                  "memory_limit 128m, expected a memory_reserve of at most "
                  "memory_limit" },
                { "pool: {memory_reserve: 120m}\nprofiles: {dev: {memory_limit: 115m}}\n",
                  "f:2:32: profiles.dev.memory_limit: found memory_reserve 120m with memory_limit 115m, "
                  "expected a "
                  "memory_reserve of at most memory_limit" },
                { "pool: {max_sandboxes: 2}\n",
                  "f:1:23: pool.max_sandboxes: found size 3 with max_sandboxes 2, "
                  "expected a size of at most max_sandboxes" },
                { "pool: {max_sandboxes: 4}\nprofiles: {dev: {size: 5}}\n",
                  "f:2:24: profiles.dev.size: found size 5 with max_sandboxes 4, expected a size of at "
                  "most "
                  "max_sandboxes" },
                { "pool: {user: 0, reuse: scrub}\n",
                  "f:1:24: pool.reuse: found scrub where user or users has uid 0, expected replace (whoever "
                  "was root in a sandbox may have changed what the proof looks at)" },
                { "pool: {users: [0]}\nprofiles: {dev: {reuse: scrub}}\n",
                  "f:2:25: profiles.dev.reuse: found scrub where user or users has uid 0, expected replace "
                  "(whoever was root in a sandbox may have changed what the proof looks at)" },
                { "limits: {timeout: 2h}\n",
                  "f:1:19: limits.timeout: found timeout 2h with timeout_max 1h, expected "
                  "a timeout of at most timeout_max (timeout_max 0: no bound)" },
                { "limits: {timeout: 0}\n", "f:1:19: limits.timeout: found timeout 0 (none) with "
                                            "timeout_max 1h, expected a timeout of at most "
                                            "timeout_max (timeout_max 0: no bound)" },
                { "pool: {limits: {timeout_max: 1m}}\n",
                  "f:1:30: pool.limits.timeout_max: found timeout 3m with timeout_max 1m, expected a "
                  "timeout of at "
                  "most timeout_max (timeout_max 0: no bound)" },
                { "profiles: {dev: {limits: {timeout: 2h}}}\n",
                  "f:1:36: profiles.dev.limits.timeout: found timeout 2h with timeout_max 1h, expected "
                  "a timeout of "
                  "at most timeout_max (timeout_max 0: no bound)" },
                { "logging: {file: sandbox-audit.log}\n",
                  "f:1:17: logging.file: found the name of audit.file, expected a file of its own" },
        };

        (void)state;
        REFUSE(rows);
}

/* Whatever stands in a file, the complaint is one line of printable text. */
static void long_names_stay_one_line(void **state) {
        char name[600];
        struct config *c;
        struct errmsg e;

        (void)state;
        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = 0;
        assert_int_equal(config_load_memory(name, "pool: {sise: 1}\n", 16, &c, &e), -EINVAL);
        assert_ptr_equal(strstr(e.text, "...nnn"), e.text);
        assert_non_null(strstr(e.text, "n:1:8: pool.sise: found an unknown key"));
        assert_int_equal(config_load_memory("f", "\"a\\nb\\u202e\": 1\n", 15, &c, &e), -EINVAL);
        assert_ptr_equal(strstr(e.text, "f:1:1: a?b???: found"), e.text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(yaml_itself),    cmocka_unit_test(bounds),
                cmocka_unit_test(keys),           cmocka_unit_test(numbers),
                cmocka_unit_test(words),          cmocka_unit_test(sets),
                cmocka_unit_test(between_values), cmocka_unit_test(long_names_stay_one_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
