"""The plugin `network-topology-aware`: places gangs close together in the network, other pods in used parts.

`plugin` decides, by the sums of HyperNodes in `session_sums` and the place of a gang in `leaf_distances`. Beyond
Volcano, `block_worth` keeps blocks of the network whole for the gangs that are likely to arrive.
"""
