"""Counts the instructions and allocations of requests to a server that runs under callgrind, and compares them with a file.

measure.py PID OUTPUT COUNTS [--update]

OUTPUT is the file to which callgrind dumps; CHANCERY_BASE and CHANCERY_TOKEN are those of the server.
"""

import base64
import http.client
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from browser import Browser
from chancery import administer, first, manage

BASE = os.environ["CHANCERY_BASE"]
CALLBACK = "https://app.example/callback"
PASSWORD = "four lively grey herons"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
USERS = "/api/userstore/v2/default/administration/User"
# Requests before the count, so that caches are filled; rounds, and the requests of each. The cheapest round counts, and rounds are
# short: jobs in the background work during some of them.
WARM, ROUNDS, COUNTED = 30, 12, 10
# The part by which a count may differ. Jobs follow a create, and work on it at different times.
TOLERANCE, TOLERANCE_OF = 0.03, {"create a user": 0.2}
# What allocates memory: for the program by mimalloc, for SQLite and the cryptography by the C library.
ALLOCATORS = {
    "mi_malloc", "mi_malloc_aligned", "mi_zalloc", "mi_zalloc_aligned", "mi_realloc", "mi_realloc_aligned", "malloc", "calloc", "realloc",
}

connection = http.client.HTTPConnection(urlsplit(BASE).netloc, timeout=600)


def send(method, path, body=None, **headers):
    connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 400, (method, path, answer.status, content[:500])
    return answer, content


def admin(method, path, body=None):
    token = f"Bearer {os.environ['CHANCERY_TOKEN']}"
    text = None if body is None else json.dumps(body)
    return send(method, path, text, Authorization=token, Content_Type="application/json")


def form(path, app, **fields):
    pair = base64.b64encode(f"{app['id']}:{app['secret']}".encode()).decode()
    kind = "application/x-www-form-urlencoded"
    return json.loads(send("POST", path, urlencode(fields), Authorization=f"Basic {pair}", Content_Type=kind)[1])


def make_app(**members):
    app = manage("POST", "ClientApp", members)
    return app | {"secret": manage("POST", "ClientAppSecret", {"clientAppId": app["id"]})["secret"]}


def sign_in(app, scope):
    """Signs Ann in by the pages; her cookies and the address of another authorization request."""
    query = {
        "response_type": "code", "client_id": app["id"], "redirect_uri": CALLBACK, "scope": scope, "nonce": "n-1",
        "code_challenge": CHALLENGE, "code_challenge_method": "S256",
    }
    path = "/connect/authorize?" + urlencode(query)
    browser = Browser()
    page = browser.visit(BASE + path)
    page_form = page.form(asking="password")
    # the app is not there: its address ends the walk
    try:
        page = browser.submit(page, page_form, username="ann", password=PASSWORD)
        browser.submit(page, page.form(button=("choice", "later")), choice="later")
    except OSError:
        pass
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.session.cookies), path


def set_up():
    people = [{"loginName": f"user-{number:04}", "firstName": "Ada", "emailAddress": f"u{number}@example.com"} for number in range(500)]
    users = administer("POST", "User/batch", people)
    ann = administer("POST", "User", {"loginName": "ann", "emailAddress": "ann@example.com", "firstName": "Ann"})
    administer("POST", f"User/{ann['id']}/password/reset", {"newPassword": PASSWORD})
    group = administer("POST", "Group", {"name": "herons"})
    administer("PUT", f"Group/{group['id']}/users", {"relatedIds": [ann["id"]]})
    app = make_app(name="app", allowClientCredentialLogin=True, refreshTokens="Session")
    manage("POST", "ClientAppRedirectUri", {"clientAppId": app["id"], "uri": CALLBACK, "redirectUriType": "Login"})
    manage("POST", f"ClientApp/{app['id']}/tenants", {"relatedIds": [first("Tenant", "Default")["id"]]})
    manage("POST", f"IdpInstance/{first('IdpInstance', 'default')['id']}/clientapps", {"relatedIds": [app["id"]]})
    return ann, users, app


