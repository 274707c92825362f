"""requests-oauth2client gets tokens in every way, and uses them.

    CHANCERY_BASE=... CHANCERY_APPS=FILE python requests_client.py
"""

import requests
from jwskate import Jwk
from requests_oauth2client import (
    ClientSecretBasic,
    ClientSecretJwt,
    ClientSecretPost,
    OAuth2Client,
    PrivateKeyJwt,
    exceptions,
)

from prove import APPS, BASE, prove

USERS = f"{BASE}/api/userstore/v2/default/administration/User?count=1"
METADATA = requests.get(f"{BASE}/.well-known/openid-configuration", timeout=30).json()


def client(authentication, **options):
    return OAuth2Client(
        token_endpoint=METADATA["token_endpoint"],
        introspection_endpoint=METADATA["introspection_endpoint"],
        revocation_endpoint=METADATA["revocation_endpoint"],
        jwks_uri=METADATA["jwks_uri"],
        issuer=METADATA["issuer"],
        auth=authentication,
        # loopback
        testing=True,
        **options,
    )


def refused(what, problem, asking):
    try:
        asking()
    except problem:
        prove(what, True)
        return
    prove(what, False, "it was not refused")


def private_key(name):
    return PrivateKeyJwt(APPS[name]["id"], Jwk(APPS[name]["key"]), alg="ES256")


def status(token):
    return requests.get(USERS, auth=token, timeout=30).status_code


WAYS = {
    "basic": ClientSecretBasic(APPS["basic"]["id"], APPS["basic"]["secret"]),
    "post": ClientSecretPost(APPS["post"]["id"], APPS["post"]["secret"]),
    "secret_jwt": ClientSecretJwt(APPS["secret_jwt"]["id"], APPS["secret_jwt"]["secret"]),
    "private_key": private_key("private_key"),
    "reference": ClientSecretBasic(APPS["reference"]["id"], APPS["reference"]["secret"]),
}
for name, authentication in WAYS.items():
    asking = client(authentication)
    token = asking.client_credentials(scope="read")
    prove(f"{name}: a token", token.token_type == "Bearer" and token.scope == "read", token)
    prove(f"{name}: it is used", status(token) == 200)
    told = asking.introspect_token(token)
    prove(f"{name}: introspection", told["active"] and told["client_id"] == APPS[name]["id"], told)
    prove(f"{name}: revocation", asking.revoke_access_token(token))
    prove(f"{name}: it is used no more", status(token) == 401)

for name, authentication in (
    ("dpop", ClientSecretBasic(APPS["dpop"]["id"], APPS["dpop"]["secret"])),
    ("nonce", private_key("nonce")),
):
    asking = client(authentication, dpop_bound_access_tokens=True)
    token = asking.client_credentials()
    prove(f"{name}: a token", token.token_type == "DPoP", token.token_type)
    prove(f"{name}: it is used", status(token) == 200)
    prove(f"{name}: it is used again", status(token) == 200)
    alone = {"Authorization": f"Bearer {token.access_token}"}
    answer = requests.get(USERS, headers=alone, timeout=30)
    prove(f"{name}: it is none without its key", answer.status_code == 401)

subject = client(WAYS["basic"]).client_credentials(scope="read")
exchanged = client(WAYS["post"]).token_exchange(subject_token=subject, subject_token_type="access_token")
prove("exchange: a token", status(exchanged) == 200)
refused(
    "exchange: not by others",
    exceptions.UnauthorizedClient,
    lambda: client(WAYS["private_key"]).token_exchange(subject_token=subject, subject_token_type="access_token"),
)
refused(
    "a wrong secret",
    exceptions.InvalidClient,
    lambda: client(ClientSecretBasic(APPS["basic"]["id"], "wrong")).client_credentials(),
)
