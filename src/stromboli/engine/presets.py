"""Policies that come with Stromboli, as the texts a user could have written."""

from stromboli.engine.problems import suggestion

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

_CHART = """\
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

PRESETS: dict[str, str] = {
    "default": DEFAULT,
    "basic": _CHART.format(actions="enqueue, allocate, backfill"),
    "fair-share": _CHART.format(actions="enqueue, allocate, backfill, reclaim"),
    "full": _CHART.format(actions="enqueue, allocate, backfill, reclaim, preempt, shuffle"),
    "high-priority": _CHART.format(actions="enqueue, allocate, preempt, backfill"),
}


def preset(name: str) -> str:
    """The text of a preset, to be loaded like any policy; `LookupError` names the nearest one."""
    if name not in PRESETS:
        raise LookupError(f'there is no preset "{name}"{suggestion(name, PRESETS)}')
    return PRESETS[name]
