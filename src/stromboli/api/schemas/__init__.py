"""Structural schemas: types, defaults, validation and merge keys, for built-in kinds and for CRDs alike.

`builtin_schemas` has the built-in kinds, written in the notation of `schema_notation`; `crd_schemas` reads those of
CustomResourceDefinitions. `normalization` prunes, defaults and validates objects, and `stromboli.embedded.patching`
merges by them. No I/O here.
"""
