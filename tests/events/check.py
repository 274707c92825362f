"""What programs of others make of this server's events."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import httpx_sse
import jsonschema
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook
from svix.webhooks import Webhook as SvixWebhook

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from ports import free_port

BASE = os.environ["CHANCERY_BASE"]
TOKEN = os.environ["CHANCERY_TOKEN"]
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
WORK = Path(os.environ["WORK"])
ROOT = Path(__file__).parents[2]
STORE = "/api/userstore/v2/default/administration"
SUBSCRIPTIONS = f"{STORE}/EventSubscription"
CHANGES = 150
KILLS = 12


def call(method, path, body=None):
    request = urllib.request.Request(BASE + path, method=method)
    request.add_header("Authorization", f"Bearer {TOKEN}")
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=PATIENCE) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as refusal:
        raise AssertionError(f"{method} {path}: {refusal.read().decode()}") from refusal


def all_users():
    return {user["id"]: user for user in call("GET", f"{STORE}/User")}


def until(what, holds):
    """Waits for what must happen, and says what did not."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        found = holds()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen")


def user(name):
    return call("POST", f"{STORE}/User", {"loginName": name})["id"]


def change_users(chance):
    """Creates, changes and deletes users, in an order that is the same each time."""
    ids = []
    for number in range(CHANGES):
        what = chance.random()
        if what < 0.5 or not ids:
            ids.append(user(f"m{number}"))
        elif what < 0.8:
            one = chance.choice(ids)
            row = call("GET", f"{STORE}/User/{one}")
            body = {"firstName": f"n{number}", "concurrencyToken": row["concurrencyToken"]}
            call("PATCH", f"{STORE}/User/{one}", body)
        else:
            call("DELETE", f"{STORE}/User/{ids.pop(chance.randrange(len(ids)))}")


def mirror(*more):
    command = [sys.executable, ROOT / "docs/examples/mirror.py", WORK / "mirror.json", *more]
    return subprocess.Popen(command)


def check_mirror():
    chance = random.Random(20261123)
    changing = threading.Thread(target=change_users, args=[random.Random(7)])
    changing.start()
    for _ in range(KILLS):
        running = mirror()
        # killed while it reads, writes or waits: when does not matter for what it must hold
        time.sleep(chance.random() * 0.4)
        running.send_signal(signal.SIGKILL)
        running.wait()
    changing.join()
    assert mirror("--once").wait() == 0
    kept = json.loads((WORK / "mirror.json").read_text())["users"]
    assert kept == all_users(), "the mirror shows what the store does not"
    return f"{CHANGES} changes, killed {KILLS} times: {len(kept)} users are the same"


class ReadmeReceiver:
    """The receiver of the README, as it stands there."""

    def __init__(self):
        code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
        (WORK / "receiver.py").write_text(code)
        self.port = free_port()
        self.told = WORK / "receiver.out"

    def start(self, secret):
        with self.told.open("a") as out:
            environment = {**os.environ, "SECRET": secret, "PORT": str(self.port)}
            command = [sys.executable, WORK / "receiver.py"]
            self.running = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.DEVNULL)

        def listens():
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", self.port)) == 0

        until("the receiver listens", listens)

    def stop(self):
        self.running.kill()
        self.running.wait()

    def lines(self):
        return self.told.read_text().splitlines()


def subscribe(url, **more):
    made = call("POST", SUBSCRIPTIONS, {"name": "check", "url": url, **more})
    return made, f"{SUBSCRIPTIONS}/{made['id']}"


def activate(path):
    tested = call("POST", f"{path}/test")
    assert tested["delivered"], tested
    row = call("GET", path)
    return call("PATCH", path, {"isActive": True, "concurrencyToken": row["concurrencyToken"]})


