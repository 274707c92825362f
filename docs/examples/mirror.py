#!/usr/bin/env python3
"""Mirrors the users of a user store into a file, by list and feed, with the standard library alone.

    CHANCERY_BASE=http://127.0.0.1:8080 CHANCERY_TOKEN=... mirror.py users.json [--once] [--store default]

It may be killed at any time: the file is replaced as a whole, with the cursor up to which it is true. Some events
are read twice then, and none is missed. Where the cursor's history was changed or pruned (410), it takes a full list
and goes on from there.
"""

import argparse
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", help="where the users are kept, with the cursor")
parser.add_argument("--once", action="store_true", help="end when all is read, instead of waiting for more")
parser.add_argument("--store", default="default", help="the user store")
options = parser.parse_args()
base = os.environ["CHANCERY_BASE"]
path = f"/api/userstore/v2/{options.store}/administration"


def get(address):
    """The answer and its headers."""
    request = urllib.request.Request(base + address)
    request.add_header("Authorization", f"Bearer {os.environ['CHANCERY_TOKEN']}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer), answer.headers


def keep(state):
    """Replaces the file: whoever reads it finds the old state or the new one."""
    with open(options.file + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(options.file + ".new", options.file)


def full_list():
    """All users, and the cursor behind which something may have changed meanwhile: that of the first page."""
    users, cursor, address = {}, None, f"{path}/User?count=1000"
    while address:
        page, headers = get(address)
        users.update((user["id"], user) for user in page)
        cursor = cursor or headers["X-Event-Cursor"]
        found = re.search(r'<([^>]*)>; *rel="next"', headers.get("Link") or "")
        address = found and re.sub("^https?://[^/]*", "", found[1])
    return {"cursor": cursor, "users": users}


def follow(state):
    """The state behind the next events; whether there was any."""
    query = {"after": state["cursor"], "count": 1000, "type": "platform.userstore.user.*"}
    query["wait"] = 0 if options.once else 30
    told, _ = get(f"{path}/Event?{urllib.parse.urlencode(query)}")
    for subject in {event["subject"] for event in told["items"]}:
        try:
            state["users"][subject], _ = get(f"{path}/User/{subject}")
        except urllib.error.HTTPError as refusal:
            if refusal.code != 404:
                raise
            state["users"].pop(subject, None)
    return {**state, "cursor": told["next"]}, bool(told["items"]) or told["hasMore"]


try:
    with open(options.file) as file:
        state = json.load(file)
except FileNotFoundError:
    state = full_list()
    keep(state)
while True:
    try:
        state, goes_on = follow(state)
    except urllib.error.HTTPError as refusal:
        if refusal.code != 410:
            raise
        state, goes_on = full_list(), True
    keep(state)
    if options.once and not goes_on:
        break
