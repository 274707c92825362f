"""One case of scripts/check-failover: load, the fault, the promotion, the counting."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

case, binary, programs, work, port_a, port_b = sys.argv[1:]
WORKERS = 8
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
SECRET = "a-secret-for-failover"
# what docs/operating/failure-tests.md promises, in seconds: until the server is not ready, from the promotion to the
# first answer, and without any answer
NOT_READY = 4
ANSWERS = {"hang": 10, "drop": 10, "kill": 1, "switch": 3, "standby": 10, "lost": 10}
LONGEST_GAP = {"switch": 3}
# how long the standby is away: longer than a commit is waited for and looked for; and what a read may take then
AWAY = 50
READ = 3


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


def query(name, *statements):
    """What statements answer, in lines."""
    port = {"a": port_a, "b": port_b}[name]
    command = ["psql", "-Atq", "-h", "localhost", "-p", port, "-U", "postgres", "-d", "postgres"]
    command += [word for statement in statements for word in ("-c", statement)]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


class Between:
    """Carries connections to a port of this machine until packets are dropped: then sockets stay open,
    nothing goes through in either direction, and new connections get no answer."""

    def __init__(self, port):
        self.target = port
        self.dropped = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.dropped.is_set():
                threading.Event().wait()
            server = socket.create_connection(("127.0.0.1", self.target))
            for ends in [(client, server), (server, client)]:
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target):
        try:
            while data := source.recv(1 << 16):
                if self.dropped.is_set():
                    threading.Event().wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()


def ask(method, path, body=None, token=None, form=False, timeout=PATIENCE):
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


class Reader(threading.Thread):
    """Follows the store's feed through whatever happens, from what has its place when it begins."""

    def __init__(self):
        super().__init__(daemon=True)
        self.events, self.refusal = [], None
        self.cursor = self.behind_all()

    def behind_all(self):
        """The cursor behind all that was answered."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            status, body = ask("GET", f"{feed}?after=now", token=token)
            if status == 200:
                return json.loads(body)["next"]
            time.sleep(0.1)
        print(f"FAILED  {case}: the feed answers {status} {body[:300]}")
        sys.exit(1)

    def read(self, wait):
        """Reads a piece; whether there may be more."""
        path = f"{feed}?count=1000&wait={wait}&after={urllib.parse.quote(self.cursor)}"
        status, body = ask("GET", path, token=token)
        if status == 200:
            piece = json.loads(body)
            self.events += piece["items"]
            self.cursor = piece["next"]
            return piece["hasMore"]
        if status not in (0, 500, 503):
            self.refusal = f"{status} {json.loads(body)['type']}"
        return self.refusal is None

    def run(self):
        while not done.is_set() and self.refusal is None:
            self.read(2)

    def finish(self):
        """Reads what is left, after the load."""
        self.join()
        self.behind_all()
        while self.refusal is None and self.read(0):
            pass

    def told(self):
        """The users whose creation was told, each as often as it was."""
        return [event["subject"] for event in self.events if event["type"] == "platform.userstore.user.created"]

    def holes(self):
        places = [int(event["sequence"]) for event in self.events]
        return sum(later != earlier + 1 for earlier, later in zip(places, places[1:]))


data = tempfile.mkdtemp(dir=work)
log = open(f"{data}/server.log", "w")
environment = os.environ | {
    "CHANCERY_LISTEN": "127.0.0.1:0",
    "CHANCERY_DATA_DIR": data,
    "CHANCERY_ROOT_CLIENT_SECRET": SECRET,
    "CHANCERY_LOG": "warn",
    "CHANCERY_DATABASE_CONNECTIONS": "8",
}
if case == "drop":
    between = Between(int(port_a))
    environment["CHANCERY_DATABASE"] = environment["CHANCERY_DATABASE"].replace(f":{port_a},", f":{between.port},")
server = subprocess.Popen([binary], env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
waiting = None
done = threading.Event()
try:
    base = server.stdout.readline().split()[-1]
    threading.Thread(target=server.stdout.read, daemon=True).start()
    credentials = {"grant_type": "client_credentials", "client_id": "root", "client_secret": SECRET}
    status, answer = ask("POST", "/connect/token", urllib.parse.urlencode(credentials), form=True)
    token = json.loads(answer)["access_token"]
    users = "/api/userstore/v2/default/administration/User"
    feed = users.replace("/User", "/Event")

    lock = threading.Lock()
    answered, unknown, refused, times, wrong = set(), set(), set(), [], []

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
                    wrong.append(f"{status} {body[:300]}")
                    return
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
    reader = Reader()
    threads.append(reader)
    for thread in threads:
        thread.start()

    def until(what, holds, bound=PATIENCE):
        limit = time.monotonic() + bound
        while not holds():
            if time.monotonic() > limit or wrong:
                print(f"FAILED  {case}: waited in vain until {what}", *wrong)
                sys.exit(1)
            time.sleep(0.02)

    until("there is load", lambda: len(answered) > 300)
    not_ready, slowest, most = None, None, None
    broken = time.monotonic()
    if case in ("hang", "drop"):
        between.dropped.set() if case == "drop" else signal_all("a", signal.SIGSTOP)
        until("it is not ready", lambda: any(at > broken and status == 503 for at, status in readiness))
        not_ready = next(at for at, status in readiness if at > broken and status == 503) - broken
    elif case == "standby":
        # commits wait for it, and nothing else does
        signal_all("b", signal.SIGSTOP)
        slowest, most = 0, 0
        count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        while time.monotonic() < broken + AWAY:
            began = time.monotonic()
            status, body = ask("GET", f"{users}?count=1", token=token)
            slowest = max(slowest, time.monotonic() - began)
            if status != 200:
                print(f"FAILED  {case}: a read was answered {status} {body[:300]}")
                sys.exit(1)
            most = max(most, int(query("a", count)))
            time.sleep(0.2)
        signal_all("b", signal.SIGCONT)
    elif case == "kill":
        signal_all("a", signal.SIGKILL)
    elif case == "lost":
        # the standby gets nothing more, and the reader is told what only the primary has
        query("b", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        until("nothing is replicated", lambda: query("b", "SELECT count(*) FROM pg_stat_wal_receiver") == "0")
        read = len(reader.events) + 200
        until("the reader goes on", lambda: len(reader.events) > read)
        signal_all("a", signal.SIGKILL)
    else:
        # one that knows the standby alone says so, and starts when that is promoted
        alone = environment | {"CHANCERY_DATABASE": environment["CHANCERY_DATABASE"].replace(f"localhost:{port_a},", "")}
        with open(f"{data}/standby.log", "w") as told:
            waiting = subprocess.Popen([binary], env=alone, stdout=subprocess.PIPE, stderr=told, text=True)
        until("a start on a standby is told", lambda: "for it is a standby" in open(f"{data}/standby.log").read())
        control("a", "-m", "fast", "stop")
    if case != "standby":
        control("b", "-w", "promote")
    promoted = time.monotonic()
    until("the new primary is used", lambda: any(at > promoted for at in times[-1:]))
    back = next(at for at in times if at > promoted) - promoted
    gap = max(later - earlier for earlier, later in zip(times, times[1:]))
    if waiting:
        line = waiting.stdout.readline()
        if not line.startswith("Chancery listens"):
            print(f"FAILED  {case}: a server that waited for a promotion did not start")
            sys.exit(1)
        with urllib.request.urlopen(f"{line.split()[-1]}/health/ready") as answer:
            warnings = json.load(answer).get("warnings") or []
            if any("copy" in warning for warning in warnings):
                print(f"FAILED  {case}: a promoted standby is treated as a copy: {warnings}")
                sys.exit(1)
    target = len(answered) + 200
    until("there is load again", lambda: len(answered) > target)
    done.set()
    for thread in threads:
        thread.join()

    reader.finish()
    status, body = ask("GET", users, token=token)
    listed = json.loads(body)
    stored = [user["loginName"] for user in listed]
    status, body = ask("GET", users.replace("/User", "/CustomAuditTrail"), token=token)
    trail = json.loads(body)
    lost = answered - set(stored)
    done_though_refused = refused & set(stored)
    twice = len(stored) - len(set(stored))
    told, holes = reader.told(), reader.holes()
    figures = {
        "not ready after": not_ready and round(not_ready, 1),
        "answers after the promotion": round(back, 1),
        "longest gap": round(gap, 1),
        "slowest read": slowest and round(slowest, 1),
        "connections at most": most,
        "answered": len(answered),
        "refused (503)": len(refused),
        "unknown (500)": len(unknown),
        "of those done": len(unknown & set(stored)),
        "lost": len(lost),
        "done though refused": len(done_though_refused),
        "twice": twice,
        "told": len(told),
        "holes": holes,
        "the reader got": reader.refusal,
    }
    print(f"{case:7}", ", ".join(f"{name} {value}" for name, value in figures.items() if value is not None))
    good = not done_though_refused and twice == 0 and len(trail) == len(stored) and holes == 0
    if case == "lost":
        # history is another one now: the reader hears of it, and nothing that would hide it
        good = good and lost and reader.refusal == "410 /problems/event-history-changed"
    else:
        good = good and not lost and reader.refusal is None
        good = good and sorted(told) == sorted(user["id"] for user in listed)
    # there is always somebody to ask here what became of a commit
    good = good and (not unknown or case in ("standby", "lost")) and back <= ANSWERS[case] and gap <= LONGEST_GAP.get(case, gap)
    good = good and (not_ready is None or not_ready <= NOT_READY) and not wrong
    # those of the server, what is being looked for and what counts them here: none are left behind
    good = good and (slowest is None or (slowest <= READ and most <= 30))
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
    done.set()
    for process in filter(None, [server, waiting]):
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
