"""Passkeys with a foreign implementation: registers and uses a credential of soft-webauthn with a
running server, then lies in every part of an answer and wants each lie refused.

    CHANCERY_BASE=http://localhost:8080 CHANCERY_TOKEN=... python foreign.py

The token is a SystemAdmin's; options of the user store `default` are changed.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from soft_webauthn import SoftWebauthnDevice

# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
ORIGIN = "https://passkeys.example"
RELYING_PARTY = "passkeys.example"
ADMINISTRATION = "/api/userstore/v2/default/administration"
OPTIONS = "/api/management/v2/Option"
AUTHENTICATION = "/PasskeyCredential/authentication"


class Failed(Exception):
    """Something does not hold."""


def prove(what, holds, detail=""):
    if not holds:
        raise Failed(f"{what}: {detail}")
    print(f"ok      {what}", flush=True)


def send(method, path, body=None):
    request = urllib.request.Request(
        os.environ["CHANCERY_BASE"].rstrip("/") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {os.environ['CHANCERY_TOKEN']}"}
        | ({} if body is None else {"Content-Type": "application/json"}),
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers.get_content_type(), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get_content_type(), error.read()


def call(method, path, body, wanted):
    status, _, content = send(method, path, body)
    if status != wanted:
        raise Failed(f"{method} {path} answered {status} instead of {wanted}: {content[:500]!r}")
    return json.loads(content) if content else None


def refused(what, path, body):
    status, kind, content = send("PUT", ADMINISTRATION + path, body)
    right = 400 <= status < 500 and kind == "application/problem+json"
    prove(f"{what} is refused ({status})", right, f"{status} {kind} {content[:500]!r}")


def set_options(**values):
    for name, value in values.items():
        query = urllib.parse.quote(f'name eq "{name}"')
        rows = call("GET", f"{OPTIONS}?filter={query}", None, 200)
        if len(rows) != 1:
            raise Failed(f"there are {len(rows)} options named {name}")
        patch = {"value": value, "concurrencyToken": rows[0]["concurrencyToken"]}
        call("PATCH", f"{OPTIONS}/{rows[0]['id']}", patch, 202)


def from_text(text):
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def to_text(value):
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def start(path, body=None):
    """Starts a ceremony: its options as soft-webauthn takes them, and where it ends."""
    started = call("POST", ADMINISTRATION + path, body, 200)
    options = started["publicKey"]
    options["challenge"] = from_text(options["challenge"])
    if "user" in options:
        options["user"]["id"] = from_text(options["user"]["id"])
    return {"publicKey": options}, f"{path}/{started['ceremonyId']}"


def as_json(credential):
    """What `PublicKeyCredential.toJSON()` makes of an answer."""
    response = {
        name: to_text(value) for name, value in credential["response"].items() if value is not None
    }
    identifier = to_text(credential["rawId"])
    return {
        "id": identifier,
        "rawId": identifier,
        "type": credential["type"],
        "response": response,
        "clientExtensionResults": {},
    }


def sign(device, credential):
    """Signs an answer anew, after something in it was changed."""
    response = credential["response"]
    signed = response["authenticatorData"] + sha256(response["clientDataJSON"]).digest()
    response["signature"] = device.private_key.sign(signed, ec.ECDSA(hashes.SHA256()))


def client_data(**lie):
    def change(credential):
        data = json.loads(credential["response"]["clientDataJSON"]) | lie
        credential["response"]["clientDataJSON"] = json.dumps(data).encode()

    return change


def authenticator_data(start_at, replacement):
    def change(credential):
        data = bytearray(credential["response"]["authenticatorData"])
        data[start_at : start_at + len(replacement)] = replacement
        credential["response"]["authenticatorData"] = bytes(data)

    return change


def another_user(credential):
    credential["response"]["userHandle"] = os.urandom(16)


# What lies about a sign-in although its signature is right.
LIES = {
    "another challenge": client_data(challenge=to_text(bytes(32))),
    "another origin": client_data(origin="https://evil.example"),
    "an origin with another port": client_data(origin=ORIGIN + ":444"),
    "an origin below": client_data(origin="https://below.passkeys.example"),
    "a framed page": client_data(crossOrigin=True),
    "the type of the other ceremony": client_data(type="webauthn.create"),
    "another relying party": authenticator_data(0, sha256(b"evil.example").digest()),
    "nobody present": authenticator_data(32, b"\x04"),
    "a backup state without eligibility": authenticator_data(32, b"\x11"),
    "a changed backup eligibility": authenticator_data(32, b"\x09"),
    "an equal counter": authenticator_data(33, (1).to_bytes(4, "big")),
    "a lower counter": authenticator_data(33, (0).to_bytes(4, "big")),
    "another user": another_user,
}


def register(user, device, origin=ORIGIN):
    options, end = start(f"/PasskeyCredential/user/{user['id']}/registration")
    return device.create(options, origin), end


def registrations(user):
    credential, end = register(user, SoftWebauthnDevice(), "https://evil.example")
    refused("a registration of another origin", end, as_json(credential))
    credential, end = register(user, SoftWebauthnDevice())
    client_data(challenge=to_text(bytes(32)))(credential)
    refused("a registration for another challenge", end, as_json(credential))
    credential, end = register(user, SoftWebauthnDevice())
    honest = sha256(RELYING_PARTY.encode()).digest()
    broken = credential["response"]["attestationObject"].replace(honest, sha256(b"evil.example").digest())
    credential["response"]["attestationObject"] = broken
    refused("a registration for another relying party", end, as_json(credential))
    credential, end = register(user, SoftWebauthnDevice())
    credential["response"]["attestationObject"] = credential["response"]["attestationObject"][:-1]
    refused("a registration that is cut off", end, as_json(credential))
    _, end = register(user, SoftWebauthnDevice())
    refused("a registration without an answer", end, {})


def authentications(user, device):
    options, end = start(AUTHENTICATION, {"loginName": user["loginName"]})
    credential = as_json(device.get(options, ORIGIN))
    result = call("PUT", ADMINISTRATION + end, credential, 200)
    prove("soft-webauthn signs in with a login name", result["userId"] == user["id"], result)
    refused("the same answer again", end, credential)
    for what, lie in LIES.items():
        options, end = start(AUTHENTICATION, {"loginName": user["loginName"]})
        device.sign_count = max(device.sign_count, 1)
        credential = device.get(options, ORIGIN)
        lie(credential)
        sign(device, credential)
        refused(f"a sign-in with {what}", end, as_json(credential))
    options, end = start(AUTHENTICATION, {"loginName": user["loginName"]})
    credential = device.get(options, ORIGIN)
    authenticator_data(33, (2**31).to_bytes(4, "big"))(credential)
    refused("a sign-in whose counter is not signed", end, as_json(credential))
    options, end = start(AUTHENTICATION, {"loginName": user["loginName"]})
    credential = device.get(options, ORIGIN)
    signature = bytearray(credential["response"]["signature"])
    signature[-1] ^= 1
    credential["response"]["signature"] = bytes(signature)
    refused("a sign-in with a broken signature", end, as_json(credential))
    options, end = start(AUTHENTICATION, {})
    result = call("PUT", ADMINISTRATION + end, as_json(device.get(options, ORIGIN)), 200)
    prove("soft-webauthn signs in without a login name, after all that", result["userId"] == user["id"], result)


def main():
    set_options(
        PasskeyEnabled="true",
        PasskeyRelyingPartyId=RELYING_PARTY,
        PasskeyAllowedOrigins=ORIGIN,
        PasskeyUserVerification="discouraged",
        PasskeyAttestation="none",
    )
    name = f"soft-{int(time.time() * 1000)}"
    user = call("POST", f"{ADMINISTRATION}/User", {"loginName": name}, 201)
    registrations(user)
    device = SoftWebauthnDevice()
    credential, end = register(user, device)
    passkey = call("PUT", ADMINISTRATION + end, as_json(credential), 201)
    prove("soft-webauthn registers a passkey", passkey["userId"] == user["id"], passkey)
    prove("its make is unknown", passkey["aaguidHex"] == "00" * 16, passkey)
    authentications(user, device)
    set_options(PasskeyUserVerification="required")
    options, end = start(AUTHENTICATION, {"loginName": user["loginName"]})
    refused("a sign-in that verified no user", end, as_json(device.get(options, ORIGIN)))
    credential, end = register(user, SoftWebauthnDevice())
    refused("a registration that verified no user", end, as_json(credential))
    set_options(PasskeyBlockedAaguids="00000000-0000-0000-0000-000000000000", PasskeyUserVerification="discouraged")
    credential, end = register(user, SoftWebauthnDevice())
    refused("a blocked make", end, as_json(credential))
    options, end = start(AUTHENTICATION, {"loginName": user["loginName"]})
    refused("a sign-in with a make that was blocked since", end, as_json(device.get(options, ORIGIN)))
    set_options(PasskeyBlockedAaguids="")


try:
    main()
except Failed as failed:
    print(f"FAILED  {failed}", file=sys.stderr)
    sys.exit(1)
