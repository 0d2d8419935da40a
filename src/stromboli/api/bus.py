"""Commands: what a user asks to be done to a Job or a Queue, once."""

from stromboli.api.meta import Object, OwnerReference


class Command(Object):
    """One request; whoever carries it out deletes it."""

    action: str = ""
    target: OwnerReference = OwnerReference()
    reason: str = ""
    message: str = ""
