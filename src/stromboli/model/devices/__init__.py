"""Devices by claim (DRA): pools of devices, the allocator, and what claims hold of them."""
