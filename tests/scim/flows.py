"""Plays what directories send to a SCIM server, and says what differs from what they expect.

    SCIM_TOKEN=... python flows.py BASE_URL HOME [FLOW...]

BASE_URL is the address above /Users; HOME is `provider`, `store`, or `reference`: a server that keeps what a store
does and knows the standard alone. A flow is a file of the folder vendor without its end. vendor/README.md says how
flows are written.
"""

import copy
import json
import os
import re
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
HOMES = ("provider", "store", "reference")
MESSAGES = "urn:ietf:params:scim:api:messages:2.0:"
SCHEMAS = "urn:ietf:params:scim:schemas:"
URNS = {
    "User": SCHEMAS + "core:2.0:User",
    "Group": SCHEMAS + "core:2.0:Group",
    "Enterprise": SCHEMAS + "extension:enterprise:2.0:User",
    **{name: MESSAGES + name for name in ("PatchOp", "ListResponse", "Error")},
}
MEDIA_TYPE = "application/scim+json"
VENDOR = Path(__file__).parent / "vendor"
# a server that says 429 is waited for, as directories do
MOST_WAITS = 30


class Stuck(Exception):
    """The flow cannot go on: what its next step needs was never answered."""


class Variables(dict):
    """What `${name}` stands for. Names that begin with guid are made when they are first used."""

    def __missing__(self, name):
        if not name.startswith("guid"):
            raise Stuck(f"nothing is known as {name}")
        self[name] = str(uuid.uuid4())
        return self[name]


def is_for(part, home):
    """Whether a flow or a step is played at this home."""
    return kept_as(home) in part.get("homes", HOMES) and not (home == "reference" and part.get("plain", 1) is None)


def kept_as(home):
    return "store" if home == "reference" else home


def filled(value, variables, home):
    """A value of a flow as it is at this home, with its variables filled in."""
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: str(variables[found[1]]), value)
    if isinstance(value, list):
        return [made for item in value for made in items(item, variables, home)]
    if not isinstance(value, dict):
        return value
    made = copy.deepcopy(variables[value["@like"]]) if "@like" in value else {}
    for key, inner in value.items():
        if key == f"@{kept_as(home)}":
            made |= filled(inner, variables, home)
        elif not key.startswith("@"):
            made[filled(key, variables, home)] = filled(inner, variables, home)
    return made


def items(item, variables, home):
    """What one element of a list becomes: none that are of another home only, several with `@each`."""
    if not isinstance(item, dict):
        return [filled(item, variables, home)]
    if "@each" in item:
        return [filled(item, Variables(variables, each=one), home) for one in variables[item["@each"]]]
    made = filled(item, variables, home)
    return [made] if made or not item else []


def found(answer, path):
    """What is at a path as Resources.0.id; the whole answer at the empty one."""
    for part in path.split(".") if path else []:
        if isinstance(answer, list):
            answer = answer[int(part)] if int(part) < len(answer) else None
        else:
            answer = answer.get(part) if isinstance(answer, dict) else None
    return answer


def differences(expected, actual, at=""):
    """What is not as expected: of an object the members that are named, of a list all, in any order."""
    where = at or "the answer"
    if expected is None:
        # there are three ways to say that there is nothing
        return [] if actual in (None, [], {}) else [f"{where} is {shown(actual)}, and should not be there"]
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return [f"{where} is {shown(actual)}, and should be an object"]
        parts = [differences(inner, actual.get(key), f"{at}.{key}".lstrip(".")) for key, inner in expected.items()]
        return [one for part in parts for one in part]
    if isinstance(expected, list):
        left = list(actual) if isinstance(actual, list) else []
        for one in expected:
            fitting = [index for index, other in enumerate(left) if not differences(one, other)]
            if not fitting:
                return [f"{where} is {shown(actual)}, without {shown(one)}"]
            left.pop(fitting[0])
        return [f"{where} has {shown(left)} beyond what it should have"] if left else []
    # true is no 1
    if type(expected) is not type(actual) or expected != actual:
        return [f"{where} is {shown(actual)}, and should be {shown(expected)}"]
    return []


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else text[:400] + "..."


