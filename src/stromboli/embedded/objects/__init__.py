"""The verbs on stored objects and their subresources, with admission in between. No HTTP."""
