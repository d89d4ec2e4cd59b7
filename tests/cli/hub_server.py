"""A server that speaks what a push and a download need of the Hub's API.

It keeps repositories of models in memory, and says no as the Hub does: to a
token that may not write, to a card whose license the Hub does not know, and to
the deletion of a file that is not there.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import yaml

TOKEN, OTHER_TOKEN = "hf_may_write", "hf_may_read"
LICENSES = {"apache-2.0", "mit"}


@dataclass
class Repository:
    visibility: str
    files: dict[str, bytes] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    @property
    def sha(self) -> str:
        return f"{len(self.messages):040x}"


class RefusalError(Exception):
    """An answer that is no success: its code and its message."""


def mode_of(path):
    """Large kinds of files take another way, as on the Hub."""
    return "lfs" if path.endswith((".keras", ".tflite")) else "regular"


class Hub:
    """The repositories, by `OWNER/NAME`, and the address of the server."""

    def __init__(self):
        self.repositories, self.address, self.broken = {}, "", ""
        self.uploads: dict[str, bytes] = {}

    def answer(self, method, path, body):
        """Returns an object, or bytes with the headers of a file."""
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in self.repositories:
                place = f"{self.address}/{name}"
                raise RefusalError(409, {"error": "exists", "url": place})
            self.repositories[name] = Repository(
                asked.get("visibility", "public")
            )
            return {"url": f"{self.address}/{name}"}
        if path == "/api/validate-yaml":
            head = json.loads(body)["content"].split("---")[1]
            asked = yaml.safe_load(head).get("license", "mit")
            if asked not in LICENSES:
                message = f'"license" must be one of {sorted(LICENSES)}'
                raise RefusalError(
                    400, {"errors": [{"message": message}], "warnings": []}
                )
            return {"errors": [], "warnings": []}
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            repository = self._find(found[1])
            private = repository.visibility == "private"
            return {"id": found[1], "private": private, "sha": repository.sha}
        if path.endswith(".git/info/lfs/objects/batch"):
            return {
                "objects": [*map(self._upload, json.loads(body)["objects"])]
            }
        if found := re.fullmatch(r"/uploads/(\w+)", path):
            if self.broken == "uploads":
                raise RefusalError(403, "The link has expired")
            assert hashlib.sha256(body).hexdigest() == found[1]
            self.uploads[found[1]] = body
            return {}
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(.+)", path):
            return self._of_model(*found.groups(), body)
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            repository = self._find(found[1])
            return repository.files[found[2]], repository.sha
        raise RefusalError(404, f"{method} {path} is not known")

    def _upload(self, asked):
        href = f"{self.address}/uploads/{asked['oid']}"
        return {**asked, "actions": {"upload": {"href": href}}}

    def _find(self, name):
        if name not in self.repositories:
            raise RefusalError(404, "Repository not found")
        return self.repositories[name]

    def _of_model(self, name, asked, body):
        repository = self._find(name)
        if self.broken == "models":
            raise RefusalError(501, "Out of order")
        if asked == "revision/main":
            siblings = [{"rfilename": one} for one in repository.files]
            return {"id": name, "sha": repository.sha, "siblings": siblings}
        if asked.startswith("tree/"):
            return [
                {
                    "type": "file",
                    "path": path,
                    "size": len(content),
                    "oid": hashlib.sha1(content).hexdigest(),
                }
                for path, content in repository.files.items()
            ]
        if asked == "preupload/main":
            return {
                "files": [
                    {
                        "path": one["path"],
                        "uploadMode": mode_of(one["path"]),
                        "shouldIgnore": False,
                    }
                    for one in json.loads(body)["files"]
                ]
            }
        assert asked == "commit/main", asked
        for line in body.decode().splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                repository.messages.append(value["summary"])
            elif item["key"] == "file":
                content = base64.b64decode(value["content"], validate=True)
                repository.files[value["path"]] = content
            elif item["key"] == "lfsFile":
                content = self.uploads[value["oid"]]
                repository.files[value["path"]] = content
            else:
                assert item["key"] == "deletedFile", item
                del repository.files[value["path"]]
        return {
            "commitUrl": f"{self.address}/{name}/commit/{repository.sha}",
            "commitOid": repository.sha,
        }


@contextlib.contextmanager
def serving_hub():
    """Yields a `Hub` without repositories, which answers at its address."""
    hub = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _body(self):
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers["Content-Length"] or 0))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self):
            # Of the Hub; the client puts it into its messages.
            body, headers = self._body(), {"X-Request-Id": "Root=1-abc"}
            path = unquote(urlsplit(self.path).path)
            try:
                token = self.headers.get("Authorization")
                if path.startswith("/api/repos") and token != f"Bearer {TOKEN}":
                    raise RefusalError(401, "Invalid credentials")
                answer, code = hub.answer(self.command, path, body), 200
            except RefusalError as error:
                code, answer = error.args
                if isinstance(answer, str):
                    answer = {"error": answer}
            if isinstance(answer, tuple):
                content, sha = answer
                headers["ETag"] = f'"{hashlib.sha1(content).hexdigest()}"'
                headers["X-Repo-Commit"] = sha
            else:
                content = json.dumps(answer).encode()
                headers["Content-Type"] = "application/json"
            self.send_response(code)
            headers["Content-Length"] = str(len(content))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = _send  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
