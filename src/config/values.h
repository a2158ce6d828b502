/* Which texts may stand for an image, a network, a path and the like. Pure functions, no config. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NAME[:TAG][@sha256:HEX], as in docker's reference grammar (distribution/reference), or an image's id,
 * sha256:HEX; at most 255 bytes, so that it can stand in a URL's path and never be taken for an option. No name
 * that an engine could take for an id. */
bool config_image_ok(const char *s);

/* What an image's name says of which image it is: nothing (a tag can be moved), the digest that a registry knows it by,
 * or its id. @s is one that config_image_ok() accepts. */
enum image_pin { IMAGE_PIN_NONE, IMAGE_PIN_DIGEST, IMAGE_PIN_ID };
enum image_pin config_image_pin(const char *s);

/* [a-zA-Z0-9][a-zA-Z0-9_.-]*, as docker's own names; at most 128 bytes. */
bool config_docker_name_ok(const char *s);

/* [a-z0-9][a-z0-9_-]{0,31} */
bool config_profile_name_ok(const char *s);

/* [A-Za-z_][A-Za-z0-9_]* */
bool config_env_key_ok(const char *s);

/* A user's or group's name as the name services may have it (also user@domain, DOM\user): no blank, no
 * control character, none of : , / and no - in front; at most 255 bytes. */
bool config_account_ok(const char *s);

/* The names of docker's --ulimit (docker/go-units, ulimit.go). */
bool config_ulimit_ok(const char *s);

/* A file name alone: no /, no control character, neither . nor .., at most 255 bytes. */
bool config_file_name_ok(const char *s);

/* @s without doubled and trailing slashes and "." components, as a new string; NULL when it is not
 * absolute, holds ".." or a control character, or is longer than 4095 bytes. */
char *config_path_normalise(const char *s);

/* Whether a tmpfs may be mounted at @s, a normalised path: not at /, not at or below /proc, /sys, /dev
 * and the agent's folder, no : or , in it (docker's options end there), at most 255 bytes. */
bool config_tmpfs_path_ok(const char *s);

/* Whom commands may run as: neither id is 65535 or above 2^31-1 (those mean something else to setres[ug]id(2) or to 16-bit
 * interfaces), the gid is none of the agent's own range (common/agent_args.h), and gid 0 goes with uid 0 alone. */
bool config_user_ok(uint64_t uid, uint64_t gid);

/* "UID" (the gid is the same then) or "UID:GID". 0 or -EINVAL, also where config_user_ok() says no. */
int config_parse_user(const char *s, uint32_t *ret_uid, uint32_t *ret_gid);

/* "CHOWN" or "cap_chown", if it is one of CONFIG_CAPABILITIES: its number, else -EINVAL. */
int config_parse_capability(const char *s);
/* "CHOWN" of CAP_CHOWN, or NULL: none of CONFIG_CAPABILITIES. */
const char *config_capability_name(int cap);
