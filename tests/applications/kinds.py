"""What programs of one ecosystem have in common, and those that sign out or are seen in a way of their own."""

import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from chancery import PATIENCE
from program import HERE, Failed, Program, Shown


class Python(Program):
    """A program that pip installs."""

    ecosystem, package = "Python", ""

    @classmethod
    def version(cls):
        pins = (HERE / cls.name / "requirements.txt").read_text()
        return re.search(rf"^{cls.package or cls.name}==(.+)$", pins, re.MULTILINE | re.IGNORECASE)[1]

    @property
    def python(self):
        return str(self.tools / "python/bin/python")

    def command(self):
        return [self.python, str(self.folder / "app.py")]


class Node(Program):
    """A program that npm installs. It finds packages beside itself, so it runs in its own folder."""

    ecosystem, package = "Node", ""

    @classmethod
    def version(cls):
        pins = json.loads((HERE / cls.name / "package.json").read_text())
        return pins["dependencies"][cls.package or cls.name]

    def prepare(self):
        (self.work / "node_modules").symlink_to(self.tools / "node_modules")
        (self.work / "app.mjs").write_bytes((self.folder / "app.mjs").read_bytes())

    def command(self):
        return ["node", str(self.work / "app.mjs")]


class Go(Program):
    """A program that Go compiles."""

    ecosystem, package = "Go", ""

    @classmethod
    def version(cls):
        pins = (HERE / cls.name / "go.mod").read_text()
        return re.search(rf"{re.escape(cls.package)} v(\S+)", pins)[1]

    def command(self):
        return [str(self.tools / "bin" / self.name)]


class LocalSignOut:
    """A program whose own sign-out leaves the session at the server. One of our own few lines says then that it knows nobody."""

    ends_session = False

    def is_out(self, browser, page):
        return page.text == "Bye"


class InChromium:
    """A program that people see with script alone."""

    # the page that its address after a sign-out leads on to
    landing = None

    def walk(self):
        folder = self.work / "chromium"
        folder.mkdir()
        (folder / "node_modules").symlink_to(Path(os.environ["BROWSER_TOOLS"]) / "node_modules")
        for module in (HERE / "walk.mjs", HERE.parent / "browser/chromium.mjs"):
            (folder / module.name).write_bytes(module.read_bytes())
        person = self.person
        told = {"login": person.login, "password": person.password, "name": person.name, "groups": [*person.groups, *self.ruled_groups]}
        told |= {"site": self.site, "inside": self.inside, "outside": self.outside, "landing": self.landing or self.goodbye}
        told |= {"claims": self.expected_claims, "ruledGroups": self.ruled_groups, "endsSession": self.ends_session}
        done = subprocess.run(
            ["node", str(folder / "walk.mjs")],
            env=os.environ | {"WALK": json.dumps(told)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # each of its waits has a limit of its own
            timeout=10 * PATIENCE,
            check=False,
        )
        for line in done.stdout.splitlines():
            if line.startswith("ok "):
                self.prove(line.removeprefix("ok "), True)
            elif line.startswith("shown "):
                self.seen.append(Shown(**json.loads(line.removeprefix("shown "))))
        if done.returncode != 0:
            raise Failed(done.stdout)


def serve(answer, port=0):
    """Serves what `answer` says of a request, as media type and body, and returns the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            kind, body = answer(self)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
