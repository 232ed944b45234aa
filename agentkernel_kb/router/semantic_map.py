"""Logical placeholders and what they stand for: one pass, longest token first, values never read again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.near import nearest
from agentkernel_kb.render import one_line
from agentkernel_kb.router.redaction import holds_credentials
from agentkernel_kb.router.statement import code_parts

_TOKEN_SHAPED = re.compile(r"<[A-Za-z][A-Za-z0-9_]*>")
# Bounded repetitions that begin where a name does, so that no value takes long to search.
_CALLED = re.compile(r"(?<![\w$.])([A-Za-z_][\w$]{0,127}(?:\s{0,8}\.\s{0,8}[A-Za-z_][\w$]{0,127}){0,3})\s{0,8}\(")
_SHOWN_TOKENS = 20


class UnknownTokenError(AKConfigError):
    """A word of the shape of a placeholder that the map does not know.

    Attributes:
        token: The word.
    """

    def __init__(self, token: str, known: list[str]) -> None:
        self.token = token
        super().__init__(_unknown_sentence(token, known))


class SemanticMap(Mapping[str, str]):
    """Tokens such as `<CLIENTS>` and the physical names that they stand for in one environment.

    As a mapping it holds the tokens that every backend knows; `of(backend)` adds those of one backend. The tokens are copied:
    changing the original later changes nothing.

    Args:
        tokens: Token to physical name, or to the physical name in each of some backends: `{"<CLIENTS>": {"shop": "clients"}}`.
            Tokens are usually `<UPPER_CASE>`; any non-blank text works, and one that begins or ends in a letter, digit or
            underscore is replaced only where a word begins or ends.

    Raises:
        AKConfigError: A token is blank or no text, or a value is no text or holds credentials.
    """

    def __init__(self, tokens: Mapping[str, str | Mapping[str, str]] | None = None) -> None:
        supplied: object = {} if tokens is None else tokens
        if not isinstance(supplied, Mapping):
            raise AKConfigError(f"A semantic map is a mapping of tokens to names, not {type(supplied).__name__}.")
        self._values: dict[str, str] = {}
        self._owned: dict[str, dict[str, str]] = {}
        self._quiet: frozenset[str] = frozenset()
        for token, value in cast("Mapping[object, object]", supplied).items():
            self._take(_checked_token(token), value)
        self._prepare()

    def _take(self, token: str, value: object) -> None:
        if not isinstance(value, Mapping):
            self._values[token] = _checked_value(token, value)
            return
        if not value:
            raise AKConfigError(f"The semantic map's value for {token!r} names no backend.")
        for backend, name in cast("Mapping[object, object]", value).items():
            if not isinstance(backend, str):
                raise AKConfigError(f"The semantic map's value for {token!r} must map names of backends, not {backend!r}.")
            self._owned.setdefault(token, {})[backend] = _checked_value(token, name)

    def _prepare(self) -> None:
        self._functions = {token: _called_functions(value) for token, value in self._values.items()}
        lengths: dict[str, set[int]] = {}
        for token in self._values:
            lengths.setdefault(token[0], set()).add(len(token))
        self._lengths = {first: sorted(all_, reverse=True) for first, all_ in lengths.items()}
        self._beginnings = _beginnings(self._values) if self._values else None

    @classmethod
    def from_yaml(cls, source: str | Path, *, environment: str | None = None) -> SemanticMap:
        """Read a map of the shape `semantic_map: {…}` with overlays `environments: {prod: {semantic_map: {…}}}`.

        Args:
            source: Path of the file.
            environment: Overlay to apply, token by token; `None` for the base map alone.

        Raises:
            AKConfigError: The file cannot be read or has another shape, a token stands twice, or the environment is not in it.
        """
        from agentkernel_kb.router.semantic_map_yaml import read_tokens  # YAML is only loaded where it is used.

        if not isinstance(source, str | Path) or not isinstance(environment, str | None):
            raise AKConfigError("SemanticMap.from_yaml takes the path of a file, and the name of an environment or None.")
        tokens = read_tokens(Path(source), environment)
        try:
            return cls(tokens)
        except AKConfigError as error:
            raise AKConfigError(f"{source}: {error}") from error

    def __getitem__(self, token: str) -> str:
        return self._values[token]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"SemanticMap({[*self._values, *self._owned]})"

    @property
    def owners(self) -> Mapping[str, Sequence[str]]:
        """The backends of each token that only some know."""
        return {token: tuple(names) for token, names in self._owned.items()}

    @property
    def named(self) -> Mapping[str, Sequence[str]]:
        """The tokens that may be told to who uses the map, each with its backends; without any where all know it."""
        everyones: dict[str, Sequence[str]] = {token: () for token in self._values if token not in self._quiet}
        return {**everyones, **self.owners}

    def within(self, backends: Collection[str], *, hidden: bool) -> SemanticMap:
        """Return the map of an agent that may use some backends.

        Args:
            backends: Those backends; a token that only others know is unknown.
            hidden: There are others, of which the agent must not learn: a token for all is resolved and not named, as nothing
                tells of which backend it would speak.
        """
        owned = {
            token: {backend: name for backend, name in names.items() if backend in backends}
            for token, names in self._owned.items()
        }
        quiet = frozenset(self._values) if hidden else self._quiet
        return self._with(self._values, {token: names for token, names in owned.items() if names}, quiet)

    def of(self, backend: str) -> SemanticMap:
        """Return the map as one backend knows it: the tokens of all, and its own, which win."""
        own = {token: names[backend] for token, names in self._owned.items() if backend in names}
        return self._with({**self._values, **own}, {}, self._quiet - own.keys()) if own or self._owned else self

    @classmethod
    def _with(cls, values: Mapping[str, str], owned: dict[str, dict[str, str]], quiet: frozenset[str]) -> SemanticMap:
        made = cls(values)
        made._owned, made._quiet = owned, quiet
        return made

    def resolve(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Replace every known token.

        Where two tokens begin at one place the longer one counts; what a value holds is not looked at again.

        Returns:
            The text, and the names of the functions that the inserted values call.
        """
        if self._beginnings is None:
            return text, ()
        pieces: list[str] = []
        functions: tuple[str, ...] = ()
        end = 0
        for beginning in self._beginnings.finditer(text):
            start = beginning.start()
            if start < end:
                continue
            token = self._token_at(text, start, text[start])
            if token is not None:
                pieces += (text[end:start], self._values[token])
                functions += self._functions[token]
                end = start + len(token)
        return ("".join(pieces) + text[end:] if pieces else text), functions

    def _token_at(self, text: str, start: int, first: str) -> str | None:
        for length in self._lengths[first]:
            token = text[start : start + length]
            if token in self._values and _stands_alone(text, start, start + length):
                return token
        return None

    def check_statement(self, statement: str, language: str | None) -> None:
        """Look for an unknown placeholder in a statement's code, before the known ones are replaced.

        Literals and comments are passed over, and so is a word directly behind an identifier (`ARRAY<BIGINT>`).

        Raises:
            UnknownTokenError: There is one.
        """
        if "<" not in statement or not any(self._is_unknown(match[0]) for match in _TOKEN_SHAPED.finditer(statement)):
            return
        for offset, part in code_parts(statement, language):
            for match in _TOKEN_SHAPED.finditer(part):
                before = statement[offset + match.start() - 1 : offset + match.start()]
                if self._is_unknown(match[0]) and not (before.isalnum() or before == "_"):
                    raise UnknownTokenError(match[0], list(self.named))

    def check_name(self, name: str) -> None:
        """Look for an unknown placeholder in a path or an id.

        Raises:
            UnknownTokenError: There is one.
        """
        for match in _TOKEN_SHAPED.finditer(name):
            if self._is_unknown(match[0]):
                raise UnknownTokenError(match[0], list(self.named))

    def _is_unknown(self, word: str) -> bool:
        """Tell whether a word is a placeholder that is not known: one in capitals, or a known one in other letters."""
        return word not in self._values and (word == word.upper() or word.upper() in self._values)


