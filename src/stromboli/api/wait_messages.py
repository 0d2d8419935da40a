"""Why a job or a pod waits, as conditions and events have it: a sentence, and Volcano's words behind it.

`Job train waits: WHAT HOLDS IT AND WHAT IS SHORT; THE REMEDY (VOLCANO'S WORDS)`
"""

from __future__ import annotations

MAX_BYTES = 1024
"""Of an event's message, by the API server's rule; messages of conditions are kept as short."""
MAX_SENTENCE_BYTES = 800
MAX_SUMMARY_BYTES = 400
_WAITS, _REMEDY = " waits: ", "; "


def wait_sentence(subject: str, summary: str, remedy: str) -> str:
    """`Job train waits: SUMMARY; REMEDY`."""
    return truncated(f"{subject}{_WAITS}{wait_clause(summary, remedy)}", MAX_SENTENCE_BYTES)


def wait_clause(summary: str, remedy: str) -> str:
    """`SUMMARY; REMEDY`, the same for all jobs that wait for this."""
    return f"{truncated(summary, MAX_SUMMARY_BYTES)}{_REMEDY}{remedy}"


def wait_message(sentence: str, volcano: str) -> str:
    """The sentence, and behind it what Volcano would write, for programs that look for it."""
    return truncated(f"{sentence} ({volcano})", MAX_BYTES)


def headline(message: str) -> str:
    """What holds a job and what is short, out of such a message; any other text as it is."""
    _, waits, rest = message.partition(_WAITS)
    return rest.partition(_REMEDY)[0] if waits else message


def truncated(text: str, limit: int) -> str:
    """The text in at most so many bytes, with `...` where it was cut."""
    if len(text) <= limit and text.isascii():
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return text
    return encoded[: limit - 3].decode(errors="ignore") + "..."
