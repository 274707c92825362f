"""The load: workers create, change, read and delete people, fetch tokens and sign people in, and remember what was answered."""

import base64
import collections
import copy
import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit

from browser import Browser
from processes import APP, SECRET, Failed, session

PEOPLE = "/api/userstore/v2/default/administration/User"
MANAGEMENT = "/api/management/v2"
PASSWORD = "four lively grey herons"
# an offer after the sign-in that is put off
LATER = {"choice": "later"}
MOST_PAGES = 3
# kinds of requests by method and path: the first that fits
KINDS = [
    ("token", "POST", "/connect/token"),
    ("sign-in", "GET", "/connect/"),
    ("sign-in", "GET", "/signin"),
    ("sign-in", "POST", "/signin"),
    ("password", "POST", f"{PEOPLE}/"),
    ("create", "POST", PEOPLE),
    ("change", "PATCH", PEOPLE),
    ("delete", "DELETE", PEOPLE),
    ("read", "GET", PEOPLE),
]
SHOWN = ["create", "change", "read", "delete", "password", "token", "sign-in"]
# seconds that a request may take beside a migration, on a machine that does other work
LONGEST = 5


def kind_of(request):
    for kind, method, path in KINDS:
        if request.method == method and request.path_url.startswith(path):
            return kind
    return "other"


class Figures:
    """How requests were answered, by stage and program."""

    def __init__(self):
        self.stage, self.lock = "", threading.Lock()
        self.counts, self.slowest, self.failures = collections.Counter(), {}, []

    def answered(self, server, request, seconds):
        kind, by = kind_of(request), (self.stage, server.program.name)
        with self.lock:
            self.counts[*by, kind] += 1
            self.slowest[by] = max(self.slowest.get(by, (0, "")), (seconds, kind))
            if seconds > LONGEST:
                self.failures.append(f"{by[1]}: {request.method} {request.path_url} took {seconds:.1f} s")

    def failed(self, server, request, why):
        with self.lock:
            self.failures.append(f"{server.program.name}: {request.method} {request.path_url}: {why}")

    def note(self, why):
        with self.lock:
            self.failures.append(why)

    def row(self, stage, program):
        """The table's line of a program in a stage; `None` where it got no request."""
        if (stage, program) not in self.slowest:
            return None
        seconds, kind = self.slowest[stage, program]
        counts = [self.counts[stage, program, one] for one in SHOWN]
        return [stage, program, *map(str, counts), f"{seconds * 1000:.0f} ms ({kind})"]


@dataclass
class Person:
    """A person as the servers answered."""

    id: str
    login: str
    name: str
    token: str
    changes: int = 0
    is_deleted: bool = False


@dataclass
class Ledger:
    """What was answered with success: nothing of it may be lost."""

    people: list = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, person):
        with self.lock:
            self.people.append(person)


def expect(status, answer):
    if answer.status_code != status:
        asked = f"{answer.request.method} {answer.request.path_url}"
        raise Failed(f"{answer.served_by}: {asked}: {answer.status_code} and not {status}: {answer.text[:600]}")
    return answer


