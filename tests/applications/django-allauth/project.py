"""Django with django-allauth, as its documentation sets up a provider of OpenID Connect: a project in one file.

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
        "django.contrib.messages",
        "allauth",
        "allauth.account",
        "allauth.socialaccount",
        "allauth.socialaccount.providers.openid_connect",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "allauth.account.middleware.AccountMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    AUTHENTICATION_BACKENDS=["allauth.account.auth_backends.AuthenticationBackend"],
    SOCIALACCOUNT_PROVIDERS={
        "openid_connect": {
            "APPS": [
                {
                    "provider_id": "chancery",
                    "name": "Chancery",
                    "client_id": os.environ["CLIENT_ID"],
                    "secret": os.environ["CLIENT_SECRET"],
                    "settings": {"server_url": f"{os.environ['ISSUER']}/.well-known/openid-configuration"},
                }
            ]
        }
    },
    LOGIN_REDIRECT_URL="/",
    ACCOUNT_LOGOUT_REDIRECT_URL="/bye",
)
django.setup()

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.urls import include, path


@login_required(login_url="/accounts/oidc/chancery/login/")
def inside(request):
    claims = SocialAccount.objects.get(user=request.user).extra_data["userinfo"]
    return JsonResponse({"name": request.user.get_full_name(), "groups": claims["groups"], "claims": claims})


def bye(request):
    return HttpResponse("Still here" if request.user.is_authenticated else "Bye")


urlpatterns = [path("", inside), path("bye", bye), path("accounts/", include("allauth.urls"))]

execute_from_command_line(sys.argv)
