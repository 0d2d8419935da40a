"""Who may do what. The one place that asks for rights."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.embedded.errors import Refusal, forbidden
from stromboli.embedded.identity import MASTERS, User
from stromboli.embedded.paths import Target
from stromboli.embedded.store import Store


class Access(NamedTuple):
    """Looks up roles in the store."""

    store: Store

    def check(self, user: User, target: Target) -> None:
        """Refuse what this user may not do."""
        if MASTERS in user.groups or self.allowed(user, target):
            return
        kind, part = target.kind, f"/{target.part}" if target.part else ""
        where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
        raise forbidden(
            kind,
            target.name,
            f'User "{user.name}" cannot {target.verb} resource "{kind.plural}{part}" in API group'
            f' "{kind.group}" {where}',
        )

    def allowed(self, user: User, target: Target) -> bool:
        return True

    def check_path(self, user: User, path: str, verb: str) -> None:
        """The same for paths that are no objects."""
        if MASTERS in user.groups or self.allowed_path(user, path, verb):
            return
        raise Refusal(403, f'forbidden: User "{user.name}" cannot {verb} path "{path}"', details={})

    def allowed_path(self, user: User, path: str, verb: str) -> bool:
        return True

    def check_impersonation(self, user: User, name: str) -> None:
        """Only those who may do anything may speak for others."""
        if MASTERS not in user.groups:
            why = (
                f'User "{user.name}" cannot impersonate resource "users" in API group "" at the cluster scope'
            )
            raise Refusal(
                403,
                f'users "{name[:253]}" is forbidden: {why}',
                details={"name": name[:253], "kind": "users"},
            )
