"""What the server finds by filters, and what others find."""

import random
from collections import Counter

from grammar import Grammar
from judges import NoOpinion
from readings import read

SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
COUNT = 450
# each library has an opinion on one filter of so many at least
FEWEST = 4
# what chance does not bring each time
ALWAYS = {
    "store": [
        "groups.value eq null",
        "title eq null",
        'id eq "nobody"',
        "emails.value eq null",
        'name.givenName eq "Back\\\\slash"',
    ]
}


class Filters:
    """Filters by chance, each asked of the server and of the libraries."""

    KIND = "filters"

    def __init__(self, client, home, judges, schemas, known):
        self.client, self.home, self.judges, self.schemas, self.known = client, home, judges, schemas, known
        self.last = None

    def judged(self, people, groups):
        """How it is told, and what is wrong."""
        listed = self.client.must("GET", "/Users?count=1000")["Resources"]
        # in the order of their making, which is the same each time, as ids are not
        resources = sorted((one for one in listed if one["id"] in people), key=lambda one: people.index(one["id"]))
        grammar = Grammar(random.Random(20261125), self.home, resources, people + groups)
        spelt = [grammar.filter() for _ in range(COUNT)] + [(one, one) for one in ALWAYS.get(self.home, [])]
        question = (self.schemas, resources, [plain for _, plain in spelt])
        schemas, seen, filters = read(self.known.readings, question)
        opinions = self.judges(schemas).find(filters, seen)
        names = {one["id"]: one["userName"] for one in resources}
        found = [self.found(sent, people) for sent, _ in spelt]
        wrong, agreed, silent = [], Counter(), 0
        for (sent, plain), ours, told in zip(spelt, found, opinions, strict=True):
            for judge, theirs in told.items():
                if ours == theirs:
                    agreed[judge] += 1
                elif isinstance(theirs, NoOpinion) and judge != "scim2-models":
                    silent += 1
                elif not self.known.explains(judge, filter=plain):
                    wrong.append(f"{judge}: {sent}\n            {difference(judge, ours, theirs, names)}")
        few = [judge for judge in opinions[0] if agreed[judge] < COUNT / FEWEST]
        wrong += [f"{judge} has an opinion on {agreed[judge]} filters alone" for judge in few]
        self.last = question, found, [one["scim2-models"] for one in opinions]
        return f"{len(filters)} of {len(resources)} people: {agreed.total()} opinions agree, {silent} are none", wrong

    def found(self, text, people):
        """The ids that the server finds, or how it refuses the filter."""
        if "&" in text:
            body = {"schemas": [SEARCH], "filter": text, "count": 1000}
            status, answer = self.client.send("POST", "/Users/.search", body)
        else:
            status, answer = self.client.send("GET", f"/Users?count=1000&filter={text}")
        if status != 200:
            return f"{status} {answer.get('scimType')}"
        return {one["id"] for one in answer.get("Resources", []) if one["id"] in people}

    def stale(self):
        """The readings without which nothing would differ."""
        question, found, opinions = self.last
        stale = []
        for one in self.known.readings:
            schemas, seen, filters = read([other for other in self.known.readings if other is not one], question)
            without = self.judges(schemas).models_find(filters, seen)
            if not any(ours == told != other for ours, told, other in zip(found, opinions, without, strict=True)):
                stale.append(one["why"])
        return stale


def difference(judge, ours, theirs, names):
    def shown(ids):
        return ", ".join(sorted(names.get(one, one) for one in ids)) or "nobody"

    if isinstance(theirs, NoOpinion) or isinstance(ours, str):
        return f"{judge}: {theirs if isinstance(theirs, NoOpinion) else shown(theirs)}; the server: {ours}"
    return f"the server alone finds {shown(ours - theirs)}; {judge} alone {shown(theirs - ours)}"
