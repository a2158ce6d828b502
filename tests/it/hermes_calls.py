"""Every call that Hermes makes of a docker program, in its order."""
import hashlib
import json
import re

from hermes_docker import (LIMITS, RFC3339, SHORT, WRITABLE, Failed, Shell, equal, filters, no_container, not_running,
                           sleeping)


def version(docker):
    docker.call("version", limit=5)


def reaper(docker, box):
    found = docker.call("ps", "-a", "--filter", "label=hermes-agent=1", "--filter", "status=exited", "--filter",
                        "label=hermes-profile=default", "--format", "{{.ID}}", out=f"({SHORT}\n)*", err="", limit=15)
    if box is None:
        return
    if box[:12] not in found.out.split():
        raise Failed(f"the stopped {box[:12]} is not in {found.out!r}")
    docker.call("inspect", "--format", "{{.State.FinishedAt}}", box[:12], out=RFC3339 + "\n", err="", limit=10)
    docker.call("rm", "-f", box[:12], out=f"{box[:12]}\n", err="")


def probes(docker):
    docker.call("run", "--rm", "--cpus", "0.5", "--memory", "64m", "--pids-limit", "32", docker.image, "sleep", "0",
                out="", limit=60)
    driver = docker.call("info", "--format", "{{.Driver}}", out=r"[a-z0-9.-]+\n", err="", limit=10).out.strip()
    if driver == "overlay2" or docker.against == "shim":
        made = docker.call("create", "--storage-opt", "size=1m", docker.differs(docker.image, "hello-world"),
                           rc=docker.differs(None, range(1, 256)), limit=15)
        if made.rc == 0:
            docker.call("rm", made.out.strip())
    asked = ("image", "inspect", docker.image, "--format", "{{json .Config.Entrypoint}}")
    json.loads(docker.call(*asked, err="", limit=15).out)


def absent(docker, new):
    docker.call("ps", "-a", *filters(docker, new), "--format", listing(new), out="", err="", limit=10)


def listing(new):
    return "{{.ID}}\t{{.State}}" + ('\t{{.Label "hermes-egress"}}' if new else "")


def listed(docker, new, box, state):
    found = docker.call("ps", "-a", *filters(docker, new), "--format", listing(new), err="", limit=10).out
    equal(found, f"{box[:12]}\t{state}" + ("\topen\n" if new else "\n"), "ps -a")
    other = docker.call("ps", "-a", *filters(docker, new)[:-1], "label=hermes-profile=other", "--format", listing(new))
    equal(other.out, "", "ps -a of another profile")


def networks(docker, box):
    docker.call("inspect", "--format", "{{.HostConfig.NetworkMode}}", box, out="none\n", err="", limit=10)


def names(docker, box):
    name = docker.call("inspect", "--format", "{{.Name}}", box, out="/hermes-[0-9a-f]{8}\n").out.strip("/\n")
    for word in (box, box[:12], name):
        docker.call("exec", word, "true", out="", err="")
    again = docker.call("run", "-d", "--name", name, docker.image, "sleep", "infinity", rc=125, out="")
    wanted = rf'docker: Error response from daemon: Conflict. The container name "/{name}" is already in use by ' \
             rf'container "{box}"'
    if not re.match(wanted, again.err):
        raise Failed(f"stderr is {again.err!r}, expected {wanted!r}")


def commands(docker, box, flags):
    shell = Shell(docker, box, flags)
    equal(shell.run("echo hi; pwd; false", rc=1), "hi\n/workspace\n", "a command's output")
    shell.run("export LEFT=behind; cd /tmp; umask 022")
    equal(shell.run('echo "$LEFT $AI_AGENT $PAGER"; pwd'), "behind 1 cat\n/tmp\n", "environment and folder")
    equal(shell.run("cat >in; sha256sum <in", stdin=BINARY).split()[0], hashlib.sha256(BINARY).hexdigest(), "stdin")
    equal(shell.run("cat; echo end"), "end\n", "no stdin")
    shell.cwd = "/nosuch"
    docker.call("exec", box, "bash", "-c", shell.script("true"), rc=126)
    for code in (0, 1, 2, 77, 124, 125, 126, 127, 255):
        docker.sh(box, f"echo out; echo err >&2; exit {code}", rc=code, out="out\n", err="err\n")
    docker.sh(box, "kill -KILL $$", rc=137)
    docker.sh(box, "kill -TERM $$", rc=143)
    answer = docker.call("exec", box, "nosuchprogram", rc=(126, 127))
    if "nosuchprogram" not in answer.out + answer.err:
        raise Failed(f"a program that is not there is not named: {answer}")


