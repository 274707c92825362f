"""Django with mozilla-django-oidc, as its documentation sets it up: a project in one file.

    python project.py migrate | runserver
"""

import os
import sys
from urllib.parse import urlencode

import django
from django.conf import settings
from django.core.management import execute_from_command_line

ISSUER, SITE = os.environ["ISSUER"], os.environ["SITE"]
settings.configure(
    DEBUG=False,
    ALLOWED_HOSTS=["localhost"],
    SECRET_KEY="a text for the sessions of this check",
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{os.environ['FOLDER']}/site.sqlite"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "mozilla_django_oidc",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    AUTHENTICATION_BACKENDS=[f"{__name__}.Backend"],
    OIDC_RP_CLIENT_ID=os.environ["CLIENT_ID"],
    OIDC_RP_CLIENT_SECRET=os.environ["CLIENT_SECRET"],
    OIDC_RP_SIGN_ALGO="RS256",
    OIDC_RP_SCOPES="openid profile email",
    OIDC_OP_AUTHORIZATION_ENDPOINT=f"{ISSUER}/connect/authorize",
    OIDC_OP_TOKEN_ENDPOINT=f"{ISSUER}/connect/token",
    OIDC_OP_USER_ENDPOINT=f"{ISSUER}/connect/userinfo",
    OIDC_OP_JWKS_ENDPOINT=f"{ISSUER}/.well-known/jwks.json",
    OIDC_STORE_ID_TOKEN=True,
    OIDC_OP_LOGOUT_URL_METHOD=f"{__name__}.leave",
    LOGIN_URL="oidc_authentication_init",
    LOGIN_REDIRECT_URL="/",
    LOGOUT_REDIRECT_URL="/bye",
)
django.setup()

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.http import HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.urls import include, path
from mozilla_django_oidc.auth import OIDCAuthenticationBackend


class Backend(OIDCAuthenticationBackend):
    """Keeps names and groups of the person, as the documentation shows for claims beyond the address."""

    def create_user(self, claims):
        return self.update_user(super().create_user(claims), claims)

    def update_user(self, user, claims):
        user.first_name, user.last_name = claims["given_name"], claims["family_name"]
        user.save()
        user.groups.set(Group.objects.get_or_create(name=name)[0] for name in claims["groups"])
        return user

    def get_or_create_user(self, access_token, id_token, payload):
        self.request.session["claims"] = payload
        return super().get_or_create_user(access_token, id_token, payload)


def leave(request):
    hint = request.session["oidc_id_token"]
    return f"{ISSUER}/connect/endsession?" + urlencode(
        {"id_token_hint": hint, "post_logout_redirect_uri": f"{SITE}/bye"}
    )


@login_required
def inside(request):
    groups = list(request.user.groups.values_list("name", flat=True))
    told = {"name": request.user.get_full_name(), "groups": groups, "claims": request.session["claims"]}
    return JsonResponse(told)


def sign_out(request):
    token = get_token(request)
    return HttpResponse(
        f'<form method="post" action="/oidc/logout/"><input type="hidden" name="csrfmiddlewaretoken" value="{token}">'
        "<button>Sign out</button></form>"
    )


urlpatterns = [
    path("", inside),
    path("sign-out", sign_out),
    path("bye", lambda request: HttpResponse("Bye")),
    path("oidc/", include("mozilla_django_oidc.urls")),
]

execute_from_command_line(sys.argv)
