"""A program in the place of `stromboli simulate`, for tests: it saves a small record, or fails if told so."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

PROGRAM = (sys.executable, __file__)


def main(words: list[str]) -> None:
    assert words.pop(0) == "simulate"
    options = {
        word: words[place + 1 : place + 2] for place, word in enumerate(words) if word.startswith("--")
    }
    trouble = (options.get("--failures") or [""])[0]
    if trouble == "1d/1h":
        print("first line\nthe disk is full", file=sys.stderr)
        raise SystemExit(3)
    if trouble == "2d/1h":
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "3d/1h":
        time.sleep(100)
    seed = int((options.get("--seed") or ["0"])[0])
    record = {"schema": 1, "name": "fake", "jobs": [], "seed": seed, "partial": trouble == "4d/1h"}
    record["summary"] = {"jobs": 10, "utilisation": 0.5 + seed / 100, "name": "fake", "mean_wait_s": None}
    Path(options["--save"][0]).write_text(json.dumps(record))


if __name__ == "__main__":
    main(sys.argv[1:])
