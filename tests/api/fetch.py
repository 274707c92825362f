"""Saves documents of a server in a folder and prints an access token of its root client.

fetch.py BASE_URL FOLDER DOCUMENT...   with the root secret in CHANCERY_ROOT_CLIENT_SECRET
"""

import base64
import json
import os
import sys
import urllib.request

# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
base, folder, *documents = sys.argv[1:]
for document in documents:
    with urllib.request.urlopen(f"{base}/openapi/{document}.json", timeout=PATIENCE) as answer:
        content = json.load(answer)
    with open(os.path.join(folder, f"{document}.json"), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
pair = base64.b64encode(f"root:{os.environ['CHANCERY_ROOT_CLIENT_SECRET']}".encode()).decode()
request = urllib.request.Request(
    f"{base}/connect/token",
    data=b"grant_type=client_credentials",
    headers={"Authorization": f"Basic {pair}"},
)
with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
    print(json.load(answer)["access_token"])
