"""Flask with Authlib, as its documentation sets up a client for the web."""

import os

from authlib.integrations.flask_client import OAuth
from flask import Flask, redirect, session, url_for

app = Flask(__name__)
app.secret_key = "a text for the sessions of this check"
oauth = OAuth(app)
oauth.register(
    "chancery",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{os.environ['ISSUER']}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email"},
)


@app.get("/")
def inside():
    person = session.get("person")
    if person is None:
        return redirect("/login")
    return {"name": person["name"], "groups": person["groups"], "claims": person}


@app.get("/login")
def login():
    return oauth.chancery.authorize_redirect(url_for("callback", _external=True))


@app.get("/callback")
def callback():
    token = oauth.chancery.authorize_access_token()
    session["person"] = token["userinfo"]
    session["id_token"] = token["id_token"]
    return redirect("/")


@app.get("/logout")
def logout():
    hint = session.pop("id_token")
    session.clear()
    return oauth.chancery.logout_redirect(post_logout_redirect_uri=url_for("bye", _external=True), id_token_hint=hint)


@app.get("/bye")
def bye():
    return "Bye"


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
