"""Sentences about a number of objects, in the singular and in the plural."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count_sentence(count: int, noun: str, text: str, of: int | None = None) -> str:
    """`2 jobs have no time limit`, or `1 of 3 jobs has no time limit`: the text has the forms of its verb in braces."""
    alone = count == 1
    forms = {"s": "s" if alone else "", "es": "es" if alone else "", "its": "its" if alone else "their"}
    forms |= {"has": "has" if alone else "have", "is": "is" if alone else "are"}
    forms |= {"it": "it" if alone else "they", "them": "it" if alone else "them"}
    subject = counted(count, noun) if of is None else f"{count} of {counted(of, noun)}"
    return f"{subject} {text.format(**forms)}"
