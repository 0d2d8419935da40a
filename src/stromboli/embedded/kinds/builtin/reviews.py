"""Virtual resources: reviews of tokens and access, which are created, answered and never stored."""

from stromboli.embedded.kinds.kind import builtin

REVIEWS = tuple(
    builtin(group, f"{kind.lower()}s", kind, namespaced=kind.startswith("Local"), verbs=("create",))
    for group, kind in (
        ("authentication.k8s.io", "TokenReview"),
        ("authentication.k8s.io", "SelfSubjectReview"),
        ("authorization.k8s.io", "SubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectRulesReview"),
        ("authorization.k8s.io", "LocalSubjectAccessReview"),
    )
)
