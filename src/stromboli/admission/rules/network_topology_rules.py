"""Network topology of jobs, tasks and groups: a tier by number or by name, not both."""

from stromboli.admission.rules.field import Field

BOTH_TIERS = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"


def check_topology(topology: Field, text: str = BOTH_TIERS) -> None:
    if topology["highestTierAllowed"].given and topology["highestTierName"].text():
        topology.wrong(text, "keep the one that you mean")
