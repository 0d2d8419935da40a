"""A ConfigMap: texts by name."""

from msgspec import field

from stromboli.api.types.meta import Object


class ConfigMap(Object):
    """The configuration of a controller, or of the device plugin whose cards are shared out."""

    data: dict[str, str] = field(default_factory=dict)
