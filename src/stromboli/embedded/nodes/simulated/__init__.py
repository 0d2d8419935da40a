"""Simulated nodes: what their pods do is a matter of time alone, and of what their commands plainly say."""
