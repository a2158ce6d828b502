#!/usr/bin/env python3
"""Cases of 55-terminals.sh: terminals.py CASE HERMES-SANDBOX [OPTION]...

Each case has the user's end of a pseudoterminal, on which the given command line runs, and types into it. It ends
with 0, or with a traceback and what was on the terminal.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

DEADLINE_S = 60
HS = sys.argv[2:]
SESSION = ["--session", "terminals"]
PROMPT = "ready% "
BASH = ["-e", "PS1=" + PROMPT, "-it", *SESSION, "--", "bash", "--norc", "--noprofile", "--noediting", "-i"]


class Terminal:
    """A program on a terminal of its own, in a session of its own."""

    def __init__(self, words, rows=24, cols=80, stderr=None):
        self.seen = ""
        # Our own copy of the program's end shows its modes, and keeps them when the program has ended.
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.modes = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.master)
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(self.slave, fd)
            if self.slave > 2:
                os.close(self.slave)
            os.environ["TERM"] = "vt220"
            os.execvp(words[0], words)

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            data = data[os.write(self.master, data):]

    def until(self, pattern, seconds=DEADLINE_S):
        """Waits for that, takes it and all in front of it away, and returns the match."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.seen, re.S)):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], \
                f"{pattern!r} does not come, but {self.seen[-2000:]!r}"
            self.seen += os.read(self.master, 65536).decode(errors="surrogateescape")
        self.seen = self.seen[match.end():]
        return match

    def ask(self, line, pattern):
        """A line for the shell, what it prints, and its next prompt."""
        self.type(line + "\r")
        self.until(re.escape(line) + "\r\n")
        match = self.until(pattern)
        self.until(PROMPT)
        return match

    def start(self, number):
        """A sleep of that length in the foreground of the shell."""
        self.type(f"sh -c \"echo go''es; exec sleep {number}\"\r")
        self.until("goes\r\n")

    def interrupted(self):
        self.type("\x03")
        try:
            return self.until(re.escape(PROMPT), seconds=0.5)
        except AssertionError:
            return None

    def raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def end(self):
        """The exit status, negative for a signal, and the terminal as it was."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            # What is still printed must be taken, or the program waits.
            if select.select([self.master], [], [], 0.01)[0]:
                self.seen += os.read(self.master, 65536).decode(errors="surrogateescape")
            assert time.monotonic() < deadline, f"it does not end: {self.seen[-2000:]!r}"
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536).decode(errors="surrogateescape")
        assert termios.tcgetattr(self.slave) == self.modes, "the terminal is not as it was"
        os.close(self.slave)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)


def hs(*words):
    return [*HS, *words]


def wait_for(condition, what):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def expect(want, got):
    assert want == got, f"found {got!r}, expected {want!r}"


def bash(**how):
    t = Terminal(hs("exec", *BASH), **how)
    t.until(PROMPT)
    assert t.raw(), "the terminal is not in raw mode"
    return t


def leave(t, status=0):
    t.type(f"exit {status}\r")
    expect(status, t.end())


# --- cases -------------------------------------------------------------------------------------------------------


def size():
    """It is there before the first byte, and so is the name of the terminal."""
    t = Terminal(hs("exec", "-it", "stty size; echo term=$TERM; tty; test -t 0 -a -t 1 -a -t 2 && echo all"), 33, 101)
    t.until("^33 101\r\nterm=vt220\r\n/dev/pts/[0-9]+\r\nall\r\n$")
    expect(0, t.end())


def resize():
    t = bash()
    t.ask("stty size", "24 80\r\n")
    # In a shell of its own: only the foreground job hears of it.
    t.type("sh -c \"trap 'stty size' WINCH; echo go''es; while sleep 0.1; do :; done\"\r")
    t.until("goes\r\n")
    t.resize(50, 200)
    t.until("50 200\r\n")
    t.resize(2, 3)
    t.until("2 3\r\n")
    t.type("\x03")
    t.until(re.escape(PROMPT))
    leave(t)


def interrupt():
    """^C ends what is in the foreground, and nothing else."""
    t = bash()
    t.start(7501)
    t.type("\x03")
    t.until(re.escape("^C\r\n" + PROMPT))
    t.ask("echo rc=$?", "rc=130\r\n")
    # ^\ likewise.
    t.start(7502)
    t.type("\x1c")
    t.until("Quit[^\r]*\r\n" + PROMPT)
    t.ask("echo rc=$?", "rc=131\r\n")
    # A line that is not finished.
    t.type("not finished\x03")
    t.until(re.escape(PROMPT))
    leave(t)


def jobs():
    t = bash()
    t.start(7503)
    t.type("\x1a")
    t.until("Stopped[^\r]*\r\n" + PROMPT)
    t.ask("jobs", r"\[1\]\+  Stopped .*7503.*\r\n")
    t.ask("bg", "7503.* &\r\n")
    t.ask("jobs", r"\[1\]\+  Running .*7503.* &\r\n")
    t.type("fg\r")
    t.until("fg\r\n.*7503[^\r]*\r\n")
    # The shell says so just before it is so.
    wait_for(t.interrupted, "^C does not end the job")
    t.ask("jobs; echo none", "^none\r\n")
    leave(t)


def end_of_file():
    t = bash()
    t.type("cat\r")
    t.until("cat\r\n")
    t.type("line\r\x04")
    t.until("line\r\nline\r\n" + PROMPT)
    t.ask("(exit 5)", "")
    t.type("\x04")
    expect(5, t.end())


def codes():
    """The command's own exit code, and those that tell why there is none."""
    leave(bash(), 42)
    t = Terminal(hs("exec", "-it", "kill -9 $$"))
    expect(137, t.end())
    t = Terminal(hs("exec", "-it", "--", "no-such-program"))
    expect(127, t.end())
    assert re.search("^hermes-sandbox: .*\r\n$", t.seen), t.seen
    t = Terminal(hs("exec", "-it", "--timeout", "300ms", "sleep 7504"))
    expect(124, t.end())


