"""Writes that the ledger follows: each object has one writer, which waits for every outcome."""

from __future__ import annotations

import itertools
from typing import Any

from tests.soak.api_user import ApiUser, NoAnswer
from tests.soak.ledger import SERIAL_LABEL, Key, Ledger, Stored

Json = Any
MERGE = "application/merge-patch+json"
NOT_NOW = 429
_ACCEPTED = (200, 201, 202)
_serials = itertools.count(1)


class LedgerWrites:
    """Create, change and delete, with the serial of the write as a label."""

    def __init__(self, user: ApiUser, ledger: Ledger) -> None:
        self.user = user
        self.ledger = ledger

    async def create(self, collection: str, content: Json) -> bool:
        """Whether it is there now."""
        serial, key = _stamp(content), (collection, content["metadata"]["name"])
        return await self._send("POST", key, serial, collection, content)

    async def replace(self, collection: str, content: Json) -> bool:
        serial, key = _stamp(content), (collection, content["metadata"]["name"])
        return await self._send("PUT", key, serial, "/".join(key), content)

    async def label(self, key: Key) -> bool:
        serial = str(next(_serials))
        body = {"metadata": {"labels": {SERIAL_LABEL: serial}}}
        return await self._send("PATCH", key, serial, "/".join(key), body, MERGE)

    async def delete(self, key: Key) -> bool:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        return await self._send("DELETE", key, None, "/".join(key), body)

    async def _send(
        self,
        method: str,
        key: Key,
        serial: str | None,
        path: str,
        body: Json,
        media: str = "application/json",
    ) -> bool:
        await self.user.up.wait()
        self.ledger.begin(key, serial)
        try:
            status, answer = await self.user.request(method, path, body, media)
        except NoAnswer:
            return await self._look_again(key, serial)
        if status in _ACCEPTED:
            self.ledger.acknowledge(key, int(answer.get("metadata", {}).get("resourceVersion") or 0))
            return True
        self.ledger.refuse(key)
        if status != NOT_NOW:
            self.user.outcomes.violations.append(f"{method} {path}: {status} {str(answer)[:300]}")
        return False

    async def _look_again(self, key: Key, serial: str | None) -> bool:
        """After a lost answer: a restart settles the whole ledger, else the object itself tells."""
        restarted = not self.user.up.is_set()
        await self.user.up.wait()
        if not restarted:
            try:
                status, answer = await self.user.request("GET", "/".join(key))
            except NoAnswer:
                return await self._look_again(key, serial)
            problem = self.ledger.settle_object(key, stored(answer) if status in _ACCEPTED else None)
            self.user.outcomes.violations += [problem] if problem else []
        return self.ledger.known(key) == serial


def _stamp(content: Json) -> str:
    """Give an object the serial of its next write; a large text tells the serial all over."""
    serial = str(next(_serials))
    content["metadata"].setdefault("labels", {})[SERIAL_LABEL] = serial
    if "data" in content:
        content["data"]["text"] = text_of(serial, len(content["data"]["text"]))
    return serial


def stored(content: Json) -> Stored:
    meta = content["metadata"]
    return Stored(meta.get("labels", {}).get(SERIAL_LABEL, ""), "deletionTimestamp" in meta)


async def settle_all(user: ApiUser, ledger: Ledger, collections: tuple[str, ...]) -> list[str]:
    """Compare all that the ledger follows with what is stored."""
    found: dict[Key, Stored] = {}
    version = 0
    for collection in collections:
        status, answer = await user.request("GET", collection)
        assert status == 200, answer
        version = max(version, int(answer["metadata"]["resourceVersion"]))
        for item in answer["items"]:
            if SERIAL_LABEL in item["metadata"].get("labels", {}):
                found[collection, item["metadata"]["name"]] = stored(item)
                if "text" in item.get("data", {}):
                    assert_content(item)
    return ledger.settle(found, version)


def assert_content(config_map: Json) -> None:
    """A large ConfigMap is the text that belongs to its serial, from the first byte to the last."""
    text, name = config_map["data"]["text"], config_map["metadata"]["name"]
    serial = config_map["metadata"]["labels"][SERIAL_LABEL]
    assert text == text_of(serial, len(text)), f"{name}: its content is not that of write {serial}"


def text_of(serial: str, size: int) -> str:
    return (f"{serial} " * (size // (len(serial) + 1) + 1))[:size]
