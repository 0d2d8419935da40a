"""What our long-running processes have in common: flags, logs, health and metrics over HTTP, signals and election.

`process_shell` puts it together; scheduler, controllers and admission extend it.
"""
