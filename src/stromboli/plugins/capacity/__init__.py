"""The plugin `capacity`: queues with explicit shares, side by side or in a tree (spec 03 7, 8).

`allotment` is what one queue may have and has, `tree` lays queues out, `reclaiming` says who may be taken from;
`plugin` puts them together.
"""
