"""Fair share with memory: who had much lately waits for who had little, and a restart forgets nothing.

`history` is the arithmetic of usage that fades, `accounts` who holds what, `keeping` the annotation of the queue.
"""
