"""ControllerRevisions."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.apps.set_rules import revision_update_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy


class ControllerRevisionStrategy(Strategy):
    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return revision_update_problems(old, new)


KIND = builtin("apps", "controllerrevisions", "ControllerRevision", strategy=ControllerRevisionStrategy())
