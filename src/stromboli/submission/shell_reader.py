"""The commands of a shell script, with as much of the grammar as it takes to tell them from text.

Quotes, expansions, here-documents, functions and compound commands are read; nothing is expanded or run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_DEPTH = 50
"""Levels of nested compound commands and expansions."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_ARITHMETIC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|(?<=\$)\$")
PROCESS = "$"
"""The name of the variable `$$`, the process id of the shell."""
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]]*\])?(\+?)=")
_ARITHMETIC = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)[ \t]{0,9}=(?!=)")
_REDIRECTION = re.compile(r"<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\()")
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
_PARENTHESIS = re.compile(r"[()]")
_COMPOUND = frozenset(
    ("if", "while", "until", "for", "select", "case", "{", "[[", "function", "!", "time", "coproc")
)
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))


class Unreadable(Exception):
    """A script that ends too early, nests too deep, or uses what the reader does not know."""


@dataclass(slots=True)
class Word:
    """A word of a command."""

    start: int
    text: str = ""
    """Without quotes; a zero byte for each expansion."""
    is_plain: bool = True
    """Whether it has neither quotes nor expansions, as words of the grammar."""
    names: set[str] = field(default_factory=set)
    """Variables that it expands."""
    substitutions: list[tuple[int, int]] = field(default_factory=list)
    """Where the commands whose output it has start and end."""
    cost: int = 0
    """What those commands cost."""


