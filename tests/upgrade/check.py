"""Runs a release and this program on one installation: beside each other, back to the release, and on again.

    python check.py RELEASE OLD NEW WORK [DATABASE]

RELEASE names the release in what is printed, OLD and NEW are the programs, WORK is an empty folder. DATABASE is an empty database of
PostgreSQL; without it the database is embedded.
"""

import shutil
import signal
import sys
import time
from pathlib import Path

from load import SHOWN, Figures, Load
from processes import Failed, Installation, InUse, Program
from proof import Proof

# how long each stage has load, in seconds, and how many callers
SECONDS, CALLERS = 12, 4
# what a program says that is refused
NEWER_SCHEMA = r"its schema has version \d+, and this program knows up to \d+"
IN_USE = "is in use: another server holds its lock"


def nothing():
    pass


class Check:
    """The stages of one engine."""

    def __init__(self, release, old, new, work, database=None):
        self.old, self.new = Program(release, old), Program("this", new)
        self.installation, self.in_use = Installation(Path(work), database), InUse()
        self.load = Load(self.installation, self.in_use, Figures(), CALLERS)
        self.proof = Proof(self.load, self.new)
        self.stages, self.servers, self.is_migrated = [], [], False

    def server(self, program):
        server = self.installation.server(program)
        self.servers.append(server)
        return server

    def begin(self, program):
        """Starts a process and sends it requests."""
        server = self.server(program).start()
        self.is_migrated |= program is self.new
        self.in_use.add(server)
        print(f"        {program.name} is ready after {server.seconds:.1f} s", flush=True)
        return server

    def end(self, server):
        """Sends a process no more requests, and stops it."""
        self.in_use.remove(server)
        server.stop()

    def refused(self, program, why):
        words = self.server(program).refused(why)
        print(f"ok      {program.name} is refused: {words[:200]}", flush=True)

    def stage(self, name, meanwhile=nothing):
        """Load, something that is done meanwhile, and then the proof of all that was answered."""
        began = time.monotonic()
        self.stages.append(name)
        self.load.run(name, SECONDS, meanwhile)
        self.prove()
        people = len(self.load.ledger.people)
        print(f"ok      {name}: {people} people, {self.proof.events} events, {time.monotonic() - began:.0f} s", flush=True)

    def prove(self):
        # what the proof asks for is in no stage
        self.load.figures.stage = "proof"
        # a release that knows no floor opens no newer schema; one that is not migrated is opened by no newer program
        exporters = [self.new] if self.is_migrated else [self.old]
        if self.is_migrated and self.old.knows_floor:
            exporters.append(self.old)
        self.proof.all(exporters, self.servers[0].settings)

    def beside(self):
        """On PostgreSQL: processes of both programs."""
        old, new = self.begin(self.old), None
        self.load.prepare()
        self.stage(f"{self.old.name} alone")

        def upgrade():
            nonlocal new
            new = self.begin(self.new)

        self.stage("this beside it, which migrates", upgrade)
        self.stage(f"back to {self.old.name}", lambda: self.end(new))
        if self.old.knows_floor:

            def restart():
                nonlocal old
                newer = self.begin(self.old)
                self.end(old)
                old = newer

            self.stage(f"{self.old.name} started again", restart)
        else:
            self.refused(self.old, NEWER_SCHEMA)
        self.stage("this beside it again", upgrade)
        self.stage("this alone", lambda: self.end(old))
        self.end(new)

    def in_turn(self):
        """On SQLite: one process owns the database."""
        old = self.begin(self.old)
        self.load.prepare()
        self.stage(f"{self.old.name} alone")
        self.refused(self.new, IN_USE)
        self.end(old)
        kept, before = self.installation.work / "kept", self.load.copy()
        shutil.copytree(self.installation.work / "data", kept)
        new = self.begin(self.new)
        self.stage("this, which migrated")
        self.refused(self.old, IN_USE)
        self.end(new)
        if not self.old.knows_floor:
            # the way back is the copy from before the upgrade
            self.refused(self.old, NEWER_SCHEMA)
            shutil.rmtree(self.installation.work / "data")
            kept.rename(self.installation.work / "data")
            self.load, self.is_migrated = before, False
            self.proof = Proof(self.load, self.new)
        old = self.begin(self.old)
        self.prove()
        self.stage(f"back to {self.old.name}")
        self.end(old)
        new = self.begin(self.new)
        self.stage("this again")
        self.end(new)

    def table(self):
        rows = [["stage", "program", *SHOWN, "slowest"]]
        for stage in self.stages:
            rows += filter(None, (self.load.figures.row(stage, program.name) for program in (self.old, self.new)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())

    def run(self):
        try:
            if self.installation.database is None:
                self.in_turn()
            else:
                self.beside()
            complaints = [line for server in self.servers for line in server.complaints()]
            if complaints:
                raise Failed("\n".join(["the logs tell of errors:", *complaints[:10]]))
        except Failed as failure:
            print(f"FAILED  {self.stages[-1:]}: {failure}", flush=True)
            for server in self.servers:
                print(f"        the log of {server.log.stem}:", *server.complaints(("WARN", "ERROR"))[-20:], sep="\n  ")
            return 1
        finally:
            for server in self.servers:
                server.kill()
            self.table()
        people, proof = len(self.load.ledger.people), self.proof
        print(f"{people} people, {proof.events} events and {proof.verified} verified exports: nothing is lost")
        return 0


if __name__ == "__main__":
    # its processes end with it, also where somebody ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(Check(*sys.argv[1:]).run())
