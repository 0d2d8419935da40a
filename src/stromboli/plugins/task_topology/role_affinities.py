"""Which roles of a job like or shun each other, and which come first: the annotations of its PodGroup."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.errors import quoted

AFFINITY, ANTI_AFFINITY, TASK_ORDER = names.TASK_TOPOLOGY
LONGEST_LIST = 16_384
"""The longest annotation that is read, in characters."""
MOST_LISTED_ROLES = 128
"""Names in one annotation; every pair of a group is a relation of its own."""

# The more a relation restricts where a task may go, the earlier its role is placed.
_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1


class BadRoleList(ValueError):
    """An annotation that names unknown roles, or one twice; the whole job is then placed without."""


@dataclass(slots=True)
class RoleAffinities:
    """What the annotations of a PodGroup say about its roles."""

    liked: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of roles that belong together; a role may be paired with itself."""
    shunned: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of roles that belong apart."""
    priority: dict[str, int] = field(default_factory=dict)
    """How much the placement of each role is restricted; roles without any relation are not here."""
    order: dict[str, int] = field(default_factory=dict)
    """Higher for roles that are to be placed earlier."""

    def rank(self, role: str) -> tuple[int, int]:
        """The sort key of a role: by the order that the user gave, then by its priority."""
        return (-self.order.get(role, 0), -self.priority.get(role, 0))

    def affinity(self, role: str, other: str) -> int:
        """How much a task of a role is drawn to one of another role."""
        pair = (role, other)
        return (pair in self.liked) - (pair in self.shunned)

    def anti_affinity(self, role: str, others: Mapping[str, int]) -> int:
        """How much a task of a role shuns these many of each role: zero or less."""
        return -sum(count for other, count in others.items() if (role, other) in self.shunned)


def read_affinities(annotations: Mapping[str, str], roles: Collection[str]) -> RoleAffinities:
    """The affinities of a PodGroup with these roles; `BadRoleList` says what is wrong with an annotation."""
    affinities = RoleAffinities()
    for key, pairs, alone, among_others in (
        (AFFINITY, affinities.liked, _SELF, _INTER),
        (ANTI_AFFINITY, affinities.shunned, _SELF_ANTI, _INTER_ANTI),
    ):
        for group in _groups(annotations, key, roles):
            single = len(group) == 1
            named = [role for role in group if role]
            for role in named:
                priority = alone if single else among_others
                affinities.priority[role] = max(priority, affinities.priority.get(role, 0))
            pairs |= {(role, other) for role in named for other in named if role != other or single}
    for listed in _groups(annotations, TASK_ORDER, roles):
        for index, role in enumerate(listed):
            affinities.order[role] = len(listed) - index
    return affinities


def _groups(annotations: Mapping[str, str], key: str, roles: Collection[str]) -> list[list[str]]:
    """Groups of roles, with empty names, which name no role but count: `ps,` is a group of two (spec 04 8)."""
    text = annotations.get(key)
    if text is None:
        return []
    if len(text) > LONGEST_LIST:
        raise BadRoleList(f"annotation {key}: is longer than {LONGEST_LIST} characters")
    groups = [group.split(",") for group in ([text] if key == TASK_ORDER else text.split(";"))]
    if sum(map(len, groups)) > MOST_LISTED_ROLES:
        raise BadRoleList(f"annotation {key}: names more than {MOST_LISTED_ROLES} roles")
    for group in groups:
        named = [role for role in group if role]
        for role in named:
            if role not in roles:
                raise BadRoleList(f"annotation {key}: the job has no task {quoted(role)}")
            if named.count(role) > 1:
                raise BadRoleList(f"annotation {key}: names the task {quoted(role)} twice in a group")
    return groups
