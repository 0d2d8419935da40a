"""Kubernetes' protobuf encoding of objects, as Go clients send it. Read only: answers are JSON, which all clients take.

`messages.txt` has the facts of the protocol: for each message its fields as number, JSON name and type. A `?` marks a
field whose zero is told apart from nothing, a `!` one whose zero is shown; `*` is a list, `%` a map with text keys, and
a field named `-` has its own fields in its parent's place.
"""

from stromboli.embedded.protobuf.protobuf_reader import MEDIA, BadMessage, read

__all__ = ["MEDIA", "BadMessage", "read"]
