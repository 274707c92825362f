"""A stock program: how it is started and ended, and the walk of a person through it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from browser import Browser
from chancery import BASE, PATIENCE, RULES, make_app

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from ports import free_port

HERE = Path(__file__).parent
# the button of the page that offers a passkey, and that of the page that asks whether to sign out
LATER, SIGN_OUT = ("choice", "later"), ("decision", "allow")
# seconds that a program has to end by itself
END = 10
# the most pages between a password and the program
MOST_PAGES = 3


class Failed(Exception):
    """Something does not hold."""


def wait_until(what, holds):
    """Waits for what must happen."""
    limit = time.monotonic() + PATIENCE
    while not (held := holds()):
        if time.monotonic() > limit:
            raise Failed(f"{what}: not within {PATIENCE} s")
        time.sleep(0.1)
    return held


@dataclass
class Shown:
    """What a program shows of the person who is signed in: the name as it has it, its groups, and other claims."""

    name: str | None
    groups: list
    claims: dict = field(default_factory=dict)


class Program:
    """What all programs have in common; what differs is in programs.py. Paths are relative to the program's site."""

    # its folder here, and where its packages come from
    name, ecosystem = "", ""
    # what is registered: where it gets the answer, and where it is led to after a sign-out
    callback, goodbye = "/callback", None
    is_public = False
    # the page that only those see who are signed in, and the one that signs out
    inside, outside = "/", "/logout"
    # whether its own sign-out ends the session at the server, too
    ends_session = True
    # whether it can show a claim of any name
    reads_claims = True
    # what it adds itself to the claims that it shows, and what is different after each sign-in
    own_members = frozenset()
    # whether it is set to ask the UserInfo endpoint, where that is a setting: for ID tokens that tell no names
    asks_userinfo = False
    # whether it takes no issuer with http, not even at this machine
    wants_https = False

    def __init__(self, tools, work, person, port=None):
        self.tools, self.work, self.person = Path(tools), Path(work), person
        self.port = port or free_port()
        self.site = f"http://localhost:{self.port}"
        self.app = None
        # what was proven, and what it showed
        self.proven, self.seen = [], []
        self.running = []
        self.folder = HERE / self.name
        self.expect(RULES)

    # What programs differ in.

    @classmethod
    def version(cls):
        """The version that is pinned, as a word."""
        raise NotImplementedError

    def command(self):
        """The program with its arguments."""
        raise NotImplementedError

    def environment(self):
        """What it reads of the environment beside what all do."""
        return {}

    def prepare(self):
        """Done before it starts, such as writing a file."""

    def begin(self, browser):
        """Asks for the page inside; somebody who is not signed in ends at the server's page."""
        return browser.visit(self.site + self.inside)

    def shown(self, browser):
        """What the program shows. A program of our own few lines shows JSON."""
        page = browser.visit(self.site + self.inside)
        if page.json is None:
            raise Failed(f"a page of the program: {page}")
        told = page.json()
        return Shown(told.get("name"), told.get("groups") or [], told["claims"])

    def leave(self, browser):
        """Signs out at the program."""
        return browser.visit(self.site + self.outside)

    def expected_name(self):
        """The name that it shows by its usual settings."""
        return self.person.name

    def expect(self, ruled):
        """Expects what claim rules add: a group, and another claim where the program reads any."""
        self.ruled_groups = [value for name, value in ruled.items() if name == "groups"]
        self.expected_claims = {name: value for name, value in ruled.items() if name != "groups" and self.reads_claims}

    # What programs have in common.

    def register(self, suffix, **more):
        redirects = {"Login": self.site + self.callback}
        if self.goodbye is not None:
            redirects["Logout"] = self.site + self.goodbye
        self.app = make_app(f"{self.name} {suffix}", redirects, self.is_public, **more)

    def start(self):
        self.work.mkdir(parents=True, exist_ok=True)
        self.prepare()
        told = {
            "ISSUER": BASE,
            "CLIENT_ID": self.app.id,
            "CLIENT_SECRET": self.app.secret or "",
            "SITE": self.site,
            "PORT": str(self.port),
            "FOLDER": str(self.work),
            "HOME": str(self.work),
        }
        self.run(self.command(), told | self.environment())
        self.await_port(self.port)

    def run(self, command, more):
        """Starts a process whose output is kept."""
        # what the check itself is told is nothing that a program should know
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CHANCERY_")}
        with open(self.work / "output", "ab") as output:
            self.running.append(
                subprocess.Popen(
                    command,
                    cwd=self.work,
                    env=kept | more,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # it is ended with all that it started
                    start_new_session=True,
                )
            )

    def await_port(self, port):
        def listens():
            for one in self.running:
                if one.poll() is not None:
                    raise Failed(f"it ended with {one.returncode} before it listened")
            with socket.socket() as knocking:
                return knocking.connect_ex(("127.0.0.1", port)) == 0

        wait_until(f"it listens at {port}", listens)

    def stop(self):
        for one in self.running:
            one.terminate()
            try:
                one.wait(timeout=END)
            except subprocess.TimeoutExpired:
                pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    def log(self):
        """What it said, shown where something failed."""
        file = self.work / "output"
        return file.read_text(errors="replace") if file.exists() else ""

    def prove(self, what, holds, detail=""):
        if not holds:
            raise Failed(f"{what}: {detail}")
        self.proven.append(what)
        print(f"ok      {self.name}: {what}", flush=True)

    def walk(self):
        """Signs in, looks, signs out, and comes back."""
        browser = Browser()
        self.come_in(browser, "a person signs in")
        self.look(browser)
        self.leave_for_good(browser)
        if self.ends_session:
            self.come_in(browser, "the password is asked for again, and the person comes back")
        else:
            page = self.begin(browser)
            self.prove("the person comes back without a password", page.is_at(self.site), page)
        self.prove("the name is shown again", self.see(browser).name == self.expected_name())

    def come_in(self, browser, what):
        page = self.begin(browser)
        form = page.form(asking="password")
        if not page.is_at(BASE) or form is None:
            raise Failed(f"no page of the server asks for the password: {page}\n{browser.trail}")
        page = browser.submit(page, form, username=self.person.login, password=self.person.password)
        for _ in range(MOST_PAGES):
            offer = page.form(button=LATER)
            if offer is None:
                break
            page = browser.submit(page, offer, **dict([LATER]))
        self.prove(what, page.is_at(self.site) and page.status == 200, f"{page}\n{browser.trail}")

    def see(self, browser):
        self.seen.append(self.shown(browser))
        return self.seen[-1]

    def look(self, browser):
        shown = self.see(browser)
        self.prove("the name is shown", shown.name == self.expected_name(), shown)
        self.prove("the groups arrive", sorted(shown.groups) == sorted([*self.person.groups, *self.ruled_groups]), shown)
        for group in self.ruled_groups:
            self.prove(f"the group {group} of a rule arrives at the program", group in shown.groups, shown)
        self.look_at_claims(shown.claims)

    def look_at_claims(self, claims, place="program"):
        for name, value in self.expected_claims.items():
            self.prove(f"the claim {name} of a rule arrives at the {place}", claims.get(name) in (value, [value]), claims)

    def leave_for_good(self, browser):
        page = self.leave(browser)
        asks = page.form(button=SIGN_OUT)
        if page.is_at(BASE) and asks:
            page = browser.submit(page, asks, **dict([SIGN_OUT]))
        if self.goodbye is not None:
            expected = (self.site + self.goodbye).rstrip("/")
            back = page.address.partition("?")[0].rstrip("/")
            self.prove("the person is led back after the sign-out", back == expected and page.status == 200, page)
        self.prove("the person is signed out", self.is_out(browser, page), page)

    def is_out(self, browser, page):
        """Whether the program knows nobody any more."""
        return self.ends_session or page.is_at(self.site)
