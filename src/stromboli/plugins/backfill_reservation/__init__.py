"""The plugin `backfill-reservation`: jobs without capacity are promised a start that other jobs may not delay.

`plugin` decides; `expected_ends` has the expected ends of running tasks, `reservation_search` finds the earliest start,
and `availability_profile` and `promised_starts` keep the promised starts of conservative backfill.
"""
