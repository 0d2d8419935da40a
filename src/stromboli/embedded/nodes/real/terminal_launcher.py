"""Runs a program on the terminal that is its standard input: a script, since only a process itself can take a terminal.

Between a fork and the program no Python may run in a process with threads, so this is a program of its own.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios


def main() -> None:
    """Arguments: the variables that Python may have set by itself, the program's path, its arguments."""
    _, unset, path, *arguments = sys.argv
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    for name in filter(None, unset.split(",")):
        os.environ.pop(name, None)
    try:
        os.execv(path, arguments)
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
        sys.exit(126)


if __name__ == "__main__":
    main()
