"""PodGroups for pods that no Volcano job owns: `implied_groups` builds them, `controller` writes them."""