def check_readme_receiver():
    """Break it, mend it, replay."""
    receiver = ReadmeReceiver()
    kind = "platform.userstore.user.created"
    made, path = subscribe(f"http://127.0.0.1:{receiver.port}/", types=[kind])
    receiver.start(made["secret"])
    activate(path)
    first = user("received")
    until("the event arrives", lambda: f"{kind} {first}" in receiver.lines())
    receiver.stop()
    second = user("missed")
    until("the failure is noted", lambda: call("GET", path)["waiting"] == 1)
    receiver.start(made["secret"])
    until("it is tried again", lambda: f"{kind} {second}" in receiver.lines())
    until("nothing waits", lambda: call("GET", path)["waiting"] == 0)
    # one that does not know the secret any more refuses
    receiver.stop()
    receiver.start("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    user("refused")
    until("it is refused", lambda: call("GET", path)["waiting"] == 1)
    receiver.stop()
    receiver.start(made["secret"])
    tries = call("GET", f"{path}/Delivery?filter=count%20gt%200%20and%20type%20eq%20%22{kind}%22")
    replayed = call("POST", f"{path}/replay", {"ids": [tries[0]["event"]]})
    assert replayed == {"count": 1}, replayed
    until("it is replayed", lambda: receiver.lines().count(f"{kind} {first}") == 2)
    receiver.stop()
    call("DELETE", path)
    return "broken, mended, replayed"


class Collector:
    """Keeps requests as they came."""

    def __init__(self):
        collected = self.requests = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collected.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


def refuses(verify):
    try:
        verify()
    except Exception:  # each library has an exception of its own
        return True
    return False


def check_signatures():
    """Foreign verifiers take what is right, and refuse a changed byte, another secret, and a time 400 s old."""
    collector = Collector()
    made, path = subscribe(collector.url, headers={"X-Api-Key": "k"})
    activate(path)
    user("signed")
    until("two events arrive", lambda: len(collector.requests) >= 3)
    renewed = call("POST", f"{path}/secret")["secret"]
    user("signed-twice")
    until("one more arrives", lambda: any(b"user.created" in body for _, body in collector.requests[3:]))
    last, body = collector.requests[-1]
    assert last["x-api-key"] == "k" and last["content-type"] == "application/cloudevents+json"
    for library in (Webhook, SvixWebhook):
        for secret in (made["secret"], renewed):
            library(secret).verify(body, last)
        for headers, text in collector.requests[:3]:
            library(made["secret"]).verify(text, headers)
        headers, text = collector.requests[0]
        assert refuses(lambda: library(made["secret"]).verify(text[:-1] + b" ", headers))
        assert refuses(lambda: library(renewed).verify(text, headers))
        old = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 400)}
        assert refuses(lambda: library(made["secret"]).verify(text, old))
    for headers, text in collector.requests:
        event = from_http_event(HTTPMessage(headers, text))
        assert event.get_type().startswith("platform.") and event.get_time() is not None
        schema_of(json.loads(text)).validate(json.loads(text))
    call("DELETE", path)
    return f"standardwebhooks, svix and cloudevents read {len(collector.requests)} requests"


SCHEMAS = {}


def schema_of(event):
    """What judges an event: the schema to which its `dataschema` leads, at this server."""
    address = event["dataschema"]
    if address not in SCHEMAS:
        schema = call("GET", address[address.index("/schemas/") :])
        assert schema["$id"] == address
        jsonschema.Draft202012Validator.check_schema(schema)
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        SCHEMAS[address] = jsonschema.Draft202012Validator(schema, format_checker=checker)
    return SCHEMAS[address]


def check_feed_envelopes():
    feed = call("GET", f"{STORE}/Event?count=1000")["items"]
    headers = {"content-type": "application/cloudevents+json"}
    for item in feed:
        event = from_http_event(HTTPMessage(headers, json.dumps(item).encode()))
        assert event.get_subject() == item["subject"] and event.get_id() == item["id"]
        schema_of(item).validate(item)
    sequences = [int(item["sequence"]) for item in feed]
    assert sequences == list(range(1, len(feed) + 1)), "positions have a hole"
    broken = {**feed[0], "data": {**feed[0]["data"], "actor": 7}}
    assert refuses(lambda: schema_of(broken).validate(broken))
    return f"cloudevents reads all {len(feed)} of the feed, jsonschema finds {len(SCHEMAS)} types as they say"


def check_stream():
    """A stream goes on behind the last event, by a foreign client."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    query = {"after": "now", "type": "platform.userstore.user.created"}
    address = f"{BASE}{STORE}/Event/stream"
    with httpx.Client(timeout=PATIENCE) as client:
        with httpx_sse.connect_sse(client, "GET", address, params=query, headers=headers) as source:
            first = user("streamed")
            event = next(event for event in source.iter_sse() if event.data)
            assert json.loads(event.data)["subject"] == first and event.retry in (None, 1000)
        second = user("streamed-later")
        headers["Last-Event-ID"] = event.id
        with httpx_sse.connect_sse(client, "GET", address, params=query, headers=headers) as source:
            event = next(event for event in source.iter_sse() if event.data)
            assert json.loads(event.data)["subject"] == second
            assert event.event == "platform.userstore.user.created"
    return "httpx-sse goes on where it was cut"


failed = 0
for check in (check_mirror, check_readme_receiver, check_signatures, check_feed_envelopes, check_stream):
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        print(f"ok      {name}: {check()}", flush=True)
    except Exception as error:
        failed = 1
        traceback.print_exc()
        print(f"FAILED  {name}: {error!r}", flush=True)
sys.exit(failed)
