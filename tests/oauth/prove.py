"""What the checks share: the server, the client apps that prepare.py made, and how a thing that holds is told."""

import json
import os

BASE = os.environ["CHANCERY_BASE"].rstrip("/")
with open(os.environ["CHANCERY_APPS"], encoding="utf-8") as file:
    APPS = json.load(file)


class Failed(Exception):
    """Something does not hold."""


def prove(what, holds, detail=""):
    if not holds:
        raise Failed(f"{what}: {detail}")
    print(f"ok      {what}", flush=True)
