"""What Hermes takes for granted of the containers that a docker program gives it."""
import base64
import hashlib
import os
import re
import secrets
import signal
import stat
import subprocess
import time

from hermes_docker import (LIMITS, WRITABLE, Failed, Shell, equal, no_container, not_running, security, sleeping,
                           wait_for)


def box_of(docker):
    return docker.run(*WRITABLE, *LIMITS, "--network=none")


def output_of(process, limit):
    try:
        return process.communicate(timeout=limit)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"no end within {limit} s") from None


def together(docker):
    box = box_of(docker)
    docker.sh(box, "mkdir /tmp/at; echo shared >/workspace/file")
    begun = [docker.begin("exec", box, "bash", "-c",
                          f"cat /workspace/file; : >/tmp/at/{n}; until [ -e /tmp/go ]; do sleep 0.5; done; exit {n}")
             for n in range(64)]
    wait_for(60, lambda: docker.sh(box, "ls /tmp/at | wc -l").out == "64\n", "64 execs run at once")
    docker.sh(box, ": >/tmp/go")
    for n, process in enumerate(begun):
        equal((output_of(process, 60), process.returncode), ("shared\n", n), f"the exec {n} of 64")


def background(docker):
    box = box_of(docker)
    at = f"/tmp/hermes_bg_{secrets.token_hex(4)}"
    begun = docker.sh(box, f"( nohup bash -lc 'echo begun; until [ -e {at}.go ]; do sleep 0.1; done; echo ended; exit 5' "
                           f">{at}.log 2>&1; echo $? >{at}.exit ) & echo $! >{at}.pid; cat {at}.pid", limit=20)
    pid = int(begun.out)
    wait_for(20, lambda: docker.sh(box, f"cat {at}.log").out == "begun\n", "the job's log")
    docker.sh(box, f"kill -0 {pid}")
    docker.sh(box, f"cat {at}.exit", rc=1)
    docker.sh(box, f": >{at}.go")
    wait_for(20, lambda: docker.sh(box, f"cat {at}.exit", rc=(0, 1)).out == "5\n", "the job's exit code")
    equal(docker.sh(box, f"cat {at}.log").out, "begun\nended\n", "the job's whole log")
    docker.sh(box, f"kill -0 {pid}", rc=1)
    docker.sh(box, "sleep 7398 >/dev/null 2>&1 & echo $! >/tmp/pid")
    docker.sh(box, "kill $(cat /tmp/pid)")
    wait_for(10, lambda: sleeping(docker, box, 7398) == 0, "a job is killed by a further exec")


def polling(docker):
    """A script in the container asks three times, by files, and is answered by further execs."""
    box = box_of(docker)
    rpc = f"/tmp/hermes_exec_{secrets.token_hex(6)}/rpc"
    docker.sh(box, f"mkdir -p {rpc}")
    asks = (f"for n in 1 2 3; do echo ask $n >{rpc}/.new && mv {rpc}/.new {rpc}/req_$n; "
            f"until [ -e {rpc}/res_$n ]; do sleep 0.05; done; cat {rpc}/res_$n; done")
    script = docker.begin("exec", box, "bash", "-c", asks)
    for n in (1, 2, 3):
        wait_for(20, lambda n=n: docker.sh(box, f"ls -1 {rpc}/req_* 2>/dev/null || true").out == f"{rpc}/req_{n}\n",
                 f"request {n}")
        equal(docker.sh(box, f"cat {rpc}/req_{n}").out, f"ask {n}\n", "a request")
        answer = base64.b64encode(f"answer {n}\n".encode()).decode()
        docker.sh(box, f"rm {rpc}/req_{n}; echo {answer} | base64 -d >{rpc}/.res && mv {rpc}/.res {rpc}/res_{n}")
    equal((output_of(script, 20), script.returncode), ("answer 1\nanswer 2\nanswer 3\n", 0), "the script")


