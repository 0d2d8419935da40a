"""The scheduler as a process: flags, endpoints, signals, leader election, and the cycle in a thread of its own.

The event loop runs in the main thread (watches, writes, lease, endpoints), cycles run in another; `thread_seam` is the
only way between them. A cycle never waits for the network, and the network waits for a cycle only as long as the GIL
makes it.
"""
