#!/usr/bin/env python3
"""raw-client.py SOCKET ACCOUNT nul|script FILE: a caller, as that account, that no command line can be.

nul     sends NUL inside a variable's value, inside its name, inside an argument, then a request that is in
        order, and prints the exit code that the manager answers to each
script  sends FILE as a string for sh -c, of whatever length, and ends as the command does

The frames (src/common/frame.h, proto.h) are written by hand, so that a fault of the encoder that our
programs share cannot hide one of the decoder's."""
import contextlib
import os
import pwd
import socket
import struct
import sys

HELLO, EXEC, STDOUT, STDERR, WINDOW, RESULT, REJECT = 1, 2, 4, 5, 6, 11, 12
CLIENT, MORE, PAYLOAD_MAX = 1, 1, 65536


def text(b):
    return struct.pack("<I", len(b) + 1) + b + b"\0"


def frame(kind, channel, payload, flags=0):
    return struct.pack("<IIBBH", len(payload), channel, kind, flags, 0) + payload


def request(args, env=(), shell=False):
    """struct exec_request: no stdin, the profile's time-out, the default profile, its working directory, one-shot."""
    head = struct.pack("<BBBBBBBIIQHHII", 0, shell, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, len(args), len(env)) + 3 * text(b"")
    return head + b"".join(map(text, args)) + b"".join(map(text, env))


def receive(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError("the manager closed the connection")
        data += more
    return data


def ask(path, payload):
    """Passes the output on; the exit code."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        out = frame(HELLO, 0, struct.pack("<HB", 3, CLIENT) + text(b"raw-client"))
        for start in range(0, len(payload), PAYLOAD_MAX):
            end = start + PAYLOAD_MAX
            out += frame(EXEC, 1, payload[start:end], MORE if end < len(payload) else 0)
        s.sendall(out)
        while True:
            length, _, kind, _, _ = struct.unpack("<IIBBH", receive(s, 12))
            body = receive(s, length)
            if kind in (STDOUT, STDERR):
                os.write(kind - STDOUT + 1, body)
                # The manager closes behind the result; what it sent is still there to be read.
                with contextlib.suppress(BrokenPipeError):
                    if body:
                        s.sendall(frame(WINDOW, 1, struct.pack("<BI", kind - STDOUT + 1, len(body))))
            elif kind == REJECT:
                os.write(2, body[5:-1] + b"\n")
                return body[0]
            elif kind == RESULT:
                return body[1]


def main():
    path, account, what = sys.argv[1:4]
    content = b""
    if what == "script":
        with open(sys.argv[4], "rb") as f:
            content = f.read()
    entry = pwd.getpwnam(account)
    os.initgroups(account, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    if what == "script":
        sys.exit(ask(path, request([content], shell=True)))
    for args, env in (
        ([b"true"], [b"A=b\0c"]),
        ([b"true"], [b"A\0B=c"]),
        ([b"true", b"a\0b"], []),
        ([b"true"], [b"A=b"]),
    ):
        print(ask(path, request(args, env)))


main()
