"""What code costs on any machine: how many bytecode instructions of Python it executes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def executed_steps(function: Callable[[], object]) -> int:
    """Run a function and count the instructions that it and all that it calls execute.

    The garbage collector rests meanwhile: when it runs, and what it finalizes and calls, is up to earlier code.
    """
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
