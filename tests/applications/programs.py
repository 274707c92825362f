"""The programs of the other ecosystems, and the list of all."""

import json
import re
import subprocess
from urllib.parse import urlencode

import requests

import python_programs as python
from chancery import BASE, PATIENCE
from kinds import Go, InChromium, LocalSignOut, Node, serve
from program import HERE, Failed, Program, Shown


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
    own_members = frozenset({"id", "createdAt", "updatedAt"})


class ExpressOpenidConnect(Node):
    name, goodbye = "express-openid-connect", "/bye"


class OpenidClient(Node):
    name, goodbye = "openid-client", "/bye"


class PassportOpenidconnect(LocalSignOut, Node):
    name = "passport-openidconnect"


class OidcClientTs(InChromium, Node):
    """A page with script alone, which is served here."""

    name, goodbye, is_public = "oidc-client-ts", "/bye", True
    outside = None

    def start(self):
        self.work.mkdir(parents=True)
        library = self.tools / "node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js"
        settings = {"authority": BASE, "client_id": self.app.id}
        if self.asks_userinfo:
            settings["loadUserInfo"] = True
        files = {
            "/library.js": ("text/javascript", library.read_bytes()),
            "/settings": ("application/json", json.dumps(settings).encode()),
        }
        page = ("text/html", (self.folder / "page.html").read_bytes())
        serve(lambda request: files.get(request.path, page), self.port)


class GoOidc(Go):
    name, package, goodbye = "go-oidc", "github.com/coreos/go-oidc/v3", "/bye"


class Oauth2Proxy(Go):
    """A proxy before an application that reads headers."""

    name, package = "oauth2-proxy", "github.com/oauth2-proxy/oauth2-proxy/v7"
    callback, goodbye = "/oauth2/callback", "/oauth2/sign_in"
    # it tells the application the claims that it has headers for
    reads_claims = False

    def prepare(self):
        self.upstream = serve(self.show_headers)

    @staticmethod
    def show_headers(request):
        told = {
            "name": request.headers["X-Forwarded-Preferred-Username"],
            "groups": (request.headers["X-Forwarded-Groups"] or "").split(","),
            "claims": {"email": request.headers["X-Forwarded-Email"]},
        }
        return "application/json", json.dumps(told).encode()

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
            f"--upstream=http://127.0.0.1:{self.upstream}/",
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
        self.look_at_claims(answer.json()["claims"], "resource server")
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
    python.MozillaDjangoOidc,
    python.Authlib,
    python.FlaskPyoidc,
    python.FlaskOidc,
    python.FlaskDance,
    python.FastapiSso,
    python.DashAuth,
    python.DjangoAllauth,
    python.SocialAuth,
    python.Streamlit,
    python.Panel,
    python.JupyterHub,
    python.Msal,
    AuthJs,
    BetterAuth,
    ExpressOpenidConnect,
    PassportOpenidconnect,
    OpenidClient,
    OidcClientTs,
    GoOidc,
    Oauth2Proxy,
    SpringSecurity,
    ModAuthOpenidc,
]
