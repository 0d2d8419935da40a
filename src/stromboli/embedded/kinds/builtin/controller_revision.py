"""ControllerRevisions."""

from __future__ import annotations

from stromboli.api.schemas.apps.set_rules import revision_update_problems
from stromboli.embedded.kinds.kind import builtin
from stromboli.embedded.kinds.strategy import Strategy

KIND = builtin(
    "apps",
    "controllerrevisions",
    "ControllerRevision",
    strategy=Strategy(update_problems=revision_update_problems),
)
