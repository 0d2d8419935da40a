"""Network topology, wherever it stands: a tier by number or by name, never both."""

from stromboli.admission.rules.field import Place

BOTH_TIERS = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"


def check_topology(topology: Place, text: str = BOTH_TIERS) -> None:
    if topology["highestTierAllowed"].given and topology["highestTierName"].text():
        topology.wrong(text, "keep the one that you mean")
