"""A docker program, called as Hermes Agent's docker backend calls it: its flags, and how a command travels."""
import os
import re
import secrets
import shlex
import subprocess
import time
from types import SimpleNamespace

ID = r"[0-9a-f]{64}"
SHORT = r"[0-9a-f]{12}"
RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"


class Failed(Exception):
    pass


class Docker:
    """The program, its image and how to call it."""

    def __init__(self, options):
        self.program, self.image, self.against = options.program, options.image, options.against
        self.engine, self.mounts, self.caller = options.engine, options.mounts, options.caller
        self.task = "t-" + secrets.token_hex(4)
        self.failed = 0
        self.made = []

    def differs(self, genuine, shim):
        return genuine if self.against == "genuine" else shim

    def begin(self, *argv, env=None, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE):
        return subprocess.Popen([self.program, *argv], stdin=stdin, stdout=subprocess.PIPE, stderr=stderr,
                                env={**os.environ, **(env or {})})

    def call(self, *argv, rc=0, out=None, err=None, limit=30, env=None, stdin=None):
        """One call. rc: a number or several, None for any; out, err: what must match the whole of it, None for any."""
        words = shlex.join(a if len(a) < 200 else a[:60] + "..." for a in argv)
        process = self.begin(*argv, env=env, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        try:
            o, e = process.communicate(stdin, timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"no end within {limit} s: {words}") from None
        o, e = o.decode(errors="replace"), e.decode(errors="replace")
        codes = rc if isinstance(rc, (tuple, set, range)) or rc is None else (rc,)
        if codes is not None and process.returncode not in codes:
            raise Failed(f"status {process.returncode}, expected {rc}: {words}\nstdout: {o[-500:]}stderr: {e[-500:]}")
        for name, pattern, text in (("stdout", out, o), ("stderr", err, e)):
            if pattern is not None and not re.fullmatch(pattern, text):
                raise Failed(f"{name} is {text[:500]!r}, expected {pattern!r}: {words}")
        return SimpleNamespace(rc=process.returncode, out=o, err=e)

    def sh(self, box, command, **more):
        return self.call("exec", box, "bash", "-c", command, **more)

    def check(self, text, function, *arguments):
        try:
            function(self, *arguments)
        except Failed as e:
            self.failed += 1
            print(f"FAIL - {text}\n{e}", flush=True)
        else:
            print(f"ok - {text}", flush=True)

    def run(self, *flags, new=False, rc=0, err=None, env=None):
        """A container with the flags of a non-persistent one and these behind them. Returns its id."""
        name = "hermes-" + secrets.token_hex(4)
        answer = self.call("run", "-d", "--init", "--name", name, *labels(self, new), "-w", "/workspace",
                           *security(), *flags, self.image, "sleep", "infinity",
                           rc=rc, out=f"{ID}\n" if rc == 0 else "", err=err, limit=120, env=env)
        if rc != 0:
            return answer
        self.made.append(answer.out.strip())
        return self.made[-1]

    def forget(self):
        """Removes what run() made, however the check ended."""
        for box in self.made:
            subprocess.run([self.program, "rm", "-f", box], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=60, check=False)
        self.made = []


def equal(found, wanted, what):
    if found != wanted:
        raise Failed(f"{what}: found {found!r}, expected {wanted!r}")


def wait_for(seconds, function, what):
    end = time.monotonic() + seconds * float(os.environ.get("HST_SLOW", "1"))
    while not function():
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def labels(docker, new):
    values = {"hermes-agent": "1", "hermes-task-id": docker.task, "hermes-profile": "default"}
    if new:
        values["hermes-egress"] = "open"
    return [word for key, value in values.items() for word in ("--label", f"{key}={value}")]


def filters(docker, new):
    return [word for label in labels(docker, new)[1::2] for word in ("--filter", f"label={label}")]


def tmpfs(*places):
    return [word for place in places for word in ("--tmpfs", place)]


def caps(*names):
    return [word for name in names for word in ("--cap-add", name)]


def security(privdrop=True):
    return ["--cap-drop", "ALL", *caps("DAC_OVERRIDE", "CHOWN", "FOWNER"), "--security-opt", "no-new-privileges",
            *tmpfs("/tmp:rw,nosuid,size=512m", "/var/tmp:rw,noexec,nosuid,size=256m",
                   "/run:rw,noexec,nosuid,size=64m"), *(caps("SETUID", "SETGID") if privdrop else ())]


WRITABLE = tmpfs("/workspace:rw,exec,size=10g", "/home:rw,exec,size=1g", "/root:rw,exec,size=1g")
LIMITS = ["--cpus", "1.0", "--memory", "5120m", "--pids-limit", "256"]


def no_container(docker, box):
    start = docker.differs("Error(:| response from daemon:)", "Error response from daemon:")
    return rf"{start} No such container: {box}\n"


def not_running(box):
    return rf"Error response from daemon: (?i:container) {box} is not running\n"


# --- how a command travels ---------------------------------------------------------------------------------


class Shell:
    """Hermes' way to run commands in a container: a snapshot of the environment, sourced by each and written anew."""

    def __init__(self, docker, box, flags=()):
        self.docker, self.box, self.flags = docker, box, flags
        self.snapshot = f"/tmp/hermes-snap-{secrets.token_hex(6)}.sh"
        self.mark = f"__HERMES_CWD_{secrets.token_hex(6)}__"
        self.cwd = "/workspace"
        script = "\n".join([
            "umask 077",
            f"{{ export -p; names=$(declare -F | awk '{{ print $3 }}' | grep -vE '^_'); "
            f"[ -z \"$names\" ] || declare -f $names; alias -p; echo 'set +e'; }} >{self.snapshot}.$BASHPID",
            f"mv -f {self.snapshot}.$BASHPID {self.snapshot}",
            f"builtin cd -- {self.cwd}", self.tell()])
        answer = docker.call("exec", *flags, box, "bash", "-l", "-c", script, limit=30, err="")
        equal(answer.out, f"\n{self.mark}{self.cwd}{self.mark}\n", "the bootstrap's output")

    def tell(self):
        return f"printf '\\n{self.mark}%s{self.mark}\\n' \"$(pwd -P)\""

    def script(self, command):
        return "\n".join([
            f"source {self.snapshot} >/dev/null 2>&1 || true", "export AI_AGENT=1 HERMES_AGENT=1 PAGER=cat",
            f"builtin cd -- {shlex.quote(self.cwd)} || exit 126", f"eval {shlex.quote(command)}", "code=$?",
            "umask 077",
            f"new=$(mktemp {self.snapshot}.XXXXXX) && export -p >\"$new\" && mv -f \"$new\" {self.snapshot}",
            self.tell(), "exit $code"])

    def run(self, command, rc=0, stdin=None, limit=60):
        """Returns the command's output. Its status must be rc; where it went is where the next one begins."""
        flags = [*(["-i"] if stdin is not None else []), *self.flags]
        answer = self.docker.call("exec", *flags, self.box, "bash", "-c", self.script(command), rc=rc, stdin=stdin,
                                  limit=limit)
        text, found, rest = answer.out.partition(f"\n{self.mark}")
        if not found:
            raise Failed(f"no mark in {answer.out[-300:]!r}")
        self.cwd = rest.partition(self.mark)[0]
        return text


def sleeping(docker, box, *numbers):
    """How many processes "sleep NUMBER" there are in it."""
    pattern = "|".join(str(n) for n in numbers)
    words = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"
    return int(docker.sh(box, f"{words} | grep -x -A1 sleep | grep -xE '{pattern}' | wc -l").out)
