"""The four patches of Kubernetes, and the managed fields of objects.

`json_patch` follows RFC 6902, `merge_patch` RFC 7386, `strategic_merge` is that of kubectl, and `server_side_apply`
keeps `managedFields`. All are functions of documents, which they do not change; results may share parts with them. A
patch that cannot be applied raises `StatusError`.
"""
