"""Flask with Flask-Dance, as its documentation sets up a provider of one's own."""

import os

# loopback
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

from flask import Flask, redirect, url_for
from flask_dance.consumer import OAuth2ConsumerBlueprint

ISSUER = os.environ["ISSUER"]
app = Flask(__name__)
app.secret_key = "a text for the sessions of this check"
chancery = OAuth2ConsumerBlueprint(
    "chancery",
    __name__,
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    base_url=f"{ISSUER}/connect/",
    authorization_url=f"{ISSUER}/connect/authorize",
    token_url=f"{ISSUER}/connect/token",
    scope=["openid", "profile", "email"],
    redirect_to="inside",
)
app.register_blueprint(chancery, url_prefix="/login")


@app.get("/")
def inside():
    if not chancery.session.authorized:
        return redirect(url_for("chancery.login"))
    person = chancery.session.get("userinfo").json()
    return {"name": person["name"], "groups": person["groups"], "claims": person}


@app.get("/logout")
def logout():
    del chancery.token
    return redirect("/bye")


@app.get("/bye")
def bye():
    return "Still here" if chancery.session.authorized else "Bye"


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
