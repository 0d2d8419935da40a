"""What every process of ours that runs for long needs: flags, logs, health and metrics over HTTP, and an end.

The scheduler, the controllers and admission stand on it; it knows none of them.
"""
