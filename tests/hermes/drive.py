#!/usr/bin/python3
"""drive.py SCENARIO: the tools of a real Hermes Agent, whose tree is on the path, called as its model would call them.

Where its commands run is the environment's word (TERMINAL_ENV and the like). Each check prints "ok - TEXT" or
"FAIL - TEXT"; the exit status is 1 when one failed.
"""
import json
import os
import shlex
import subprocess
import sys
import threading
import time

from tools.terminal_tool import cleanup_vm, terminal_tool  # first, as the others need it
from tools.code_execution_tool import execute_code
from tools.file_tools import patch_tool, read_file_tool, search_tool, write_file_tool
from tools.process_registry import process_registry

BACKEND = os.environ["TERMINAL_ENV"]
NAME = sys.argv[1]
FAILED = []


def check(text, good, found=None):
    if good:
        print(f"ok - {NAME}: {text}", flush=True)
    else:
        FAILED.append(text)
        print(f"FAIL - {NAME}: {text}\nfound {found!r}"[:2000], flush=True)


def terminal(command, **more):
    return json.loads(terminal_tool(command, **more))


def run(text, command, output=None, code=0, **more):
    answer = terminal(command, **more)
    good = answer.get("exit_code") == code and (output is None or answer["output"].strip() == output)
    check(text, good, answer)
    return answer


def as_text(answer):
    return answer if isinstance(answer, str) else json.dumps(answer)


def wait_for(seconds, function):
    end = time.monotonic() + seconds
    while not function():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def docker(*argv):
    return subprocess.run([os.environ["HERMES_DOCKER_BINARY"], *argv], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)


def mine():
    return docker("ps", "-aq", "--no-trunc", "--filter", "label=hermes-agent=1").stdout.split()


def sleeping(number):
    return terminal(f"pgrep -cx -f 'sleep {number}'")["output"].strip()


# --- scenarios -------------------------------------------------------------------------------------------------


def commands():
    run("a command's output and folder", "echo hi; pwd", f"hi\n{os.environ.get('EXPECT_CWD', '/workspace')}")
    run("an exit code", "(exit 3)", code=3)
    run("stderr comes along", "echo out; echo err >&2", "out\nerr")
    run("the environment stays", "export LEFT=behind; cd /tmp", "")
    run("and the folder", 'echo "$LEFT"; pwd', "behind\n/tmp")
    run("much output", "seq 1 5000 | tail -n 1", "5000")
    # In a file, as Hermes runs no command that it sees to leave something behind.
    write_file_tool("/tmp/leaves", "sleep 7411 &\necho bg\n")
    begun = time.monotonic()
    run("a child that holds stdout", "bash /tmp/leaves", "bg")
    check("does not hold the command", time.monotonic() - begun < 5, time.monotonic() - begun)
    terminal("pkill -x -f 'sleep 7411'")
    begun = time.monotonic()
    run("a time-out", "sleep 7412", code=124, timeout=2)
    check("it ends when it should", time.monotonic() - begun < 20, time.monotonic() - begun)
    check("nothing is left of it", wait_for(10, lambda: sleeping(7412) == "0"), sleeping(7412))
    run("the next command", "echo alive", "alive")
    answers = [None] * 8

    def one(n):
        answers[n] = terminal(f"sleep 0.2; echo {n}")["output"].strip()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("eight commands at once", answers == [str(n) for n in range(8)], answers)


def files():
    place = os.environ.get("EXPECT_CWD", "/workspace")
    note = f"{place}/note.txt"
    write_file_tool(note, "alpha\nbeta\n")
    run("write_file", f"cat {note}", "alpha\nbeta")
    answer = as_text(patch_tool("replace", path=note, old_string="beta", new_string="gamma"))
    run("patch", f"cat {note}", "alpha\ngamma")
    answer = as_text(read_file_tool(note))
    check("read_file", "alpha" in answer and "gamma" in answer, answer)
    answer = as_text(search_tool("gam", path=place))
    check("search_files", "note.txt" in answer, answer)
    big = "".join(f"line {n} of many\n" for n in range(20000))
    answer = as_text(write_file_tool(f"{place}/big.txt", big))
    run("a file of 340 KiB", f"wc -c <{place}/big.txt", str(len(big)))


def code():
    answer = as_text(execute_code("from hermes_tools import terminal, write_file\nimport os\n"
                                  "write_file('/tmp/by-code', 'x')\n"
                                  "print(terminal('cat /tmp/by-code; echo from-code')['output'], 2 + 2, os.getuid())"))
    check("execute_code calls tools while it runs", "xfrom-code" in answer.replace("\\n", "") and " 4 " in answer, answer)


def background():
    begun = terminal("echo begun; sleep 1; echo ended; exit 5", background=True)
    answer = as_text(process_registry.wait(begun["session_id"], timeout=30))
    check("a background job, to its end", "ended" in answer and '"exit_code": 5' in answer, answer)
    begun = terminal("sleep 7413", background=True)
    check("one more runs", wait_for(10, lambda: sleeping(7413) != "0"))
    answer = as_text(process_registry.kill_process(begun["session_id"]))
    check("and is killed", "killed" in answer, answer)
    terminal("pkill -x -f 'sleep 7413'")


