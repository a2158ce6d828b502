#!/usr/bin/env python3
"""activate.py SOCKET stream|seqpacket LOG COMMAND...

Holds a listening socket as a systemd socket unit does: whenever somebody has connected it starts COMMAND with it as
descriptor 3, and waits for its end. LOG gets a line "start PID" and "end STATUS" for each. SIGTERM ends both.
"""
import os
import select
import signal
import socket
import sys

path, kind, log = sys.argv[1:4]
os.umask(0o117)
listener = socket.socket(socket.AF_UNIX,
                         socket.SOCK_STREAM if kind == "stream" else socket.SOCK_SEQPACKET)
listener.bind(path)
listener.listen(1024)
child = 0


def note(text):
    with open(log, "a") as f:
        f.write(text + "\n")


def end(*_):
    if child:
        os.kill(child, signal.SIGINT)
        os.waitpid(child, 0)
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
while True:
    select.select([listener], [], [])
    child = os.fork()
    if child == 0:
        os.umask(0o077)
        os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)
        os.execve(sys.argv[4], sys.argv[4:],
                  {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})
    note("start %d" % child)
    status = os.waitpid(child, 0)[1]
    child = 0
    note("end %d" % os.waitstatus_to_exitcode(status))