class Api:
    """An administrator's calls."""

    def __init__(self, client, url):
        self.client, self.url, self.token = client, url, None

    def fetch_token(self):
        form = {"grant_type": "client_credentials"}
        answer = self.client.post(f"{self.url}/connect/token", data=form, auth=("root", SECRET))
        self.token = expect(200, answer).json()["access_token"]

    def call(self, status, method, path, body=None, **headers):
        headers["Authorization"] = f"Bearer {self.token}"
        answer = self.client.request(method, self.url + path, json=body, headers=headers)
        return expect(status, answer)

    def create(self, **headers):
        login, name = f"u-{secrets.token_hex(8)}", secrets.token_hex(6)
        headers["Idempotency-Key"] = secrets.token_hex(12)
        body = {"loginName": login, "firstName": name}
        made = self.call(201, "POST", PEOPLE, body, **headers).json()
        # the answer was lost on its way: the same is asked again, perhaps of the other program
        again = self.call(201, "POST", PEOPLE, body, **headers).json()
        if again["id"] != made["id"]:
            raise Failed(f"an idempotency key made two people: {made['id']} and {again['id']}")
        return Person(made["id"], login, name, made["concurrencyToken"])

    def change(self, person):
        name = secrets.token_hex(6)
        body = {"firstName": name, "concurrencyToken": person.token}
        changed = self.call(202, "PATCH", f"{PEOPLE}/{person.id}", body).json()
        person.name, person.token = name, changed["concurrencyToken"]
        person.changes += 1

    def look_at(self, person):
        shown = self.call(404 if person.is_deleted else 200, "GET", f"{PEOPLE}/{person.id}").json()
        if not person.is_deleted and shown["firstName"] != person.name:
            raise Failed(f"{person.id} is {shown['firstName']}, and {person.name} was answered")

    def delete(self, person):
        self.call(204, "DELETE", f"{PEOPLE}/{person.id}")
        person.is_deleted = True

    def set_password(self, person):
        self.call(200, "POST", f"{PEOPLE}/{person.id}/password/reset", {"newPassword": PASSWORD})
        person.token = self.call(200, "GET", f"{PEOPLE}/{person.id}").json()["concurrencyToken"]


@dataclass(frozen=True)
class ClientApp:
    id: str
    secret: str


def make_client_app(api):
    """A client app with default settings, for the people of the default store."""

    def first(resource, name):
        listed = api.call(200, "GET", f"{MANAGEMENT}/{resource}").json()
        return next(one["id"] for one in listed if one["name"] == name)

    app = api.call(201, "POST", f"{MANAGEMENT}/ClientApp", {"name": "two releases"}).json()["id"]
    uri = {"clientAppId": app, "uri": f"{APP}/back", "redirectUriType": "Login"}
    api.call(201, "POST", f"{MANAGEMENT}/ClientAppRedirectUri", uri)
    for relation, other in [("tenants", first("Tenant", "Default")), ("idpinstances", first("IdpInstance", "default"))]:
        api.call(202, "POST", f"{MANAGEMENT}/ClientApp/{app}/{relation}", {"relatedIds": [other]})
    secret = api.call(201, "POST", f"{MANAGEMENT}/ClientAppSecret", {"clientAppId": app}).json()["secret"]
    return ClientApp(app, secret)


class Visitor:
    """A person at a browser, who comes back again and again, and whose client app keeps a refresh token."""

    def __init__(self, person, client, url, app):
        self.person, self.url, self.app = person, url, app
        self.browser, self.refresh_token = Browser(), None
        self.browser.session = client

    def sign_in(self, with_password):
        """Goes through the pages, and fetches tokens for the code. A browser with a session is not asked for a password."""
        verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.app.id,
            "redirect_uri": f"{APP}/back",
            "scope": "openid profile offline_access",
            "state": secrets.token_urlsafe(12),
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        page = self.browser.visit(f"{self.url}/connect/authorize?{urlencode(asked)}")
        if with_password:
            form = page.form(asking="password")
            if form is None:
                raise Failed(f"no page asks for the password: {page}")
            page = self.browser.submit(page, form, username=self.person.login, password=PASSWORD)
        for _ in range(MOST_PAGES):
            offer = page.form(button=tuple(*LATER.items()))
            if offer is None:
                break
            page = self.browser.submit(page, offer, **LATER)
        if not page.is_at(APP):
            raise Failed(f"the sign-in does not lead back to the app: {page}")
        answered = {name: values[0] for name, values in parse_qs(urlsplit(page.address).query).items()}
        if answered.get("state") != asked["state"] or "code" not in answered:
            raise Failed(f"the sign-in leads back without a code: {page.address}")
        self.fetch(
            grant_type="authorization_code",
            code=answered["code"],
            redirect_uri=asked["redirect_uri"],
            code_verifier=verifier,
        )

    def refresh(self):
        self.fetch(grant_type="refresh_token", refresh_token=self.refresh_token)

    def fetch(self, **form):
        """Fetches tokens, and has the access token tell who the person is."""
        client = self.browser.session
        answer = client.post(f"{self.url}/connect/token", data=form, auth=(self.app.id, self.app.secret))
        tokens = expect(200, answer).json()
        self.refresh_token = tokens["refresh_token"]
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        told = expect(200, client.get(f"{self.url}/connect/userinfo", headers=headers)).json()
        if told.get("given_name") != self.person.name:
            raise Failed(f"userinfo tells of {told}, and {self.person.name} was answered")


