"""Compares what a SCIM server finds and what its patches make with what libraries of others say of the same.

    SCIM_TOKEN=... python opinions.py BASE_URL HOME JUDGES_MJS

Filters and patches are made by chance from a fixed seed. Where the server and a library differ, differences.json says
why, or it fails. What is said there and did not happen fails too: the list says how things are.
"""

import json
import os
import random
import re
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from flows import Server

from filters import Filters
from judges import Judges
from patches import Patches
from people import person

LISTED = json.loads(Path(__file__).with_name("differences.json").read_text(encoding="utf-8"))
PEOPLE = 30
# of what is wrong so much is told
MOST_TOLD = 20


class Client:
    """A server, asked in JSON."""

    def __init__(self, base, token):
        self.server = Server(base, token)

    def send(self, method, path, body=None):
        status, _, text = self.server.send(method, path, body, {})
        return status, json.loads(text) if text else None

    def must(self, method, path, body=None):
        status, answer = self.send(method, path, body)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {answer}")
        return answer


class Known:
    """The differences of one kind that are explained, at a home."""

    def __init__(self, kind, home):
        self.listed = [one for one in LISTED[kind] if home in one.get("homes", [home])]
        self.readings = [one for one in LISTED["readings"] if one["of"] == kind and home in one.get("homes", [home])]
        self.happened = set()

    def explains(self, judge, **about):
        """Whether an entry explains this; each that does has happened."""
        fitting = {index for index, one in enumerate(self.listed) if fits(one, judge, about)}
        self.happened |= fitting
        return bool(fitting)

    def stale(self):
        return [one["why"] for index, one in enumerate(self.listed) if index not in self.happened]


def fits(entry, judge, about):
    is_of = re.fullmatch(entry.get("judge", ".*"), judge)
    return is_of and all(name not in entry or re.search(entry[name], text) for name, text in about.items())


def people_of(client, home):
    """The people that are asked about. A mark tells them from those of another time, whose names stay taken."""
    for time in range(100):
        made = made_people(client, home, f"-{time:02}")
        if len(made) == PEOPLE:
            return made
        gone(client, made, [])
    raise SystemExit("all names are taken")


def made_people(client, home, mark):
    """The ids of the people with this mark: not all where a name is taken."""
    chance, made = random.Random(20261124), []
    for number in range(PEOPLE):
        status, answer = client.send("POST", "/Users", person(chance, number, mark, home))
        if status == 409:
            break
        if status != 201:
            raise SystemExit(f"POST /Users: {status} {answer}")
        made.append(answer["id"])
    return made


def groups_of(client, people):
    """Two groups, with people in both."""
    bodies = [
        {"displayName": f"Opinions {people[at]}", "members": [{"value": one} for one in people[at : at + 6]]}
        for at in (0, 3)
    ]
    return [client.must("POST", "/Groups", body)["id"] for body in bodies]


def gone(client, people, groups):
    for one in people:
        client.must("DELETE", f"/Users/{one}")
    for one in groups:
        client.must("DELETE", f"/Groups/{one}")


def main(base, home, program):
    client = Client(base, os.environ["SCIM_TOKEN"])
    schemas = {one["id"]: one for one in client.must("GET", "/Schemas")["Resources"]}
    people = people_of(client, home)
    groups = groups_of(client, people)
    passed = True
    for asks in (Filters, Patches):
        known = Known(asks.KIND, home)
        comparison = asks(client, home, partial(Judges, program), schemas, known)
        told, wrong = comparison.judged(people, groups)
        wrong += [f"is explained, and did not happen: {why}" for why in known.stale() + comparison.stale()]
        for one in wrong[:MOST_TOLD]:
            print(f"        {one}")
        if len(wrong) > MOST_TOLD:
            print(f"        and {len(wrong) - MOST_TOLD} more")
        print(f"{'FAILED ' if wrong else 'ok     '} {asks.KIND}: {told}", flush=True)
        passed = passed and not wrong
    gone(client, people, groups)
    return passed


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(0 if main(*sys.argv[1:]) else 1)
