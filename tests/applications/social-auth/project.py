"""Django with Python Social Auth, as its documentation sets up a provider of OpenID Connect: a project in one file.

    python project.py migrate | runserver
"""

import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line

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
        "social_django",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    AUTHENTICATION_BACKENDS=[
        "social_core.backends.open_id_connect.OpenIdConnectAuth",
        "django.contrib.auth.backends.ModelBackend",
    ],
    SOCIAL_AUTH_OIDC_OIDC_ENDPOINT=os.environ["ISSUER"],
    SOCIAL_AUTH_OIDC_KEY=os.environ["CLIENT_ID"],
    SOCIAL_AUTH_OIDC_SECRET=os.environ["CLIENT_SECRET"],
    SOCIAL_AUTH_OIDC_EXTRA_DATA=os.environ["CLAIMS"].split(),
    LOGIN_REDIRECT_URL="/",
)
django.setup()

from django.contrib.auth import logout
from django.http import HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.urls import include, path


def inside(request):
    if not request.user.is_authenticated:
        return redirect("/login")
    claims = request.user.social_auth.get().extra_data
    return JsonResponse({"name": request.user.get_full_name(), "groups": claims["groups"], "claims": claims})


def login(request):
    token = get_token(request)
    return HttpResponse(
        f'<form method="post" action="/login/oidc/"><input type="hidden" name="csrfmiddlewaretoken" value="{token}">'
        "<button>Sign in</button></form>"
    )


def leave(request):
    logout(request)
    return redirect("/bye")


def bye(request):
    return HttpResponse("Still here" if request.user.is_authenticated else "Bye")


urlpatterns = [
    path("", inside),
    path("login", login),
    path("logout", leave),
    path("bye", bye),
    path("", include("social_django.urls", namespace="social")),
]

execute_from_command_line(sys.argv)
