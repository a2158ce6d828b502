#!/bin/bash
# Callers that do not play by the protocol. The manager lives, serves the others meanwhile, and its memory
# stays bounded. The agent's side is in the unit tests and the fuzzers; here a sandbox's commands are hostile.
. "${0%/*}/../lib/it.sh"
it_config <<END
pool:
  size: 1
END
it_start
SOCK=$HST_DIR/run/pool.sock
MANAGER=$(it_pid sandboxd)

# hostile <<EOF: python3 as the caller. What it has: connect() gives a connected socket, frame() and HELLO
# bytes to send, ended(s) is true when the manager has closed.
cat >"$HST_DIR/rig.py" <<'END'
import os, socket, struct, sys, time
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(sys.argv[1])
    return s
def frame(kind, payload=b'', channel=1, flags=0, zero=0, length=None):
    return struct.pack('<IIBBH', len(payload) if length is None else length, channel, kind, flags, zero) + payload
def text(b):
    return struct.pack('<I', len(b)) + b + b'\0'
def ended(s):
    try:
        while s.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass
    except socket.timeout:
        return False
    return True
def send(s, data):
    try:
        s.sendall(data)
    except (ConnectionResetError, BrokenPipeError):
        pass
HELLO, EXEC, STDIN, STATUS = 1, 2, 3, 16
GREETING = bytes.fromhex(os.environ['GREETING'])
REQUEST = bytes.fromhex(os.environ['REQUEST'])
END
chmod 0644 "$HST_DIR/rig.py"

# What the real client sends for `exec 'yes'`, so that nothing here need know the encoding: caught by a
# listener that never answers.
catch() {
	local caught=$HST_DIR/caught
	python3 - "$caught.sock" <<-'END' >"$caught" &
		import os, socket, sys
		l = socket.socket(socket.AF_UNIX)
		l.bind(sys.argv[1])
		os.chmod(sys.argv[1], 0o666)
		l.listen(1)
		l.settimeout(20)
		s, _ = l.accept()
		data = b''
		while len(data) < 12 or len(data) < 24 + int.from_bytes(data[:4], 'little') or \
		        len(data) < 24 + int.from_bytes(data[:4], 'little') + \
		        int.from_bytes(data[12 + int.from_bytes(data[:4], 'little'):][:4], 'little'):
		    data += s.recv(65536)
		n = 12 + int.from_bytes(data[:4], 'little')
		print(data[:n].hex(), data[n:].hex())
	END
	wait_for 10 test -S "$caught.sock"
	as "$CALLER" "$HST_RUN/bin/hermes-sandbox" --socket "$caught.sock" exec yes 2>/dev/null || true
	wait $!
	read -r GREETING REQUEST <"$caught"
}
catch
export GREETING REQUEST

hostile() {
	{ echo 'exec(open(sys.argv[2]).read())' | sed '1s/^/import sys; /' && cat; } >"$HST_DIR/hostile.py"
	chmod 0644 "$HST_DIR/hostile.py"
	as "$CALLER" GREETING="$GREETING" REQUEST="$REQUEST" python3 "$HST_DIR/hostile.py" "$SOCK" "$HST_DIR/rig.py"
}

# In kB.
memory() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$MANAGER/status"; }

# others_served: it lives, and somebody else gets a command through.
others_served() {
	! gone "$MANAGER" || fail "the manager has ended"
	[ ! -s "$HST_DIR/sandboxd.rc" ] || fail "the manager has ended"
	expect_eq hello "$(hs exec 'echo hello')"
}

garbage() {
	hostile <<-'END'
		import random
		r = random.Random(7)
		cases = [bytes(r.randrange(256) for _ in range(n)) for n in (1, 11, 12, 13, 100, 5000) for _ in range(20)]
		cases += [b'\0' * 4096, b'\xff' * 4096, b'GET / HTTP/1.1\r\n\r\n', GREETING + b'\xff' * 100,
		          GREETING + GREETING]
		cases += [GREETING + frame(kind) for kind in (0, 4, 5, 9, 10, 11, 12, 13, 14, 15, 17, 200)]
		cases += [GREETING + frame(EXEC, b'x' * 100), GREETING + frame(EXEC), GREETING + frame(STDIN, b'x'),
		          GREETING + frame(STATUS, b'\x02'), GREETING + frame(STATUS, b'\0', flags=0x80),
		          GREETING + frame(STATUS, b'\0', zero=1)]
		for c in cases:
		    s = connect()
		    send(s, c)
		    s.shutdown(socket.SHUT_WR)
		    assert ended(s), c[:50]
	END
	others_served
}
it_case "garbage and frames out of place end their connection alone" garbage

lengths() {
	local before
	before=$(memory)
	hostile <<-'END'
		for n in (65537, 1 << 24, 1 << 31, 0xffffffff):
		    for first in (b'', GREETING):
		        s = connect()
		        send(s, first + frame(EXEC if first else HELLO, length=n))
		        assert ended(s), n
		# Strings, lists and a request that are said to be longer than they are, or than anything may be.
		for n in range(len(REQUEST) - 12):
		    broken = bytearray(REQUEST)
		    broken[12 + n] = 0xff
		    s = connect()
		    send(s, GREETING + bytes(broken))
		    s.shutdown(socket.SHUT_WR)
		    assert ended(s), n
	END
	others_served
	[ $(($(memory) - before)) -lt 8192 ] || fail "memory went from $before to $(memory) kB"
}
it_case "giant and wrong lengths: refused before anything is allocated" lengths

