#!/usr/bin/env python3
"""hostile-caller.py SOCKET WAY [WORD…]: callers of sessions that do not play by the protocol. Prints what the manager
answered, one line a kind of answer with how often it came: "REJECT 125", "ANSWER", "closed".

The frames are written by hand (src/common/PROTOCOL.md), as in raw-client.py."""
import array
import collections
import os
import random
import socket
import struct
import sys
import time

HELLO, EXEC, STDIN, STDOUT, STDERR, WINDOW, SIGNAL, RESIZE, STARTED = 1, 2, 3, 4, 5, 6, 7, 8, 9
RESULT, REJECT, STATUS, ASK, ANSWER, ATTACH, ATTACHED, OPEN = 11, 12, 16, 19, 20, 21, 22, 25
CLOSE, LIST, PS, KILL, STATS, METRICS, TOP = range(2, 9)
NAMES = {RESULT: "RESULT", REJECT: "REJECT", STATUS: "STATUS", STARTED: "STARTED", ANSWER: "ANSWER", ATTACHED: "ATTACHED"}
PATH = sys.argv[1]
seen = collections.Counter()


def text(b):
    return struct.pack("<I", len(b) + 1) + b + b"\0"


def frame(kind, payload=b"", channel=1, flags=0, length=None):
    return struct.pack("<IIBBH", len(payload) if length is None else length, channel, kind, flags, 0) + payload


def ask(op, name=b"", signal=0, all_=0, form=1):
    return frame(ASK, struct.pack("<HBBB", op, form, all_, signal) + text(name) + text(b"") + struct.pack("<QI", 0, 0))


def opening(name, ttl=0, labels=(), mounts=0, form=1, n=None):
    """A session of the default profile, with nothing less than that has, and no variable."""
    return frame(OPEN, struct.pack("<BB", form, mounts) + text(name) + 3 * text(b"") + struct.pack("<Q", ttl) +
                 struct.pack("<QQIQBBIIB", *[0] * 9) + struct.pack("<I", len(labels) if n is None else n) +
                 b"".join(map(text, labels)) + struct.pack("<I", 0))


def command(args, session=b"", stdin=0, shell=0, open_=0, detach=0, tty=0, rows=0, cols=0):
    head = struct.pack("<BBBBBBBIIQHHII", stdin, shell, open_, detach, tty, 0, 0, 0, 0, 0, rows, cols, len(args), 0)
    return frame(EXEC, head + text(b"") + text(b"") + text(session) + b"".join(map(text, args)))


def attach(exec_id, output=1, offsets=(0, 0)):
    return frame(ATTACH, text(exec_id) + struct.pack("<BQQ", output, *offsets))


GREETING = frame(HELLO, struct.pack("<HB", 3, 1) + text(b"hostile"), channel=0)


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(PATH)
    return s


def send(s, data, fds=()):
    try:
        if fds:
            s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        else:
            s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def frames(s):
    data = b""
    while True:
        while len(data) >= 12 and len(data) >= 12 + struct.unpack("<I", data[:4])[0]:
            length, _, kind, _, _ = struct.unpack("<IIBBH", data[:12])
            yield kind, data[12:12 + length]
            data = data[12 + length:]
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            return
        if not more:
            return
        data += more


def answer(s, patient=True):
    """The last word, counted; without patience the first that can be one, as the manager waits for our end then."""
    word, body = "closed", b""
    for kind, payload in frames(s):
        if kind == REJECT:
            word, body = f"REJECT {payload[0]}", payload
        elif kind == RESULT:
            word, body = f"RESULT {payload[1]}", payload
        elif kind in (ANSWER, STATUS):
            word, body = NAMES[kind], payload
        elif kind == STARTED:
            word, body = "STARTED", payload
        if not patient and kind in (REJECT, ANSWER):
            break
        if kind in (STDOUT, STDERR) and payload:
            send(s, frame(WINDOW, struct.pack("<BI", kind - STDOUT + 1, len(payload))))
    seen[word] += 1
    return word, body


def exchange(data, fds=(), stays=False):
    """Who closes one side has left, unless he stays: then nothing that was asked for is given up."""
    with connect() as s:
        send(s, GREETING + data, fds)
        if not stays:
            s.shutdown(socket.SHUT_WR)
        return answer(s, not stays)


