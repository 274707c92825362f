"""The programs: how each is started, and what differs in signing in, looking and signing out."""

import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import requests

from chancery import BASE, PATIENCE
from program import HERE, Failed, Program, Shown, free_port


class Python(Program):
    """A program that pip installs."""

    ecosystem, package = "Python", ""

    @classmethod
    def version(cls):
        pins = (HERE / cls.name / "requirements.txt").read_text()
        return re.search(rf"^{cls.package or cls.name}==(.+)$", pins, re.MULTILINE | re.IGNORECASE)[1]

    @property
    def python(self):
        return str(self.tools / "python/bin/python")

    def command(self):
        return [self.python, str(self.folder / "app.py")]


class Node(Program):
    """A program that npm installs. It finds packages beside itself, so it runs in its own folder."""

    ecosystem, package = "Node", ""

    @classmethod
    def version(cls):
        pins = json.loads((HERE / cls.name / "package.json").read_text())
        return pins["dependencies"][cls.package or cls.name]

    def prepare(self):
        self.copy_modules(self.tools, self.folder)

    def copy_modules(self, tools, *folders):
        (self.work / "node_modules").symlink_to(tools / "node_modules")
        for file in [file for folder in folders for file in folder.glob("*.mjs")]:
            (self.work / file.name).write_bytes(file.read_bytes())

    def command(self):
        return ["node", str(self.work / "app.mjs")]


class Go(Program):
    """A program that Go compiles."""

    ecosystem, package = "Go", ""

    @classmethod
    def version(cls):
        pins = (HERE / cls.name / "go.mod").read_text()
        return re.search(rf"{re.escape(cls.package)} v(\S+)", pins)[1]

    def command(self):
        return [str(self.tools / "bin" / self.name)]


class LocalSignOut:
    """A program whose own sign-out leaves the session at the server. One of our own few lines says then that it knows nobody."""

    ends_session = False

    def is_out(self, browser, page):
        return page.text == "Bye"


class Authlib(Python):
    name, goodbye = "authlib", "/bye"


class FlaskPyoidc(Python):
    name, goodbye = "flask-pyoidc", "/logout"


class FlaskOidc(LocalSignOut, Python):
    name, callback, inside = "flask-oidc", "/authorize", "/inside"