def killed(docker):
    box = box_of(docker)
    process = docker.begin("exec", box, "bash", "-c", "sleep 7301 & (setsid sleep 7302 &); nohup sleep 7303")
    wait_for(20, lambda: sleeping(docker, box, 7301, 7302, 7303) == 3, "the command's three processes")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    if docker.against == "genuine":
        equal(sleeping(docker, box, 7301, 7302, 7303), 3, "what a killed CLI leaves")
        return
    wait_for(10, lambda: sleeping(docker, box, 7301, 7302, 7303) == 0, "the whole tree has gone")
    docker.sh(box, "echo well", out="well\n")


def hang_ups(docker):
    box = box_of(docker)
    count = "ls -d /proc/[0-9]* | wc -l"
    before = int(docker.sh(box, count).out)
    begun = [docker.begin("exec", box, "bash", "-c", "(setsid sleep 7304 &); sleep 7304 & sleep 7305") for _ in range(20)]
    wait_for(60, lambda: sleeping(docker, box, 7304, 7305) == 60, "20 commands of three processes")
    for process in begun:
        process.kill()
    for process in begun:
        process.communicate()
    wait_for(20, lambda: sleeping(docker, box, 7304, 7305) == 0, "all 60 processes have gone")
    wait_for(20, lambda: int(docker.sh(box, count).out) == before, f"{before} processes, as before")


def lost(docker):
    box = box_of(docker)
    shell = Shell(docker, box)
    shell.run("true")
    docker.call("rm", "-f", box)
    # As Hermes calls: stderr joined to stdout.
    process = docker.begin("exec", box, "bash", "-c", shell.script("true"), stderr=subprocess.STDOUT)
    text = output_of(process, 20)
    equal(process.returncode, 1, "the status where the container is lost")
    if not re.fullmatch(no_container(docker, box), text):
        raise Failed(f"the text of a lost container is {text!r}")
    equal(docker.call("ps", "-a", "--filter", f"label=hermes-task-id={docker.task}", "--format", "{{.ID}}").out, "", "ps")
    again = Shell(docker, box_of(docker))
    equal(again.run("echo again"), "again\n", "the command, run once more in a new one")


def container_killed(docker):
    """The engine's container goes while a command runs in it."""
    box = box_of(docker)
    process = docker.begin("exec", box, "bash", "-c", "echo begun; exec sleep 7306", stderr=subprocess.STDOUT)
    wait_for(20, lambda: sleeping(docker, box, 7306) == 1, "the command runs")
    subprocess.run(["docker", "-H", f"unix://{docker.engine}", "kill", box], stdout=subprocess.DEVNULL, check=True)
    text = output_of(process, 30)
    # The shim says what makes Hermes look for another one.
    wanted = docker.differs("begun\n", "begun\n" + no_container(docker, box))
    if not re.fullmatch(wanted, text) or process.returncode != docker.differs(137, 1):
        raise Failed(f"status {process.returncode} and {text!r}")

    def told():
        answer = docker.call("exec", box, "true", rc=(1, 125))
        return answer.rc == 1 and re.fullmatch(f"{no_container(docker, box)}|{not_running(box)}", answer.err)

    wait_for(20, told, "an exec that says that its container is lost or not running")


def held_stdout(docker):
    box = box_of(docker)
    begun = time.monotonic()
    process = docker.begin("exec", box, "bash", "-c", "sleep 7 & echo bg")
    text = output_of(process, 30)
    took = time.monotonic() - begun
    equal((text, process.returncode), ("bg\n", 0), "the shell")
    if docker.against == "shim" and took > 1.5 * float(os.environ.get("HST_SLOW", "1")):
        raise Failed(f"it took {took:.1f} s, while a child holds stdout")


def big(docker):
    box = box_of(docker)
    # The kernel's limit is 131072 bytes an argument, its NUL included.
    word = "x" * 131071
    docker.call("exec", box, "bash", "-c", "echo ${#1}", "-", word, out="131071\n", err="")
    data = os.urandom(1 << 20)
    text = base64.b64encode(data).decode()
    pieces = [text[at:at + 120000] for at in range(0, len(text), 120000)]
    for piece in pieces:
        docker.sh(box, f"printf %s {piece} >>/tmp/one.b64")
    docker.call("exec", box, "bash", "-c", "printf %s \"$@\" >/tmp/two.b64", "-", *pieces)
    wanted = hashlib.sha256(data).hexdigest()
    sums = docker.sh(box, "for n in one two; do base64 -d </tmp/$n.b64 | sha256sum | cut -d' ' -f1; done").out.split()
    equal(sums, [wanted, wanted], "1 MiB in pieces, and in one call")
    back = docker.call("exec", "-i", box, "bash", "-c", "cat >/tmp/three; base64 -w0 </tmp/three", stdin=data).out
    equal(base64.b64decode(back), data, "1 MiB by stdin and back")


