"""Kubernetes' protobuf encoding of objects, as Go clients send it. Decoded only: responses are JSON.

`messages.txt` has the fields of each message as number, JSON name and type. A `?` marks an optional field, whose zero
differs from its absence, a `!` one whose zero is kept; `*` is a list, `%` a map with string keys, and the fields of a
field named `-` are inlined. A message whose name is followed by `|` is the value of its last field that is set.
"""
