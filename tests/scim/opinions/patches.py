"""What patches make of users and groups here, and what others make of the same."""

import json
import random

from judges import PATCH, NoOpinion
from operations import Operations
from people import ENTERPRISE
from plainly import elements, is_said, plainly

USERS = 12
REQUESTS = {"Users": 280, "Groups": 60}
# what chance does not bring each time, one request each for the first user
ALWAYS = {
    "store": [
        [
            {"op": "replace", "path": "addresses", "value": [{"locality": "A"}, {"locality": "B"}]},
            {"op": "replace", "path": 'addresses[locality eq "A"].locality', "value": "B"},
        ],
        [
            {"op": "replace", "path": "emails", "value": [{"value": "a@example.com", "type": "work", "display": "A"}]},
            {"op": "add", "path": "emails", "value": [{"value": "b@example.com", "type": "home"}]},
            {"op": "remove", "path": 'emails[type eq "work"].value'},
        ],
        [
            {"op": "replace", "path": "roles", "value": [{"value": "A", "type": "x"}, {"value": "B", "type": "x"}]},
            {"op": "replace", "path": 'roles[type eq "x"].primary', "value": True},
        ],
        [
            {"op": "replace", "path": "ims", "value": [{"value": "A", "type": "home", "primary": True}]},
            {"op": "add", "path": 'ims[type eq "x"].primary', "value": True},
        ],
    ]
}
# what the server alone writes
OWN = ("meta", "schemas", "groups")


class Patches:
    """Patches by chance, one after another, each sent to the server and done by the libraries on what was there."""

    KIND = "patches"

    def __init__(self, client, home, judges, schemas, known):
        self.client, self.home, self.known = client, home, known
        self.judges = judges(schemas)
        self.last = None

    def judged(self, people, groups):
        """How it is told, and what is wrong."""
        operations = Operations(random.Random(20261127), self.home, people)
        sent = [
            one
            for kind, ids in (("Users", people[:USERS]), ("Groups", groups))
            for one in self.sent(operations, kind, ids)
        ]
        readings = [one["reading"] for one in self.known.readings]
        opinions = self.judges.patch([(before, self.plainly(readings, before, asked)) for before, asked, _ in sent])
        wrong, agreed = [], 0
        for (before, asked, after), told in zip(sent, opinions, strict=True):
            by = json.dumps(asked, ensure_ascii=False)
            for name in twice(after):
                if not self.known.explains("the server", attribute=f"twice: {name}", operations=by, made=""):
                    wrong.append(f"the server: {name} has equal elements by {by}\n            {shown(after, name)}")
            for judge, theirs in told.items():
                differ = self.differing(readings, after, theirs)
                agreed += not differ
                for name, difference in differ.items():
                    made = " or ".join(shown(one, name) for one in (after, theirs) if isinstance(one, dict))
                    if not self.known.explains(judge, attribute=name, operations=by, made=made):
                        wrong.append(f"{judge}: {name} of {shown(before, name)} by {by}\n            {difference}")
        self.last = readings, sent
        refused = sum(isinstance(after, str) for _, _, after in sent)
        return f"{len(sent)} requests, {refused} refused: {agreed} opinions agree", wrong

    def sent(self, operations, kind, ids):
        """What was there before each request, its operations, and what became of it."""
        paths = [f"/{kind}/{one}" for one in ids]
        now = {path: self.client.must("GET", path) for path in paths}
        fixed = ALWAYS.get(self.home, []) if kind == "Users" else []
        for number in range(REQUESTS[kind] + len(fixed)):
            is_chance = number < REQUESTS[kind]
            path = paths[number % len(paths) if is_chance else 0]
            before = now[path]
            asked = operations.some(before) if is_chance else fixed[number - REQUESTS[kind]]
            body = {"schemas": [PATCH], "Operations": [operations.spelt(one) for one in asked]}
            status, after = self.client.send("PATCH", path, body)
            if status == 200:
                now[path] = after
                yield as_written(before), asked, as_written(after)
            else:
                yield as_written(before), asked, f"{status} {after.get('scimType')}: {after.get('detail')}"

    def plainly(self, readings, before, asked):
        return plainly(readings, self.judges.try_patch, before, asked)

    def stale(self):
        """The readings without which nothing would differ."""
        readings, sent = self.last
        stale = []
        for entry in self.known.readings:
            without = [one for one in readings if one != entry["reading"]]
            if not any(
                self.differing(without, after, self.judges.try_patch(before, self.plainly(without, before, asked)))
                and not self.differing(
                    readings, after, self.judges.try_patch(before, self.plainly(readings, before, asked))
                )
                for before, asked, after in sent
            ):
                stale.append(entry["why"])
        return stale

    def differing(self, readings, ours, theirs):
        """The attributes that differ, and how; `request` where one of them refuses it."""
        if isinstance(ours, str) or isinstance(theirs, NoOpinion):
            if isinstance(ours, str) and isinstance(theirs, NoOpinion):
                return {}
            return {"request": f"the server: {outcome(ours)}; else: {outcome(theirs)}"}
        ours, theirs = self.attributes(["once"] if "once" in readings else [], ours), self.attributes(readings, theirs)
        names = sorted(ours.keys() | theirs.keys())
        return {
            name: f"the server has {shown(ours, name)}, else {shown(theirs, name)}"
            for name in names
            if ours.get(name) != theirs.get(name)
        }

    def attributes(self, readings, resource):
        """The attributes with a value, those of an extension behind its URN; elements in an order of their own."""
        made = {}
        for name, value in resource.items():
            if name.startswith("urn:"):
                made |= {f"{name}:{inner}": kept(readings, inner, one) for inner, one in (value or {}).items()}
            elif name not in OWN:
                made[name] = kept(readings, name, value)
        if self.home == "provider" and "userName" in resource:
            # joined from the name
            made.pop("displayName", None)
        return {name: value for name, value in made.items() if value not in (None, "", [], {})}


def twice(resource):
    """The attributes of which the server has equal elements."""
    many = (
        {name: value for name, value in resource.items() if isinstance(value, list)}
        if isinstance(resource, dict)
        else {}
    )
    return [name for name, value in many.items() if any(one in value[:at] for at, one in enumerate(value))]


def outcome(told):
    return "done" if isinstance(told, dict) else told


def kept(readings, name, value):
    if isinstance(value, list):
        found = elements(readings, [kept(readings, name, one) for one in value])
        if "contents" in readings:
            found = [one for one in found if is_said(one)]
        return sorted(found, key=lambda one: json.dumps(one, sort_keys=True))
    if not isinstance(value, dict):
        return value
    # formatted is joined, and what is not primary may say so
    return {
        part: one
        for part, one in value.items()
        if one not in (None, False, "") and (part, name) != ("formatted", "name")
    }


def as_written(resource):
    """The resource with members and manager as they are written: by their ids."""
    made = dict(resource)
    if "members" in made:
        made["members"] = [{"value": one["value"]} for one in made["members"]]
    if "manager" in made.get(ENTERPRISE, {}):
        made[ENTERPRISE] = made[ENTERPRISE] | {"manager": {"value": made[ENTERPRISE]["manager"]["value"]}}
    return made


def shown(resource, name):
    return json.dumps(resource.get(name), ensure_ascii=False)
