"""Authlib signs a person in and out, through the pages, from what discovery tells.

    CHANCERY_BASE=... CHANCERY_APPS=FILE python authlib_client.py
"""

import os

# loopback
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.base_client import BaseApp, OAuth2Mixin, OAuthError, OpenIDMixin
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc import discovery, rpinitiated

from browser import Browser
from prove import APPS, BASE, prove

PERSON = APPS["person"]


class App(OAuth2Mixin, OpenIDMixin, BaseApp):
    """What Authlib's integrations are made of, without a framework."""

    client_cls = OAuth2Session


def sign_in_and_out(about, registered, issuer):
    app = App(
        None,
        client_id=registered["id"],
        client_secret=registered.get("secret"),
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
    )
    metadata = discovery.OpenIDProviderMetadata(app.load_server_metadata())
    metadata.validate(metadata_classes=[rpinitiated.OpenIDProviderMetadata])
    prove(f"{about}: metadata", metadata["issuer"] == issuer, metadata)

    browser = Browser(BASE)
    asked = app.create_authorization_url(PERSON["callback"])
    page = browser.visit(asked["url"])
    prove(f"{about}: a page asks for the password", page.asks_for_password, page)
    left = browser.submit(page, username=PERSON["name"], password=PERSON["password"])
    prove(f"{about}: back to the app", left.address.startswith(PERSON["callback"]), left)
    shown = {
        "redirect_uri": PERSON["callback"],
        "authorization_response": left.address,
        "state": asked["state"],
        "code_verifier": asked["code_verifier"],
    }
    token = app.fetch_access_token(**shown)
    expected = {"iss": issuer, "aud": registered["id"]}
    claims = app.parse_id_token(
        token,
        asked["nonce"],
        claims_options={name: {"essential": True, "value": value} for name, value in expected.items()},
    )
    prove(f"{about}: an ID token for the access token", "at_hash" in claims, claims)
    told = app.userinfo(token=token)
    is_same = told.sub == claims.sub and told.email == f"{PERSON['name']}@example.com"
    prove(f"{about}: the person's claims", is_same, told)

    leaving = app.create_logout_url(PERSON["goodbye"], id_token_hint=token["id_token"])
    gone = browser.visit(leaving["url"])
    prove(f"{about}: signed out without a page", gone.address == f"{PERSON['goodbye']}?state={leaving['state']}", gone)
    page = browser.visit(app.create_authorization_url(PERSON["callback"])["url"])
    prove(f"{about}: a page asks for the password again", page.asks_for_password, page)

    refused = None
    try:
        app.fetch_access_token(**shown)
    except OAuthError as problem:
        refused = problem.error
    prove(f"{about}: a code is good once", refused == "invalid_grant", refused)


for kind, registered in PERSON["apps"].items():
    sign_in_and_out(f"{kind} at the installation", registered, BASE)
    sign_in_and_out(f"{kind} at the tenant", registered, f"{BASE}/t/{PERSON['tenant']}")
