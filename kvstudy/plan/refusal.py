"""Turns what YAML and pydantic refuse into one line: file, line, key, what is wrong, and the nearest valid
name."""

import os
import re
import types
import typing
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from kvstudy.errors import ExperimentError, KvstudyError, meant, nearest
from kvstudy.project import project_root

KeyPath = tuple[str | int, ...]
EXAMPLE = "experiments/reproduce.yaml"
LINES_MAX = 20_000
SHOWN_MAX = 300  # letters of a message
TOO_DEEP = "not valid YAML: nested too deeply"
NOT_TEXT = re.compile(r"[^\n\t -\x7e\x85\xa0-\ud7ff\ue000-\U0010ffff]")  # of what YAML calls printable
KEY_ITSELF = "[key]"  # in a path of pydantic behind a key that a mapping may not have
WRITTEN_AS = {"comparing": "compare", "preset": "presets"}  # fields that have another name than their key


class Impossible(ValueError):
    """A combination of valid values that cannot be run; ``key`` is the top-level key to point at."""

    def __init__(self, key: str, what: str):
        super().__init__(what)
        self.key = key


class Source:
    """Where values came from: the file's name (or ``parameters``) and the line of each key, counted from
    1."""

    def __init__(self, name: str, lines: dict[KeyPath, int] | None = None):
        self.name = name
        self._lines = {} if lines is None else lines
        self._moved: dict[str, KeyPath] = {}

    def stands(self, path: KeyPath, line: int) -> None:
        self._lines[path] = line
        if len(self._lines) > LINES_MAX:  # aliases of aliases, which a few lines make millions of
            raise ExperimentError(f"{self.name}: not an experiment: more than {LINES_MAX} keys and values")

    def moved(self, key: str, origin: KeyPath) -> None:
        """Top-level ``key`` was taken from ``origin``: an override of a preset."""
        self._moved[key] = origin

    def renamed(self, old: KeyPath, new: KeyPath) -> None:
        """What stands under ``old`` is looked for under ``new``."""
        self._lines |= {
            new + path[len(old) :]: line for path, line in self._lines.items() if path[: len(old)] == old
        }

    def restored(self) -> None:
        self._moved.clear()

    def where(self, path: KeyPath) -> str:
        """``file:line`` of the deepest key on the path that the file has."""
        if path and path[0] in self._moved:
            path = self._moved[path[0]] + path[1:]
        # A single part that the file has without a list around it: pydantic's path counts it all the same.
        for place, part in reversed(list(enumerate(path))):
            if isinstance(part, int) and path[: place + 1] not in self._lines:
                path = path[:place] + path[place + 1 :]
        while path and path not in self._lines:
            path = path[:-1]
        return f"{self.name}:{self._lines[path]}" if path else self.name


def read_yaml(path: Path, what: str = "experiment") -> tuple[dict, Source]:
    """The mapping in a YAML 1.2 file as plain values, and where each key stands. ExperimentError when it is
    no mapping. ``what``: the kind of file, for its errors."""
    try:
        tree = YAML(typ="rt").load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExperimentError(f"no such {what} file: {path}", _where_to_look(path, what)) from None
    except IsADirectoryError:
        raise ExperimentError(
            f"cannot read the {what} file: {path}: is a directory", f"name its files: {path / '*.yaml'}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        why = (
            "it is not UTF-8 text"
            if isinstance(error, UnicodeDecodeError)
            else (error.strerror or str(error)).lower()
        )
        raise ExperimentError(f"cannot read the {what} file: {path}: {why}") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = str(error.problem or error.context).split("\n")[0]
        raise ExperimentError(f"{path}{line}: not valid YAML: {problem}") from error
    except RecursionError as error:
        raise ExperimentError(f"{path}: {TOO_DEEP}") from error
    except (YAMLError, ValueError) as error:  # a character that no YAML holds; what is no date or number
        raise ExperimentError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(tree, CommentedMap):
        raise ExperimentError(
            f"{path}: {'an experiment' if what == 'experiment' else f'a {what} file'} is a mapping of "
            "keys to values",
            f"see {EXAMPLE}" if what == "experiment" else None,
        )
    source = Source(str(path), {})
    try:
        return _plain(tree, (), source), source
    except RecursionError:  # also of an alias inside its own anchor
        raise ExperimentError(f"{path}: {TOO_DEEP}") from None


@contextmanager
def naming(file: Path, files: Collection[Path]) -> Iterator[None]:
    """Of several ``files`` an error names the one that it is about."""
    try:
        yield
    except ExperimentError as error:
        if len(files) < 2 or str(file) in error.message:
            raise
        raise ExperimentError(f"{file}: {error.message}", error.hint) from error


def _where_to_look(path: Path, what: str) -> str | None:
    """The hint of a file that is not there."""
    if what != "experiment":
        return f"what one says: docs/{what}.md"
    if near := _nearest_file(path):
        return f"did you mean {near}?"
    try:
        project_root()
    except KvstudyError as error:
        return f"{error.message}: {error.hint}"
    return None


