"""The scheduler as a process: flags, endpoints, signals, logs, leader election, and the loop in a thread of its own.

The event loop runs in the main thread (watches, writes, lease, endpoints); cycles run in another. A cycle never waits
for the network, and the network waits for a cycle only as long as Python's lock makes it.
"""
