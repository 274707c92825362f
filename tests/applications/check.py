"""Walks through stock programs, one after another, and prints what was proven of each and how long it took.

    CHANCERY_BASE=... CHANCERY_TOKEN=... python check.py FOLDER SUFFIX [NAME=TOOLS]...
    python check.py --list

FOLDER is empty; TOOLS is the folder of a program's packages. Where root starts it, another user must be able to reach the folder.
"""

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from program import Failed
from programs import PROGRAMS

BY_NAME = {one.name: one for one in PROGRAMS}
# the lines of a program's output that are shown where something failed
LAST_LINES = 60


def show_failure(program, problem):
    if isinstance(problem, Failed):
        print(f"FAILED  {program.name}: {problem}")
    else:
        print(f"FAILED  {program.name}")
        traceback.print_exception(problem, limit=-3, file=sys.stdout)
    print(f"-- {program.name} said:")
    print("\n".join(line[:1000] for line in program.log().splitlines()[-LAST_LINES:]))
    log = Path(os.environ.get("SERVER_LOG", os.devnull))
    refusals = [line for line in log.read_text(errors="replace").splitlines() if "refused an app" in line]
    about = [line for line in refusals if program.app and program.app.id in line]
    print("\n".join(["-- the server refused:", *about] if about else ["-- the server refused nothing of it"]))


def check(program, rules, suffix):
    """Whether all of the walk holds."""
    print(f"== {program.name} {program.version()} ({program.ecosystem})", flush=True)
    try:
        program.register(suffix, rules=rules)
        program.start()
        program.walk()
    except Exception as problem:  # whatever it is, the other programs are still walked through
        show_failure(program, problem)
        return False
    finally:
        program.stop()
    return True


def main(work, suffix, *chosen):
    from chancery import make_person, make_rules

    person, rules = make_person(suffix), make_rules(suffix)
    rows = []
    for name, tools in (one.split("=", 1) for one in chosen):
        begun = time.monotonic()
        program = BY_NAME[name](tools, Path(work) / name, person)
        word = "passed" if check(program, rules, suffix) else "FAILED"
        rows.append((name, program.version(), program.ecosystem, word, len(program.proven), time.monotonic() - begun))
    print("program, version, ecosystem, things proven, seconds:")
    for name, version, ecosystem, word, proven, seconds in rows:
        print(f"{word}  {name:24}{version:24}{ecosystem:8}{proven:3}{seconds:7.1f}")
    return 0 if all(row[3] == "passed" for row in rows) else 1


if __name__ == "__main__":
    # the programs end with the check, also where somebody ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if sys.argv[1] == "--list":
        for one in PROGRAMS:
            print(f"{one.name:24}{one.ecosystem:8}{one.version()}{' https' if one.wants_https else ''}")
        sys.exit()
    sys.exit(main(*sys.argv[1:]))