def bytes_():
    """Every key arrives, and every byte of the output."""
    t = bash()
    keys = bytes(b for b in range(256))
    t.type("stty raw -echo; echo RE''ADY; dd bs=1 count=256 2>/dev/null | od -An -v -tx1 | tr -d ' \\n'; stty sane\r")
    t.until("READY\n")
    t.type(keys)
    t.until(keys.hex())
    t.until(re.escape(PROMPT))
    t.type("seq 50000 | cksum; seq 50000; echo EN''D\r")
    total = t.until("([0-9]+ [0-9]+)\r\n").group(1)
    end = t.until("END\r\n")
    lines = end.string[:end.start()]
    expect("".join(f"{i}\r\n" for i in range(1, 50001)), lines)
    expect(total.split()[1], str(len(lines) - 50000))
    t.until(re.escape(PROMPT))
    # Output without an end, and ^C all the same.
    t.type("yes\r")
    t.until("y\r\ny\r\n")
    t.type("\x03")
    t.until(re.escape("^C"))
    t.until(re.escape(PROMPT))
    leave(t)


def two():
    """Two terminals of one session are two, and share its files."""
    a, b = bash(), bash(rows=40)
    assert a.ask("tty", r"(/dev/pts/\d+)\r\n").group(1) != b.ask("tty", r"(/dev/pts/\d+)\r\n").group(1)
    a.ask("echo from a >/tmp/shared", "")
    b.ask("cat /tmp/shared", "from a\r\n")
    b.ask("stty size", "40 80\r\n")
    a.start(7505)
    b.type("\x03")
    b.until(re.escape(PROMPT))
    leave(b)
    a.type("\x03")
    a.until(re.escape(PROMPT))
    leave(a)


def hang_up():
    """The caller of this program sees that the tree is gone then."""
    t = bash()
    t.ask("sleep 7506 & setsid sleep 7507 & (sleep 7508 &)", "")
    t.ask("jobs", "7506")
    os.close(t.master)
    wait_for(lambda: os.waitpid(t.pid, os.WNOHANG)[0], "the program outlives its terminal")
    os.close(t.slave)


def restored():
    """As it was, however it ends."""
    for signo in signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGSEGV:
        t = bash()
        os.kill(t.pid, signo)
        if signo == signal.SIGTERM:
            # The command's: an interactive shell does not mind.
            t.ask("echo here", "here\r\n")
            leave(t)
        else:
            expect(-signo, t.end())
    # The sandbox goes under it.
    t = bash()
    os.system(" ".join(hs("session", "close", SESSION[1])))
    expect(125, t.end())
    assert re.search("hermes-sandbox: [^\r]*\r\n$", t.seen), t.seen


def output_only():
    """-t alone: a terminal that nobody types into, whose input is at its end; the caller's stays as it is."""
    t = Terminal(hs("exec", "-t", "stty size; cat; echo behind; exec sleep 7509"), 30, 90)
    t.until("30 90\r+\nbehind\r+\n")
    expect(t.modes, termios.tcgetattr(t.slave))
    t.type("\x03")
    expect(130, t.end())


def suspended():
    """In a shell on this side: its job control still works where it can."""
    t = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"])
    t.type("PS1='local''# '\r")
    t.until("local# ")
    t.type(" ".join("'" + w + "'" for w in hs("exec", *BASH)) + "\r")
    t.until("\r\n.*" + PROMPT)
    t.ask("echo $$", "[0-9]+\r\n")
    # ^Z is the other shell's, which has no job for it; SIGSTOP is not to be had back.
    group = os.tcgetpgrp(t.master)
    os.killpg(group, signal.SIGSTOP)
    t.until("Stopped.*local# ")
    t.type("echo local $((6 * 7))\r")
    t.until("local 42\r\nlocal# ")
    t.type("fg\r")
    wait_for(t.raw, "not in raw mode again")
    t.type("\r")
    t.until(re.escape(PROMPT))
    t.ask("echo remote $((6 * 7))", "remote 42\r\n")
    t.type("exit 3\r")
    t.until("local# ")
    t.type("echo rc=$?\r")
    t.until("rc=3\r\nlocal# ")
    t.type("exit\r")
    expect(0, t.end())


def top():
    """The other screen, drawn anew, and back."""
    enter, leave_, home = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H"
    t = Terminal(hs("top"))
    t.until("^" + re.escape(enter + home))
    t.until(re.escape(home))
    t.until(re.escape(home))
    t.type("q")
    t.until(re.escape(leave_) + "$")
    expect(0, t.end())

    t = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"])
    t.type("PS1='local''# '\r")
    t.until("local# ")
    t.type(" ".join(hs("top")) + "\r")
    t.until(re.escape(enter))
    t.type("\x1a")
    t.until(re.escape(leave_) + ".*Stopped.*local# ")
    t.type("fg\r")
    t.until(re.escape(enter + home))
    t.type("\x03")
    t.until(re.escape(leave_) + ".*local# ")
    t.type("echo rc=$?; exit\r")
    t.until("rc=0\r\n")
    expect(0, t.end())


if __name__ == "__main__":
    {f.__name__.rstrip("_"): f for f in (size, resize, interrupt, jobs, end_of_file, codes, bytes_, two, hang_up,
                                         restored, output_only, suspended, top)}[sys.argv[1]]()
