"""Times and sizes as Slurm writes them."""

from __future__ import annotations

import re

from stromboli.submission.bad_request import BadRequest

MAX_SECONDS = 10 * 366 * 86400
NO_LIMIT = ("infinite", "unlimited", "0", "-1")
_TIME = re.compile(r"(?:([0-9]{1,5})-)?([0-9]{1,7})(?::([0-9]{1,7}))?(?::([0-9]{1,7}))?", re.ASCII)
_MEMORY = re.compile(r"([0-9]{1,12})([KMGT]?)B?", re.ASCII | re.IGNORECASE)
_FACTORS = {"K": 1024, "": 1024**2, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def slurm_seconds(option: str, text: str) -> int | None:
    """`30` (minutes), `30:00`, `1:30:00`, `1-12`, `1-12:30`, `1-12:30:00`; None for no limit."""
    if text.strip().lower() in NO_LIMIT:
        return None
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise BadRequest(option, text, "no time; write minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS")
    days, *fields = (None if part is None else int(part) for part in match.groups())
    first, second, third = (*fields, None, None)[:3]
    assert first is not None
    if days is not None:
        seconds = days * 86400 + first * 3600 + (second or 0) * 60 + (third or 0)
    elif third is not None:
        seconds = first * 3600 + (second or 0) * 60 + third
    else:
        seconds = first * 60 + (second or 0)
    if not 0 < seconds <= MAX_SECONDS:
        raise BadRequest(option, text, "longer than ten years, or no time at all; 0 means no limit")
    return seconds


def slurm_bytes(option: str, text: str) -> int:
    """`4000` (MiB), `4G`, `512K`."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise BadRequest(option, text, "no size; write MiB as a number, or 512K, 4000M, 4G, 1T")
    return int(match[1]) * _FACTORS[match[2].upper()]
