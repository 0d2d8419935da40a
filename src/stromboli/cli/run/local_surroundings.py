"""What a job takes from where it is submitted: its folder, its variables, its image, a name that nobody has."""

from __future__ import annotations

import os
import platform
import secrets
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.cli.cluster.cluster_kinds import NODES
from stromboli.kube.request import ApiError, NoResponse
from stromboli.submission.run_settings import Surroundings

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

IMAGE = "STROMBOLI_IMAGE"
NO_IMAGE = "none"
"""On nodes of `stromboli up`, where images count for nothing."""
REAL_NODES = {"stromboli.sh/node": "real"}
TAKEN_ALONG = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables of the user that say what a command means, for processes on this machine."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""For names that spell nothing."""
_NUMBERS = range(1_000_000, 67_000_000)
"""As Slurm has them."""


class Here(NamedTuple):
    """Where a job is submitted from, and what that means for it."""

    surroundings: Surroundings
    node_selector: dict[str, str] | None
    host: str
    is_simulated: bool
    """Whether its nodes run nothing."""


async def surroundings(session: ClusterSession) -> Here:
    """On a cluster of this machine the command runs in this folder, with the same programs."""
    has_real_nodes = session.running is not None and await _has_real_nodes(session)
    environment = dict(os.environ)
    image = environment.get(IMAGE, "") or (NO_IMAGE if session.running is not None else "")
    defaults = {name: environment[name] for name in TAKEN_ALONG if environment.get(name)}
    around = Surroundings(
        suffix="".join(secrets.choice(_LETTERS) for _ in range(5)),
        number=secrets.choice(_NUMBERS),
        env=environment,
        defaults=defaults if has_real_nodes else {},
        image=image,
        workdir=os.getcwd() if has_real_nodes else "",
    )
    selector = REAL_NODES if has_real_nodes else None
    return Here(around, selector, platform.node(), session.running is not None and not has_real_nodes)


async def _has_real_nodes(session: ClusterSession) -> bool:
    """Whether nodes are processes of this machine; whoever may not list nodes is taken to know."""
    labels = ",".join(f"{key}={value}" for key, value in REAL_NODES.items())
    try:
        body = await session.client.list(NODES, labelSelector=labels, limit=1)
    except (ApiError, NoResponse):
        return True
    return bool(msgspec.json.decode(body).get("items"))
