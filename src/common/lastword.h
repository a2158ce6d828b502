/*
 * For a daemon that cannot start while systemd holds its socket. Who has connected would have it started again as
 * soon as it ends, many times a second, until systemd gives the socket up: whatever has been mended by then,
 * nobody could connect any more. So whoever has connected is told why before it ends.
 */
#pragma once

/* Calls @tell for each connection that is there and for those that come within @ms; it must not close it. Returns
 * at once when there is none, so that a start by hand fails at once. */
void lastword(int listen_fd, unsigned ms, void (*tell)(int fd, void *userdata), void *userdata);
