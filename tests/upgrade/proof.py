"""Compares what was answered with what is there: people, the audit trails, and the feeds of events."""

import collections
import json
import re
from urllib.parse import quote

from load import MANAGEMENT, PEOPLE, Api
from processes import Failed, until

STORE = PEOPLE.removesuffix("/User")
TRAILS = {"default": STORE, "management": MANAGEMENT}
FEEDS = [f"{STORE}/Event", f"{MANAGEMENT}/Event", f"{MANAGEMENT}/SignInEvent"]
# figures that are 0 once the jobs are done
PENDING = ["chancery_events_unplaced", "chancery_audit_unlogged"]
CREATED, UPDATED, DELETED = (f"platform.userstore.user.{word}" for word in ("created", "updated", "deleted"))


def differences(what, answered, found):
    """Fails where two counters differ, and names some of what is missing and some of what is too much."""
    missing, surplus = answered - found, found - answered
    if missing or surplus:
        some = [f"{list(counter.items())[:3]}" for counter in (missing, surplus)]
        raise Failed(
            f"{what}: {missing.total()} that were answered are missing, {surplus.total()} are too much: {' and '.join(some)}"
        )


class Proof:
    """Proves what a load was answered, again and again, and keeps a checkpoint of each trail every time."""

    def __init__(self, load, new):
        self.load, self.new = load, new
        self.work, self.checkpoints, self.verified = load.installation.work, [], 0

    def all(self, exporters, settings):
        """Everything, as the servers in use show it, and exports by these programs."""
        api = Api(self.load.client(), self.load.installation.url)
        api.fetch_token()
        self.people(api)
        until("every event has its position and every entry its leaf", lambda: self.is_settled(api))
        self.feeds(api)
        keys = self.work / "keys.json"
        keys.write_bytes(api.call(200, "GET", "/.well-known/audit-keys.json").content)
        for program in exporters:
            for trail in TRAILS:
                self.trail(program, trail, keys, settings)
        for trail, path in TRAILS.items():
            note = self.work / f"{trail}-{len(self.checkpoints)}.note"
            note.write_bytes(api.call(200, "GET", f"{path}/CustomAuditTrail/checkpoint").content)
            self.checkpoints.append((trail, note))

    def people(self, api):
        """The list has everybody who was not deleted, as last answered, and nobody else of the load."""
        listed = api.call(200, "GET", PEOPLE).json()
        found = collections.Counter((one["id"], one["loginName"], one["firstName"]) for one in listed)
        there = [person for person in self.load.ledger.people if not person.is_deleted]
        answered = collections.Counter((one.id, one.login, one.name) for one in there)
        differences("people", answered, found)

    @staticmethod
    def is_settled(api):
        figures = dict(re.findall(r"^(\w+) (\d+)$", api.call(200, "GET", "/metrics").text, re.MULTILINE))
        return all(figures.get(name) == "0" for name in PENDING)

    def answered(self):
        """How often each person was created, changed and deleted."""
        counts = collections.Counter()
        for person in self.load.ledger.people:
            counts[person.id, CREATED] += 1
            counts[person.id, UPDATED] += person.changes
            counts[person.id, DELETED] += person.is_deleted
        return +counts

    def feeds(self, api):
        """Every feed is without a hole, and that of the store tells each change once."""
        for path in FEEDS:
            events = self.read(api, path)
            places = [int(event["sequence"]) for event in events]
            holes = sum(later != earlier + 1 for earlier, later in zip(places, places[1:]))
            if holes or not places:
                raise Failed(f"{path} has {len(places)} events and {holes} holes")
            if path == FEEDS[0]:
                told = collections.Counter(
                    (event["subject"], event["type"])
                    for event in events
                    if event["type"] in (CREATED, DELETED)
                    or (event["type"] == UPDATED and "firstName" in event["data"]["changed"])
                )
                differences("events", self.answered(), told)
                self.events = len(events)

    @staticmethod
    def read(api, path):
        events, after = [], ""
        while True:
            piece = api.call(200, "GET", f"{path}?count=1000{after}").json()
            events += piece["items"]
            if not piece["hasMore"]:
                return events
            after = f"&after={quote(piece['next'])}"

    def trail(self, program, trail, keys, settings):
        """An export is sound, goes on from every checkpoint that was kept, and has an entry of each change."""
        file = self.work / f"{trail}.jsonl"
        output = ["--output", str(file)]

        def export():
            file.unlink(missing_ok=True)
            done = program.run(["audit", "export", "--store", trail, *output], **settings)
            if done.returncode != 0:
                raise Failed(f"{program.name} does not export {trail}: {done.stdout[-1000:]}")
            return trail != "default" or self.entries(file).total() >= self.answered().total()

        until(f"the newest checkpoint of {trail} covers what was answered", export)
        kept = [note for of, note in self.checkpoints if of == trail]
        for note in [None, *kept]:
            against = [] if note is None else ["--checkpoint", str(note)]
            done = self.new.run(["audit", "verify", str(file), "--keys", str(keys), *against])
            if done.returncode != 0:
                raise Failed(f"the export of {trail} by {program.name} is not sound: {done.stdout[-1000:]}")
            self.verified += 1
        if trail == "default":
            differences(f"entries in the export by {program.name}", self.answered(), self.entries(file))

    @staticmethod
    def entries(file):
        """How often the trail has each person created, given another first name, and deleted."""

        def name(content):
            return content and json.loads(content)["firstName"]

        counts = collections.Counter()
        with open(file, encoding="utf-8") as lines:
            for entry in map(json.loads, lines):
                if entry.get("area") != "User" or entry.get("category") != "DatabaseRecordChange":
                    continue
                before, after = (name(entry[content]) for content in ("originalContent", "currentContent"))
                if entry["action"] == "Added":
                    counts[entry["primaryKey"], CREATED] += 1
                elif entry["action"] == "Deleted":
                    counts[entry["primaryKey"], DELETED] += 1
                elif before != after:
                    counts[entry["primaryKey"], UPDATED] += 1
        return counts