def requests():
    """The requests by name, each as a function of the number of the request."""
    ann, users, app = set_up()
    cookie, authorize = sign_in(app, "openid profile email")

    def code():
        answer, _ = send("GET", authorize, Cookie=cookie, Accept="text/html")
        address = answer.getheader("Location") or answer.getheader("Refresh").partition("url=")[2]
        return parse_qs(urlsplit(address).query)["code"][0]

    def redeem():
        return form(
            "/connect/token", app, grant_type="authorization_code", code=code(), redirect_uri=CALLBACK, code_verifier=VERIFIER
        )

    tokens = redeem()
    bearer = f"Bearer {tokens['access_token']}"
    return {
        "read a user": lambda number: admin("GET", f"{USERS}/{users[number]['id']}"),
        "find a user by login name": lambda number: admin("GET", f"{USERS}?filter=loginName%20eq%20%22user-{number:04}%22"),
        "list 50 users": lambda number: admin("GET", f"{USERS}?count=50"),
        "create a user": lambda number: admin("POST", USERS, {"loginName": f"new-{number:04}", "firstName": "Eve"}),
        "client credentials": lambda number: form("/connect/token", app, grant_type="client_credentials"),
        "introspect the token of a person": lambda number: form("/connect/introspect", app, token=tokens["access_token"]),
        "userinfo": lambda number: send("GET", "/connect/userinfo", Authorization=bearer),
        "session to code": lambda number: code(),
        "session to code to tokens": lambda number: redeem(),
        "refresh": lambda number: form("/connect/token", app, grant_type="refresh_token", refresh_token=tokens["refresh_token"]),
    }


def control(pid, *arguments):
    subprocess.run(["callgrind_control", *arguments, pid], check=True, capture_output=True)


def measure(pid, output):
    counts = {}
    sent = requests()
    control(pid, "-i", "on")
    for name, request in sent.items():
        for number in range(WARM):
            request(number)
        dump(pid, output)
        begins = range(WARM, WARM + ROUNDS * COUNTED, COUNTED)
        rounds = [count(pid, output, request, range(begin, begin + COUNTED)) for begin in begins]
        counts[name] = tuple(map(min, zip(*rounds)))
        print("{:>10,} {:>6,}  {}".format(*counts[name], name), flush=True)
    return counts


def count(pid, output, request, numbers):
    """The instructions and allocations of one request, on average."""
    for number in numbers:
        request(number)
    return tuple(total // len(numbers) for total in dump(pid, output))


def dump(pid, output):
    """The instructions and allocations since the last dump."""
    control(pid, "-d", "count")
    dumps = sorted(output.parent.glob(output.name + ".*"), key=lambda file: file.stat().st_mtime_ns)
    text = dumps[-1].read_text()
    for file in dumps:
        file.unlink()
    return int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1]), allocations(text)


def allocations(profile):
    """The calls of allocators, except those that they make themselves. A name is spelt out once in a profile."""
    names, caller, callee, total = {}, "", "", 0
    for line in profile.splitlines():
        if match := re.match(r"(c?fn)=(\(\d+\))(?: (.*))?$", line):
            name = names.setdefault(match[2], match[3] or "")
            if match[1] == "fn":
                caller = name
            else:
                callee = name
        elif line.startswith("calls=") and callee in ALLOCATORS and caller not in ALLOCATORS and not caller.startswith("_mi_"):
            total += int(line.removeprefix("calls=").split()[0])
    return total


def compare(counts, stored):
    failed = False
    for name, both in counts.items():
        before = stored.get(name, (0, 0))
        for count, previous, what in zip(both, before, ("instructions", "allocations")):
            # a few allocations are those of a job
            if abs(count - previous) > max(TOLERANCE_OF.get(name, TOLERANCE) * previous, 3):
                change = f"{(count / previous - 1) * 100:+.1f} %, from {previous:,}" if previous else "has no line"
                print(f"FAILED  {name}: {count:,} {what}, {change}")
                failed = True
    return failed


def main():
    pid, output, file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    counts = measure(pid, output)
    if sys.argv[4:] == ["--update"]:
        file.write_text("".join(f"{name}\t{counts[name][0]}\t{counts[name][1]}\n" for name in counts))
        return
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    sys.exit(compare(counts, {name: (int(count), int(allocated)) for name, count, allocated in lines}))


main()