class Django(Python):
    """A project of Django in one file."""

    def prepare(self):
        # its tables
        environment = {"ISSUER": BASE, "SITE": self.site, "FOLDER": str(self.work)}
        environment |= {"CLIENT_ID": self.app.id, "CLIENT_SECRET": self.app.secret} | self.environment()
        migrate = [self.python, self.project, "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=os.environ | environment, check=True, timeout=PATIENCE)

    def command(self):
        return [self.python, self.project, "runserver", "--noreload", f"127.0.0.1:{self.port}"]

    @property
    def project(self):
        return str(self.folder / "project.py")


class MozillaDjangoOidc(Django):
    name, callback, goodbye = "mozilla-django-oidc", "/oidc/callback/", "/bye"

    def leave(self, browser):
        page = browser.visit(f"{self.site}/sign-out")
        return browser.submit(page, page.form(action="/oidc/logout/"))


class DjangoAllauth(LocalSignOut, Django):
    name, callback = "django-allauth", "/accounts/oidc/chancery/login/callback/"

    def begin(self, browser):
        page = super().begin(browser)
        # its page that asks whether to go on to the provider
        form = page.form(action="") if page.is_at(self.site) else None
        return browser.submit(page, form) if form else page

    def leave(self, browser):
        page = browser.visit(f"{self.site}/accounts/logout/")
        return browser.submit(page, page.form(action="/accounts/logout/"))


class SocialAuth(LocalSignOut, Django):
    name, package, callback = "social-auth", "social-auth-app-django", "/complete/oidc/"

    def environment(self):
        return {"CLAIMS": " ".join(["groups", *self.expected_claims])}

    def begin(self, browser):
        page = super().begin(browser)
        form = page.form(action="/login/oidc/")
        return browser.submit(page, form) if form else page


class FlaskDance(LocalSignOut, Python):
    name, callback = "flask-dance", "/login/chancery/authorized"


class FastapiSso(LocalSignOut, Python):
    name = "fastapi-sso"


class DashAuth(LocalSignOut, Python):
    name, package, callback = "dash-auth", "dash_auth", "/oidc/chancery/callback"
    inside, outside = "/me", "/oidc/logout"

    def is_out(self, browser, page):
        return "logged out" in page.text.lower()


class JupyterHub(Python):
    name, package = "jupyterhub", "oauthenticator"
    callback, inside, outside = "/hub/oauth_callback", "/hub/home", "/hub/logout"
    # it shows what it was told to take as user name
    reads_claims = False

    def environment(self):
        self.hub_port = free_port()
        return {
            "HUB_PORT": str(self.hub_port),
            "PROXY_PORT": str(free_port()),
            "PROXY": f"node {self.tools}/node_modules/.bin/configurable-http-proxy",
            "STAFF": self.person.groups[0],
            # it looks for programs of its own on the path
            "PATH": f"{self.tools}/python/bin:{os.environ['PATH']}",
        }

    def command(self):
        return [self.python, "-m", "jupyterhub", "--config", str(self.folder / "hub.py")]

    def start(self):
        super().start()
        # the port of its site is that of its proxy
        self.await_port(self.hub_port)

    def expected_name(self):
        return self.person.login

    def begin(self, browser):
        page = super().begin(browser)
        # the page with the button that leads to the provider
        leads_on = next((link for link in page.links.values() if "oauth_login" in link), None)
        return browser.visit(self.site + leads_on) if leads_on else page

    def shown(self, browser):
        page = browser.visit(self.site + self.inside)
        if self.person.login not in page.text:
            raise Failed(f"the page of the hub: {page}")
        told = browser.visit(f"{self.site}/hub/api/user", headers={"Referer": f"{self.site}/hub/home"}).json()
        return Shown(told["name"], told["groups"])


class AuthJs(LocalSignOut, Node):
    name, package, callback = "authjs", "@auth/express", "/auth/callback/chancery"

    def begin(self, browser):
        page = super().begin(browser)
        return browser.submit(page, page.form(action="/auth/signin/chancery"))

    def leave(self, browser):
        page = browser.visit(f"{self.site}/auth/signout")
        return browser.submit(page, page.form(action="/auth/signout"))

    def is_out(self, browser, page):
        return browser.visit(self.site).form(action="/auth/signin/chancery") is not None


class BetterAuth(LocalSignOut, Node):
    name, callback = "better-auth", "/api/auth/callback/chancery"
    # it keeps the claims that it is told to keep
    reads_claims = False


class ExpressOpenidConnect(Node):
    name, goodbye = "express-openid-connect", "/bye"


class PassportOpenidconnect(LocalSignOut, Node):
    name = "passport-openidconnect"


class OidcClientTs(Node):
    """A page with script, in Chromium."""

    name, goodbye, is_public = "oidc-client-ts", "/bye", True

    def start(self):
        self.work.mkdir(parents=True)
        browser = os.environ["BROWSER_TOOLS"]
        self.copy_modules(HERE.parent / browser, self.folder, HERE.parent / "browser")
        library = self.tools / "node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js"
        (self.work / "library.js").write_bytes(library.read_bytes())
        (self.work / "page.html").write_bytes((self.folder / "page.html").read_bytes())

    def walk(self):
        told = {"ISSUER": BASE, "CLIENT_ID": self.app.id, "PORT": str(self.port), "CHANCERY_PATIENCE": str(PATIENCE)}
        told |= {"LOGIN": self.person.login, "PASSWORD": self.person.password, "NAME": self.person.name}
        told |= {"GROUPS": json.dumps(self.person.groups), "CLAIMS": json.dumps(self.expected_claims)}
        command = ["node", str(self.work / "walk.mjs")]
        done = subprocess.run(
            command, env=os.environ | told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE
        )
        (self.work / "output").write_text(done.stdout)
        for line in done.stdout.splitlines():
            if line.startswith("ok "):
                self.prove(line.removeprefix("ok").strip(), True)
        if done.returncode != 0:
            raise Failed("the walk in Chromium")


class GoOidc(Go):
    name, package, goodbye = "go-oidc", "github.com/coreos/go-oidc/v3", "/bye"


class Oauth2Proxy(Go):
    """A proxy before an application that reads headers."""

    name, package = "oauth2-proxy", "github.com/oauth2-proxy/oauth2-proxy/v7"
    callback, goodbye = "/oauth2/callback", "/oauth2/sign_in"
    # it tells the application the claims that it has headers for
    reads_claims = False

    def prepare(self):
        upstream = ThreadingHTTPServer(("127.0.0.1", 0), Headers)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        self.upstream = f"http://127.0.0.1:{upstream.server_port}/"

    def environment(self):
        return {"OAUTH2_PROXY_COOKIE_SECRET": "0123456789abcdef0123456789abcdef", "OAUTH2_PROXY_CLIENT_SECRET": self.app.secret}

    def command(self):
        return [
            *super().command(),
            "--provider=oidc",
            f"--oidc-issuer-url={BASE}",
            f"--client-id={self.app.id}",
            f"--redirect-url={self.site}{self.callback}",
            f"--http-address=127.0.0.1:{self.port}",
            f"--upstream={self.upstream}",
            "--email-domain=*",
            "--cookie-secure=false",
            # where it may lead to after its own sign-out
            f"--whitelist-domain={BASE.partition('//')[2]}",
        ]

    def expected_name(self):
        return self.person.login

    def begin(self, browser):
        page = super().begin(browser)
        form = page.form(action="/oauth2/start")
        return browser.submit(page, form) if form else page

    def leave(self, browser):
        query = {"client_id": self.app.id, "post_logout_redirect_uri": self.site + self.goodbye}
        leave = f"{BASE}/connect/endsession?{urlencode(query)}"
        return browser.visit(f"{self.site}/oauth2/sign_out?{urlencode({'rd': leave})}")


class Headers(BaseHTTPRequestHandler):
    """An application behind the proxy: it shows what the proxy says of the person."""

    def do_GET(self):
        told = {
            "name": self.headers["X-Forwarded-Preferred-Username"],
            "groups": (self.headers["X-Forwarded-Groups"] or "").split(","),
            "claims": {"email": self.headers["X-Forwarded-Email"]},
        }
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class SpringSecurity(Program):
    """A client and a resource server in one program: the second takes the access token of the first."""

    name, ecosystem = "spring-security", "Java"
    callback, goodbye = "/login/oauth2/code/chancery", "/bye"

    @classmethod
    def version(cls):
        pom = (HERE / cls.name / "pom.xml").read_text()
        return re.search(r"<parent>.*?<version>(.+?)</version>", pom, re.DOTALL)[1] + " (Spring Boot)"

    def command(self):
        # a short run ends before what the better compiler makes of it is ready
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(self.tools / "application.jar")]

    def look(self, browser):
        super().look(browser)
        token = browser.visit(f"{self.site}/token").text
        address = f"{self.site}/api/me"
        answer = requests.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
        refused = answer.headers.get("WWW-Authenticate", "")
        self.prove("the resource server takes the access token", answer.status_code == 200, f"{answer} {refused}")
        self.look_at_claims(answer.json()["claims"], "at the resource server")
        answer = requests.get(address, headers={"Authorization": f"Bearer {token[:-8]}AAAAAAAA"}, timeout=PATIENCE)
        self.prove("the resource server refuses a token that was changed", answer.status_code == 401, answer)

    def leave(self, browser):
        page = browser.visit(f"{self.site}/logout")
        return browser.submit(page, page.form(action="/logout"))


