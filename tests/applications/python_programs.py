"""The programs in Python: how each is started, and what differs in signing in, looking and signing out."""

import json
import os
import subprocess

from chancery import BASE, PATIENCE, first
from kinds import InChromium, LocalSignOut, Python
from program import Failed, Shown, free_port


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


class Authlib(Python):
    name, goodbye = "authlib", "/bye"


class FlaskPyoidc(Python):
    name, goodbye = "flask-pyoidc", "/logout"


class FlaskOidc(LocalSignOut, Python):
    name, callback, inside = "flask-oidc", "/authorize", "/inside"


class FlaskDance(LocalSignOut, Python):
    name, callback = "flask-dance", "/login/chancery/authorized"


class FastapiSso(LocalSignOut, Python):
    name = "fastapi-sso"


class DashAuth(LocalSignOut, Python):
    name, package, callback = "dash-auth", "dash_auth", "/oidc/chancery/callback"
    inside, outside = "/me", "/oidc/logout"

    def is_out(self, browser, page):
        return "logged out" in page.text.lower()


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
    own_members = frozenset({"access_token", "id_token", "_oidc_id_token_context"})

    def environment(self):
        return {"CLAIMS": " ".join(["groups", *self.expected_claims])}

    def begin(self, browser):
        page = super().begin(browser)
        form = page.form(action="/login/oidc/")
        return browser.submit(page, form) if form else page


class Streamlit(InChromium, Python):
    # it asks to be led back to its callback, which leads on
    name, callback, goodbye, landing = "streamlit", "/oauth2callback", "/oauth2callback", "/"
    outside = None

    def prepare(self):
        settings = {
            "redirect_uri": self.site + self.callback,
            "cookie_secret": "a text for the sessions of this check",
            "client_id": self.app.id,
            "client_secret": self.app.secret,
            "server_metadata_url": f"{BASE}/.well-known/openid-configuration",
        }
        (self.work / ".streamlit").mkdir()
        lines = ["[auth]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]
        (self.work / ".streamlit/secrets.toml").write_text("\n".join(lines))

    def command(self):
        settings = ["--server.address=127.0.0.1", f"--server.port={self.port}", "--server.headless=true"]
        settings += ["--browser.serverAddress=localhost", "--browser.gatherUsageStats=false", "--server.fileWatcherType=none"]
        return [self.python, "-m", "streamlit", "run", str(self.folder / "app.py"), *settings]


class Panel(InChromium, LocalSignOut, Python):
    name, callback, inside, outside = "panel", "/login", "/app", "/logout"

    def environment(self):
        return {"PANEL_OAUTH_SCOPE": "openid profile email"}

    def command(self):
        addresses = {
            "AUTHORIZE_URL": f"{BASE}/connect/authorize",
            "TOKEN_URL": f"{BASE}/connect/token",
            "USER_URL": f"{BASE}/connect/userinfo",
        }
        return [
            *(self.python, "-m", "panel", "serve", str(self.folder / "app.py")),
            *("--address=127.0.0.1", f"--port={self.port}", f"--allow-websocket-origin=localhost:{self.port}"),
            "--oauth-provider=generic",
            f"--oauth-key={self.app.id}",
            f"--oauth-secret={self.app.secret}",
            f"--oauth-redirect-uri={self.site}{self.callback}",
            f"--oauth-extra-params={addresses}",
            "--cookie-secret=a text for the sessions of this check",
        ]


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


class Msal(Python):
    """It wants an issuer with a path, as tenants have, and keeps an account for each person."""

    name, goodbye, wants_https = "msal", "/bye", True

    def environment(self):
        return {"ISSUER": f"{BASE}/t/{first('Tenant', 'Default')['id']}"}

    def look(self, browser):
        super().look(browser)
        told = browser.visit(f"{self.site}/account").json()
        self.prove("the account has the login name", told["username"] == self.person.login, told)
        self.prove("it renews its tokens without the person", told["renewed"], told)
