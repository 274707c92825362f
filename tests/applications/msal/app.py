"""Flask with MSAL, by the authorization code flow of its documentation."""

import os
from urllib.parse import urlencode

import msal
from flask import Flask, redirect, request, session

ISSUER = os.environ["ISSUER"]
app = Flask(__name__)
app.secret_key = "a text for the sessions of this check"
caches, flows = {}, {}


def client():
    """MSAL keeps tokens and accounts in a cache, one for each person."""
    return msal.ConfidentialClientApplication(
        os.environ["CLIENT_ID"],
        client_credential=os.environ["CLIENT_SECRET"],
        oidc_authority=ISSUER,
        token_cache=caches.setdefault(session["key"], msal.TokenCache()),
    )


@app.get("/")
def inside():
    person = session.get("person")
    if person is None:
        return redirect("/login")
    return {"name": person["name"], "groups": person["groups"], "claims": person}


@app.get("/account")
def account():
    known, = client().get_accounts()
    renewed = client().acquire_token_silent(["email"], known, force_refresh=True)
    return {"username": known["username"], "renewed": "access_token" in renewed}


@app.get("/login")
def login():
    session["key"] = os.urandom(16).hex()
    flow = client().initiate_auth_code_flow(["email"], redirect_uri=f"{os.environ['SITE']}/callback")
    flows[session["key"]] = flow
    return redirect(flow["auth_uri"])


@app.get("/callback")
def callback():
    answer = client().acquire_token_by_auth_code_flow(flows.pop(session["key"]), request.args)
    if "error" in answer:
        return answer, 400
    session["person"], session["hint"] = answer["id_token_claims"], answer["id_token"]
    return redirect("/")


@app.get("/logout")
def logout():
    caches.pop(session["key"])
    hint = session["hint"]
    session.clear()
    query = {"post_logout_redirect_uri": f"{os.environ['SITE']}/bye", "id_token_hint": hint}
    return redirect(f"{ISSUER}/connect/endsession?{urlencode(query)}")


@app.get("/bye")
def bye():
    return "Bye"


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
