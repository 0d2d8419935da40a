"""Bars of how much is used of what there is."""

from __future__ import annotations

WIDTH = 10
USED, FREE, BORROWED = "█", "░", "▓"


def usage_bar(used: float, total: float, width: int = WIDTH) -> str:
    """`████░░░░░░`; what is over the total, as of a queue that uses what others leave, fills it and is marked."""
    if total <= 0:
        return (BORROWED if used > 0 else FREE) * width
    if used > total:
        within = min(width - 1, round(width * total / used))
        return USED * within + BORROWED * (width - within)
    filled = min(width, round(width * used / total))
    if used > 0 and not filled:
        filled = 1
    return USED * filled + FREE * (width - filled)
