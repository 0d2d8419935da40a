"""Headers that no request may have, whoever sends it."""

from __future__ import annotations

from aiohttp import web

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.status_errors import bad_request

CONTINUE = "100-continue"


def check_headers(request: web.BaseRequest) -> None:
    """Refuse text that could not be stored or answered, and expectations that cannot be met."""
    for name, value in request.raw_headers:
        try:
            value.decode()
        except UnicodeDecodeError:
            raise bad_request(f"header {name.decode(errors='replace')[:100]}: not UTF-8") from None
    expected = request.headers.get("Expect", CONTINUE)
    if expected.lower() != CONTINUE:
        raise StatusError(417, f"Expect: {expected[:100]}: only {CONTINUE} can be met")
