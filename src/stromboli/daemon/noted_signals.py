"""Signals that are noted, and take effect where a command is between two steps.

Raised where the program happens to be, an interrupt may be lost: Python drops what a weak reference's callback raises.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_signals(*numbers: signal.Signals, impatient: bool = False) -> Iterator[Callable[[], bool]]:
    """Whether one of these signals came; those that are ignored, as with nohup, stay so.

    `impatient`: a second one interrupts at once, for whoever does not come to the end of a step.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if impatient and len(came) > 1:
            raise KeyboardInterrupt

    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():  # where Python takes no signals
        heeded = []
    before = {number: signal.signal(number, note) for number in heeded}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
