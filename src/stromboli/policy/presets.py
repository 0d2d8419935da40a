"""Policies that come with Stromboli, as the texts a user could have written."""

from stromboli.policy.policy_problems import suggestion

DEFAULT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

CHART = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

# Node groups of queues and parts of GPUs; without effect where nodes have no group and registered no cards.
GROUPS_AND_CARDS = """\
  - name: nodegroup
    arguments:
      strict: false
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
"""

# For gangs in the topology of the network; without effect where there are no HyperNodes.
TOPOLOGY = """\
  - name: network-topology-aware
    arguments:
      startWithMinimum: true
      ranksSideBySide: true
      keepBlocksWhole: true
"""

# The first job that waits is promised a start. Chosen by simulation: docs/backfill.md.
_PROMISED_STARTS = """\
  - name: backfill-reservation
"""

# Evicting actions consider all HyperNodes; only those that could have capacity are tried.
_ALL_HYPER_NODES = """\
      hypernode.gradient.evict.max-hypernodes: 100000
"""

# Beyond Volcano: evict no more than needed, hold what was cleared, protect new pods, admit urgent jobs.
_URGENT = """\
    letUrgentThrough: true
"""
# Keep for admitted jobs what they lack of their minimum.
_ADMITTED = """\
configurations:
- name: enqueue
  arguments:
    reserveMinimum: true
"""
_GENTLE = """\
- name: {action}
  arguments:
    fewestVictims: true
    doNoHarm: true
    holdFor: 5m
    minRunTime: 0s
    protectFor: 5m
    respectPriority: true
"""
# Demand that is still arriving: shares are enforced for pods that have waited. Queues do not take turns.
_BETWEEN_QUEUES = """\
    respectShares: true
    minWaitTime: 5s
"""
# Beside preempt, which leaves jobs with a network topology to gangpreempt.
_TOPOLOGY_JOBS = """\
    onlyTopologyJobs: true
"""


_EVICTING = {"reclaim": _BETWEEN_QUEUES, "preempt": "", "gangpreempt": _TOPOLOGY_JOBS}
"""What each evicting action of a preset has in addition."""


def _preset(*actions: str, plugins: str = "") -> str:
    evicting = [action for action in actions if action in _EVICTING]
    text = CHART.format(actions=", ".join(actions)) + plugins + TOPOLOGY
    text += _ALL_HYPER_NODES + _ADMITTED + _URGENT if evicting else _ADMITTED
    return text + "".join(_GENTLE.format(action=action) + _EVICTING[action] for action in evicting)


PRESETS: dict[str, str] = {
    "default": DEFAULT,
    "basic": _preset("enqueue", "allocate", "backfill"),
    "fair-share": _preset("enqueue", "allocate", "backfill", "reclaim", plugins=_PROMISED_STARTS),
    "full": _preset(
        "enqueue",
        "allocate",
        "backfill",
        "reclaim",
        "preempt",
        "gangpreempt",
        "shuffle",
        plugins=GROUPS_AND_CARDS + _PROMISED_STARTS,
    ),
    "high-priority": _preset("enqueue", "allocate", "preempt", "gangpreempt", "backfill"),
}


def preset(name: str) -> str:
    """The text of a preset, to be loaded like any policy; `LookupError` names the nearest one."""
    if name not in PRESETS:
        raise LookupError(f'there is no preset "{name}"{suggestion(name, PRESETS)}')
    return PRESETS[name]
