"""One engine of scripts/check-clock: a server whose clock jumps."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

binary, faketime, work, database = sys.argv[1:]
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
SECRET = "a-secret-for-clocks"
USERS = "/api/userstore/v2/default/administration/User"
is_embedded = database.startswith("sqlite:")
os.makedirs(work)


def set_clock(offset):
    # a file that is replaced is never read half written
    with open(f"{work}/clock.new", "w") as file:
        file.write(offset)
    os.replace(f"{work}/clock.new", f"{work}/clock")


def ask(method, path, body=None, token=None, kind="application/json"):
    headers = {"content-type": kind} | ({"authorization": f"Bearer {token}"} if token else {})
    data = body.encode() if body is not None else None
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()


def log_in():
    form = {"grant_type": "client_credentials", "client_id": "root", "client_secret": SECRET}
    status, answer = ask("POST", "/connect/token", urllib.parse.urlencode(form), None, "application/x-www-form-urlencoded")
    check("a token is issued", status, 200)
    return json.loads(answer)["access_token"]


def check(what, found, wanted):
    if found != wanted:
        print(f"FAILED  {database}: {what}: {found}, not {wanted}")
        sys.exit(1)


def readiness():
    status, answer = ask("GET", "/health/ready")
    return json.loads(answer)["reason"] if status == 503 else "ready"


def until_ready_is(wanted):
    limit = time.monotonic() + PATIENCE
    while readiness() != wanted and time.monotonic() < limit:
        time.sleep(0.1)
    check("ready", readiness(), wanted)


def create(name, token):
    status, _ = ask("POST", USERS, json.dumps({"loginName": name}), token)
    check(f"{name} is created", status, 201)


configuration = os.environ | {
    "CHANCERY_LISTEN": "127.0.0.1:0",
    "CHANCERY_DATA_DIR": work,
    "CHANCERY_DATABASE": database,
    "CHANCERY_DRAIN": "0",
    "CHANCERY_LOG": "warn",
    "CHANCERY_ROOT_CLIENT_SECRET": SECRET,
}
fake = {
    "LD_PRELOAD": faketime,
    "FAKETIME_TIMESTAMP_FILE": f"{work}/clock",
    "FAKETIME_NO_CACHE": "1",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
}
set_clock("+0")
log = open(f"{work}/server.log", "w")
server = subprocess.Popen([binary], env=configuration | fake, stdout=subprocess.PIPE, stderr=log, text=True)
try:
    base = server.stdout.readline().split()[-1]
    threading.Thread(target=server.stdout.read, daemon=True).start()
    token = log_in()
    create("before", token)
    until_ready_is("ready")

    set_clock("+8d")
    # the database's clock tells that it jumped; where there is none nobody can
    until_ready_is("ready" if is_embedded else "clock")
    check("a token of before", ask("GET", USERS, token=token)[0], 401)
    ahead = log_in()
    create("ahead", ahead)

    set_clock("+0")
    until_ready_is("ready")
    check("a token of the future", ask("GET", USERS, token=ahead)[0], 401)
    create("afterwards", token)
    status, answer = ask("GET", USERS, token=token)
    check("users", sorted(user["loginName"] for user in json.loads(answer)), ["afterwards", "ahead", "before"])
    with open(f"{work}/keys.json", "wb") as keys:
        keys.write(ask("GET", "/.well-known/audit-keys.json")[1])
    trail = f"{work}/trail.jsonl"

    def audit(*words):
        done = subprocess.run([binary, "audit", *words], env=configuration, capture_output=True, text=True)
        check(f"audit {words[0]} {done.stdout}{done.stderr}", done.returncode, 0)

    def exported():
        audit("export", "--store", "default", "--output", trail)
        with open(trail) as lines:
            return sum(line.startswith('{"id":') for line in lines)

    # the trail grows in the background: each user is an entry
    limit = time.monotonic() + PATIENCE
    while exported() < 3 and time.monotonic() < limit:
        os.remove(trail)
        time.sleep(0.1)
    audit("verify", trail, "--keys", f"{work}/keys.json")
    print(f"{database.split(':')[0]:8}  eight days ahead and back: nothing lost, the trail is sound")
finally:
    server.terminate()
    server.wait(20)
