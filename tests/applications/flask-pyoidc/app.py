"""Flask with Flask-pyoidc, as its documentation sets up a client that is registered already."""

import os

from flask import Flask, session
from flask_pyoidc import OIDCAuthentication
from flask_pyoidc.provider_configuration import ClientMetadata, ProviderConfiguration
from flask_pyoidc.user_session import UserSession

SITE = os.environ["SITE"]
app = Flask(__name__)
app.config.update(
    OIDC_REDIRECT_URI=f"{SITE}/callback",
    SECRET_KEY="a text for the sessions of this check",
)
provider = ProviderConfiguration(
    issuer=os.environ["ISSUER"],
    client_metadata=ClientMetadata(
        os.environ["CLIENT_ID"],
        os.environ["CLIENT_SECRET"],
        post_logout_redirect_uris=[f"{SITE}/logout"],
    ),
    auth_request_params={"scope": ["openid", "profile", "email"]},
)
auth = OIDCAuthentication({"chancery": provider}, app)


@app.get("/")
@auth.oidc_auth("chancery")
def inside():
    person = UserSession(session)
    told = person.userinfo
    return {"name": told["name"], "groups": told["groups"], "claims": person.id_token}


@app.get("/logout")
@auth.oidc_logout
def logout():
    return "Bye"


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
