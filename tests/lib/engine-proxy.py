#!/usr/bin/python3
"""engine-proxy.py LISTEN ENGINE RULES LOG: stands between the broker and an engine, and does to its calls what RULES says.

LISTEN and ENGINE are Unix sockets; LISTEN gets ENGINE's group, and mode 0660. RULES is a file that is read anew for each
call, so that a script steers by writing it (whole, by a rename). Each line that is not empty is one rule; the first one that fits
a call counts, and a call that none fits goes through as it is:

    PATTERN ACTION [ARGUMENT]

PATTERN is a regular expression, without blanks, for "METHOD/path?query" with the path as it was sent but for its version:
"POST/containers/create", ".*" for all. The actions:

    delay SECONDS      the call goes on so much later
    hang               it is not answered until the rules fit it no more; then it goes on
    cut                the connection ends without an answer, and the engine hears nothing of the call
    lose               the engine is called, and the connection ends in place of the answer
    half               half of the engine's answer, and then the end
    garble             the engine is called, and its answer has another body: words that are no JSON
    noise              bytes that are no HTTP, and the end; the engine hears nothing
    say STATUS TEXT    an answer of that status with TEXT as its message; the engine hears nothing

LOG gets a line for each call: the action (or "pass") and what the pattern was compared with.
"""

import os
import re
import socket
import sys
import threading
import time

POLL = 0.05
LISTEN, ENGINE, RULES, LOG = sys.argv[1:]
log_lock = threading.Lock()


def rule_for(call):
    """(action, argument) of the first rule that fits."""
    try:
        with open(RULES, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return "pass", ""
    for line in filter(None, lines):
        pattern, action, *rest = line.split(" ", 2)
        if re.match(pattern, call):
            return action, rest[0] if rest else ""
    return "pass", ""


def log(action, call):
    with log_lock, open(LOG, "a", encoding="utf-8") as f:
        f.write(f"{action} {call}\n")


def read_request(conn):
    """The head's lines and the body of one request; None at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = conn.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    while length and len(body) < int(length[1]):
        more = conn.recv(65536)
        if not more:
            return None
        body += more
    return head.split(b"\r\n"), body


def call_engine(lines, body):
    """Sends it on. The answer ends where the connection does."""
    engine = socket.socket(socket.AF_UNIX)
    engine.connect(ENGINE)
    lines = [x for x in lines if not x.lower().startswith(b"connection:")]
    engine.sendall(b"\r\n".join(lines + [b"Connection: close"]) + b"\r\n\r\n" + body)
    return engine


def whole(engine):
    parts = []
    while part := engine.recv(65536):
        parts.append(part)
    return b"".join(parts)


def relay(conn, engine):
    """Until either side ends: an answer may be endless, and its reader may leave."""

    def watch():
        try:
            while conn.recv(4096):
                pass
        except OSError:
            pass
        try:
            engine.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    threading.Thread(target=watch, daemon=True).start()
    while part := engine.recv(65536):
        conn.sendall(part)


def answer(conn, status, body, kind="application/json"):
    head = f"HTTP/1.1 {status} Proxy\r\nApi-Version: 1.41\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    conn.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def serve(conn):
    with conn:
        request = read_request(conn)
        if not request:
            return
        lines, body = request
        method, path, _ = lines[0].decode("latin-1").split(" ", 2)
        call = method + re.sub(r"^/v1\.\d+", "", path)
        action, argument = rule_for(call)
        log(action, call)
        if action == "delay":
            time.sleep(float(argument))
        elif action == "hang":
            while rule_for(call)[0] == "hang":
                time.sleep(POLL)
        elif action == "cut":
            return
        elif action == "noise":
            conn.sendall(os.urandom(512))
            return
        elif action == "say":
            status, text = argument.split(" ", 1)
            answer(conn, status, b'{"message":"%s"}\n' % text.encode())
            return
        with call_engine(lines, body) as engine:
            if action == "lose":
                whole(engine)
            elif action == "half":
                data = whole(engine)
                conn.sendall(data[: len(data) // 2])
            elif action == "garble":
                status = whole(engine).split(b" ", 2)[1].decode()
                answer(conn, status if status != "204" else "200", b"<html>the engine is confused</html>\n", "text/html")
            else:
                relay(conn, engine)


def guarded(conn):
    try:
        serve(conn)
    except OSError:
        # Either side went away: the other one is to see just that.
        pass


def main():
    listening = socket.socket(socket.AF_UNIX)
    os.umask(0o117)
    listening.bind(LISTEN)
    os.chown(LISTEN, -1, os.stat(ENGINE).st_gid)
    listening.listen(64)
    while True:
        conn, _ = listening.accept()
        threading.Thread(target=guarded, args=(conn,), daemon=True).start()


main()
