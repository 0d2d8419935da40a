"""Lists: selectors, resource versions and pages."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import decode_base64url, encode_base64url
from stromboli.embedded.http.query_parameters import Query, read_number
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import bad_request, expired, too_large_version
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.query_selectors import Selector, parse_fields, parse_labels
from stromboli.embedded.store.records import Record
from stromboli.embedded.time_slices import TimeSlices

LARGEST_PAGE = 10_000
"""Objects in one page, whatever `limit` says."""


class ContinueToken(msgspec.Struct):
    """The last object of a page, and the revision of the list."""

    revision: int
    namespace: str
    name: str

    def text(self) -> str:
        return encode_base64url(msgspec.json.encode(self))


def read_continue(text: str) -> ContinueToken:
    try:
        return msgspec.json.decode(decode_base64url(text), type=ContinueToken)
    except (binascii.Error, ValueError):
        raise bad_request(f"continue key is not valid: {text[:100]!r}") from None


class Page(NamedTuple):
    """Objects of a list, and its ListMeta."""

    records: list[Record]
    meta: dict[str, Any]


def read_selector(kind: Kind, query: Query) -> Selector:
    """From `labelSelector` and `fieldSelector`."""
    fields = []
    for term in parse_fields(query.get("fieldSelector", "")):
        field = kind.selectable(term.path)
        if field is None:
            label = term.path[:100]
            raise bad_request(
                f"field label not supported: {label}"
                if kind.has_own_selectors
                else f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
        fields.append(term._replace(**field._asdict()))
    return Selector(parse_labels(query.get("labelSelector", "")), tuple(fields))


async def list_page(store: Store, kind: Kind, namespace: str, query: Query) -> Page:
    """The objects that a list request asks for, as they are when it begins."""
    selector = read_selector(kind, query)
    limit = min(read_number(query, "limit") or 0, LARGEST_PAGE)
    start = read_continue(query["continue"]) if query.get("continue") else None
    revision = _snapshot_revision(store, start, query)
    after = (start.namespace, start.name) if start else None
    candidates = _candidates(store, kind, namespace, selector, revision, after)
    meta: dict[str, Any] = {"resourceVersion": str(revision if revision is not None else store.revision)}
    records: list[Record] = []
    more, slices = False, TimeSlices()
    for record in candidates:
        if slices.due:
            await slices.pause()
        if selector.empty or selector.matches(record.labels, record.field):
            if limit and len(records) == limit:
                more = True
                break
            records.append(record)
    if more:
        last = records[-1].key
        token = ContinueToken(int(meta["resourceVersion"]), last.namespace, last.name)
        meta["continue"] = token.text()
        if selector.empty:
            meta["remainingItemCount"] = 1 + sum(1 for _ in candidates)
    return Page(records, meta)


def _snapshot_revision(store: Store, start: ContinueToken | None, query: Query) -> int | None:
    """The revision of the list; None for the current one."""
    if start is not None:
        if start.revision < store.compacted_revision:
            raise StatusError(
                410,
                "The provided continue parameter is too old to display a consistent list result. You can start a new"
                " list without the continue parameter.",
            )
        return start.revision if start.revision != store.revision else None
    revision = read_number(query, "resourceVersion")
    if not revision:
        return None
    if revision > store.revision:
        raise too_large_version(revision, store.revision)
    if query.get("resourceVersionMatch") == "Exact":
        if revision < store.compacted_revision:
            raise expired(revision, store.compacted_revision)
        return revision
    return None


def _candidates(
    store: Store,
    kind: Kind,
    namespace: str,
    selector: Selector,
    revision: int | None,
    after: tuple[str, str] | None,
) -> Iterator[Record]:
    names = (term.value for term in selector.fields if term.path == "metadata.name" and term.equal)
    name = next(names, None)
    if name is not None and revision is None and (namespace or not kind.namespaced):
        record = store.get(kind.id, namespace, name)
        return iter([record] if record is not None else [])
    current = store.table(kind.id).ordered(namespace, after)
    if revision is None:
        return current
    return _at_revision(current, store.versions_at(revision, kind.id), namespace, after)


def _at_revision(
    current: Iterable[Record],
    changed: dict[tuple[str, str], Record | None],
    namespace: str,
    after: tuple[str, str] | None,
) -> Iterator[Record]:
    """Current objects, with those that have changed since replaced by their versions of then."""
    records = {record.key[1:]: record for record in current}
    for full_name, record in changed.items():
        if (namespace and full_name[0] != namespace) or (after is not None and full_name <= after):
            continue
        if record is None:
            records.pop(full_name, None)
        else:
            records[full_name] = record
    return (records[full_name] for full_name in sorted(records))
