"""The server's side: the person who signs in, her groups, and a client app with default settings for each program."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

BASE = os.environ.get("CHANCERY_BASE", "").rstrip("/")
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))

# The claims that claim rules add for every client app: one that programs must read, and a group beside those of the person.
RULES = {"department": "Archive", "groups": "by-rule"}


class Refused(Exception):
    """The server refused a call of the check itself."""


def send(method, path, body=None):
    request = urllib.request.Request(
        f"{BASE}/api/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['CHANCERY_TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as problem:
        raise Refused(f"{method} {path}: {problem.code} {problem.read().decode()}") from None


def manage(method, path, body=None):
    return send(method, f"management/v2/{path}", body)


def administer(method, path, body=None):
    return send(method, f"userstore/v2/default/administration/{path}", body)


def first(resource, name):
    """What the first start made."""
    return manage("GET", f"{resource}?filter=" + urllib.parse.quote(f'name eq "{name}"'))[0]


@dataclass(frozen=True)
class Person:
    """A person of the default store, with a name, a confirmed address and two groups."""

    login: str
    password: str
    email: str
    name: str
    groups: tuple


@dataclass(frozen=True)
class App:
    """A client app; `secret` is None if it is public."""

    id: str
    secret: str | None


def make_person(suffix):
    login, password = f"ann-{suffix}", "four lively grey herons"
    email = f"{login}@example.com"
    user = administer(
        "POST",
        "User",
        {
            "loginName": login,
            "emailAddress": email,
            "emailAddressConfirmed": True,
            "firstName": "Ann",
            "lastName": f"Heron {suffix}",
        },
    )
    administer("POST", f"User/{user['id']}/password/reset", {"newPassword": password})
    groups = (f"staff-{suffix}", f"archivists-{suffix}")
    for name in groups:
        group = administer("POST", "Group", {"name": name})
        administer("POST", f"Group/{group['id']}/users", {"relatedIds": [user["id"]]})
    return Person(login, password, email, f"Ann Heron {suffix}", groups)


def make_rules(suffix):
    """Claim rules that add the claims, for the client apps that are linked to them."""
    rules = [
        {
            "name": f"{name} {suffix}",
            "ruleType": "Add",
            "ruleLevel": "ClientApp",
            "typeTransformationReplacement": name,
            "valueTransformationReplacement": value,
            "destination": "IdTokenAndAccessToken",
        }
        for name, value in RULES.items()
    ]
    return [manage("POST", "ClaimRule", rule)["id"] for rule in rules]


def make_tenant(suffix, **options):
    """A tenant with these options, for the people of the default store."""
    tenant = manage("POST", "Tenant", {"name": f"tenant {suffix}", "subscriptionId": first("Tenant", "Default")["subscriptionId"]})
    for name, value in options.items():
        query = urllib.parse.quote(f'applyToTenantId eq "{tenant["id"]}" and name eq "{name}"')
        option = manage("GET", f"Option?filter={query}")[0]
        manage("PATCH", f"Option/{option['id']}", {"value": value, "concurrencyToken": option["concurrencyToken"]})
    manage("POST", f"IdpInstance/{first('IdpInstance', 'default')['id']}/tenants", {"relatedIds": [tenant["id"]]})
    return tenant["name"]


def make_app(name, redirects, is_public=False, rules=(), tenant="Default"):
    """A client app as the console makes it: a name, redirect URIs, groups, and the people of the default store. Nothing else is set."""
    members = {"isPublic": True} if is_public else {}
    app = manage("POST", "ClientApp", {"name": name, "includeGroupsClaims": True, **members})
    for purpose, uri in redirects.items():
        manage(
            "POST",
            "ClientAppRedirectUri",
            {"clientAppId": app["id"], "uri": uri, "redirectUriType": purpose},
        )
    manage("POST", f"ClientApp/{app['id']}/tenants", {"relatedIds": [first("Tenant", tenant)["id"]]})
    if rules:
        manage("POST", f"ClientApp/{app['id']}/claimrules", {"relatedIds": rules})
    instance = first("IdpInstance", "default")
    manage("POST", f"IdpInstance/{instance['id']}/clientapps", {"relatedIds": [app["id"]]})
    secret = None if is_public else manage("POST", "ClientAppSecret", {"clientAppId": app["id"]})["secret"]
    return App(app["id"], secret)
