"""Proves that the comparison notices faults: between it and the server each is made in turn, and something must differ.

    SCIM_TOKEN=... python faults.py BASE_URL HOME JUDGES_MJS
"""

import os
import re
import sys
from functools import partial

from filters import Filters
from judges import Judges
from opinions import Client, Known, gone, groups_of, people_of
from patches import Patches


def changed(pattern, by):
    return lambda text: re.sub(pattern, by, text, flags=re.IGNORECASE)


# how the server would read a filter
FILTERS = {
    "le is lt": changed(" le ", " lt "),
    "gt is ge": changed(" gt ", " ge "),
    "sw is co": changed(" sw ", " co "),
    "ew is co": changed(" ew ", " co "),
    "ne is eq": changed(" ne ", " eq "),
    "or is and": changed(" or ", " and "),
    "not is lost": changed(r"not \(", "("),
    "and comes after or": changed(r"^(.*) or (.*?) and ", r"(\1 or \2) and "),
    "the element's condition is lost": changed(r'type eq "home"', "type pr"),
    "case counts": changed(r'userName (eq|sw) "user', 'externalId eq "user'),
}


def other_word(word, other):
    return lambda one: one | {"op": changed(word, other)(one["op"])}


def removing(change):
    return lambda one: change(one) if one["op"].lower() == "remove" else one


# how it would read an operation
PATCHES = {
    "add is replace": other_word("add", "replace"),
    "replace is add": other_word("replace", "add"),
    "a filter is lost": removing(lambda one: one | {"path": changed(r"\[.*\]", "")(one["path"])}),
    "a part is the whole": removing(lambda one: one | {"path": changed(r"^name\.\w+", "name")(one["path"])}),
    "remove takes all": removing(lambda one: {"op": one["op"], "path": one["path"]}),
    "false is true": lambda one: one | {"value": True} if one.get("value") is False else one,
}


class Faulty(Client):
    """A server that reads what it gets otherwise."""

    fault = staticmethod(lambda one: one)

    def send(self, method, path, body=None):
        begin, mark, text = path.partition("&filter=")
        if mark:
            path = begin + mark + self.fault(text)
        elif body and "Operations" in body:
            body = body | {"Operations": [self.fault(one) for one in body["Operations"]]}
        return super().send(method, path, body)


def main(base, home, program):
    passed = True
    for asks, faults in ((Filters, FILTERS), (Patches, PATCHES)):
        for about, fault in faults.items():
            client = Faulty(base, os.environ["SCIM_TOKEN"])
            schemas = {one["id"]: one for one in client.must("GET", "/Schemas")["Resources"]}
            people = people_of(client, home)
            groups = groups_of(client, people)
            client.fault = fault
            told = asks(client, home, partial(Judges, program), schemas, Known(asks.KIND, home))
            _, wrong = told.judged(people, groups)
            client.fault = Faulty.fault
            gone(client, people, groups)
            print(f"{'ok     ' if wrong else 'FAILED '} {asks.KIND}: {about}: {len(wrong)} differ", flush=True)
            passed = passed and bool(wrong)
    return passed


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(0 if main(*sys.argv[1:]) else 1)