def _nearest_file(path: Path) -> Path | None:
    """The experiment file that was meant: of nearly this name in the same folder, or among the project's."""
    folders = [path.parent]
    with suppress(KvstudyError):
        folders.append(Path(os.path.relpath(project_root() / "experiments")))
    for folder in folders:
        if near := nearest(path.stem, (other.stem for other in folder.glob("*.yaml"))):
            return folder / f"{near}.yaml"
    return None


def _plain(node: object, path: KeyPath, source: Source) -> typing.Any:
    if isinstance(node, CommentedMap):
        for key in node:
            if key in (node.lc.data or {}):  # one that is merged in (<<) has no line here
                source.stands((*path, key), node.lc.key(key)[0] + 1)
            if not isinstance(key, str | int) or isinstance(key, bool):
                said = "null" if key is None else repr(_plain(key, (), source))
                raise refuse(path, f"a key is a word: {said}", _At(source, (*path, key)))
            _plain(key, path, source)
        return {key: _plain(value, (*path, key), source) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        for index in node.lc.data or ():  # one behind a tag of another language's objects has no lines
            source.stands((*path, index), node.lc.item(index)[0] + 1)
        return [_plain(value, (*path, index), source) for index, value in enumerate(node)]
    if isinstance(node, str) and (found := NOT_TEXT.search(node)):
        raise refuse(path, f"holds a letter that is none: {found[0]!r}", source, "write text alone")
    for plain in (bool, int, float, str):
        if isinstance(node, plain):
            return plain(node)
    return node


def refuse(path: KeyPath, what: str, source: Source, hint: str | None = None) -> ExperimentError:
    """``file:line: key.inner: what``."""
    keys = [WRITTEN_AS.get(part, str(part)) for part in path if not isinstance(part, int)]
    what = what if len(what) <= SHOWN_MAX else f"{what[:SHOWN_MAX]} …"
    return ExperimentError(
        f"{source.where(path)}: {'.'.join(keys)}: {what}" if keys else f"{source.where(path)}: {what}", hint
    )


def unknown_key(path: KeyPath, known: typing.Iterable[str], source: Source) -> ExperimentError:
    known = sorted(known)
    hint = meant(str(path[-1]), known, f"known keys: {', '.join(known)}")
    return refuse(path[:-1], f"unknown key: {path[-1]}", _At(source, path), hint)


class _At(Source):
    """Names the line of an unknown key itself, while the message names its parent."""

    def __init__(self, source: Source, path: KeyPath):
        super().__init__(source.name)
        self._where = source.where(path)

    def where(self, path: KeyPath) -> str:
        return self._where


def refusal(
    error: ValidationError, model: type[BaseModel], source: Source, example: str = f"see {EXAMPLE}"
) -> ExperimentError:
    """The first of pydantic's complaints, unknown keys before all else, since they often cause the rest."""
    complaints = error.errors()
    complaints.sort(key=lambda complaint: complaint["type"] != "extra_forbidden")
    first = complaints[0]
    path = tuple(part for part in first["loc"] if part != KEY_ITSELF)
    if first["type"] == "extra_forbidden":
        return unknown_key(path, _known_keys(model, path[:-1]), source)
    if first["type"] == "missing":
        return refuse(path[:-1], f"required key is missing: {path[-1]}", source, example)
    message = first["msg"].removeprefix("Value error, ")
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, Impossible):
        path = (*path, cause.key)
    given = first["input"]
    if first["type"] == "literal_error":
        allowed = [
            name.strip().strip("'") for name in first["ctx"]["expected"].replace(" or ", ",").split(",")
        ]
        near = nearest(str(given), allowed)
        hint = f"did you mean {near}?" if near else None
        return refuse(path, f"not one of {', '.join(allowed)}: {given!r}", source, hint)
    if first["type"] in ("model_type", "dict_type"):
        known = _keys_of_mapping(model, path) if first["type"] == "dict_type" else _known_keys(model, path)
        return refuse(
            path,
            f"must be a mapping of keys to values: {given!r}",
            source,
            f"keys: {', '.join(known)}" if known else None,
        )
    if first["type"] != "value_error":
        message = f"{message[0].lower()}{message[1:]}: {given!r}"
    if first["type"] == "list_type" and isinstance(given, str):
        message += f"\nwrite [{given}]"
    message, _, hint = message.partition("\n")
    return refuse(path, message, source, hint or None)


def keys_of(model: type[BaseModel]) -> list[str]:
    """Those that a file may have."""
    return [WRITTEN_AS.get(name, name) for name in model.model_fields]


def _known_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return keys_of(model)


def _keys_of_mapping(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Those of a plain mapping; none where it takes any."""
    for part in path[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    field = model.model_fields.get(str(path[-1])) if path else None
    inner = (field.annotation, *typing.get_args(field.annotation)) if field else ()
    keys = [typing.get_args(one)[0] for one in inner if typing.get_origin(one) is dict]
    return [name for key in keys for name in typing.get_args(key) if isinstance(name, str)]


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model inside ``list[M]``, ``M | None``, ``dict[str, M]`` and such."""
    if (
        isinstance(annotation, type)
        and not isinstance(annotation, types.GenericAlias)
        and issubclass(annotation, BaseModel)
    ):
        return annotation
    for inner in typing.get_args(annotation):
        found = _model_in(inner)
        if found:
            return found
    return None
