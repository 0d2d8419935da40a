"""The plugin `network-topology-aware`: gangs close together in the network, others packed into used parts (spec 04 9).

`plugin` decides; `gradients` says which HyperNodes to try in which order, `required_room` what they must have room for,
`session_sums` what they have and hold, `leaf_distances` how far nodes are from where a gang is, and `tier_weights` how
much each tier counts for other pods. Beyond Volcano, `rank_neighbours` says which leaf is next for a gang, and
`block_worth` what HyperNodes are worth to the `gang_kinds` that are likely to come.
"""
