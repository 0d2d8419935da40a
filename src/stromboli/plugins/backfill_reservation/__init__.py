"""The plugin `backfill-reservation`: jobs without capacity are promised a start that other jobs may not delay.

`plugin` has what the modes share, `easy` and `conservative` have the modes. `expected_ends` has the expected ends of
running tasks, `reservation_search` finds the earliest start, `early_admission` handles the gate and the limits of
queues, and `availability_profile` has what will be free, for conservative backfill.
"""
