"""The steps of a cycle, one function per file: enqueue, allocate, backfill and those that make room."""
