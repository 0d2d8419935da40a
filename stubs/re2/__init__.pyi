"""The part of google-re2 that Stromboli uses; the package itself has no types."""

class error(Exception): ...

class Options:
    max_mem: int
    log_errors: bool

class _Match:
    def group(self) -> bytes: ...

class _Regexp:
    @property
    def programsize(self) -> int: ...
    def search(self, text: bytes) -> _Match | None: ...

def compile(pattern: str, options: Options | None = ...) -> _Regexp: ...
