#!/usr/bin/env python3
"""registry.py DIR [PORT]: a registry of images on 127.0.0.1, as much of it as a pull needs (the registry's API,
version 2, and image manifests, version 2 schema 2). It prints its port and then a line for each request.

Each folder DIR/NAME:TAG is an image: its layers are the files *.tar in it, in the order of their names. They are read
anew at each request, so that replacing them moves the tag; what was asked for once stays there under its digest. A file
"refuse" in it has the words with which the image is refused instead, a file "broken" makes every layer another one than
the manifest says.
"""
import hashlib
import http.server
import json
import os
import socketserver
import sys

ROOT = sys.argv[1]
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"  # an engine looks for itself whether it is compressed
blobs, broken = {}, set()


def keep(data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"digest": digest, "size": len(data)}


def manifest(folder):
    layers = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".tar"):
            with open(os.path.join(folder, name), "rb") as f:
                layers.append({"mediaType": LAYER, **keep(f.read())})
            if os.path.exists(os.path.join(folder, "broken")):
                broken.add(layers[-1]["digest"])
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "created": "2026-11-29T18:12:43Z",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [one["digest"] for one in layers]},
        "history": [{"created": "2026-11-29T18:12:43Z"} for one in layers],
    }
    text = json.dumps({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, **keep(json.dumps(config).encode())},
        "layers": layers,
    }).encode()
    return keep(text)["digest"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        print(self.command, self.path, flush=True)

    def answer(self, status, kind, body, digest=None):
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, words):
        body = json.dumps({"errors": [{"code": code, "message": words}]}).encode()
        self.answer(status, "application/json", body)

    def do_GET(self):
        parts = self.path.strip("/").split("/")
        if parts == ["v2"]:
            self.answer(200, "application/json", b"{}")
        elif len(parts) == 4 and parts[2] == "manifests":
            self.manifest(parts[1], parts[3])
        elif len(parts) == 4 and parts[2] == "blobs" and parts[3] in blobs:
            data = blobs[parts[3]]
            if parts[3] in broken:
                data = bytes(len(data))
            self.answer(200, "application/octet-stream", data, parts[3])
        else:
            self.refuse(404, "BLOB_UNKNOWN", "no such thing")

    do_HEAD = do_GET

    def manifest(self, name, which):
        folder = os.path.join(ROOT, name + ":" + which)
        if os.path.exists(os.path.join(folder, "refuse")):
            with open(os.path.join(folder, "refuse"), encoding="utf-8") as f:
                self.refuse(403, "DENIED", f.read())
            return
        digest = which if which in blobs else manifest(folder) if os.path.isdir(folder) else None
        if digest:
            self.answer(200, MANIFEST, blobs[digest], digest)
        else:
            self.refuse(404, "MANIFEST_UNKNOWN", "no such image")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
