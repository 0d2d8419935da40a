"""A reflector of native PodGroups in whatever version the server offers; looked up before every list."""

from __future__ import annotations

import logging

from stromboli.api.types.native_group import NativePodGroup
from stromboli.kube.api_resources import in_offered_version
from stromboli.kube.reflector import Expired, Reflector
from stromboli.kube.request import ApiError
from stromboli.kube.watch_decoding import DecodedObject


class NativeGroupReflector(Reflector):
    """Finds the offered version first; most servers offer none."""

    absence_level = logging.INFO

    async def _list(self) -> None:
        resource = await in_offered_version(self._client, self.resource)
        if resource is None:
            raise ApiError(404, "NotFound", "no version of it is offered")
        self.resource = resource
        await super()._list()

    async def _watch(self) -> None:
        try:
            await super()._watch()
        except ApiError as error:
            if error.status != 404:
                raise
            raise Expired("it is not offered in this version any more") from None

    def _put(self, decoded: DecodedObject) -> None:
        """Objects in a list do not carry their apiVersion."""
        if isinstance(decoded.object, NativePodGroup):
            decoded.object.api_version = self.resource.api_version
        super()._put(decoded)