def _checked_token(token: object) -> str:
    if not isinstance(token, str) or not token.strip() or one_line(token) != token:
        raise AKConfigError(f"A token of the semantic map must be one line of text such as '<CLIENTS>', not {token!r}.")
    return token


def _checked_value(token: object, value: object) -> str:
    if not isinstance(value, str):
        raise AKConfigError(f"The semantic map's value for {token!r} must be text, not {type(value).__name__}.")
    if holds_credentials(value):
        raise AKConfigError(
            f"The semantic map's value for {token!r} holds credentials. A model can read what a token stands for: "
            "map names only, and give credentials to the backend."
        )
    return value


def _beginnings(tokens: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of where a token may begin, looking at two characters: cheap however many tokens there are."""
    seconds: dict[str, set[str]] = {}
    for token in tokens:
        seconds.setdefault(token[0], set()).add(token[1:2])
    return re.compile("|".join(_beginning(first, following) for first, following in seconds.items()))


def _beginning(first: str, following: set[str]) -> str:
    if "" in following:
        return re.escape(first)
    return f"{re.escape(first)}(?=[{''.join(map(re.escape, following))}])"


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether a token is no part of a longer word; one that ends in a bracket always stands alone."""
    glued_before = start > 0 and _is_word(text[start]) and _is_word(text[start - 1])
    glued_after = end < len(text) and _is_word(text[end - 1]) and _is_word(text[end])
    return not (glued_before or glued_after)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _called_functions(value: str) -> tuple[str, ...]:
    """Name the functions that a value calls, such as `kb.system.sheet` in `TABLE(kb.system.sheet(id => '1'))`."""
    code = "".join(part for _, part in code_parts(value, "sql"))
    names = (re.sub(r"\s", "", name) for name in _CALLED.findall(code))
    return tuple(name for name in names if name.upper() not in ("TABLE", "LATERAL"))


def _unknown_sentence(token: str, known: list[str]) -> str:
    near = nearest(token, known)
    hint = f" Did you mean {near}?" if near else ""
    shown = ", ".join(known[:_SHOWN_TOKENS]) or "none"
    more = f" and {len(known) - _SHOWN_TOKENS} more" if len(known) > _SHOWN_TOKENS else ""
    return f"Unknown placeholder {token}.{hint} Known: {shown}{more}."
