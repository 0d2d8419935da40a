"""The plugin `backfill-reservation`: who waits for room is promised a start, and nobody overtakes who would delay it.

`plugin` decides; `expected_ends` knows when running tasks end, `reservation` what is promised to whom,
`reservation_search` finds the earliest start.
"""
