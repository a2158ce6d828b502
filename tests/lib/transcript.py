#!/usr/bin/env python3
"""Runs the commands of a document's transcript, and compares what they print with what stands there.

usage: transcript.py check|write DOCUMENT

A transcript is an indented block between "<!-- transcript -->" and "<!-- end of transcript -->": behind "$ " a
command, with its output below it. All of them run in one shell, in order, with the two streams as one, as on a
terminal. What differs from run to run (ids, times, versions) is compared by its form. Exit status 1: something
differs, and both are shown.
"""
import re
import subprocess
import sys

BEGIN, END = "<!-- transcript -->", "<!-- end of transcript -->"
INDENT = "    "
MARK = "\x1e"
# In this order: a date holds digits, too.
FORMS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "DATE"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE"),
    (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|\b[0-9a-f]{12}\b", "ID"),
    (r'("[a-z_]*_(us|bytes)":) *\d+', r"\1 N"),
    (r"version [^ ,]+, API [0-9.]+", "version V, API V"),
    (r"hermes-sandboxd [0-9.]+", "hermes-sandboxd V"),
    (r"\b\d+(ms|s|us)\b", "TIME"),
    (r"up \d+ s: \d+ commands \(\d+ warm\)", "up N s: N commands (N warm)"),
    # Uids, gids, times in microseconds.
    (r"\b\d{3,}\b", "N"),
    # Columns are as wide as what stands in them.
    (r" +", " "),
)


def form(line):
    for pattern, name in FORMS:
        line = re.sub(pattern, name, line)
    return line.rstrip()


def run(commands):
    """What each of them printed, a list of lines each."""
    script = "exec 2>&1\n" + "".join(f"{c}\nprintf '{MARK}\\n'\n" for c in commands)
    done = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120,
                          check=False)
    parts = done.stdout.decode("utf-8", "replace").split(MARK + "\n")
    if len(parts) != len(commands) + 1:
        sys.exit(f"a command ended the shell: {done.stdout!r}")
    return [part.splitlines() for part in parts[:-1]]


def blocks(lines):
    """The index of the first line of each transcript, and of the one behind its last."""
    begin = None
    for i, line in enumerate(lines):
        if line == BEGIN:
            begin = i + 1
        elif line == END:
            yield begin, i


def play(block):
    commands = [line[len(INDENT) + 2:] for line in block if line.startswith(INDENT + "$ ")]
    played = []
    for command, output in zip(commands, run(commands)):
        played.append(f"{INDENT}$ {command}")
        played += [(INDENT + line).rstrip() for line in output]
    return [""] + played + [""]


def main():
    mode, name = sys.argv[1:]
    with open(name, encoding="utf-8") as f:
        lines = f.read().split("\n")
    found = list(blocks(lines))
    if not found:
        sys.exit(f"{name}: no transcript in it")
    for begin, end in reversed(found):
        played = play(lines[begin:end])
        if mode == "write":
            lines[begin:end] = played
        elif [form(line) for line in played] != [form(line) for line in lines[begin:end]]:
            print("it prints:", *played, sep="\n")
            print("but there stands:", *lines[begin:end], sep="\n")
            sys.exit(1)
    if mode == "write":
        with open(name, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))


main()