class ModAuthOpenidc(Program):
    """Apache shows what it tells the pages behind it, to the members of a group."""

    name, ecosystem = "mod_auth_openidc", "Apache"
    callback, goodbye, inside = "/inside/callback", "/bye.html", "/inside/index.html"

    @classmethod
    def version(cls):
        command = ["dpkg-query", "--show", "--showformat", "${Version}", "libapache2-mod-auth-openidc"]
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return found or "not installed"

    def environment(self):
        return {"STAFF": self.person.groups[0]}

    def prepare(self):
        (self.work / "site/inside").mkdir(parents=True)
        names = ["name", "groups", *self.expected_claims]
        page = "|".join(f'<!--#echo var="OIDC_CLAIM_{name}" -->' for name in names)
        (self.work / "site/inside/index.html").write_text(page)
        (self.work / "site/bye.html").write_text("Bye")

    def command(self):
        return ["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", str(self.folder / "site.conf")]

    def shown(self, browser):
        page = browser.visit(self.site + self.inside)
        if page.status != 200:
            raise Failed(f"the page: {page}")
        name, groups, *values = page.text.split("|")
        return Shown(name, groups.split(","), dict(zip(self.expected_claims, values, strict=True)))

    def leave(self, browser):
        return browser.visit(f"{self.site}{self.callback}?{urlencode({'logout': self.site + self.goodbye})}")


PROGRAMS = [
    MozillaDjangoOidc,
    Authlib,
    FlaskPyoidc,
    FlaskOidc,
    FlaskDance,
    FastapiSso,
    DashAuth,
    DjangoAllauth,
    SocialAuth,
    JupyterHub,
    AuthJs,
    BetterAuth,
    ExpressOpenidConnect,
    PassportOpenidconnect,
    OidcClientTs,
    GoOidc,
    Oauth2Proxy,
    SpringSecurity,
    ModAuthOpenidc,
]
