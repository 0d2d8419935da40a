"""The plugin `fairshare`: jobs of users who used less recently come first, across restarts.

`usage_history` is usage that decays, `accounts` what users hold now, `history_annotation` what a queue stores.
"""
