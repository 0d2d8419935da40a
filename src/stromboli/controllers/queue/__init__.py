"""Queues: open, closing, closed; by themselves, with their parent, on command. `states` decides."""
