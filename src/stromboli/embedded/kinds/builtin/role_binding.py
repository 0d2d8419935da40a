"""RoleBindings."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.schema_problems import Problem
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


class BindingStrategy(Strategy):
    printer = printer("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+", _row)

    def set_defaults(self, content: Content) -> None:
        for subject in content.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                subject.setdefault("apiGroup", "rbac.authorization.k8s.io")

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return immutable(old, new, "roleRef", prefix="")


KIND = builtin("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", strategy=BindingStrategy())
