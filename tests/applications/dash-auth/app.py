"""Dash with dash-auth, as its documentation sets up a provider of OpenID Connect."""

import os

from dash import Dash, html
from dash_auth import OIDCAuth
from flask import session

app = Dash(__name__)
app.layout = html.Div("Inside")
auth = OIDCAuth(app, secret_key="a text for the sessions of this check")
auth.register_provider(
    "chancery",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{os.environ['ISSUER']}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email"},
)


@app.server.get("/me")
def me():
    person = session["user"]
    return {"name": person["name"], "groups": person["groups"], "claims": person}


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