class ShellReader:
    """Reads a script once, from its first to its last character, and adds up what commands cost.

    `simple` says what a simple command costs. Of branches the dearest counts, a loop counts twice, and a function
    where it is called.
    """

    def __init__(self, script: str, always_set: frozenset[str]) -> None:
        self.script = script
        self._always_set = always_set
        """Variables of which the script uses no default: `${PORT:-$RANDOM}`."""
        self._at = 0
        self._depth = 0
        self._in_backticks = False
        self._here_documents: list[tuple[str, bool]] = []
        self._functions: dict[str, int] = {}

    def simple(self, words: list[Word], inputs: list[Word]) -> int:
        """The cost of a simple command, which reads from these words."""
        raise NotImplementedError

    def assign(self, word: Word) -> None:
        """A command or an expansion assigns to a variable: `((port = RANDOM % 1000))`, `${port:=$RANDOM}`."""
        raise NotImplementedError

    def line(self, word: Word) -> int:
        """The number of the line that a word is in."""
        return self.script.count("\n", 0, word.start) + 1

    def commands(self, *ends: str) -> tuple[int, str]:
        """What the commands up to one of these words or operators cost, and which it was; `""` is the end."""
        self._deepen()
        cost, end = 0, None
        while end is None:
            self._blank()
            if self._at >= len(self.script) or self._ends() or self._starts(";;", ";&"):
                end = self._char() if not self._starts(";") else ";;"
                self._at += len(end)
                while end == ";;" and self._char() in (";", "&"):
                    self._at += 1
            elif self._char() in ";&|\n":
                self._newline() if self._char() == "\n" else self._skip()
            elif self._starts("(("):
                self._arithmetic_command()
            elif self._char() == "(":
                self._skip()
                cost += self.commands(")")[0]
            elif _REDIRECTION.match(self.script, self._at):
                cost += self._redirection().cost
            else:
                more, end = self._command(ends)
                cost += more
        if end not in ends:
            raise Unreadable
        self._depth -= 1
        return cost, end

    def _command(self, ends: tuple[str, ...]) -> tuple[int, str | None]:
        """What one command costs, or the word that ends the list of commands."""
        word = self._word()
        if not word.is_plain:
            return self._simple(word), None
        if word.text in ends:
            return 0, word.text
        if word.text in _CLOSING:
            raise Unreadable
        if word.text in _COMPOUND:
            return self._compound(word.text), None
        if _FUNCTION.match(self.script, self._at):
            self._define(word.text)
            return 0, None
        return self._simple(word), None

    def _compound(self, word: str) -> int:
        """The cost of a compound command, which begins with a word of the grammar."""
        match word:
            case "if":
                return self._if()
            case "while" | "until":
                return 2 * (self.commands("do")[0] + self.commands("done")[0])
            case "for" | "select":
                return self._for()
            case "case":
                return self._case()
            case "{":
                return self.commands("}")[0]
            case "[[":
                self._test()
            case "function":
                self._blank()
                self._define(self._word().text)
        return 0

    def _if(self) -> int:
        """The cost of the most expensive branch, since one branch runs."""
        cost, most, end = self.commands("then")[0], 0, ""
        while end != "fi":
            branch, end = self.commands("elif", "else", "fi")
            most = max(most, branch)
            if end == "elif":
                cost += self.commands("then")[0]
        return cost + most

    def _for(self) -> int:
        self._blank()
        cost = 0
        if self._starts("(("):
            self._arithmetic_command()
        else:
            self._word()
            self._blank()
            if not self._starts("do ", "do\t", "do\n"):
                cost = sum(word.cost for word in self._words())
        while True:
            self._blank()
            if self._char() not in (";", "\n"):
                break
            self._newline() if self._char() == "\n" else self._skip()
        end = {"do": "done", "{": "}"}.get(self._word().text)
        if end is None:
            raise Unreadable
        return cost + 2 * self.commands(end)[0]

    def _case(self) -> int:
        self._blank()
        cost, most = self._word().cost, 0
        self._blank_lines()
        if self._word().text != "in":
            raise Unreadable
        while True:
            self._blank_lines()
            if self._char() == "(":
                self._skip()
            pattern = self._pattern()
            if pattern == "esac":
                return cost + most
            branch, end = self.commands(";;", "esac")
            most = max(most, branch)
            if end == "esac":
                return cost + most

    def _pattern(self) -> str:
        """Read a pattern of `case` up to its parenthesis, or `esac` if no pattern follows."""
        while True:
            self._blank()
            if self._char() == "|":
                self._skip()
            elif self._char() == ")":
                self._skip()
                return ""
            else:
                word = self._word()
                if word.is_plain and word.text == "esac":
                    return "esac"

    def _test(self) -> None:
        while True:
            self._blank_lines()
            if self._char() in (";", "&", "|", "<", ">", "(", ")"):
                self._skip()
            elif self._word().text == "]]":
                return

    def _define(self, name: str) -> None:
        """Remember what a function costs where it is called."""
        if match := _FUNCTION.match(self.script, self._at):
            self._at = match.end()
        self._blank_lines()
        if self._char() == "(":
            self._skip()
            self._functions[name] = self.commands(")")[0]
        elif self._word().text == "{":
            self._functions[name] = self.commands("}")[0]
        else:
            raise Unreadable

    def _words(self) -> list[Word]:
        """The words up to the end of a simple command."""
        words = []
        while True:
            self._blank()
            char = self._char()
            if _REDIRECTION.match(self.script, self._at):
                words.append(self._redirection())
            elif not char or char in "\n;&|" or self._ends():
                return words
            else:
                words.append(self._word())

    def _simple(self, first: Word) -> int:
        words = [first, *self._words()]
        cost = sum(word.cost for word in words)
        inputs = [word for word in words if not word.text]
        words = [word for word in words if word.text]
        if not words:
            return cost
        return cost + self._functions.get(words[0].text, 0) + self.simple(words, inputs)

    def _word(self) -> Word:
        word = Word(self._at)
        text, parts = self.script, list[str]()
        while self._at < len(text):
            char = text[self._at]
            if self._starts("<(", ">("):
                self._substitution(word, 2, ")")
                parts.append("\0")
            elif char == "(" and parts and parts[-1] == "=" and ASSIGNMENT.fullmatch("".join(parts)):
                self._array(word)
                parts.append("\0")
            elif char == "(" and parts and text[self._at - 1] in "?*+@!":
                self._parentheses()
            elif char in " \t\n;&|<>()" or self._ends():
                break
            elif self._starts("\\\n"):
                self._at += 2
            elif char in "\\'\"$`":
                parts.append(self._not_plain(word))
            else:
                parts.append(char)
                self._at += 1
        if self._at == word.start:
            raise Unreadable
        word.text = "".join(parts)
        return word

    def _not_plain(self, word: Word) -> str:
        """A quoted character or text, or an expansion."""
        word.is_plain = False
        char = self._char()
        if char == "\\":
            self._at += 2
            return self.script[self._at - 1 : self._at]
        if char == "'":
            return self._single_quoted()
        return self._quoted(word, '"', 1) if char == '"' else self._expansion(word)

    def _single_quoted(self) -> str:
        end = self.script.find("'", self._at + 1)
        if end < 0:
            raise Unreadable
        text = self.script[self._at + 1 : end]
        self._at = end + 1
        return text

    def _quoted(self, word: Word, end: str, opening: int) -> str:
        """Text with expansions up to a quote or a brace."""
        self._deepen()
        self._at += opening
        parts = []
        while not self._starts(end):
            char = self._char()
            if not char:
                raise Unreadable
            if char == "\\":
                parts.append(self.script[self._at + 1 : self._at + 2])
                self._at += 2
            elif char in "$`":
                parts.append(self._expansion(word))
            elif end == "}" and char == "'":
                parts.append(self._single_quoted())
            elif end == "}" and char == '"':
                parts.append(self._quoted(word, '"', 1))
            else:
                parts.append(char)
                self._at += 1
        self._at += 1
        self._depth -= 1
        return "".join(parts)

    def _expansion(self, word: Word) -> str:
        """What begins with `$` or a backtick; a zero byte stands for its value."""
        text, start = self.script, self._at
        if self._starts("`"):
            self._in_backticks = True
            self._substitution(word, 1, "`")
            self._in_backticks = False
        elif self._starts("$(("):
            self._at += 1
            self._parentheses()
            word.names.update(_IN_ARITHMETIC.findall(text, start, self._at))
            if "$(" in text[start + 2 : self._at] or "`" in text[start : self._at]:
                word.substitutions.append((start, self._at))
        elif self._starts("$("):
            outside, self._in_backticks = self._in_backticks, False
            self._substitution(word, 2, ")")
            self._in_backticks = outside
        elif self._starts("${"):
            self._parameter(word)
        elif self._starts("$'"):
            self._at += 1
            while self._at < len(text) and not self._starts("'", at=self._at + 1):
                self._at += 2 if self._starts("\\", at=self._at + 1) else 1
            self._at += 2
        elif match := _NAME.match(text, start + 1):
            word.names.add(match[0])
            self._at = match.end()
        elif text.startswith("$$", start):
            word.names.add(PROCESS)
            self._at += 2
        elif text[start + 1 : start + 2] in (*"0123456789?!#@*-",) and len(text) > start + 1:
            self._at += 2
        else:
            self._at += 1
            return "$"
        return "\0"

    def _parameter(self, word: Word) -> None:
        self._at += 2
        while self._char() in ("#", "!") and _NAME.match(self.script, self._at + 1):
            self._at += 1
        match = _NAME.match(self.script, self._at)
        if match is None:
            self._quoted(word, "}", 0)
            return
        word.names.add(match[0])
        self._at = match.end()
        is_set = match[0] in self._always_set and self._starts(":-", "-", ":=", "=")
        assigns, value = self._starts(":=", "="), Word(self._at)
        self._quoted(value, "}", 0)
        if is_set:
            return
        if assigns:
            self.assign(
                Word(value.start, f"{match[0]}+=", names=value.names, substitutions=value.substitutions)
            )
        self._add(value, word)

    def _substitution(self, word: Word, opening: int, end: str) -> None:
        """Commands whose output, or a file with it, is part of a word."""
        start = self._at
        self._at += opening
        word.cost += self.commands(end)[0]
        word.substitutions.append((start, self._at))

    def _array(self, word: Word) -> None:
        self._deepen()
        self._skip()
        while True:
            self._blank_lines()
            if self._char() == ")":
                self._skip()
                self._depth -= 1
                return
            self._add(self._word(), word)

    @staticmethod
    def _add(part: Word, word: Word) -> None:
        word.names |= part.names
        word.substitutions += part.substitutions
        word.cost += part.cost

    def _arithmetic_command(self) -> None:
        start = self._at
        self._parentheses()
        self.arithmetic(start, self.script[start : self._at])

    def arithmetic(self, start: int, text: str) -> None:
        """Read the assignment of an arithmetic expression that starts there."""
        if match := _ARITHMETIC.search(text):
            self.assign(Word(start, f"{match[1]}=", names=set(_IN_ARITHMETIC.findall(text, match.end()))))

    def _parentheses(self) -> None:
        """Skip text in balanced parentheses."""
        depth = 0
        for match in _PARENTHESIS.finditer(self.script, self._at):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                self._at = match.end()
                return
        raise Unreadable

    def _redirection(self) -> Word:
        """A word without a text: what is read, or what opening the file costs."""
        match = _REDIRECTION.match(self.script, self._at)
        assert match is not None
        self._at = match.end()
        self._blank()
        word = self._word()
        if match[0] in ("<<", "<<-"):
            self._here_documents.append((word.text, match[0] == "<<-"))
        if match[0] not in ("<", "<<<"):
            return Word(word.start, is_plain=False, cost=word.cost)
        word.text, word.is_plain = "", False
        return word

    def _blank(self) -> None:
        """Skip spaces, continued lines and comments, but no end of a line."""
        while True:
            if self._char() in (" ", "\t", "\r"):
                self._at += 1
            elif self._starts("\\\n"):
                self._at += 2
            elif self._char() == "#":
                end = self.script.find("\n", self._at)
                self._at = end if end >= 0 else len(self.script)
            else:
                return

    def _blank_lines(self) -> None:
        self._blank()
        while self._char() == "\n":
            self._newline()
            self._blank()

    def _newline(self) -> None:
        """Skip the end of a line, and the here-documents after it."""
        self._at += 1
        for delimiter, tabs in self._here_documents:
            while True:
                if self._at >= len(self.script):
                    raise Unreadable
                end = self.script.find("\n", self._at)
                end = end if end >= 0 else len(self.script)
                line = self.script[self._at : end]
                self._at = min(end + 1, len(self.script))
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self._here_documents.clear()

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable

    def _ends(self) -> bool:
        """Whether a substitution or a subshell ends here."""
        return self._starts(")") or (self._in_backticks and self._starts("`"))

    def _char(self) -> str:
        return self.script[self._at : self._at + 1]

    def _skip(self) -> None:
        self._at += 1

    def _starts(self, *texts: str, at: int | None = None) -> bool:
        return self.script.startswith(texts, self._at if at is None else at)
