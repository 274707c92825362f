"""Apache with mod_auth_openidc shows a page to those who sign in, and signs them out here and there.

    CHANCERY_BASE=... CHANCERY_APPS=FILE APACHE_PORT=... python apache_client.py FOLDER

Where root starts it, another user must be able to reach the folder.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from browser import Browser
from prove import APPS, BASE, Failed, prove

# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
PERSON, APP = APPS["person"], APPS["apache"]
FOLDER = Path(sys.argv[1])
CLAIMS = ["REMOTE_USER", "OIDC_CLAIM_preferred_username", "OIDC_CLAIM_email"]


def begin(issuer):
    """Starts Apache in an empty folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "site/secure").mkdir(parents=True)
    page = " ".join(f'<!--#echo var="{name}" -->' for name in CLAIMS)
    (FOLDER / "site/secure/index.html").write_text(page, encoding="utf-8")
    (FOLDER / "site/bye").write_text("Bye", encoding="utf-8")
    told = {"FOLDER": str(FOLDER), "ISSUER": issuer, "CLIENT_ID": APP["id"], "CLIENT_SECRET": APP["secret"]}
    configuration = str(Path(__file__).with_name("apache.conf"))
    return subprocess.Popen(
        ["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", configuration],
        env=os.environ | {f"APACHE_{name}": value for name, value in told.items()},
    )


def errors():
    file = FOLDER / "errors"
    return file.read_text(encoding="utf-8") if file.exists() else ""


@contextmanager
def apache(issuer):
    """Runs Apache for as long as the block takes."""
    process = begin(issuer)
    try:
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            with socket.socket() as knocking:
                if knocking.connect_ex(("127.0.0.1", int(os.environ["APACHE_PORT"]))) == 0:
                    break
            time.sleep(0.1)
        else:
            raise Failed(f"Apache does not start: {errors()}")
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def sign_in_and_out(about, issuer):
    browser = Browser(BASE, APP["site"])
    secure = f"{APP['site']}/secure/index.html"
    page = browser.visit(secure)
    prove(f"{about}: a page asks for the password", page.asks_for_password, page)
    has_challenge = any("code_challenge_method=S256" in address for address in browser.trail)
    prove(f"{about}: PKCE is used", has_challenge, browser.trail)
    page = browser.submit(page, username=PERSON["name"], password=PERSON["password"])
    prove(f"{about}: the page that was asked for", page.address == secure and page.status == 200, page)
    user, name, email = page.text.split()
    is_told = user.endswith(f"@{issuer}") and (name, email) == (PERSON["name"], f"{PERSON['name']}@example.com")
    prove(f"{about}: it knows who asks", is_told, page)

    page = browser.visit(f"{APP['site']}/secure/callback?logout={APP['goodbye']}")
    prove(f"{about}: the server asks before it signs out", page.address.startswith(BASE) and page.form.action, page)
    page = browser.submit(page, decision="allow")
    prove(f"{about}: signed out", page.address == APP["goodbye"], page)
    page = browser.visit(secure)
    prove(f"{about}: a page asks for the password again", page.asks_for_password, page)


for place, issuer in {"the installation": BASE, "the tenant": f"{BASE}/t/{PERSON['tenant']}"}.items():
    with apache(issuer):
        sign_in_and_out(place, issuer)
    complaints = [line for line in errors().splitlines() if re.search(r":(warn|error|crit|alert|emerg)\]", line)]
    # that addresses are not https, which on loopback is right
    others = [line for line in complaints if 'SHOULD be "https"' not in line]
    prove(f"{place}: Apache has nothing to complain about", not others, others)
