"""The processes of two programs on one installation, and the session that sends each request to one of those in use."""

import collections
import contextlib
import os
import random
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from ports import free_port

# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
SECRET = "a-secret-for-two-releases"
# what programs get beside their settings: variables of the check are none of them
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("CHANCERY_")}
# where the redirect URIs of client apps lead: nothing listens there
APP = "http://127.0.0.1:9"
# the first version whose programs serve a newer schema, if they meet its floor
FIRST_WITH_FLOOR = (0, 2, 0)


class Failed(Exception):
    """Something does not hold that must hold."""


def until(what, holds, patience=PATIENCE):
    """Waits until something holds, and returns what it returned."""
    ends = time.monotonic() + patience
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > ends:
            raise Failed(f"after {patience} s it does not hold that {what}")
        time.sleep(0.2)


class Program:
    """A build of the server."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        self.version = self.run(["--version"]).stdout.split()[1]
        numbers = tuple(int(number) for number in re.findall(r"\d+", self.version)[:3])
        self.knows_floor = numbers >= FIRST_WITH_FLOOR

    def run(self, words, **settings):
        """Runs a command to its end."""
        return subprocess.run(
            [self.path, *words],
            env=ENVIRONMENT | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@dataclass
class Installation:
    """What all processes have in common. The master key and the public URL stay, whatever database there is."""

    work: Path
    database: str | None
    url: str = field(default_factory=lambda: f"http://localhost:{free_port()}")

    def __post_init__(self):
        self.key = self.work / "master.key"
        self.key.touch(0o600)
        self.key.write_bytes(os.urandom(32))
        self.started = 0

    def settings(self, folder):
        """The settings of a process with this data folder."""
        settings = {
            "CHANCERY_DATA_DIR": str(folder),
            "CHANCERY_MASTER_KEY_FILE": str(self.key),
            "CHANCERY_PUBLIC_URL": self.url,
            "CHANCERY_ROOT_CLIENT_SECRET": SECRET,
            "CHANCERY_DATABASE_CONNECTIONS": "8",
            "CHANCERY_DRAIN": "0",
            # all people of the load are at one address
            "CHANCERY_PUBLIC_RATE_LIMIT": "off",
            "CHANCERY_FAILED_SIGN_INS": "off",
        }
        return settings if self.database is None else settings | {"CHANCERY_DATABASE": self.database}

    def server(self, program):
        """A process that is not started. An embedded database is in the one data folder."""
        self.started += 1
        folder = self.work / ("data" if self.database is None else f"data-{self.started}")
        folder.mkdir(exist_ok=True)
        return Server(program, self.settings(folder), self.work / f"{self.started}-{program.name}.log")


class Server:
    """A process that serves."""

    def __init__(self, program, settings, log):
        self.program, self.settings, self.log = program, settings, log
        self.base = f"http://127.0.0.1:{free_port()}"
        self.process, self.seconds = None, None

    def begin(self):
        settings = self.settings | {"CHANCERY_LISTEN": self.base.partition("//")[2]}
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [self.program.path, "serve"], env=ENVIRONMENT | settings, stdout=log, stderr=subprocess.STDOUT
            )

    def start(self):
        """Starts it, and waits until it is ready."""
        began = time.monotonic()
        self.begin()
        until(f"{self.program.name} is ready", self.is_ready)
        self.seconds = time.monotonic() - began
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.program.name} does not start: {self.words()}")
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self.base}/health/ready", timeout=PATIENCE).status_code == 200
        return False

    def refused(self, pattern):
        """Starts it, which must be refused with words like the pattern: returns them."""
        self.begin()
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"{self.program.name} starts, and must be refused") from None
        words = self.words()
        if status == 0 or not re.search(pattern, words):
            raise Failed(f"{self.program.name} ends with {status} and without a reason like {pattern}: {words}")
        return next(line for line in words.splitlines() if re.search(pattern, line))

    def stop(self):
        """Ends it as its supervisor does."""
        self.process.terminate()
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.program.name} does not stop") from None
        if status != 0:
            raise Failed(f"{self.program.name} ends with {status}: {self.words()}")

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def words(self):
        """The end of its output."""
        return self.log.read_text(errors="replace")[-2000:]

    def complaints(self, levels=("ERROR",)):
        """Lines of its log with these levels, and of panics."""
        lines = self.log.read_text(errors="replace").splitlines()
        found = [f'"level":"{level}"' for level in levels] + ["panicked at"]
        return [line[:600] for line in lines if any(word in line for word in found)]


class InUse:
    """The servers that get requests, as behind a balancer: which of them answers a request is left to chance."""

    def __init__(self):
        self.servers, self.busy = [], collections.Counter()
        self.changed = threading.Condition()

    def add(self, server):
        with self.changed:
            self.servers.append(server)

    def remove(self, server):
        """Sends it no more requests, and waits until those that it has are answered."""
        with self.changed:
            self.servers.remove(server)
            if not self.changed.wait_for(lambda: self.busy[server] == 0, PATIENCE):
                raise Failed(f"{server.program.name} leaves requests without an answer")

    @contextlib.contextmanager
    def one(self):
        with self.changed:
            server = random.choice(self.servers)
            self.busy[server] += 1
        try:
            yield server
        finally:
            with self.changed:
                self.busy[server] -= 1
                self.changed.notify_all()


class Balanced(HTTPAdapter):
    """Sends what is for the public URL to one of the servers in use, and tells the figures how it was answered."""

    def __init__(self, installation, in_use, figures):
        super().__init__()
        self.installation, self.in_use, self.figures = installation, in_use, figures

    def send(self, request, **more):
        sent = request.copy()
        sent.headers["Host"] = self.installation.url.partition("//")[2]
        with self.in_use.one() as server:
            sent.url = request.url.replace(self.installation.url, server.base, 1)
            began = time.monotonic()
            try:
                answer = super().send(sent, **more | {"timeout": PATIENCE})
                body = answer.content
            except requests.RequestException as error:
                self.figures.failed(server, request, f"no answer: {error}")
                raise Failed(f"{request.method} {request.path_url}: {error}") from None
            self.figures.answered(server, request, time.monotonic() - began)
        if answer.status_code >= 500:
            self.figures.failed(server, request, f"{answer.status_code} {body[:600]}")
        answer.url, answer.request, answer.served_by = request.url, request, server.program.name
        return answer


class Arrived(HTTPAdapter):
    """The page of a client app, to which a sign-in leads back."""

    def send(self, request, **_):
        answer = requests.Response()
        answer.status_code, answer.url, answer.request, answer._content = 200, request.url, request, b""
        return answer


def session(installation, in_use, figures):
    """A client of the servers in use."""
    made = requests.Session()
    made.mount(installation.url, Balanced(installation, in_use, figures))
    made.mount(APP, Arrived())
    return made