def ends():
    cleanup_vm("default", force_remove=True)
    if BACKEND == "docker":
        check("nothing is left", wait_for(30, lambda: mine() == []), mine())


def all_tools():
    commands()
    files()
    code()
    background()
    ends()


def first():
    """The first of two processes: it leaves a file, a job and its container."""
    run("a file", "echo from-first >/tmp/left")
    terminal("sleep 7414", background=True)
    check("a job", wait_for(10, lambda: sleeping(7414) != "0"), sleeping(7414))
    check("one container", len(mine()) == 1, mine())


def second():
    """The other one finds them by the container's labels."""
    check("one container", len(mine()) == 1, mine())
    run("the file", "cat /tmp/left", "from-first")
    check("the job", sleeping(7414) != "0", sleeping(7414))
    check("no other container", len(mine()) == 1, mine())
    box = mine()[0]
    docker("stop", "-t", "1", box)
    run("a stopped container is started again", "echo again", "again")
    check("it is the same", mine() == [box], mine())
    docker("rm", "-f", box)
    run("a lost container: the command runs in a new one", "echo recovered", "recovered")
    check("it is another", mine() != [box] and len(mine()) == 1, mine())
    ends()


def reaper():
    from tools.environments.docker import reap_orphan_containers  # pylint: disable=import-outside-toplevel

    run("a container", "true")
    box = mine()
    check("a running one is left alone", reap_orphan_containers(max_age_seconds=0) == 0 and mine() == box, mine())
    docker("stop", "-t", "1", *box)
    check("a young one is left alone", reap_orphan_containers(max_age_seconds=600) == 0 and mine() == box, mine())
    check("a stopped one is removed", reap_orphan_containers(max_age_seconds=0, profile_filter="default") == 1, mine())
    check("nothing is left", mine() == [], mine())


def mounts():
    """The home and the workspace are folders of the caller's on the host."""
    run("a file in the workspace, one at home", "echo kept >/workspace/kept; echo kept >/root/kept; id -u", str(os.getuid()))
    if os.path.isdir(os.path.join(os.environ["HERMES_HOME"], "skills")):
        run("the skills", "cat /root/.hermes/skills/one/SKILL.md", "known")
        run("they are read-only", "touch /root/.hermes/skills/new", code=1)
    place = os.path.join(os.environ["HERMES_HOME"], "sandboxes", "docker", "default")
    for name in ("workspace/kept", "home/kept"):
        path = os.path.join(place, name)
        check(f"{name} is on the host, and the caller's", os.path.exists(path) and os.stat(path).st_uid == os.getuid(), path)
    run("a setuid file", f"cp /bin/bash /workspace/bash; chmod 6755 /workspace/bash; chown 0:0 /workspace/bash 2>{os.devnull}",
        code=1)
    made = os.stat(os.path.join(place, "workspace", "bash"))
    check("it is not root's on the host", made.st_uid == os.getuid() and made.st_gid == os.getgid(), made)
    cleanup_vm("default", force_remove=True)
    check("the container has gone", wait_for(30, lambda: mine() == []), mine())
    run("a new one has the files", "cat /workspace/kept /root/kept", "kept\nkept")
    files()
    code()
    background()
    ends()


def synced():
    """Hermes sends its skills along, and fetches at the end what has become of them."""
    skill = os.path.join(os.environ["HERMES_HOME"], "skills", "one", "SKILL.md")
    run("the skills", "cat ~/.hermes/skills/one/SKILL.md", "known")
    run("one is changed, one is new", "cd ~/.hermes/skills/one && echo better >SKILL.md && echo made >MORE.md && echo kept >~/kept", "")
    ends()
    for path, text in ((skill, "better"), (skill.replace("SKILL", "MORE"), "made")):
        check(f"{os.path.basename(path)} comes back", os.path.exists(path) and open(path, encoding="utf-8").read() == f"{text}\n", path)
    run("a new connection has the key's sandbox", "cat ~/kept", "kept")
    ends()


def host_user():
    run("the caller's uid and gid", "id -u; id -g", f"{os.getuid()}\n{os.getgid()}")
    run("where it may write", "for d in ~ /workspace /tmp; do cd $d && echo x >in && rm in || exit; done", "")
    files()
    code()
    ends()


def network():
    """docker_network: false, with a container that is there already."""
    run("no interface but its own", "ls /sys/class/net | tr '\\n' ' '", "lo")
    ends()


def probe():
    """Not a check: what a command costs."""
    terminal("true")
    begun = time.monotonic()
    for _ in range(20):
        terminal("true")
    print(f"note - {NAME}: {(time.monotonic() - begun) * 50:.1f} ms a command")
    ends()


{f.__name__: f for f in (all_tools, first, second, reaper, mounts, synced, host_user, network, probe)}[NAME]()
sys.stdout.flush()
if not FAILED:
    print(f"note - {NAME}: {shlex.quote(BACKEND)} done")
# Not sys.exit(): threads of Hermes' may be left.
os._exit(1 if FAILED else 0)
