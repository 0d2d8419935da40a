"""RoleBindings."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy, immutable
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(binding: Content, now: float) -> Cells:
    role, subjects = nested_map(binding, "roleRef"), binding.get("subjects") or []
    users, groups, accounts = (
        [subject for subject in subjects if subject.get("kind") == kind]
        for kind in ("User", "Group", "ServiceAccount")
    )
    return [
        name_of(binding),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(binding, now),
        ", ".join(subject.get("name", "") for subject in users),
        ", ".join(subject.get("name", "") for subject in groups),
        ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in accounts),
    ]


def _set_defaults(content: Content) -> None:
    for subject in content.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


STRATEGY = Strategy(
    printer=printer("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+", _row),
    set_defaults=_set_defaults,
    update_problems=lambda old, new: immutable(old, new, "roleRef", prefix=""),
)
KIND = builtin("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", strategy=STRATEGY)
