"""Lists: which objects, as of when, and page by page. What did not change is never encoded again."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal, bad_request, expired
from stromboli.embedded.objects.kind_versions import spoken
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.query_selectors import Selector, parse_fields, parse_labels
from stromboli.embedded.store.records import Record

LARGEST_PAGE = 10_000
"""Objects in one page of a list that is asked for in pages."""


class Continue(msgspec.Struct):
    """Where the next page begins, and which state of the world it belongs to."""

    revision: int
    namespace: str
    name: str

    def text(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=").decode()


def read_continue(text: str) -> Continue:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Continue)
    except (binascii.Error, ValueError):
        raise bad_request(f"continue key is not valid: {text[:100]!r}") from None


class Page(NamedTuple):
    """Some objects, and what the list says about itself."""

    records: list[Record]
    meta: dict[str, Any]


def selector(kind: Kind, query: Any) -> Selector:
    """From `labelSelector` and `fieldSelector`."""
    chosen = Selector(
        parse_labels(query.get("labelSelector", "")), parse_fields(query.get("fieldSelector", ""))
    )
    for term in chosen.fields:
        if not kind.selectable(term.path):
            raise bad_request(
                f'Unable to find "{kind.api_version}, Resource={kind.plural}" that match label selector'
                f' "{query.get("labelSelector", "")}", field selector "{query["fieldSelector"]}":'
                f" field label not supported: {term.path[:100]}"
            )
    return chosen


def revision(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise bad_request(f'resourceVersion: Invalid value: "{text[:100]}": must be a number')
    return int(text)


def page(store: Store, kind: Kind, namespace: str, query: Any) -> Page:
    """The objects that a list request asks for."""
    chosen = selector(kind, query)
    limit = _limit(query.get("limit", ""))
    begin = read_continue(query["continue"]) if query.get("continue") else None
    when = _moment(store, begin, query)
    after = (begin.namespace, begin.name) if begin else None
    candidates = _candidates(store, kind, namespace, chosen, when, after)
    found: list[Record] = []
    more = False
    for record in candidates:
        if chosen.matches(record.labels, record.field) if (chosen.labels or chosen.fields) else True:
            if limit and len(found) == limit:
                more = True
                break
            found.append(record)
    meta: dict[str, Any] = {"resourceVersion": str(when if when is not None else store.revision)}
    if more:
        last = found[-1].key
        token = Continue(int(meta["resourceVersion"]), last.namespace, last.name)
        meta["continue"] = token.text()
        if not chosen.labels and not chosen.fields:
            meta["remainingItemCount"] = 1 + sum(1 for _ in candidates)
    return Page([spoken(kind, one) for one in found] if kind.stored else found, meta)


def _limit(text: str) -> int:
    if text and (not text.isdecimal() or len(text) > 18):
        raise bad_request(f'limit: Invalid value: "{text[:100]}": must be a number')
    return min(int(text or 0), LARGEST_PAGE)


def _moment(store: Store, begin: Continue | None, query: Any) -> int | None:
    """The revision whose state is wanted; none for the present."""
    asked, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    if begin is not None:
        if begin.revision < store.horizon:
            raise Refusal(
                410,
                "The provided continue parameter is too old to display a consistent list result. You can start a new"
                " list without the continue parameter.",
            )
        return begin.revision if begin.revision != store.revision else None
    if not asked or asked == "0":
        return None
    wanted = revision(asked)
    if wanted > store.revision:
        raise Refusal(
            504,
            f"Too large resource version: {wanted}, current: {store.revision}",
            details={
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
        )
    if match == "Exact":
        if wanted < store.horizon:
            raise expired(wanted, store.horizon)
        return wanted
    return None


def _candidates(
    store: Store,
    kind: Kind,
    namespace: str,
    chosen: Selector,
    when: int | None,
    after: tuple[str, str] | None,
) -> Iterator[Record]:
    named = next((one.value for one in chosen.fields if one.path == "metadata.name" and one.equal), None)
    if named is not None and when is None and (namespace or not kind.namespaced):
        record = store.get(kind.id, namespace, named)
        return iter([record] if record is not None else [])
    present = store.table(kind.id).ordered(namespace, after)
    if when is None:
        return present
    return _back_then(present, store.past(when, kind.id), namespace, after)


def _back_then(
    present: Iterable[Record],
    past: dict[tuple[str, str], Record | None],
    namespace: str,
    after: tuple[str, str] | None,
) -> Iterator[Record]:
    """The present, with what has changed since put back."""
    records = {record.key[1:]: record for record in present}
    for place, record in past.items():
        if (namespace and place[0] != namespace) or (after is not None and place <= after):
            continue
        if record is None:
            records.pop(place, None)
        else:
            records[place] = record
    return (records[place] for place in sorted(records))


def encoded(kind: Kind, found: Page) -> bytes:
    """A list, spliced from what is stored."""
    head = msgspec.json.encode({"kind": kind.listed, "apiVersion": kind.api_version, "metadata": found.meta})
    return b'%b,"items":[%b]}' % (head[:-1], b",".join([record.data for record in found.records]))
