"""Flask with flask-oidc, as its documentation sets it up."""

import os

from flask import Flask, g
from flask_oidc import OpenIDConnect

ISSUER, SITE = os.environ["ISSUER"], os.environ["SITE"]
app = Flask(__name__)
app.config.update(
    SECRET_KEY="a text for the sessions of this check",
    OIDC_CLIENT_SECRETS={
        "web": {
            "issuer": ISSUER,
            "client_id": os.environ["CLIENT_ID"],
            "client_secret": os.environ["CLIENT_SECRET"],
            "auth_uri": f"{ISSUER}/connect/authorize",
            "token_uri": f"{ISSUER}/connect/token",
            "userinfo_uri": f"{ISSUER}/connect/userinfo",
            "redirect_uris": [f"{SITE}/authorize"],
        }
    },
    OIDC_SCOPES="openid profile email",
)
oidc = OpenIDConnect(app)


@app.get("/")
def home():
    return "Still here" if oidc.user_loggedin else "Bye"


@app.get("/inside")
@oidc.require_login
def inside():
    person = g.oidc_user
    # its `name` is the nickname, which not everybody has
    return {"name": person.profile["name"], "groups": person.groups, "claims": person.profile}


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
