"""What is particular to a kind: its defaults and checks, what a create and an update prepare, what a quota counts.

A built-in kind is one module of `builtin`, with its `Kind` and a strategy that overrides what differs from this one.
The verbs of `objects/object_verbs.py` are the same for all kinds and ask the strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from stromboli.api.resources.quota_charges import Charges
from stromboli.api.schemas.schema_problems import TYPE, Problem, invalid
from stromboli.api.schemas.value_formats import json_equal
from stromboli.embedded.tables.table_printer import AGES, TablePrinter

if TYPE_CHECKING:
    from stromboli.embedded.kinds.kind import Kind

Content = dict[str, Any]
"""A decoded object."""
_OUTSIDE_SPEC = ("apiVersion", "kind", "metadata", "status")


class StoredObjects(Protocol):
    """The objects that defaults and checks of others depend on: the store."""

    def get(self, resource: str, namespace: str, name: str, /) -> Any: ...
    def list(self, resource: str, /) -> Iterable[Any]: ...


class Strategy:
    """What a built-in kind does unless it says otherwise."""

    has_generation = False
    """Whether its objects have a generation, which rises when the desired state changes."""
    needs_version = False
    """Whether updates must name the resourceVersion that they are based on."""
    status_on_create = False
    """Whether the status may be set on creation."""
    status_alone = False
    """Whether the endpoint `status` does not change metadata."""
    refusal = ""
    """Why no new objects are taken; stored ones can be deleted."""
    needs_controller = False
    """Whether a controller, which is not a part of the API server, makes pods of its objects."""
    allocates_addresses = False
    """Whether its objects get addresses and ports."""
    completes_stored = False
    """Whether objects that an earlier release stored get the defaults of this one."""
    counted_by_name = False
    """Whether quotas also count its objects by the bare name of the resource."""
    charged_by_content = False
    """Whether quotas charge what its objects say, and not their number alone."""
    printer: TablePrinter = AGES

    def __init__(self, **particular: Any) -> None:
        """What is particular to a kind, by the names of attributes and methods here; methods without `self`."""
        unknown = [name for name in particular if not hasattr(type(self), name)]
        assert not unknown, unknown
        vars(self).update(particular)

    # -- defaults and validation, of objects alone

    def set_defaults(self, content: Content) -> None:
        """Set defaults, in place, after those of the schema."""

    def complete(self, content: Content) -> None:
        """Set fields of a new object that follow from others."""

    def generate(self, content: Content) -> None:
        """Set fields of a new object that follow from its name and uid."""

    def problems(self, content: Content) -> Iterable[Problem]:
        """What is wrong with an object whose types and metadata are right."""
        return ()

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        """What an update may not change."""
        return ()

    def stored_problems(self, content: Content, old: Content | None) -> Iterable[Problem]:
        """What else is wrong with a completed object, new or changed."""
        return ()

    # -- create and update

    def admit(self, store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
        """Set defaults of a new object that depend on other objects, and refuse it because of them."""

    def check_update(self, store: StoredObjects, kind: Kind, content: Content, old: Content) -> None:
        """Refuse an update because of other objects."""

    def initialise(self, content: Content) -> None:
        """Set the first status of a new object, whose status is empty, and what else it starts with."""

    def prepare_for_create(self, kind: Kind, content: Content) -> None:
        """Set the initial status and generation of a new object, and what else its kind starts with."""
        if kind.has_status and not self.status_on_create:
            content.pop("status", None)
            content["status"] = {}
        if self.has_generation:
            content["metadata"]["generation"] = 1
        self.initialise(content)

    def prepare_for_update(self, kind: Kind, content: Content, old: Content, subresource: str) -> None:
        """Restore what the endpoint may not change: everything but the status for `status`, the status otherwise."""
        if subresource == "status":
            self._restore_all_but_status(content, old)
        elif kind.has_status:
            content.pop("status", None)
            if "status" in old:
                content["status"] = old["status"]
        self.restore(content, old, subresource)

    def restore(self, content: Content, old: Content, subresource: str) -> None:
        """Set or restore what else the server decides in an update."""

    def _restore_all_but_status(self, content: Content, old: Content) -> None:
        meta, status = content["metadata"], content.get("status")
        fields = (
            ("managedFields",)
            if self.status_alone
            else ("labels", "annotations", "finalizers", "managedFields")
        )
        writable = {name: meta[name] for name in fields if name in meta}
        content.clear()
        content.update(old)
        content["metadata"] = {**old["metadata"], **writable}
        content.pop("status", None)
        if status is not None:
            content["status"] = status

    def replaces_status(self, kind: Kind, subresource: str, problems: Iterable[Problem]) -> bool:
        """Whether there are problems in a status that the server replaces, as of manifests made from Go types.

        A status of the wrong types counts: the object cannot be decoded.
        """
        if subresource or not kind.has_status or self.status_on_create:
            return False
        reasons = {problem.reason for problem in problems if problem.field.startswith("status.")}
        return bool(reasons) and TYPE not in reasons

    def desired(self, kind: Kind, content: Content) -> Any:
        """What the generation counts changes of."""
        return content.get("spec") or {}

    def update_generation(self, kind: Kind, content: Content, old: Content, subresource: str) -> None:
        """The generation rises when the desired state changes."""
        if "generation" not in old["metadata"] or subresource == "status":
            return
        if not json_equal(self.desired(kind, content), self.desired(kind, old)):
            content["metadata"]["generation"] = int(old["metadata"]["generation"]) + 1

    def creation_warnings(self, content: Content) -> tuple[str, ...]:
        """Warnings about what this server does not do for such an object."""
        return ()

    def write_warnings(self, content: Content) -> tuple[str, ...]:
        """The same, after each write of it."""
        return ()

    # -- quotas

    def charges(self, content: Content) -> Charges:
        """What an object is charged to its namespace beside its number."""
        return {}


class DefinedStrategy(Strategy):
    """Kinds of CustomResourceDefinitions."""

    has_generation = needs_version = status_alone = True

    def prepare_for_create(self, kind: Kind, content: Content) -> None:
        if kind.has_status:
            content.pop("status", None)
        content["metadata"]["generation"] = 1

    def desired(self, kind: Kind, content: Content) -> Any:
        skipped = _OUTSIDE_SPEC if kind.has_status else _OUTSIDE_SPEC[:3]
        return {name: value for name, value in content.items() if name not in skipped}


DEFAULT, DEFINED = Strategy(), DefinedStrategy()


def charges_of(id: str, strategy: Strategy, content: Content) -> Charges:
    """What an object of a resource is charged to its namespace."""
    plural, _, group = id.partition(".")
    charges: Charges = {f"count/{plural}.{group}" if group else f"count/{plural}": Fraction(1)}
    if strategy.counted_by_name:
        charges[id] = Fraction(1)
    charges.update(strategy.charges(content))
    return charges


def immutable(old: Content, new: Content, *fields: str, prefix: str = "spec.") -> Iterator[Problem]:
    """The problems of an update that changes or removes one of these fields, which may be set once."""
    return (
        invalid(f"{prefix}{field}", new.get(field), "field is immutable")
        for field in fields
        if field in old and old[field] != new.get(field)
    )


def fixed_spec(old: Content, new: Content) -> Iterator[Problem]:
    """The problem of an update that changes a spec."""
    if old.get("spec") != new.get("spec"):
        yield invalid("spec", new.get("spec"), "field is immutable")


def fixed_fields(fields: tuple[str, ...]) -> Callable[[Content, Content], Iterator[Problem]]:
    """The problems of an update that changes one of all fields of a spec."""

    def problems(old: Content, new: Content) -> Iterator[Problem]:
        before, after = old.get("spec") or {}, new.get("spec") or {}
        return (
            invalid(f"spec.{field}", None, "field is immutable")
            for field in fields
            if before.get(field) != after.get(field)
        )

    return problems
