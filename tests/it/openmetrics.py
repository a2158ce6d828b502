#!/usr/bin/env python3
"""openmetrics.py <TEXT: reads OpenMetrics text 1.0 and ends with 1 and a line at the first thing that the specification
does not allow in it; else prints each sample as "NAME{LABEL="VALUE",…} VALUE", in the order of the text.

openmetrics.py --serve COMMAND…: listens at a port of 127.0.0.1, which it prints, and starts COMMAND for each connection,
which is its stdin and stdout: what systemd does for a socket with Accept=yes. TERM ends it.
"""
import math
import os
import re
import signal
import socket
import subprocess
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
META = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# What may stand behind the name of a family of that type.
SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
    "summary": ("_count", "_sum"),
    "info": ("_info",),
}
RESERVED = ("_total", "_created", "_bucket", "_count", "_sum", "_info")


class Bad(Exception):
    pass


def need(ok, what):
    if not ok:
        raise Bad(what)


def labels_of(text):
    found, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        need(m, "a label")
        need(m[1] not in found, "each label once")
        found[m[1]] = m[2]
        at = m.end()
        if at < len(text):
            need(text[at] == "," and at + 1 < len(text), "a comma and a label")
            at += 1
    return found


class Family:
    def __init__(self, name):
        self.name, self.meta, self.samples = name, {}, []

    def describe(self, kind, text):
        need(kind not in self.meta, f"one {kind}")
        need(not self.samples, f"{kind} before the samples")
        if kind == "TYPE":
            need(text in SUFFIXES, "a type")
        elif kind == "UNIT":
            need(self.name.endswith("_" + text), "a name that ends with the unit")
        else:
            need(re.fullmatch(r'(?:[^\\"]|\\[\\"n])*', text), "a help text that is escaped")
        self.meta[kind] = text

    def add(self, name, labels, value):
        need("TYPE" in self.meta, "a TYPE")
        suffix = name[len(self.name):]
        need(suffix in SUFFIXES[self.meta["TYPE"]], f"a sample of a {self.meta['TYPE']}")
        need(("le" in labels) == (suffix == "_bucket"), "le in buckets alone")
        need(value in ("+Inf", "-Inf", "NaN") or NUMBER.fullmatch(value), "a number")
        need(self.meta["TYPE"] == "gauge" or float(value) >= 0, "a number of at least 0")
        need(all(not (s[0] == name and s[1] == labels) for s in self.samples), "each sample once")
        self.samples.append((name, labels, value))

    def end(self):
        if self.meta.get("TYPE") == "info":
            need(all(float(v) == 1 for _, _, v in self.samples), "an info of 1")
        groups, last = {}, None
        for name, labels, value in self.samples:
            key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
            need(key == last or key not in groups, "the samples of a metric in one place")
            last = key
            groups.setdefault(key, []).append((name[len(self.name):], labels, value))
        if self.meta.get("TYPE") in ("histogram", "summary"):
            for group in groups.values():
                self.distribution(group)

    def distribution(self, group):
        one = {s: v for s, _, v in group if s != "_bucket"}
        need(set(one) == {"_count", "_sum"}, "a count and a sum")
        need(float(one["_count"]).is_integer(), "a whole count")
        if self.meta["TYPE"] != "histogram":
            return
        buckets = [(labels["le"], float(v)) for s, labels, v in group if s == "_bucket"]
        need(buckets and buckets[-1][0] == "+Inf", "a bucket of +Inf at the end")
        need(all(le == repr(float(le)) for le, _ in buckets[:-1]), "canonical bounds")
        bounds = [float(le) for le, _ in buckets[:-1]] + [math.inf]
        need(all(a < b for a, b in zip(bounds, bounds[1:])), "rising bounds")
        counts = [n for _, n in buckets]
        need(all(a <= b for a, b in zip(counts, counts[1:])), "cumulative buckets")
        need(counts[-1] == float(one["_count"]), "a count as the last bucket")


def parse(text):
    families, current = {}, None
    need(text.endswith("\n"), "a newline at the end")
    lines = text[:-1].split("\n")
    need(lines[-1] == "# EOF", "# EOF at the end")
    for number, line in enumerate(lines[:-1], 1):
        try:
            need(line and line.isprintable(), "visible text")
            meta, sample = META.fullmatch(line), SAMPLE.fullmatch(line)
            need(meta or (sample and line[0] != "#"), "metadata or a sample")
            name = meta[2] if meta else sample[1]
            if not (meta and current and name == current.name) and not (
                    sample and current and name.startswith(current.name) and
                    name[len(current.name):] in SUFFIXES[current.meta.get("TYPE", "gauge")]):
                need(meta, "metadata before samples")
                need(name not in families, "each family in one place")
                if current:
                    current.end()
                current = families[name] = Family(name)
            if meta:
                current.describe(meta[1], meta[3])
            else:
                current.add(name, labels_of(sample[2] or ""), sample[3])
        except Bad as e:
            raise Bad(f"line {number}: expected {e}: {line}") from None
    if current:
        current.end()
    for name in families:
        need(not any(name == other + s for other in families for s in RESERVED), f"{name}: a name of its own")
    return families


def serve(command):
    listener = socket.create_server(("127.0.0.1", 0))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(listener.getsockname()[1], os.getpid(), flush=True)
    while True:
        conn, _ = listener.accept()
        subprocess.run(command, stdin=conn, stdout=conn, check=False)
        conn.close()


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--serve":
        serve(sys.argv[2:])
    try:
        families = parse(sys.stdin.buffer.read().decode("utf-8"))
    except (Bad, UnicodeDecodeError) as e:
        print(f"no OpenMetrics: {e}")
        return 1
    for family in families.values():
        for name, labels, value in family.samples:
            shown = ",".join(f'{k}="{v}"' for k, v in labels.items())
            print(f"{name}{{{shown}}} {value}")
    return 0


sys.exit(main())
