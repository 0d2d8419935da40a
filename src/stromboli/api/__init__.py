"""What the world looks like from outside: Kubernetes objects and Volcano's CRDs as typed data.

Only the fields that the scheduler reads, exact quantities, the pod's request, selectors, every label,
annotation, reason and message text, and how objects are read from files. Nothing here knows the model or
talks to a network.
"""
