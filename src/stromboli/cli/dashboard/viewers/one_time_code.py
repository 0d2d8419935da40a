"""The code in the printed address: it lets in whoever has it, once, and then there is another."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

SECRET_SIZE = 24
"""Random bytes of a code."""
CODE = "code"
"""Its name in the query of an address."""


class OneTimeCode:
    """The code that lets in next; `renewed` is called with each new one."""

    def __init__(self, renewed: Callable[[str], None] = lambda _: None) -> None:
        self._renewed = renewed
        self.current = secrets.token_urlsafe(SECRET_SIZE)

    def use(self, given: str) -> bool:
        """Whether it is the code, which is worth nothing from then on."""
        if not hmac.compare_digest(given.encode(errors="replace"), self.current.encode()):
            return False
        self.current = secrets.token_urlsafe(SECRET_SIZE)
        self._renewed(self.current)
        return True
