"""The plugin `capacity`: queues with explicit shares, flat or in a tree (spec 03 7, 8)."""
