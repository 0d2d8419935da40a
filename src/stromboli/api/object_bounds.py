"""How large objects may be: admission refuses what is above, and who meets it all the same leaves it out."""

MAX_QUEUE_DEPTH = 64
"""Levels of queues below the root, and steps of a `volcano.sh/hierarchy` path."""
