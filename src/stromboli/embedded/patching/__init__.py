"""How a request to change an object becomes the changed object: the four patches of Kubernetes, and who owns what.

`json_patch` follows RFC 6902, `merge_patch` RFC 7386, `strategic` is kubectl's own, and `ownership` is server-side
apply with its `managedFields`. All are functions of documents: what they are given stays as it was, what they return
may share parts with it. A patch that cannot be applied raises `PatchError`.
"""