endless() {
	local before
	before=$(memory)
	hostile <<-'END'
		# A request without an end: 200 MiB of it.
		s = connect()
		send(s, GREETING)
		piece = frame(EXEC, b'x' * 65536, flags=1)
		for _ in range(3200):
		    send(s, piece)
		send(s, frame(EXEC, b'x'))
		s.shutdown(socket.SHUT_WR)
		assert ended(s)
	END
	others_served
	[ $(($(memory) - before)) -lt 16384 ] || fail "memory went from $before to $(memory) kB"
}
it_case "a request without end is counted and not kept" endless

half() {
	hostile <<-'END'
		conns = []
		for c in (b'', GREETING[:5], GREETING[:-1], GREETING, GREETING + REQUEST[:12], GREETING + REQUEST[:-1]):
		    s = connect()
		    send(s, c)
		    conns.append(s)
		began = time.monotonic()
		for s in conns:
		    assert ended(s)
		took = time.monotonic() - began
		assert 1 < took < 15, took
	END
	others_served
}
it_case "half a frame has a deadline" half

# Whoever takes the output of `yes` and does not read it.
deaf() {
	local before
	before=$(memory)
	hostile <<-'END' &
		s = connect()
		send(s, GREETING + REQUEST)
		sys.stdin.close()
		print('begun', flush=True)
		time.sleep(600)
	END
	local reader=$!
	# shellcheck disable=SC2317 # called by wait_for
	busy() { [ "$(hs status --json | jq '.pools[] | select(.profile == "default") | .busy')" -eq 1 ]; }
	wait_for 20 busy || fail "the command does not start"
	for _ in 1 2 3; do
		expect_eq hello "$(hs exec 'echo hello')"
	done
	[ $(($(memory) - before)) -lt 4096 ] || fail "memory went from $before to $(memory) kB"
	kill -KILL "$(pgrep -P $reader)"
	wait $reader 2>/dev/null || true
	# shellcheck disable=SC2317 # called by wait_for
	idle() { ! busy; }
	wait_for 20 idle || fail "the command outlives its caller"
}
it_case "a caller that never reads costs no memory, and its end is its command's" deaf

crowd() {
	local before
	before=$(memory)
	ulimit -n 4096
	hostile <<-'END'
		import json
		conns, refused = [], 0
		for _ in range(1100):
		    s = connect()
		    send(s, GREETING)
		    conns.append(s)
		# The last ones got an answer at once, one line.
		s = conns[-1]
		data = b''
		while b'connections open' not in data:
		    piece = s.recv(4096)
		    assert piece, data
		    data += piece
	END
	[ $(($(memory) - before)) -lt 16384 ] || fail "memory went from $before to $(memory) kB"
	others_served
	# Nor does it keep what they held.
	# shellcheck disable=SC2317 # called by wait_for
	closed() { [ "$(find "/proc/$MANAGER/fd" -lname 'socket:*' | wc -l)" -lt 50 ]; }
	wait_for 20 closed || fail "descriptors are left open"
}
it_case "1100 connections of one uid: the last are refused with a line, root is served" crowd

while_held() {
	local holder
	ulimit -n 4096
	hostile >"$HST_DIR/held" <<-'END' &
		conns = []
		for _ in range(1050):
		    s = connect()
		    conns.append(s)
		print('held', flush=True)
		time.sleep(3)
	END
	holder=$!
	wait_for 20 grep -qx held "$HST_DIR/held"
	expect_eq hello "$("$HST_RUN/bin/hermes-sandbox" --socket "$SOCK" exec 'echo hello')"
	wait $holder
}
it_case "while one uid holds all it may, another is served" while_held

descriptors() {
	local before
	before=$(find "/proc/$MANAGER/fd" -mindepth 1 | wc -l)
	hostile <<-'END'
		import array
		for _ in range(50):
		    s = connect()
		    fds = array.array('i', [0, 1, 2] * 20)
		    s.sendmsg([GREETING], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
		    send(s, frame(STATUS, b'\0'))
		    s.shutdown(socket.SHUT_WR)
		    assert ended(s)
	END
	others_served
	wait_for 20 it_warm 1
	# shellcheck disable=SC2317 # called by wait_for
	same() { [ "$(find "/proc/$MANAGER/fd" -mindepth 1 | wc -l)" -le $((before + 3)) ]; }
	wait_for 10 same || fail "descriptors that were passed along are kept"
}
it_case "descriptors that come along are not kept" descriptors

# A command's own ways: a flood of short lines on both streams, and a fork bomb beside other callers.
noisy() {
	hs exec --timeout 3s 'yes & yes >&2 & :(){ :|:& };:; wait' >/dev/null 2>&1 || true
	others_served
}
it_case "a fork bomb and a flood inside leave the others alone" noisy
