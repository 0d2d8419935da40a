"""A Kubernetes Event on an object of the user's, before it is recorded."""

from typing import NamedTuple


class UserEvent(NamedTuple):
    """`type` is Normal or Warning."""

    type: str
    reason: str
    message: str
