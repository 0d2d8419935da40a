"""Arguments that Volcano's files carry and that change no decision here."""

from stromboli.policy.arguments import arg


def error_cache() -> bool:
    """`predicateErrorCacheEnable`, which placing actions accept: shapes spare similar tasks the search, exactly."""
    accepted: bool = arg(
        "predicateErrorCacheEnable",
        True,
        "Accepted for compatibility; no decision depends on it.",
        aliases=("enablePredicateErrorCache",),
    )
    return accepted
