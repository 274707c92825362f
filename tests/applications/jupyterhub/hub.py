"""JupyterHub with the OAuthenticator for any provider, as its documentation sets it up, and groups managed by it."""

import os

ISSUER, SITE, PORT = os.environ["ISSUER"], os.environ["SITE"], int(os.environ["PORT"])
c = get_config()  # noqa: F821
c.JupyterHub.bind_url = f"http://127.0.0.1:{PORT}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{os.environ['HUB_PORT']}"
c.ConfigurableHTTPProxy.command = os.environ["PROXY"].split()
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{os.environ['PROXY_PORT']}"
c.ConfigurableHTTPProxy.auth_token = os.urandom(32).hex()
c.JupyterHub.db_url = f"sqlite:///{os.environ['FOLDER']}/hub.sqlite"
c.JupyterHub.cookie_secret = os.urandom(32)
# nobody starts a notebook here
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.default_url = "/hub/home"

c.JupyterHub.authenticator_class = "generic-oauth"
g = c.GenericOAuthenticator
g.client_id = os.environ["CLIENT_ID"]
g.client_secret = os.environ["CLIENT_SECRET"]
g.oauth_callback_url = f"{SITE}/hub/oauth_callback"
g.authorize_url = f"{ISSUER}/connect/authorize"
g.token_url = f"{ISSUER}/connect/token"
g.userdata_url = f"{ISSUER}/connect/userinfo"
g.scope = ["openid", "profile", "email"]
g.username_claim = "preferred_username"
g.manage_groups = True
g.auth_state_groups_key = "oauth_user.groups"
g.allowed_groups = {os.environ["STAFF"]}
g.logout_redirect_url = f"{ISSUER}/connect/endsession"