BINARY = bytes(range(256)) * 1024


def environment(docker, box, new):
    docker.call("exec", "-e", "A=1", "-e", "B= two = words", box, "bash", "-c", 'echo "$A$B"', out="1 two = words\n")
    if new:
        docker.call("exec", "-e", "KEY", "-e", "UNSET", box, "bash", "-c", 'echo "$KEY${UNSET-}"', out="by name\n",
                    err="", env={"KEY": "by name"})
    docker.call("exec", "-w", "/tmp", box, "pwd", out="/tmp\n", err="")
    docker.sh(box, "pwd; echo $GIVEN; echo $HOME", out="/workspace\n" + ("new" if new else "old") + "\n/root\n", err="")


def stopped(docker, box, new):
    docker.sh(box, "sleep 7399 >/dev/null 2>&1 & echo kept >/workspace/kept")
    docker.call("stop", "-t", "1", box, out=f"{box}\n", err="")
    listed(docker, new, box, "exited")
    docker.call("ps", *filters(docker, new), "--format", "{{.ID}}", out="", err="")
    docker.call("exec", box, "true", rc=1, out="", err=not_running(box))
    docker.call("stop", "-t", "1", box, out=f"{box}\n", err="")
    docker.call("start", box, out=f"{box}\n", err="")
    docker.call("start", box, out=f"{box}\n", err="")
    listed(docker, new, box, "running")
    equal(sleeping(docker, box, 7399), 0, "processes from before the stop")
    docker.sh(box, "cat /workspace/kept", rc=docker.differs((0, 1), 0))


def gone(docker, box):
    docker.call("stop", "-t", "10", box, out=f"{box}\n", err="")
    docker.call("rm", "-f", box, out=f"{box}\n", err="")
    docker.call("exec", box, "bash", "-c", "true", rc=1, out="", err=no_container(docker, box))
    docker.call("start", box, rc=1, out="", err=no_container(docker, box) + "(Error: failed to start [^\n]*\n)?")
    docker.call("stop", "-t", "1", box, rc=1, out="", err=no_container(docker, box))
    docker.call("rm", "-f", box, rc=None, out="", err=no_container(docker, box))
    docker.call("inspect", "--format", "{{.State.FinishedAt}}", box, rc=1, out="\n?",
                err=r"Error(:| response from daemon:) No such (object|container): .*\n", limit=10)


def walk(docker, new):
    form = "new" if new else "old"
    more = ["-e", "GIVEN=old"]
    if new:
        more = ["--shm-size", "1g", "--add-host", "host.docker.internal:host-gateway", "-e", "GIVEN"]
    box = None

    def run(_):
        nonlocal box
        box = docker.run(*WRITABLE, *LIMITS, "--network=none", *more, new=new, env={"GIVEN": "new"})

    docker.check(f"{form}: version", version)
    docker.check(f"{form}: the reaper finds nothing", reaper, None)
    docker.check(f"{form}: the probes for limits, disk quota and entrypoint", probes)
    docker.check(f"{form}: no container of these labels", absent, new)
    docker.check(f"{form}: run -d prints the id alone", run)
    if box is None:
        return
    docker.check(f"{form}: ps finds it by its labels", listed, new, box, "running")
    docker.check(f"{form}: inspect names its network", networks, box)
    docker.check(f"{form}: its id, a short id and its name; the name is taken", names, box)
    docker.check(f"{form}: bootstrap, commands, stdin, exit codes", commands, box, ["-e", "EACH=1"] if new else [])
    docker.check(f"{form}: environment and folder", environment, box, new)
    docker.check(f"{form}: stop, exec in it, start", stopped, box, new)
    docker.check(f"{form}: stop, rm -f, and what is said of it then", gone, box)
    docker.forget()
    old = docker.run(*WRITABLE)
    docker.call("stop", "-t", "1", old)
    docker.check(f"{form}: the reaper removes a stopped one", reaper, old)
    docker.forget()
