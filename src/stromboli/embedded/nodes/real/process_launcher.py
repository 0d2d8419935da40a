"""Runs a program in a cgroup or on a terminal: a script, since only a process itself can enter them before it starts.

Between a fork and the program no Python may run in a process with threads, so this is a program of its own.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
IGNORED_BY_STARTERS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""By `nohup`, and by shells in what they start in the background. What is ignored stays so across an exec."""


def main() -> None:
    """Arguments: variables that Python may have set by itself, the file of the cgroup's processes or nothing, `tty` if
    standard input is a terminal to be taken, the program's path, its arguments.
    """
    _, unset, cgroup, terminal, path, *arguments = sys.argv
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (*IGNORED_BY_PYTHON, *IGNORED_BY_STARTERS):
        signal.signal(number, signal.SIG_DFL)
    for name in filter(None, unset.split(",")):
        os.environ.pop(name, None)
    try:
        if cgroup:
            with open(cgroup, "w") as processes:
                processes.write("0")
        os.execv(path, arguments)
    except OSError as error:
        print(f"{error.filename or path}: {error.strerror}", file=sys.stderr)
        sys.exit(126)


if __name__ == "__main__":
    main()
