"""The four patches of Kubernetes, and the managed fields of objects.

`patch_request` applies a patch by its media type: `json_patch` follows RFC 6902, `strategic_merge` is that of kubectl,
and merge patches (RFC 7386) are in `stromboli.api.patches`. `server_side_apply` keeps `managedFields`. All are
functions of documents, which they do not change; results may share parts with them. A patch that cannot be applied
raises `StatusError`.
"""
