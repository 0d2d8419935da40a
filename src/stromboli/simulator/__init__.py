"""A cluster in memory and virtual time: decisions come true at once, and what a cycle did becomes a report.

Nothing here sleeps or asks the machine for the time. The plan and the tests of plugins stand on it.
"""
