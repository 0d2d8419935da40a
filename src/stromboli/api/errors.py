"""What is wrong with an object, said so that its owner can find the place and mend it."""


class BadObject(ValueError):
    """An object that cannot be used: which one, which field, and what is wrong with it."""

    def __init__(self, field: str, problem: str, subject: str = "") -> None:
        self.field = field
        self.problem = problem
        self.subject = subject
        super().__init__(": ".join(part for part in (subject, field, problem) if part))

    def of(self, subject: str, inside: str = "") -> "BadObject":
        """The same error, naming its object (`Pod default/web`) and, if given, the field around it."""
        field = f"{inside}.{self.field}" if inside else self.field
        return BadObject(field, self.problem, subject)
