"""Makes the client apps that the checks use, and writes what they need to know as JSON.

    CHANCERY_BASE=... CHANCERY_TOKEN=... python prepare.py FILE
"""

import json
import os
import sys
import urllib.parse
import urllib.request

from jwskate import Jwk

BASE = os.environ["CHANCERY_BASE"].rstrip("/")
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))


def send(method, resource, body, service="management/v2"):
    request = urllib.request.Request(
        f"{BASE}/api/{service}/{resource}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['CHANCERY_TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def make(name, method, secret=True, key=False, configuration=None, **members):
    app = send("POST", "ClientApp", {"name": name, "allowClientCredentialLogin": True, **members})
    owner = {"clientAppId": app["id"]}
    told = {"id": app["id"], "name": name, "subscription": app["subscriptionId"]}
    configuration = {"tokenEndpointAuthMethod": method, **(configuration or {})}
    send("POST", "ClientAppAuthenticationConfiguration", owner | configuration)
    send("POST", "ClientAppRole", owner | {"roleType": "SystemAdmin"})
    send("POST", "ClientAppScope", owner | {"key": "read"})
    if secret:
        told["secret"] = send("POST", "ClientAppSecret", owner)["secret"]
    if key:
        private = Jwk.generate(alg="ES256").with_kid_thumbprint()
        told["key"] = dict(private)
        public = json.dumps({"keys": [dict(private.public_jwk())]})
        send("POST", "ClientAppKeySet", owner | {"use": "Signing", "status": "Active", "jwks": public})
    return told


def offer_no_passkeys():
    """The clients' people have none, and click through no offer of one."""
    wanted = urllib.parse.quote('name eq "PasskeyEnrolment"')
    for option in send("GET", f"Option?filter={wanted}", None):
        token = {"concurrencyToken": option["concurrencyToken"]}
        send("PATCH", f"Option/{option['id']}", {"value": "Off", **token})


offer_no_passkeys()
suffix = sys.argv[2]
bound = {"dpopBoundAccessTokens": True}
apps = {
    "basic": make(f"basic {suffix}", "client_secret_basic"),
    "post": make(f"post {suffix}", "client_secret_post"),
    "secret_jwt": make(f"secret jwt {suffix}", "client_secret_jwt"),
    "private_key": make(f"private key {suffix}", "private_key_jwt", secret=False, key=True),
    "reference": make(f"reference {suffix}", "client_secret_basic", accessTokenType="Reference"),
    "dpop": make(f"dpop {suffix}", "client_secret_basic", configuration=bound),
    "nonce": make(
        f"nonce {suffix}",
        "private_key_jwt",
        secret=False,
        key=True,
        configuration=bound | {"requireDpopNonce": True},
    ),
}
path = f"ClientApp/{apps['basic']['id']}/allowedtokenexchangeclientapps"
send("POST", path, {"relatedIds": [apps["post"]["id"]]})
# two tenants, each with a client app of its own
for name in ["one", "two"]:
    app = apps[name] = make(f"{name} {suffix}", "client_secret_basic")
    body = {"name": f"{name} {suffix}", "subscriptionId": app["subscription"]}
    app["tenant"] = send("POST", "Tenant", body)["id"]
    send("POST", f"ClientApp/{app['id']}/tenants", {"relatedIds": [app["tenant"]]})


def first(resource, name):
    """What the first start made."""
    return send("GET", f"{resource}?filter=name%20eq%20%22{name}%22", None)[0]


def sign_in_app(name, uris, **members):
    """An app that the people of the default store sign in to."""
    app = send("POST", "ClientApp", {"name": f"{name} {suffix}", **members})
    owner = {"clientAppId": app["id"]}
    for purpose, uri in uris.items():
        send("POST", "ClientAppRedirectUri", owner | {"uri": uri, "redirectUriType": purpose})
    send("POST", f"ClientApp/{app['id']}/tenants", {"relatedIds": [first("Tenant", "Default")["id"]]})
    instance = first("IdpInstance", "default")
    send("POST", f"IdpInstance/{instance['id']}/clientapps", {"relatedIds": [app["id"]]})
    told = {"id": app["id"]}
    if not app["isPublic"]:
        told["secret"] = send("POST", "ClientAppSecret", owner)["secret"]
    return told


def person():
    """A user of the default store, and two apps to sign in to."""
    callback, goodbye = "https://app.example/callback", "https://app.example/bye"
    name, password = f"ann-{suffix}", "four lively grey herons"
    users = "administration/User"
    user = send("POST", users, {"loginName": name, "emailAddress": f"{name}@example.com"}, "userstore/v2/default")
    reset = f"{users}/{user['id']}/password/reset"
    send("POST", reset, {"newPassword": password}, "userstore/v2/default")
    uris = {"Login": callback, "Logout": goodbye}
    told = {"name": name, "password": password, "callback": callback, "goodbye": goodbye}
    told["tenant"] = first("Tenant", "Default")["id"]
    told["apps"] = {
        "confidential": sign_in_app("confidential", uris),
        "public": sign_in_app("public", uris, isPublic=True),
    }
    return told


def web_server():
    """Apache, which lets people be asked before they are signed out."""
    site = f"http://localhost:{os.environ['APACHE_PORT']}"
    uris = {"Login": f"{site}/secure/callback", "Logout": f"{site}/bye"}
    return sign_in_app("apache", uris, logoutConsent="Explicit") | {"site": site, "goodbye": uris["Logout"]}


apps["person"] = person()
apps["apache"] = web_server()
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(apps, file)