class Server:
    """A SCIM server, and what every answer of one must be whatever was asked."""

    def __init__(self, base, token):
        self.base = base.rstrip("/")
        self.token = token

    def send(self, method, path, body, headers):
        plain, _, query = path.partition("?")
        pairs = [pair.partition("=") for pair in query.split("&")] if query else []
        encoded = "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, _, value in pairs)
        address = self.base + plain + (f"?{encoded}" if encoded else "")
        headers = {"Authorization": f"Bearer {self.token}", "Accept": MEDIA_TYPE, **headers}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers = {"Content-Type": MEDIA_TYPE, **headers}
        for _ in range(MOST_WAITS):
            request = urllib.request.Request(address, method=method, data=data, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return answer.status, answer.headers, answer.read()
            except urllib.error.HTTPError as refusal:
                if refusal.code != 429 or "Retry-After" not in refusal.headers:
                    return refusal.code, refusal.headers, refusal.read()
                time.sleep(float(refusal.headers["Retry-After"]))
        raise Stuck(f"{method} {path} is answered by 429 for ever")


def judged(status, headers, text):
    """The answer, and what is wrong with it as an answer of SCIM."""
    names = [name.lower() for name in headers]
    wrong = [f"the header {name} is there {names.count(name)} times" for name in set(names) if names.count(name) > 1]
    if not text:
        return None, wrong + ["there is no body"] * (status in (200, 201))
    try:
        answer = json.loads(text)
    except ValueError:
        return None, [*wrong, f"the body is no JSON: {text[:400]!r}"]
    kind = headers.get("Content-Type", "").partition(";")[0]
    if kind != MEDIA_TYPE:
        wrong.append(f"the body's type is {kind}, and should be {MEDIA_TYPE}")
    schemas = answer.get("schemas", [])
    if status >= 400:
        error = {"schemas": [URNS["Error"]], "status": str(status)}
        wrong += differences(error, answer)
    elif URNS["ListResponse"] in schemas:
        resources = answer.get("Resources", [])
        if not isinstance(answer.get("totalResults"), int):
            wrong.append("a list has no totalResults")
        if answer.get("itemsPerPage", len(resources)) != len(resources):
            wrong.append(f"itemsPerPage is {answer['itemsPerPage']} of {len(resources)} resources")
    elif found(answer, "meta.resourceType") in ("User", "Group"):
        wrong += judged_resource(status, headers, answer)
    return answer, wrong


def judged_resource(status, headers, answer):
    meta = answer["meta"]
    wrong = []
    if not isinstance(answer.get("id"), str):
        wrong.append("the resource has no id")
    elif not meta.get("location", "").endswith(f"/{meta['resourceType']}s/{answer['id']}"):
        wrong.append(f"meta.location is {meta.get('location')}")
    if status == 201 and headers.get("Location") != meta.get("location"):
        wrong.append(f"Location is {headers.get('Location')}, and meta.location {meta.get('location')}")
    if "version" in meta and headers.get("ETag") != meta["version"]:
        wrong.append(f"ETag is {headers.get('ETag')}, and meta.version {meta['version']}")
    return wrong


def take(server, step, flow, variables, home):
    """Sends a step, once or several times, and tells what differs."""
    wrong = []
    for number in range(step.get("times", 1)):
        variables["n"] = number + 1
        method, _, path = filled(step["send"], variables, home).partition(" ")
        sent = "plain" if home == "reference" and "plain" in step else "body"
        body = filled(step[sent], variables, home) if sent in step else None
        headers = flow.get("headers", {}) | step.get("headers", {})
        status, told, text = server.send(method, path, body, headers)
        answer, differs = judged(status, told, text)
        if method == "PATCH" and status == 204:
            # who is not told what a change made asks
            answer, more = judged(*server.send("GET", path, None, headers))
            differs += more
        expected = step["status"] if isinstance(step["status"], list) else [step["status"]]
        if status not in expected:
            differs.insert(
                0, f"the status is {status}, and should be {' or '.join(map(str, expected))}: {text[:600]!r}"
            )
        elif answer is not None and "answer" in step:
            differs += differences(filled(step["answer"], variables, home), answer)
        wrong += [f"{method} {path}: {one}" for one in differs]
        if differs and "times" in step:
            # once told is enough
            break
        for name, at in step.get("save", {}).items() if status in expected else ():
            value = found(answer, at)
            if value is None:
                continue
            if "times" in step:
                variables.setdefault(name, []).append(value)
            else:
                variables[name] = value
    return wrong


def play(server, flow, home):
    """The number of steps of a flow, and what differed, step by step."""
    variables = Variables(URNS, run=secrets.token_hex(4))
    steps = [step for step in flow["steps"] if is_for(step, home)]
    wrong = []
    for number, step in enumerate(steps, 1):
        try:
            differs = take(server, step, flow, variables, home)
        except Stuck as error:
            wrong.append(f"step {number} ({step['about']}): {error}")
            break
        wrong += [f"step {number} ({step['about']}): {one}" for one in differs]
    return len(steps), wrong


def main(base, home, names):
    """Plays these flows, or all, and tells whether nothing differed."""
    assert home in HOMES, home
    server = Server(base, os.environ["SCIM_TOKEN"])
    files = [VENDOR / f"{name}.json" for name in names] or sorted(VENDOR.glob("*.json"))
    failed = False
    for file in files:
        flow = json.loads(file.read_text(encoding="utf-8"))
        if not is_for(flow, home):
            continue
        steps, wrong = play(server, flow, home)
        for one in wrong:
            print(f"        {one}")
        failed = failed or bool(wrong)
        print(f"{'FAILED ' if wrong else 'ok     '} {file.stem}: {flow['about']} ({steps} steps)", flush=True)
    return not failed


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(0 if main(sys.argv[1], sys.argv[2], sys.argv[3:]) else 1)
