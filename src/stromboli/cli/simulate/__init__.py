"""`stromboli simulate`: a workload on a cluster under a policy, in virtual time.

The command, its options and the forms: each form makes what a simulation needs of what was given. Modules of the
simulator are imported when a form needs them.
"""

from stromboli.cli.simulate.simulate_command import simulate

__all__ = ["simulate"]
