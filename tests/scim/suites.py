"""Has foreign suites judge a SCIM server: scim2-tester whole, scim-sanity strict, plain and with its Entra profile.

    SCIM_TOKEN=... python suites.py BASE_URL HOME

All that is not right fails, but for what accepted.json names with a reason. What is named there and did not happen
fails too: the list says how things are.
"""

import json
import os
import random
import re
import sys
from pathlib import Path

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server, filling
from scim_sanity.probe.runner import run_probe_api

ACCEPTED = json.loads(Path(__file__).with_name("accepted.json").read_text(encoding="utf-8"))

# What scim2-tester fills at random although the standard says what it looks like; and one value alone is primary.
FITTING = {"locale": ["en-GB", "de-AT"], "timezone": ["Europe/Berlin", "America/New_York"], "primary": [True]}
EXAMPLE = filling.get_random_example_value


def example(path):
    name = re.split("[.:]", str(path))[-1]
    return random.choice(FITTING[name]) if name in FITTING else EXAMPLE(path)


filling.get_random_example_value = example


def tester(base, token):
    """What scim2-tester found: whether it is right, and how it is told."""
    headers = {"Authorization": f"Bearer {token}"}
    with Client(base_url=base, headers=headers, timeout=60) as http:
        for result in check_server(SyncSCIMClient(http)):
            is_right = result.status in (Status.SUCCESS, Status.COMPLIANT)
            about = " ".join(filter(None, [result.status.name, result.resource_type, result.title]))
            error = result.data.get("error") if isinstance(result.data, dict) else None
            # what an exception of the suite was about is in its notes
            notes = " ".join(getattr(error, "__notes__", []))
            yield is_right, f"{about}: {result.reason} {notes}".rstrip(), result.data


def sanity(profile):
    def results(base, token):
        told = run_probe_api(base, token=token, strict=True, timeout=60, profile=profile)
        for result in told["results"]:
            status = result["status"].upper()
            yield status == "PASS", f"{status} {result['name']}: {result.get('message') or ''}", None

    return results


SUITES = {
    "scim2-tester": tester,
    "scim-sanity": sanity(None),
    "scim-sanity with Entra's profile": sanity("entra"),
}


def accepted(suite, home):
    return [one for one in ACCEPTED if re.fullmatch(one["suite"], suite) and home in one.get("homes", [home])]


def run(suite, base, token, home):
    """Whether this suite has nothing to complain about that is not accepted."""
    known = accepted(suite, home)
    happened = set()
    right = wrong = 0
    for is_right, told, data in SUITES[suite](base, token):
        fitting = (
            [] if is_right else [index for index, one in enumerate(known) if re.search(one["check"], told, re.DOTALL)]
        )
        happened.update(fitting)
        if is_right:
            right += 1
        elif not fitting:
            wrong += 1
            print(f"        {told}" + (f"\n            {str(data)[:600]}" if data else ""))
    stale = [one["check"] for index, one in enumerate(known) if index not in happened]
    for check in stale:
        print(f"        is accepted, and did not happen: {check}")
    # a suite that finds nothing to check has found nothing right
    failed = wrong or stale or not right
    print(
        f"{'FAILED ' if failed else 'ok     '} {suite}: {right} right, {wrong} wrong, {len(happened)} kinds accepted",
        flush=True,
    )
    return not failed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # scim2-tester takes values by chance
    random.seed(20261122)
    passed = [run(suite, sys.argv[1].rstrip("/"), os.environ["SCIM_TOKEN"], sys.argv[2]) for suite in SUITES]
    sys.exit(0 if all(passed) else 1)
