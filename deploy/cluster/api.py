"""The API server without kubectl, which takes more of the machine than a pod: for what looks again and again."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any

from cluster import HERE, in_url


def read(place: str) -> dict[str, Any] | None:
    """An object, or a list, by its path; None where the server does not answer within a second."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    server = http.client.HTTPSConnection(in_url(HERE), timeout=1, context=trusting)
    try:
        server.request("GET", place, headers={"Authorization": "Bearer admintoken"})
        answer = server.getresponse()
        found: dict[str, Any] = json.load(answer)
        return found if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):  # it stands still
        return None
    finally:
        server.close()
