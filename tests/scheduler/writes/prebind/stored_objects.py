"""An API server of a few objects in memory: versions, uids and patches as in the real one, and a controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.api.patches import JSON_PATCH
from stromboli.embedded.patching.json_patch import json_patch
from stromboli.embedded.patching.patch_request import merge_patch
from stromboli.kube.request import ApiError, Request

Json = dict[str, Any]
Fault = Callable[[Request], Exception | None]


class StoredObjects:
    """Objects by path. `refuse` may answer with an error before a request counts, `lose` after it was carried out."""

    def __init__(self, *objects: tuple[str, Json]) -> None:
        self.objects: dict[str, Json] = {}
        self.requests: list[Request] = []
        self.refuse: Fault = lambda _: None
        self.lose: Fault = lambda _: None
        self.changed: Callable[[str, Json], None] = lambda path, object: None
        """Is called with every object that was changed by a request."""
        self.at_once = self.most_at_once = 0
        self._version = 0
        for path, object in objects:
            self.put(path, object)

    def put(self, path: str, object: Json) -> Json:
        self._version += 1
        metadata = {"name": path.rpartition("/")[2], "uid": f"uid of {path.rpartition('/')[2]}"}
        if "/namespaces/" in path:
            metadata["namespace"] = path.split("/")[-3]
        metadata |= object.get("metadata", {})
        stored = {**object, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        self.objects[path] = stored
        return stored

    def change(self, path: str, patch: Json) -> Json:
        """As another client does it."""
        return self.put(path, merge_patch(self.objects[path], patch))

    async def send(self, request: Request, timeout: float) -> bytes:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.requests.append(request)
        if (error := self.refuse(request)) is not None:
            raise error
        answer = self._answer(request)
        if (error := self.lose(request)) is not None:
            raise error
        return msgspec.json.encode(answer)

    def _answer(self, request: Request) -> Json:
        if request.path.endswith("/events"):
            return {}
        path = request.path.removesuffix("/status")
        body = msgspec.json.decode(request.body) if request.body else {}
        if path.endswith("/binding"):
            return self._bind(path.removesuffix("/binding"), body)
        if request.method == "POST":
            metadata = body["metadata"]
            name = metadata.get("name") or f"{metadata['generateName']}x"
            return self.put(f"{path}/{name}", body)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        if request.method == "GET":
            return self.objects[path]
        if request.method == "DELETE":
            return self.objects.pop(path)
        before = self.objects[path]
        patch = json_patch if request.content_type == JSON_PATCH else merge_patch
        patched = patch(before, body)
        for field in ("uid", "resourceVersion"):
            if patched["metadata"][field] != before["metadata"][field]:
                raise ApiError(409, "Conflict", f"the object has been modified: {field}")
        stored = self.put(path, patched)
        self.changed(path, stored)
        return stored

    def _bind(self, path: str, binding: Json) -> Json:
        pod = self.objects.get(path)
        if pod is None:
            raise ApiError(404, "NotFound", f"{path} not found")
        if pod["spec"].get("nodeName"):
            raise ApiError(409, "Conflict", "already assigned")
        annotations = binding["metadata"].get("annotations", {})
        bound = {"metadata": {"annotations": annotations}, "spec": {"nodeName": binding["target"]["name"]}}
        return self.change(path, bound)

    @property
    def writes(self) -> list[tuple[str, str]]:
        """Methods and names of all but reads and events."""
        return [
            (request.method, request.path.removeprefix("/api/v1/").removeprefix("namespaces/ns/"))
            for request in self.requests
            if request.method != "GET" and not request.path.endswith("/events")
        ]

    def node_of(self, pod: str) -> str:
        return str(self.objects[f"/api/v1/namespaces/ns/pods/{pod}"]["spec"].get("nodeName", ""))
