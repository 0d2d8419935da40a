"""Follows native groups in whatever version the server offers them: asked for anew with every list."""

from __future__ import annotations

import logging

from stromboli.api.types.native_group import NativePodGroup
from stromboli.kube.api_resources import located
from stromboli.kube.reflector import Expired, Reflector
from stromboli.kube.request import ApiError
from stromboli.kube.watch_decoding import Sight


class NativeReflector(Reflector):
    """A reflector that finds out first where its objects live; most servers have none."""

    missed = logging.INFO

    async def _list(self) -> None:
        found = await located(self._source, self.resource)
        if found is None:
            raise ApiError(404, "NotFound", "no version of it is offered")
        self.resource = found
        await super()._list()

    async def _watch(self) -> None:
        try:
            await super()._watch()
        except ApiError as error:
            if error.status != 404:
                raise
            raise Expired("it is not offered in this version any more") from None

    def _put(self, sight: Sight) -> None:
        """Objects in a list do not say of which version they are."""
        if isinstance(sight.thing, NativePodGroup):
            sight.thing.api_version = self.resource.api_version
        super()._put(sight)
