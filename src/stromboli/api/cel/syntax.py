"""The syntax of CEL: an expression becomes a tree, in which macros such as `all` are nodes of their own.

The grammar is that of the CEL specification. The depth of a tree is bounded, so recursive functions can walk it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

CONSTANT, IDENTIFIER, SELECT, CALL, LIST, STRUCT, MACRO, BIND = (
    "constant",
    "identifier",
    "select",
    "call",
    "list",
    "struct",
    "macro",
    "bind",
)
MAX_DEPTH = 120
"""Levels of a tree."""
MAX_DIGITS = 100
"""Characters of an integer, leading zeros included."""
MAX_NESTING = 60
"""Parentheses, brackets and calls around an expression."""

QUALIFIED = frozenset(
    {
        "sets.contains",
        "sets.equivalent",
        "sets.intersects",
        "optional.of",
        "optional.none",
        "optional.ofNonZeroValue",
        "ip.isCanonical",
        "lists.range",
    }
)
"""Functions whose names look like methods."""
_ONE_VARIABLE = {
    "all": (2,),
    "exists": (2,),
    "exists_one": (2,),
    "existsOne": (2,),
    "map": (2, 3),
    "filter": (2,),
    "sortBy": (2,),
    "optMap": (2,),
    "optFlatMap": (2,),
}
_TWO_VARIABLES = {"all": (3,), "exists": (3,), "exists_one": (3,), "existsOne": (3,), "transformList": (3, 4)}
"""Macros by name, with the numbers of arguments, variables included."""
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_BINARY = {name: (1, function) for name, function in _RELATIONS.items()} | {
    "+": (2, "_+_"),
    "-": (2, "_-_"),
    "*": (3, "_*_"),
    "/": (3, "_/_"),
    "%": (3, "_%_"),
}
_KEYWORDS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    }
)
_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\n\f\r]+|//[^\n]*)
  | (?P<string>
        [bB]?[rR][bB]?(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')
      | [bB]?(?:\"{3}(?:\\[\s\S]|[^\\])*?\"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}
              |"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*')
    )
  | (?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<integer>(?:0[xX][0-9a-fA-F]+|[0-9]+)[uU]?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<operator>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_PREFIX = re.compile(r"([rRbB]*)(\"{3}|'{3}|\"|')")
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.)?)",
    re.DOTALL,
)
_SIMPLE_ESCAPES = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class CelError(ValueError):
    """An expression that cannot be compiled."""


class Unsigned(int):
    """A number such as `1u`."""


@dataclass(frozen=True, slots=True)
class Node:
    """An expression within an expression."""

    kind: str
    name: str = ""
    """Of an identifier, of the field that is selected, of the function or macro; of a bind, its variable."""
    children: tuple[Node, ...] = ()
    """The operand; the target of a method, if there is one, and arguments; elements; keys and values. Of a macro: what
    it goes through, and the expressions with its variables. Of a bind: the value, and the expression with it."""
    value: Any = None
    """Of a constant."""
    is_test: bool = False
    """Whether a selection only tests presence, as `has()` does."""
    is_method: bool = False
    """Whether the first child of a call is its target."""
    variables: tuple[str, ...] = ()
    """Of a macro."""
    optional: frozenset[int] = frozenset()
    """Which elements or entries of a list or struct are optional, as in `[?a.b]`."""
    depth: int = 1

    def __iter__(self) -> Iterator[Node]:
        """The node and all nodes below."""
        nodes = [self]
        while nodes:
            node = nodes.pop()
            yield node
            nodes += node.children


class _Token(NamedTuple):
    kind: str
    """A group of `_TOKEN`; empty at the end."""
    text: str
    position: int


def parse(text: str) -> Node:
    """The tree of an expression; CelError if the text is none."""
    return _Parser(text).whole()


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CelError(f"Syntax error: token recognition error at: {text[position : position + 20]!r}")
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0], position)
        position = match.end()
    yield _Token("", "", position)


def _node(kind: str, name: str, children: Sequence[Node], **fields: Any) -> Node:
    depth = 1 + max((child.depth for child in children), default=0)
    if depth > MAX_DEPTH:
        raise CelError("the expression is nested too deeply: simplify it")
    return Node(kind, name, tuple(children), depth=depth, **fields)


def _balanced(name: str, terms: list[Node]) -> Node:
    """`a && b && c && d` as a tree of little depth; the operators may be grouped in any way."""
    while len(terms) > 1:
        pairs = [terms[index : index + 2] for index in range(0, len(terms), 2)]
        terms = [_node(CALL, name, pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]


class _Parser:
    """A recursive descent, with a method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0
        self._nesting = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._token.kind:
            raise self._unexpected()
        return node

    # -- tokens

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _at(self, *texts: str) -> bool:
        """Whether the next token is one of these operators or keywords."""
        return self._token.text in texts and self._token.kind in ("operator", "name")

    def _take(self, text: str) -> bool:
        if not self._at(text):
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(text)

    def _unexpected(self, expected: str = "") -> CelError:
        """In the words of cel-go, without the list of all that could come."""
        found = self._token.text[:20] if self._token.kind else "<EOF>"
        detail = f" expecting '{expected}'" if expected else ""
        return CelError(
            f"Syntax error: mismatched input '{found}'{detail} (column {self._token.position + 1})"
        )

    # -- operators

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise CelError("the expression is nested too deeply: simplify it")
        condition = self._logical("||")
        if self._take("?"):
            chosen = self._logical("||")
            self._expect(":")
            condition = _node(CALL, "_?_:_", (condition, chosen, self._expression()))
        self._nesting -= 1
        return condition

    def _logical(self, operator: str) -> Node:
        terms = [self._logical("&&") if operator == "||" else self._binary(1)]
        while self._take(operator):
            terms.append(self._logical("&&") if operator == "||" else self._binary(1))
        return _balanced(f"_{operator}_", terms)

    def _binary(self, level: int) -> Node:
        left = self._unary()
        while self._token.kind in ("operator", "name") and self._token.text in _BINARY:
            strength, function = _BINARY[self._token.text]
            if strength < level:
                break
            self._next += 1
            left = _node(CALL, function, (left, self._binary(strength + 1)))
        return left

    def _unary(self) -> Node:
        for operator, function in (("!", "!_"), ("-", "-_")):
            count = 0
            while self._take(operator):
                count += 1
                if operator == "-" and self._token.kind in ("integer", "double"):
                    return self._repeated(function, count - 1, self._members(self._number("-")))
            if count:
                return self._repeated(function, count, self._members(self._primary()))
        return self._members(self._primary())

    def _repeated(self, function: str, count: int, operand: Node) -> Node:
        """The operator once or twice, since pairs of it cancel out."""
        for _ in range(count if count < 2 else 2 - count % 2):
            operand = _node(CALL, function, (operand,))
        return operand

    # -- members

    def _members(self, node: Node) -> Node:
        while True:
            if self._take("."):
                node = self._member(node)
            elif self._take("["):
                function = "_[?_]" if self._take("?") else "_[_]"
                node = _node(CALL, function, (node, self._expression()))
                self._expect("]")
            else:
                return node

    def _member(self, target: Node) -> Node:
        is_optional = self._take("?")
        name = self._name(allow_reserved=True)
        if is_optional:
            return _node(CALL, "_?._", (target, Node(CONSTANT, value=name)))
        if not self._take("("):
            return _node(SELECT, name, (target,))
        arguments = self._list(")")
        if target.kind == IDENTIFIER and target.name == "cel" and name == "bind" and len(arguments) == 3:
            return _node(BIND, _variable(arguments[0]), arguments[1:])
        if target.kind == IDENTIFIER and f"{target.name}.{name}" in QUALIFIED:
            return _node(CALL, f"{target.name}.{name}", arguments)
        if len(arguments) in _ONE_VARIABLE.get(name, ()):
            variable = _variable(arguments[0])
            return _node(MACRO, name, (target, *arguments[1:]), variables=(variable,))
        if len(arguments) in _TWO_VARIABLES.get(name, ()):
            names = _variable(arguments[0]), _variable(arguments[1])
            return _node(MACRO, name, (target, *arguments[2:]), variables=names)
        return _node(CALL, name, (target, *arguments), is_method=True)

    def _list(self, end: str) -> list[Node]:
        """Expressions up to a closing bracket."""
        found: list[Node] = []
        while not self._take(end):
            if found:
                self._expect(",")
                if end == "]" and self._take(end):
                    break
            found.append(self._expression())
        return found

    # -- primaries

    def _primary(self) -> Node:
        token = self._token
        match token.kind:
            case "integer" | "double":
                return self._number()
            case "string":
                self._next += 1
                return Node(CONSTANT, value=_string(token.text))
            case "name":
                return self._named()
        if self._take("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._take("["):
            return self._elements()
        if self._take("{"):
            return self._entries()
        if self._take("."):
            return self._named()
        raise self._unexpected()

    def _named(self) -> Node:
        name = self._token.text
        if name in _KEYWORDS:
            self._next += 1
            return Node(CONSTANT, value=_KEYWORDS[name])
        name = self._name()
        if self._take("{"):
            raise CelError(f"undeclared reference to '{name}'")
        if not self._take("("):
            return Node(IDENTIFIER, name)
        arguments = self._list(")")
        if name != "has" or len(arguments) != 1:
            return _node(CALL, name, arguments)
        (field,) = arguments
        if field.kind != SELECT:
            raise CelError("Syntax error: invalid argument to has() macro")
        return _node(SELECT, field.name, field.children, is_test=True)

    def _name(self, allow_reserved: bool = False) -> str:
        token = self._token
        known = token.text in _KEYWORDS or token.text == "in"
        if token.kind != "name" or known or (token.text in _RESERVED and not allow_reserved):
            raise self._unexpected()
        self._next += 1
        return token.text

    def _number(self, sign: str = "") -> Node:
        token = self._token
        self._next += 1
        if token.kind == "double":
            return Node(CONSTANT, value=float(sign + token.text))
        digits = token.text.rstrip("uU")
        if len(digits) > MAX_DIGITS:
            raise CelError("Syntax error: invalid int literal")
        number = int(sign + digits, 16 if digits[:2] in ("0x", "0X") else 10)
        if digits != token.text:
            if number < 0 or number >= 2**64 or sign:
                raise CelError("Syntax error: invalid uint literal")
            return Node(CONSTANT, value=Unsigned(number))
        if not -(2**63) <= number < 2**63:
            raise CelError("Syntax error: invalid int literal")
        return Node(CONSTANT, value=number)

    def _elements(self) -> Node:
        found: list[Node] = []
        optional: set[int] = set()
        while not self._take("]"):
            if found:
                self._expect(",")
                if self._take("]"):
                    break
            if self._take("?"):
                optional.add(len(found))
            found.append(self._expression())
        return _node(LIST, "", found, optional=frozenset(optional))

    def _entries(self) -> Node:
        found: list[Node] = []
        optional: set[int] = set()
        while not self._take("}"):
            if found:
                self._expect(",")
                if self._take("}"):
                    break
            if self._take("?"):
                optional.add(len(found) // 2)
            found.append(self._expression())
            self._expect(":")
            found.append(self._expression())
        return _node(STRUCT, "", found, optional=frozenset(optional))


def _variable(node: Node) -> str:
    if node.kind != IDENTIFIER:
        raise CelError("Syntax error: argument must be a simple name")
    return node.name


def _string(token: str) -> str | bytes:
    """The value of a literal, such as `r'a'` or `b"a"`."""
    match = _PREFIX.match(token)
    assert match is not None
    prefix, quote = match[1].lower(), match[2]
    body = token[match.end() : -len(quote)]
    is_bytes = "b" in prefix
    if "r" in prefix:
        return body.encode() if is_bytes else body
    if is_bytes:
        return b"".join(_unescaped_bytes(body))
    return _ESCAPE.sub(_unescaped, body)


def _unescaped(escape: re.Match[str]) -> str:
    simple, code, octal, short, long, _ = escape.groups()
    if simple:
        return _SIMPLE_ESCAPES.get(simple, simple)
    if code or octal or short or long:
        point = int(octal, 8) if octal else int(code or short or long, 16)
        if point <= 0x10FFFF and not 0xD800 <= point < 0xE000:
            return chr(point)
    raise CelError(f"Syntax error: invalid escape sequence {escape[0]!r}")


def _unescaped_bytes(body: str) -> Iterator[bytes]:
    position = 0
    for escape in _ESCAPE.finditer(body):
        yield body[position : escape.start()].encode()
        simple, code, octal, *_ = escape.groups()
        if simple:
            yield _SIMPLE_ESCAPES.get(simple, simple).encode()
        elif code or octal:
            yield bytes([int(octal, 8) if octal else int(code, 16)])
        else:
            raise CelError(f"Syntax error: invalid escape sequence {escape[0]!r}")
        position = escape.end()
    yield body[position:].encode()
