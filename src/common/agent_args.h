/*
 * What the broker writes into a container's create call and the agent finds there. The agent takes the
 * uids, gids and capabilities that it may use from its arguments alone: no frame can name another.
 *
 *     AGENT_PATH UID GID EXEC_GID_FIRST EXEC_GID_COUNT RECONNECT_MS CAPS [UID:GID]...
 *
 * A command runs as UID and GID, or as one of up to AGENT_USERS_MAX further pairs, whichever its EXEC names. CAPS are
 * 16 hex digits: the mask of the capabilities (bit CAP_X) that a command has which runs as uid 0; any other has none. PID 1
 * has them, too, beside its own three.
 *
 * An agent without its manager tries for RECONNECT_MS to reach it again before it ends itself.
 *
 * With an EXEC_GID_COUNT of 0 (EXEC_GID_FIRST then says nothing, and is 0) commands run as the agent itself: for
 * sandboxes that are created with the uid and gid of who owns the folders in them, and with no capability. UID
 * and GID must then be the agent's own, and no other identity can be had. Such a sandbox is never scrubbed. With any
 * other EXEC_GID_COUNT the agent must be root.
 */
#pragma once

#define AGENT_USERS_MAX 8

/* What is ours in a sandbox. */
#define AGENT_DIR "/.hermes-sandbox"
/* The agent binary, bind-mounted read-only, and the entrypoint. */
#define AGENT_PATH "/.hermes-sandbox/agent"
/* The folder of this sandbox alone, bind-mounted read-only, and the listening socket in it. */
#define AGENT_STREAM_DIR "/.hermes-sandbox/stream"
#define AGENT_SOCKET "agent.sock"

/* Every exec gets one supplementary gid of its own out of this range, by which the agent finds its
 * processes again. The range lies where systemd's uids-gids document leaves gids unused
 * (1879048192 … 2147352575). */
#define AGENT_EXEC_GID_FIRST 1900000000u
#define AGENT_EXEC_GID_COUNT 65536u

/* A rootless engine's user namespace has 65537 ids (/etc/subgid, as useradd writes it), and a gid that is not mapped
 * cannot be set: this range serves there. */
#define AGENT_EXEC_GID_ROOTLESS_FIRST 40000u
#define AGENT_EXEC_GID_ROOTLESS_COUNT 20000u