def probe(docker):
    box = box_of(docker)
    begun = time.monotonic()
    for n in range(6):
        docker.call("run", "--rm", "--cpus", "0.5", "--memory", "64m", "--pids-limit", "32", docker.image, "bash", "-c",
                    f"echo out; echo err >&2; exit {n}", rc=n, out="out\n", limit=60)
    docker.call("exec", box, "true")
    equal(docker.call("ps", "-a", "--filter", f"label=hermes-task-id={docker.task}", "--format", "{{.ID}}").out,
          f"{box[:12]}\n", "what is left")
    if time.monotonic() - begun > 60:
        raise Failed("six probes took more than a minute")


def tools(docker):
    box = box_of(docker)
    wanted = "bash awk grep sed find tar base64 mktemp mv cat head tail wc ls stat env sleep sort tr cut sha256sum nohup"
    docker.sh(box, f"for tool in {wanted}; do command -v $tool >/dev/null || echo $tool; done", out="", err="")
    for place in ("/workspace", "/root", "/home", *docker.differs((), ("/tmp",))):
        docker.sh(box, f"cd {place} && printf '#!/bin/sh\\necho ran\\n' >x && chmod +x x && ./x", out="ran\n", err="")


ENTER = "for d in /root /workspace /tmp; do cd $d && echo $d >in && cat in && rm in || exit; done"
ENTERED = "/root\n/workspace\n/tmp\n"


def root_inside(docker):
    box = box_of(docker)
    equal(docker.sh(box, "id -u; id -g; echo $HOME; umask 077; " + ENTER, err="").out, f"0\n0\n/root\n{ENTERED}", "root")
    docker.sh(box, "cd /tmp && : >f && chown 1000:1000 f && chmod 600 f && echo x >>f && stat -c %u:%a f",
              out="1000:600\n", err="")
    status = docker.sh(box, "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status").out.split()
    if int(status[1], 16) & ~0xcb or int(status[1], 16) & 0b1011 != 0b1011:
        raise Failed(f"the capabilities are {status[1]}, expected CHOWN, DAC_OVERRIDE, FOWNER and at most SETUID, SETGID")
    equal(status[5], "1", "NoNewPrivs")


def as_user(docker):
    uid, gid = docker.caller.split(":")
    box = docker.call("run", "-d", "--init", "-w", "/workspace", *security(privdrop=False), "--user", docker.caller,
                      *WRITABLE, *LIMITS, docker.image, "sleep", "infinity").out.strip()
    docker.made.append(box)
    equal(docker.sh(box, "id -u; id -g").out, f"{uid}\n{gid}\n", "--user")
    if docker.against == "shim":
        equal(docker.sh(box, ENTER, err="").out, ENTERED, "where --user may write")
        status = docker.sh(box, "grep -E '^CapEff' /proc/self/status").out.split()
        equal(int(status[1], 16), 0, "the capabilities of --user")


