#!/usr/bin/env python3
"""Mirrors the users of a user store into a file, by list and feed, with the standard library alone.

    CHANCERY_BASE=http://127.0.0.1:8080 CHANCERY_TOKEN=... mirror.py users.json [--once] [--store default]

It can be killed at any time: the file is replaced atomically, together with the cursor that its state corresponds to. Then
some events are read twice, and none is missed. If the history of the cursor was changed or pruned (410), it reads a full
list and continues from there.
"""

import argparse
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", help="the file with the users and the cursor")
parser.add_argument("--once", action="store_true", help="end after the last event instead of waiting for more")
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


def save(state):
    """Replaces the file atomically: a reader gets the old state or the new one."""
    with open(options.file + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(options.file + ".new", options.file)


def full_list():
    """All users, and the cursor of the first page: users may have changed after it."""
    users, cursor, address = {}, None, f"{path}/User?count=1000"
    while address:
        page, headers = get(address)
        users.update((user["id"], user) for user in page)
        cursor = cursor or headers["X-Event-Cursor"]
        found = re.search(r'<([^>]*)>; *rel="next"', headers.get("Link") or "")
        address = found and re.sub("^https?://[^/]*", "", found[1])
    return {"cursor": cursor, "users": users}


def follow(state):
    """The state after the next events, and whether more may follow."""
    query = {"after": state["cursor"], "count": 1000, "type": "platform.userstore.user.*"}
    query["wait"] = 0 if options.once else 30
    answer, _ = get(f"{path}/Event?{urllib.parse.urlencode(query)}")
    for subject in {event["subject"] for event in answer["items"]}:
        try:
            state["users"][subject], _ = get(f"{path}/User/{subject}")
        except urllib.error.HTTPError as refusal:
            if refusal.code != 404:
                raise
            state["users"].pop(subject, None)
    return {**state, "cursor": answer["next"]}, bool(answer["items"]) or answer["hasMore"]


try:
    with open(options.file) as file:
        state = json.load(file)
except FileNotFoundError:
    state = full_list()
    save(state)
while True:
    try:
        state, has_more = follow(state)
    except urllib.error.HTTPError as refusal:
        if refusal.code != 410:
            raise
        state, has_more = full_list(), True
    save(state)
    if options.once and not has_more:
        break
