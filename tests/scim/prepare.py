"""Makes what a directory provisions, with a token, and prints the token and the address under the server's.

    CHANCERY_BASE=... CHANCERY_TOKEN=... python prepare.py HOME

`provider` is a new instance of type OpenIdConnect, `store` the store named default.
"""

import json
import os
import secrets
import sys
import urllib.parse
import urllib.request

BASE = os.environ["CHANCERY_BASE"].rstrip("/")
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
MANAGEMENT = "/api/management/v2"
STORE = "/api/userstore/v2/default/administration"


def send(method, path, body=None):
    request = urllib.request.Request(
        BASE + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['CHANCERY_TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def options(instance):
    condition = urllib.parse.quote(f'applyToIdpInstanceId eq "{instance["id"]}"')
    rows = send("GET", f"{MANAGEMENT}/Option?filter={condition}&count=500")
    return {row["name"]: row for row in rows}


def set_options(instance, **values):
    rows = options(instance)
    for name, value in values.items():
        body = {"value": value, "concurrencyToken": rows[name]["concurrencyToken"]}
        send("PATCH", f"{MANAGEMENT}/Option/{rows[name]['id']}", body)


def lift_limits(instance):
    """The suites send faster than one directory may, and delete what they made."""
    set_options(instance, ScimRateLimit="100000", ScimMassChangeLimit="100000")


def provider():
    kind = next(one["id"] for one in send("GET", f"{MANAGEMENT}/IdpType?count=500") if one["name"] == "OpenIdConnect")
    body = {"name": f"directory-{secrets.token_hex(4)}", "idpTypeId": kind}
    instance = send("POST", f"{MANAGEMENT}/IdpInstance", body)
    mandatory = {"Authority": "https://directory.example.com", "ClientId": "us", "ClientSecret": "quiet"}
    set_options(instance, ScimEnabled="true", **mandatory)
    lift_limits(instance)
    send("POST", f"{MANAGEMENT}/IdpInstance/{instance['id']}/scim/token")
    return options(instance)["ScimToken"]["value"], instance["id"]


def store():
    condition = urllib.parse.quote('name eq "default"')
    lift_limits(send("GET", f"{MANAGEMENT}/IdpInstance?filter={condition}")[0])
    token = send("POST", f"{STORE}/ScimToken", {"name": f"directory {secrets.token_hex(4)}"})
    return token["token"], "default"


if __name__ == "__main__":
    token, named = {"provider": provider, "store": store}[sys.argv[1]]()
    print(token, f"/api/scim/v2/{named}")