def garbage():
    """Questions that are none."""
    r = random.Random(11)
    whole = opening(b"garbage", 1000, [b"a=b"])
    cases = [frame(ASK, bytes(r.randrange(256) for _ in range(n))) for n in (0, 1, 5, 20, 100, 16384) for _ in range(20)]
    cases += [frame(OPEN, c[12:]) for c in cases] + [frame(OPEN, b"\0" * 100), frame(OPEN, b"\xff" * 65536)]
    cases += [frame(ASK, b"\0" * 100), frame(ASK, b"\xff" * 16384), frame(ASK, b"", length=16385), frame(ASK, length=0xffffffff)]
    cases += [whole[:12] + whole[12:12 + n] for n in range(len(whole) - 12)]
    # But for the time to live, the limits and the label's letters, which may be others.
    ttl = 2 + len(text(b"garbage")) + 3 * len(text(b""))
    for n in set(range(len(whole) - 12)) - set(range(ttl, ttl + 36)) - {len(whole) - 20, len(whole) - 18}:
        broken = bytearray(whole)
        broken[12 + n] = 0xff
        cases.append(bytes(broken))
    cases += [ask(op, b"garbage") for op in (0, 1, 9, 255, 65535)]
    cases += [opening(b"x" * n) for n in (65, 1000, 65000)]
    cases += [opening(name) for name in (b"-x", b".x", b"a/b", b"a b", b"a\nb", b"\xc3\xa9", b"..", b"\033[2J")]
    cases += [opening(b"garbage", labels=labels) for labels in ([b"x"], [b"=x"], [b"a=b"] * 33, [b"a=" + b"b" * 300])]
    cases += [opening(b"garbage", n=n) for n in (1, 33, 0xffffffff)]
    cases += [ask(KILL, b"garbage", signal=n) for n in (65, 255)]
    cases += [ask(LIST, form=3), opening(b"garbage", form=3), ask(LIST, all_=2), frame(ASK, ask(LIST)[12:], flags=1)]
    cases += [frame(ATTACH, bytes(r.randrange(256) for _ in range(n))) for n in (0, 1, 20, 38, 64) for _ in range(20)]
    cases += [attach(b"x" * 16), attach(b"0" * 15), attach(b"0" * 16, output=2), attach(b"0" * 16, offsets=(2**64 - 1, 2**63))]
    cases += [command([b"true"], b"none", detach=1, stdin=1), command([b"true"], b"none", detach=1, tty=1),
              command([b"true"], b"", detach=1), command([b"true"], b"", open_=1), command([b"true"], b"none", tty=1, rows=1),
              command([b"true"], b"none", rows=24, cols=80), command([b"true"], b"a/b", open_=1)]
    for c in cases:
        exchange(c)


def others():
    """Everything that can be asked of a session and a command of somebody else."""
    name, exec_id = (w.encode() for w in sys.argv[3:5])
    for what, data in (("exec", command([b"true"], name)), ("open", command([b"true"], name, open_=1)),
                       ("detach", command([b"true"], name, detach=1)), ("close", ask(CLOSE, name)), ("ps", ask(PS, name)),
                       ("kill", ask(KILL, exec_id)), ("signal", ask(KILL, exec_id, signal=9)), ("attach", attach(exec_id)),
                       ("wait", attach(exec_id, output=0)), ("list all", ask(LIST, all_=1)), ("ps all", ask(PS, all_=1))):
        print(what, *exchange(data)[:1])
    for what in (LIST, PS):
        body = exchange(ask(what))[1]
        print("shown" if name in body or exec_id in body else "hidden")
    seen.clear()


def opens():
    """Sessions without end."""
    for i in range(int(sys.argv[3])):
        exchange(opening(b"flood-%d" % i), stays=True)


def closes():
    for i in range(int(sys.argv[3])):
        exchange(ask(CLOSE, b"flood-%d" % i))


def resizes():
    """A command with a terminal, of another size all the time, by a caller that reads nothing meanwhile."""
    with connect() as s:
        send(s, GREETING + command([b"sleep 1; stty size"], sys.argv[3].encode(), stdin=1, shell=1, tty=1, rows=24, cols=80))
        for i in range(100000):
            send(s, frame(RESIZE, struct.pack("<HH", i % 50 + 1, 132)))
        send(s, frame(RESIZE, struct.pack("<HH", 33, 99)) + frame(RESIZE, struct.pack("<HH", 0, 0)))
        send(s, frame(SIGNAL, b"\x17") * 1000)
        print(answer(s)[0])
    seen.clear()


def descriptors():
    """Descriptors with every kind of request, wanted or not."""
    plain = os.open("/dev/null", os.O_RDWR)
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    session = sys.argv[3].encode()
    for data in (opening(b"passed"), opening(b"passed", mounts=1), ask(LIST), ask(STATS), command([b"true"], session),
                 command([b"true"], session, stdin=1), attach(b"0" * 16), frame(STATUS, b"\0"), frame(RESIZE, b"\0" * 4)):
        for fds in ([plain], [pair[0].fileno()], [plain] * 50, [pair[1].fileno()] * 200):
            exchange(data, fds)
            with connect() as s:
                send(s, GREETING, fds)
                send(s, data, fds)
                send(s, b"x", fds)
    exchange(opening(b"passed", mounts=1))
    exchange(ask(CLOSE, b"passed"))


def deaf():
    """Many who attach to a flood and read nothing of it, until stdin ends."""
    conns = []
    for _ in range(int(sys.argv[4])):
        s = connect()
        send(s, GREETING + attach(sys.argv[3].encode()))
        conns.append(s)
    print("attached", flush=True)
    sys.stdin.read()


def half():
    """Requests that never end: each connection has its deadline."""
    conns = []
    for data in (opening(b"half")[:-1], opening(b"half")[:13], attach(b"0" * 16)[:-1], frame(EXEC, b"x", flags=1)):
        s = connect()
        send(s, GREETING + data)
        conns.append(s)
    began = time.monotonic()
    for s in conns:
        print(answer(s)[0])
    assert time.monotonic() - began < 20
    seen.clear()


globals()[sys.argv[2]]()
for word, n in sorted(seen.items()):
    print(word, n)
