"""FastAPI with fastapi-sso, as its documentation sets up a provider of one's own."""

import os
import secrets

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi_sso.sso.base import OpenID
from fastapi_sso.sso.generic import create_provider

ISSUER = os.environ["ISSUER"]


class Person(OpenID):
    """What is kept of somebody."""

    claims: dict = {}


def convert(claims, _session=None):
    return Person(id=claims["sub"], email=claims["email"], display_name=claims["name"], provider="chancery", claims=claims)


Chancery = create_provider(
    name="chancery",
    default_scope=["openid", "profile", "email"],
    discovery_document={
        "authorization_endpoint": f"{ISSUER}/connect/authorize",
        "token_endpoint": f"{ISSUER}/connect/token",
        "userinfo_endpoint": f"{ISSUER}/connect/userinfo",
    },
    response_convertor=convert,
)
chancery = Chancery(
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    redirect_uri=f"{os.environ['SITE']}/callback",
    allow_insecure_http=True,
)
app = FastAPI()
people = {}


@app.get("/")
async def inside(request: Request):
    person = people.get(request.cookies.get("person"))
    if person is None:
        async with chancery:
            return await chancery.get_login_redirect()
    return {"name": person.display_name, "groups": person.claims["groups"], "claims": person.claims}


@app.get("/callback")
async def callback(request: Request):
    async with chancery:
        person = await chancery.verify_and_process(request)
    key = secrets.token_urlsafe()
    people[key] = person
    answer = RedirectResponse("/")
    answer.set_cookie("person", key)
    return answer


@app.get("/logout")
async def logout(request: Request):
    people.pop(request.cookies.get("person"), None)
    return RedirectResponse("/bye")


@app.get("/bye")
async def bye(request: Request):
    return PlainTextResponse("Still here" if request.cookies.get("person") in people else "Bye")


uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
