#!/bin/bash
# The exchange that src/common/PROTOCOL.md shows byte by byte: its bytes are sent as they stand there, and what comes
# is what stands there. So the page can be relied on by whoever writes another client.
. "${0%/*}/../lib/it.sh"
it_start

exchange() {
	as "$CALLER" python3 - "$HST_DIR/run/pool.sock" 3<"$TOP/src/common/PROTOCOL.md" <<-'END'
		import os, re, socket, struct, sys
		sent, frames = b"", []  # of each frame its parts: (bytes, whether they are the same in every run)
		for line in os.fdopen(3):
		    m = re.match(r"([<>~])((?: [0-9a-f]{2})+)(?:  |$)", line)
		    if m and m[1] == ">":
		        sent += bytes.fromhex(m[2])
		    elif m:
		        # The 12 bytes of a header stand on a line of their own.
		        if "type" in line:
		            frames.append([])
		        frames[-1].append((bytes.fromhex(m[2]), m[1] == "<"))
		assert sent and len(frames) == 4, "no exchange on the page"
		s = socket.socket(socket.AF_UNIX)
		s.settimeout(60)
		s.connect(sys.argv[1])
		s.sendall(sent)
		def receive(n):
		    data = b""
		    while len(data) < n:
		        more = s.recv(n - len(data))
		        assert more, "the manager closed the connection"
		        data += more
		    return data
		for number, parts in enumerate(frames):
		    got = receive(12)
		    got += receive(struct.unpack("<I", got[:4])[0])
		    at = 0
		    if not parts[0][1]:
		        # Its length differs: type and channel, and what stands in front of what differs.
		        assert got[4:12] == parts[0][0][4:], f"frame {number} begins with {got[:12].hex(' ')}"
		        at, parts = 12, [p for p in parts[1:] if p[1]] + [(got[12 + sum(len(p[0]) for p in parts[1:] if p[1]):], True)]
		    for want, same in parts:
		        here = got[at:at + len(want)]
		        assert len(here) == len(want), f"frame {number} is too short"
		        assert here == want or not same, f"frame {number}, byte {at}: {here.hex(' ')}, not {want.hex(' ')}"
		        at += len(want)
		    assert at == len(got), f"frame {number} has {len(got)} bytes, not {at}"
	END
}
it_case "the exchange on the page of the protocol is the one that takes place" exchange