class Worker:
    """One caller. Its people are changed by nobody else, so what was answered is what is there."""

    def __init__(self, load):
        self.load, self.lives, self.visitor = load, 0, None
        self.api = Api(load.client(), load.installation.url)
        self.people = []

    def new_visitor(self, person):
        return Visitor(person, self.load.client(), self.load.installation.url, self.load.app)

    def run(self, done):
        self.api.fetch_token()
        while not done.is_set():
            self.live()

    def live(self):
        """What happens to one person, and to people who were there before."""
        api, self.lives = self.api, self.lives + 1
        if self.lives % 10 == 0:
            api.fetch_token()
        person = api.create()
        self.people.append(person)
        self.load.ledger.add(person)
        for _ in range(2):
            api.change(person)
            api.look_at(person)
        if self.lives % 3 == 0:
            api.delete(person)
        api.look_at(self.people[secrets.randbelow(len(self.people))])
        api.change(next(person for person in self.people if not person.is_deleted))
        if self.lives % 8 == 0 and not person.is_deleted:
            api.set_password(person)
            self.new_visitor(person).sign_in(with_password=True)
        self.visit()

    def visit(self):
        """The visitor signs in once, and then comes back without a password, whatever program serves."""
        if self.visitor is None:
            person = self.api.create()
            self.load.ledger.add(person)
            self.api.set_password(person)
            self.visitor = self.new_visitor(person)
            self.visitor.sign_in(with_password=True)
        elif self.lives % 4 == 0:
            self.visitor.refresh()
        elif self.lives % 4 == 2:
            self.visitor.sign_in(with_password=False)


class Load:
    """All workers, and what was answered to them."""

    def __init__(self, installation, in_use, figures, workers):
        self.installation, self.in_use, self.figures = installation, in_use, figures
        self.ledger, self.app = Ledger(), None
        self.workers = [Worker(self) for _ in range(workers)]

    def copy(self):
        """The same load with what was answered until now, by callers who come anew."""
        other = Load(self.installation, self.in_use, self.figures, len(self.workers))
        other.ledger.people, other.app = copy.deepcopy(self.ledger.people), self.app
        return other

    def client(self):
        return session(self.installation, self.in_use, self.figures)

    def prepare(self):
        """Makes what the load needs."""
        api = Api(self.client(), self.installation.url)
        api.fetch_token()
        self.app = make_client_app(api)

    def run(self, stage, seconds, meanwhile):
        """Runs for some seconds, and while something is done after the first half of them. Fails where a request did."""
        self.figures.stage = stage
        done = threading.Event()
        threads = [threading.Thread(target=self.guarded, args=(worker, done), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        try:
            time.sleep(seconds / 2)
            meanwhile()
            time.sleep(seconds / 2)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        if self.figures.failures:
            raise Failed("\n".join([f"{len(self.figures.failures)} requests failed:", *self.figures.failures[:20]]))
        counts, used = self.figures.counts, {server.program.name for server in self.in_use.servers}
        idle = [name for name in used if counts[stage, name, "create"] == 0]
        if idle:
            raise Failed(f"no load for {' and '.join(idle)}")

    def guarded(self, worker, done):
        try:
            worker.run(done)
        except Exception as error:  # whatever it is, the stage fails
            self.figures.note(str(error) if isinstance(error, Failed) else repr(error))
