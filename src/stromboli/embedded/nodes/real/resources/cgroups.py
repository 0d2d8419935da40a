"""Cgroups (version 2) of containers, where we may write them: limits hold, and nothing escapes from its container.

    STROMBOLI/POD/CONTAINER

lies below our own cgroup if it was delegated to us (a service of systemd with `Delegate=yes`), or for root at the top.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stromboli.embedded.nodes.real.leftovers.kill_until_gone import kill_until_gone
from stromboli.embedded.nodes.real.process_guardian import END_TIMEOUT, remove_cgroups
from stromboli.embedded.nodes.usage.process_usage import Reading

CONTROLLERS = frozenset(("cpu", "memory", "pids"))
_OURS = "stromboli-up"


class NoCgroups(Exception):
    """Why cgroups cannot be written here."""


@dataclass(frozen=True, slots=True)
class ContainerCgroup:
    """The cgroup of a run of a container."""

    path: Path

    @property
    def processes(self) -> Path:
        """Whoever writes 0 there is in it, with all that it starts from then on."""
        return self.path / "cgroup.procs"

    def was_out_of_memory(self) -> bool:
        """Whether the kernel killed it for its memory."""
        events = _numbers(self.path / "memory.events")
        return bool(events.get("oom_kill") or events.get("oom_group_kill"))

    def reading(self) -> Reading | None:
        """What it has used; None if it is gone. Files that were not read lately do not count, as for a kubelet."""
        cpu, memory = _numbers(self.path / "cpu.stat").get("usage_usec"), _text(self.path / "memory.current")
        if cpu is None or not memory.strip().isdecimal():
            return None
        inactive = _numbers(self.path / "memory.stat").get("inactive_file", 0)
        return Reading(cpu / 1e6, max(0, int(memory) - inactive))

    async def remove(self) -> None:
        """Kill what is in it, and remove it once that is gone, and the pod's with the last of its containers."""
        await kill_until_gone(lambda seconds: remove_cgroups(str(self.path), seconds), f"cgroup {self.path}")
        with suppress(OSError):
            self.path.parent.rmdir()


class CgroupTree:
    """The cgroups of all containers of a cluster."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, pod: str, container: str, settings: dict[str, str]) -> ContainerCgroup:
        """A new cgroup with these settings, those that the kernel knows; `OSError` if it cannot be made."""
        folder = self.root / pod
        folder.mkdir(exist_ok=True)
        _enable(folder)
        cgroup = ContainerCgroup(folder / container)
        with suppress(FileExistsError):
            cgroup.path.mkdir()
        try:
            for name, value in settings.items():
                file = cgroup.path / name
                if file.exists():
                    file.write_text(value)
        except OSError:
            with suppress(OSError):
                cgroup.path.rmdir()
                folder.rmdir()
            raise
        return cgroup

    def close(self) -> None:
        """Kill and remove whatever is left."""
        remove_cgroups(str(self.root), END_TIMEOUT)


def find_cgroups(name: str, proc: Path = Path("/proc/self")) -> CgroupTree:
    """A tree of this name, emptied of what a former run left; `NoCgroups` says why there is none."""
    mount, own = _own_cgroup(proc)
    reasons = []
    for parent in dict.fromkeys((mount / own.lstrip("/"), mount)):
        try:
            root = _prepare(parent, name)
        except (NoCgroups, OSError) as error:
            reasons.append(f"{parent}: {error.strerror if isinstance(error, OSError) else error}")
            continue
        return CgroupTree(root)
    raise NoCgroups("; ".join(reasons))


def _own_cgroup(proc: Path) -> tuple[Path, str]:
    """Where version 2 is mounted, and our cgroup in it."""
    try:
        mounts = (proc / "mountinfo").read_text().splitlines()
        groups = (proc / "cgroup").read_text().splitlines()
    except OSError:
        raise NoCgroups("only Linux has cgroups") from None
    places = [line.split(" ")[4] for line in mounts if " - cgroup2 " in line]
    own = [line[3:] for line in groups if line.startswith("0::")]
    if not places or not own:
        raise NoCgroups("cgroups of version 2 are not mounted")
    return Path(places[0]), own[0]


def _prepare(parent: Path, name: str) -> Path:
    """Make the tree below this cgroup."""
    missing = CONTROLLERS - set(_text(parent / "cgroup.controllers").split())
    if missing:
        raise NoCgroups(f"without the controllers {', '.join(sorted(missing))}")
    root = parent / name
    remove_cgroups(str(root), END_TIMEOUT)
    if (parent / "cgroup.type").exists() and not set(
        _text(parent / "cgroup.subtree_control").split()
    ) >= CONTROLLERS:
        _move_down(parent)
    _enable(parent)
    root.mkdir(exist_ok=True)
    try:
        _enable(root)
    except OSError:
        root.rmdir()
        raise
    return root


def _move_down(parent: Path) -> None:
    """Move ourselves into a cgroup below: one with processes cannot have limits for those below it."""
    processes = {int(pid) for pid in _text(parent / "cgroup.procs").split()}
    if processes - {os.getpid()}:
        raise NoCgroups("other processes are in it; in a service with Delegate=yes we would be alone")
    if processes:
        ours = parent / _OURS
        ours.mkdir(exist_ok=True)
        (ours / "cgroup.procs").write_text(str(os.getpid()))


def _enable(folder: Path) -> None:
    """Let the cgroups below have limits."""
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(CONTROLLERS)))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _numbers(path: Path) -> dict[str, int]:
    """The lines of a file such as `memory.events`."""
    pairs = (line.split(" ", 1) for line in _text(path).splitlines() if " " in line)
    return {name: int(value) for name, value in pairs if value.strip().isdecimal()}
