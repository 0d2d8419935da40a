"""What objects look like: types, defaults, limits and how their parts merge, for built-in kinds and for CRDs alike.

A `Schema` is one node of such a description. `builtin` has the kinds that the server brings along, written in the small
notation of `notation`; `crd` reads the schemas of CustomResourceDefinitions. Everything else asks a schema something:
`shaping` prunes, sets defaults and checks, `openapi` tells clients, `stromboli.embedded.patching` merges. No I/O here.
"""
