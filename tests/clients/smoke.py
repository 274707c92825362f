"""What all smoke programs in Python share: where the server is, and how to say what was proven."""

import base64
import json
import os
import secrets
import urllib.request

BASE = os.environ["CHANCERY_BASE"]
# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
# a server that is not new keeps what another run made
RUN = secrets.token_hex(4)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CSS = base64.b64encode(b"body{margin:0}").decode()


def access_token(client="root", secret=os.environ["CHANCERY_ROOT_CLIENT_SECRET"]):
    """The documents name the token endpoint, and no generator makes a function of it."""
    pair = base64.b64encode(f"{client}:{secret}".encode()).decode()
    request = urllib.request.Request(
        f"{BASE}/connect/token",
        data=b"grant_type=client_credentials",
        headers={"Authorization": f"Basic {pair}"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)["access_token"]


def same(what, is_so, should_be):
    """Says that something is as it should be, or ends the program."""
    if is_so != should_be:
        raise SystemExit(f"FAILED {what}: {is_so!r} is not {should_be!r}")
    print(f"ok {what}")