def mounted(docker):
    """The folders that a persistent container has, which its caller made: what is made there is the caller's."""
    uid, gid = (int(n) for n in docker.caller.split(":"))
    places = []
    for name in ("home", "workspace"):
        place = os.path.join(docker.mounts, docker.task, name)
        os.makedirs(place)
        for folder in (os.path.dirname(place), place):
            os.chown(folder, uid, gid)
        places.append(place)
    readonly = os.path.join(docker.mounts, docker.task, "skills")
    os.mkdir(readonly)
    with open(os.path.join(readonly, "skill"), "w", encoding="ascii") as f:
        f.write("known\n")
    flags = ["-v", f"{places[0]}:/root", "-v", f"{places[1]}:/workspace", "-v", f"{readonly}:/root/.hermes/skills:ro"]
    box = docker.run(*flags, *LIMITS)
    shell = Shell(docker, box)
    equal(shell.run(ENTER), ENTERED, "where it may write")
    shell.run("! touch /root/.hermes/skills/new 2>/dev/null")
    equal(shell.run("cat /root/.hermes/skills/skill"), "known\n", "a :ro mount")
    shell.run("cd /workspace; echo kept >file; mkdir folder; cp /bin/bash bash; chmod 6755 bash")
    shell.run("chown 0:0 bash 2>/dev/null; chmod 6755 bash", rc=None)
    made = os.stat(os.path.join(places[1], "bash"))
    owner = docker.differs((0, 0), (uid, gid))
    equal((made.st_uid, made.st_gid), owner, "whose a setuid file is on the host")
    equal(bool(made.st_mode & stat.S_ISUID), True, "it is setuid")
    docker.forget()
    again = docker.run(*flags, *LIMITS)
    equal(Shell(docker, again).run("cat file"), "kept\n", "what a mount keeps")


def mounted_below(docker):
    """A container that does not persist has its skills all the same: in the tmpfs that is its home."""
    place = os.path.join(docker.mounts, docker.task, "known")
    os.makedirs(os.path.join(place, "one"))
    with open(os.path.join(place, "one", "skill"), "w", encoding="ascii") as f:
        f.write("known\n")
    box = docker.run(*WRITABLE, *LIMITS, "-v", f"{place}:/root/.hermes/skills:ro",
                     "-v", f"{place}/one:/root/.hermes/cache/documents:ro")
    shell = Shell(docker, box)
    known = shell.run("cat ~/.hermes/skills/one/skill ~/.hermes/cache/documents/skill")
    equal(known, "known\n" * 2, "what is mounted")
    shell.run("! touch /root/.hermes/skills/new 2>/dev/null")
    equal(shell.run(ENTER), ENTERED, "where it may write")


def refused_mount(docker):
    for source in ("/etc", "/var/run/docker.sock", "/"):
        answer = docker.run("-v", f"{source}:/host", rc=125, err=r"(WARNING: [^\n]+\n)*docker: [^\n]+\n")
        if source not in answer.err:
            raise Failed(f"{source} is not named: {answer.err!r}")


def stops(docker):
    """stop ends the processes and keeps the files."""
    box = box_of(docker)
    docker.sh(box, "for d in /root /workspace /tmp /home; do echo $d >$d/kept; done; sleep 7307 >/dev/null 2>&1 &")
    docker.call("stop", "-t", "1", box)
    docker.call("start", box)
    equal(docker.sh(box, "cat /root/kept /workspace/kept /tmp/kept /home/kept").out,
          "/root\n/workspace\n/tmp\n/home\n", "files")
    equal(sleeping(docker, box, 7307), 0, "processes from before the stop")


def all_of(docker):
    cases = [
        ("64 execs at once in one container", together),
        ("background jobs, polled by further execs", background),
        ("the code tool's requests, answered while its script runs", polling),
        ("SIGKILL of the CLI and the command's tree", killed),
        ("a lost container: the text, status 1, and the command runs in a new one", lost),
        ("the container is killed under a running exec", container_killed),
        ("the CLI ends with its shell, whatever holds stdout", held_stdout),
        ("arguments of 128 KiB, and files of 1 MiB in them", big),
        ("the probe, beside a container and again and again", probe),
        ("bash and the tools; what is written to /tmp, /workspace and the homes runs", tools),
        ("root inside: where it writes, and its three capabilities", root_inside),
        ("--user", as_user),
        ("mounts: writable for the command, and what is made there is the caller's", mounted),
        ("mounts below a tmpfs", mounted_below),
    ]
    if docker.against == "shim":
        cases += [
            ("20 CLIs killed at once leave nothing", hang_ups),
            ("mounts outside of allowed_file_paths are refused", refused_mount),
            ("stop keeps the files", stops),
        ]
    for text, function in cases:
        docker.check("takes: " + text, function)
        docker.forget()
