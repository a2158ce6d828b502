#!/usr/bin/env python3
"""mounts-driver.py ENGINE_SOCKET RECIPE CALLER FOLDER DST SCENARIO [ARGUMENT…]: a manager, honest or not, that asks the broker for
a sandbox with a host folder; run as root, it takes on whatever account a step needs. It prints the broker's answer, and of
a sandbox that was created what is mounted at DST in it, before it is removed again.

honest           the caller's own pair of sockets, with FOLDER as he opens it
swapped TARGET   the same, and between his opening and the request FOLDER becomes a symbolic link to TARGET
late TARGET LOG  the same, but only when the engine-proxy's LOG says that the container's start was asked for
own              a pair of the manager's
root             a pair of root's
listener         a connection to a listening socket of the caller's, who has even written what a pair would hold
stream           a pair of stream sockets
file             no socket at all

The messages (src/common/PROTOCOL.md) are written by hand, so that a fault of the encoder that our programs share cannot hide one
of the decoder's."""
import os
import pwd
import re
import socket
import struct
import sys
import time

ENGINE, RECIPE, CALLER, FOLDER, DST, SCENARIO, *ARGUMENTS = sys.argv[1:]
MANAGER = "_hermes-sandbox"
HELLO, REMOVE, CREATE_FOR, CREATED, DONE, FAILED, STATE = 1, 3, 9, 33, 34, 39, 48
NOT_NARROWED = bytes(39)
HELD_BACK = FOLDER + ".held"


class Account:
    """What is done within is done with its ids."""

    def __init__(self, name):
        self.entry = pwd.getpwnam(name)

    def __enter__(self):
        os.setgroups([])
        os.setegid(self.entry.pw_gid)
        os.seteuid(self.entry.pw_uid)

    def __exit__(self, *_):
        os.seteuid(0)
        os.setegid(0)


def text(s):
    b = s.encode()
    return struct.pack("<I", len(b) + 1) + b + b"\0"


def mount_message():
    return struct.pack("<HBBB", 1, 0, 1, 0) + text(DST)


def pair_of(account, kind=socket.SOCK_SEQPACKET):
    """The other end of a pair that this account has made and written on."""
    with Account(account):
        mine, other = socket.socketpair(socket.AF_UNIX, kind)
        folder = os.open(FOLDER, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        socket.send_fds(mine, [mount_message()], [folder])
        os.close(folder)
    return other.detach()


def connection():
    """One side of a connection: its peer's uid is the caller's, who listens."""
    with Account(CALLER):
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind("")
        listening.listen(1)
    with Account(MANAGER):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(listening.getsockname())
    server, _ = listening.accept()
    with Account(CALLER):
        folder = os.open(FOLDER, os.O_PATH | os.O_DIRECTORY)
        socket.send_fds(server, [mount_message()], [folder])
    return client.detach()


def descriptor():
    if SCENARIO == "own":
        return pair_of(MANAGER)
    if SCENARIO == "root":
        return pair_of("root")
    if SCENARIO == "listener":
        return connection()
    if SCENARIO == "stream":
        return pair_of(CALLER, socket.SOCK_STREAM)
    if SCENARIO == "file":
        return os.open("/dev/null", os.O_RDWR)
    return pair_of(CALLER)


def swap():
    with Account(CALLER):
        os.rename(FOLDER, HELD_BACK)
        os.symlink(ARGUMENTS[0], FOLDER)


def swap_back():
    if os.path.islink(FOLDER):
        os.unlink(FOLDER)
        os.rename(HELD_BACK, FOLDER)


def final(s, number):
    """Type, fields and descriptors of the answer to that request."""
    while True:
        data, fds, _, _ = socket.recv_fds(s, 8192, 1)
        if not data:
            sys.exit("the broker closed the connection")
        got, kind = struct.unpack_from("<IH", data)
        if got == number and kind != STATE:
            return kind, data[6:], fds


def logged(pattern):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with open(ARGUMENTS[1], encoding="utf-8") as f:
            if re.search(pattern, f.read()):
                return
        time.sleep(0.01)
    sys.exit("the engine was not asked")


def mounted(pid):
    """The folder of its file system that is mounted at DST, and with which options."""
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            if fields[4] == DST:
                return fields[3]
    return "nothing"


def ask():
    with Account(MANAGER):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(60)
        s.connect(ENGINE)
    s.send(struct.pack("<IHH", 1, HELLO, 4))
    final(s, 1)
    passed = descriptor()
    if SCENARIO == "swapped":
        swap()
    request = text("default") + bytes.fromhex(RECIPE) + NOT_NARROWED + b"\1"
    socket.send_fds(s, [struct.pack("<IH", 2, CREATE_FOR) + request], [passed])
    if SCENARIO == "late":
        logged("POST/containers/[0-9a-f]+/start")
        swap()
    kind, body, _ = final(s, 2)
    if kind == FAILED:
        print("failed:", body[6:-1].decode())
        return
    assert kind == CREATED
    container, pid = body[4:68].decode(), struct.unpack_from("<I", body, 69)[0]
    print("created:", mounted(pid))
    s.send(struct.pack("<IH", 3, REMOVE) + text(container))
    assert final(s, 3)[0] == DONE


try:
    ask()
finally:
    swap_back()
