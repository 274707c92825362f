"""Walks through stock programs with a server of an older release, and again after its upgrade, and compares what they showed.

    CHANCERY_BASE=... CHANCERY_TOKEN=... python upgrade.py before|after STATE FOLDER [NAME=TOOLS]...

`before` makes a person and the client apps, and writes them to the file STATE with what each program did; `after` changes nothing
at the server. FOLDER is empty. Each program has two client apps: one in the tenant of the first start, as the release made it, and
one in a tenant that does not require PKCE.
"""

import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from chancery import App, Person, make_person, make_tenant
from check import BY_NAME, show_failure

# claims that tell of one sign-in or of one time
OF_ONE_SIGN_IN = {"iat", "exp", "nbf", "auth_time", "nonce", "at_hash", "c_hash", "s_hash", "jti", "sid"}


def walk(program):
    """What a program did, by the things proven, and what it showed."""
    problem = None
    # releases that run no claim rules for tokens are upgraded, too
    program.expect({})
    program.asks_userinfo = True
    try:
        program.start()
        program.walk()
    except Exception as caught:  # whatever it is, it is compared
        problem = caught
    finally:
        program.stop()
    return problem, {"works": problem is None, "proven": program.proven, "seen": [asdict(one) for one in program.seen]}


def differences(before, after, own_members):
    """Whatever was there before and is not there after, and the claims that are new."""

    def lasting(claims):
        return {name: value for name, value in (claims or {}).items() if name not in OF_ONE_SIGN_IN | own_members}

    lost, new = [], set()
    for what in ("works", "proven"):
        if before[what] != after[what]:
            lost.append(f"{what}: {before[what]}, now {after[what]}")
    if len(before["seen"]) != len(after["seen"]):
        lost.append(f"it showed the person {len(before['seen'])} times, now {len(after['seen'])}")
    for was, now in zip(before["seen"], after["seen"], strict=False):
        if (was["name"], sorted(was["groups"] or [])) != (now["name"], sorted(now["groups"] or [])):
            lost.append(f"name and groups: {was}, now {now}")
        known, told = lasting(was["claims"]), lasting(now["claims"])
        lost += [f"{name}: {value}, now {told.get(name)}" for name, value in known.items() if told.get(name) != value]
        new |= told.keys() - known.keys()
    return lost, new


def result(outcome):
    return "works" if outcome["works"] else f"fails after {len(outcome['proven'])}"


def before(state, work, *chosen):
    suffix = str(int(time.time()))
    person = make_person(suffix)
    tenants = {"required": "Default", "optional": make_tenant(suffix, PkceRequired="false")}
    known = []
    for name, tools in (one.split("=", 1) for one in chosen):
        for pkce, tenant in tenants.items():
            program = BY_NAME[name](tools, Path(work) / f"{name}-{pkce}", person)
            program.register(f"{pkce} {suffix}", tenant=tenant)
            problem, outcome = walk(program)
            print(f"{name}, PKCE {pkce}: {result(outcome)}{f' ({problem})'[:400] if problem else ''}", flush=True)
            known.append({"name": name, "pkce": pkce, "port": program.port, "app": asdict(program.app), "outcome": outcome})
    Path(state).write_text(json.dumps({"person": asdict(person), "known": known}))
    return 0 if any(one["outcome"]["works"] for one in known) else 1


def after(state, work, *chosen):
    told = json.loads(Path(state).read_text())
    person = Person(**told["person"])
    tools = dict(one.split("=", 1) for one in chosen)
    rows, failed = [], 0
    for one in told["known"]:
        name, pkce = one["name"], one["pkce"]
        program = BY_NAME[name](tools[name], Path(work) / f"{name}-{pkce}", person, one["port"])
        program.app = App(**one["app"])
        problem, outcome = walk(program)
        lost, new = differences(one["outcome"], outcome, program.own_members)
        if lost:
            failed = 1
            print(f"FAILED  {name}, PKCE {pkce}", *lost, sep="\n  ")
            if problem:
                show_failure(program, problem)
        else:
            print(f"ok      {name}, PKCE {pkce}: {'it works' if outcome['works'] else 'it gets as far'} as before the upgrade", flush=True)
        rows.append((name, pkce, result(one["outcome"]), result(outcome), " ".join(sorted(new))))
    print("program, PKCE, before, after, new claims:")
    for row in rows:
        print("{:24}{:10}{:16}{:16}{}".format(*row))
    return failed


if __name__ == "__main__":
    # the programs end with the check, also where somebody ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit({"before": before, "after": after}[sys.argv[1]](*sys.argv[2:]))
