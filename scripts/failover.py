"""One case of scripts/check-failover: load, the fault, the promotion, the counting."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

case, binary, programs, work = sys.argv[1:]
WORKERS = 8
SECRET = "a-secret-for-failover"
# what is aimed at in seconds, with room for a busy machine
BOUNDS = {"not ready": 8, "hang": 15, "kill": 6, "switch": 8}


def as_postgres(*command):
    prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    subprocess.run([*prefix, *command], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def control(name, *words):
    as_postgres(f"{programs}/pg_ctl", "-D", f"{work}/{name}", "-s", *words)


def signal_all(name, number):
    """Signals a server's processes, the first of them first."""
    with open(f"{work}/{name}/postmaster.pid") as file:
        first = int(file.readline())
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True)
    for process in [first, *map(int, listed.stdout.split())]:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def ask(method, path, body=None, token=None, form=False, timeout=60):
    headers = {"content-type": "application/x-www-form-urlencoded" if form else "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = body.encode() if body is not None else None
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()
    except OSError as error:
        return 0, str(error).encode()


data = tempfile.mkdtemp(dir=work)
log = open(f"{data}/server.log", "w")
environment = os.environ | {
    "CHANCERY_LISTEN": "127.0.0.1:0",
    "CHANCERY_DATA_DIR": data,
    "CHANCERY_ROOT_CLIENT_SECRET": SECRET,
    "CHANCERY_LOG": "warn",
    "CHANCERY_DATABASE_CONNECTIONS": "8",
}
server = subprocess.Popen([binary], env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
try:
    base = server.stdout.readline().split()[-1]
    threading.Thread(target=server.stdout.read, daemon=True).start()
    credentials = {"grant_type": "client_credentials", "client_id": "root", "client_secret": SECRET}
    status, answer = ask("POST", "/connect/token", urllib.parse.urlencode(credentials), form=True)
    token = json.loads(answer)["access_token"]
    users = "/api/userstore/v2/default/administration/User"

    lock = threading.Lock()
    answered, unknown, refused, times = set(), set(), set(), []
    done = threading.Event()

    def load(worker):
        number = 0
        while not done.is_set():
            number += 1
            name = f"{case}-{worker}-{number}"
            status, body = ask("POST", users, json.dumps({"loginName": name}), token)
            with lock:
                if status == 201:
                    answered.add(name)
                    times.append(time.monotonic())
                elif status == 500 and b"outcome-unknown" in body:
                    unknown.add(name)
                elif status == 503:
                    refused.add(name)
                else:
                    print(f"FAILED  {status} {body[:300]}")
                    os._exit(1)
            if status != 201:
                time.sleep(0.02)

    readiness = []

    def watch():
        while not done.is_set():
            status, _ = ask("GET", "/health/ready", timeout=10)
            readiness.append((time.monotonic(), status))
            time.sleep(0.05)

    threads = [threading.Thread(target=load, args=(worker,)) for worker in range(WORKERS)]
    threads.append(threading.Thread(target=watch))
    for thread in threads:
        thread.start()

    def until(what, holds, bound=40):
        limit = time.monotonic() + bound
        while not holds():
            if time.monotonic() > limit:
                print(f"FAILED  {case}: waited in vain until {what}")
                os._exit(1)
            time.sleep(0.02)

    until("there is load", lambda: len(answered) > 300)
    broken = time.monotonic()
    not_ready = None
    if case == "hang":
        signal_all("a", signal.SIGSTOP)
        until("it is not ready", lambda: any(at > broken and status == 503 for at, status in readiness))
        not_ready = next(at for at, status in readiness if at > broken and status == 503) - broken
    elif case == "kill":
        signal_all("a", signal.SIGKILL)
    else:
        control("a", "-m", "fast", "stop")
    control("b", "-w", "promote")
    promoted = time.monotonic()
    until("the new primary is used", lambda: any(at > promoted for at in times[-1:]))
    back = next(at for at in times if at > promoted) - promoted
    gap = max(later - earlier for earlier, later in zip(times, times[1:]))
    target = len(answered) + 200
    until("there is load again", lambda: len(answered) > target)
    done.set()
    for thread in threads:
        thread.join()

    status, body = ask("GET", users, token=token)
    stored = [user["loginName"] for user in json.loads(body)]
    status, body = ask("GET", users.replace("/User", "/CustomAuditTrail"), token=token)
    trail = json.loads(body)
    lost = answered - set(stored)
    done_though_refused = refused & set(stored)
    twice = len(stored) - len(set(stored))
    figures = {
        "not ready after": not_ready and round(not_ready, 1),
        "answers after the promotion": round(back, 1),
        "longest gap": round(gap, 1),
        "answered": len(answered),
        "refused (503)": len(refused),
        "unknown (500)": len(unknown),
        "of those done": len(unknown & set(stored)),
        "lost": len(lost),
        "done though refused": len(done_though_refused),
        "twice": twice,
    }
    print(f"{case:7}", ", ".join(f"{name} {value}" for name, value in figures.items() if value is not None))
    good = not lost and not done_though_refused and twice == 0 and len(trail) == len(stored)
    good = good and back <= BOUNDS[case] and (not_ready is None or not_ready <= BOUNDS["not ready"])
    if case == "hang":
        # the old primary is back and knows nothing of it: nobody may write there any more
        signal_all("a", signal.SIGCONT)
        control("b", "-m", "immediate", "stop")
        until("it is not ready", lambda: ask("GET", "/health/ready")[0] == 503)
        status, _ = ask("POST", users, json.dumps({"loginName": "late"}), token)
        told = "another one took its place" in open(f"{data}/server.log").read()
        if status != 503 or not told:
            print(f"FAILED  {case}: the old primary was used: {status}")
            sys.exit(1)
    if not good:
        print(f"FAILED  {case}: {len(trail)} entries for {len(stored)} users; see the figures")
        sys.exit(1)
finally:
    server.terminate()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
