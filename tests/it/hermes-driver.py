#!/usr/bin/python3
"""Speaks to a docker program as Hermes Agent's docker backend does, and checks what comes back.

hermes-driver.py [--against genuine|shim] [--engine SOCKET] [--mounts DIR --caller UID:GID] PROGRAM IMAGE PART…

PART is "old" (the calls of Hermes 0.18.2 in their order), "new" (those of its newer sources), or "takes" (what it
takes for granted). Each check prints "ok - TEXT" or "FAIL - TEXT"; the exit status is 1 when one failed.

What is expected is what the genuine program does. Where the two differ by design, differs() stands:
  - a lost container: genuine versions word the beginning of the line in two ways, the shim in the newer one;
  - the genuine disk quota probe is made with IMAGE, as its own needs a registry;
  - a killed CLI leaves its command running, and a child that holds stdout holds the CLI for two seconds, or for
    good, by the engine's version: neither does here;
  - a --tmpfs without "exec" runs nothing, /tmp among them, which Hermes wants to run things from: here /tmp does;
  - stop empties a tmpfs: here all files stay;
  - root's tmpfs are closed to --user, and root in a mount is root: here both are the caller's.
"""
import argparse
import sys

import hermes_calls
import hermes_takes
from hermes_docker import Docker

parser = argparse.ArgumentParser()
parser.add_argument("--against", choices=("genuine", "shim"), default="shim")
parser.add_argument("--engine")
parser.add_argument("--mounts")
parser.add_argument("--caller")
parser.add_argument("program")
parser.add_argument("image")
parser.add_argument("parts", nargs="+", choices=("old", "new", "takes"))
options = parser.parse_args()
docker = Docker(options)
for part in options.parts:
    if part == "takes":
        hermes_takes.all_of(docker)
    else:
        hermes_calls.walk(docker, part == "new")
sys.exit(1 if docker.failed else 0)
