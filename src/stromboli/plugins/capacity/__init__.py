"""The plugin `capacity`: queues with explicit shares, side by side or in a tree (spec 03 7, 8).

`queue_share` is what one queue may have and has, `queue_tree` computes the shares of all queues,
`reclaimable_queues` chooses victims; `plugin` combines them.
"""
