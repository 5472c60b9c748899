"""The errors a user can meet: one line that says what is wrong and where, and a hint that says what to do.

KvstudyError
├── InputError          what was typed is wrong: a name, a path, where it was typed
│   └── ExperimentError an experiment file or a parameter is wrong
├── ToolMissing         a program, kernel setting or built artifact is missing on this machine
├── RunFailed           a run could not be completed; its folder is sealed as failed
│   └── HostLost        a host of the run cannot be reached any more, or what ran there has ended
├── RunFolderError      a run folder is not what it should be
│   ├── NotSealed       it has no SHA256SUMS: it is not data
│   └── SealBroken      a file does not match its checksum, is missing, or was added
└── FormatError         an output file of a tool cannot be read; names the file and the line

The command line prints ``message`` and ``hint`` and exits with 2 (InputError) or 1; a traceback only
with ``--debug``.
"""

import difflib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

LITTLE_ROOM = 1 << 20  # bytes: a disk that has less is full
_SHOWN = 80  # letters of a value


class KvstudyError(Exception):
    """``message``: one line, lower case, ``what is wrong: name=value``; ``hint``: what to do, or None."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self):
        """Comes whole out of another process: an exception is else made again from its message alone."""
        return _again, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"


def _again(kind: type[KvstudyError], arguments: tuple, state: dict) -> KvstudyError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


def one_line(value: object) -> str:
    """What somebody typed, of whatever type, short enough for a message."""
    return " ".join(repr(value).split())[:_SHOWN]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name that was meant, also by capital letters where it has small ones."""
    named = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), named, n=1)
    return named[near[0]] if near else None


def meant(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint: the name that was meant, or ``otherwise`` where none is near."""
    near = nearest(word, known)
    return f"did you mean {near}?" if near else otherwise


def no_folder(path: Path | str) -> str:
    """What to say of a path that is no folder."""
    return f"{'not a folder' if os.path.exists(path) else 'no such folder'}: {path}"


def in_words(error: OSError) -> str:
    """A full disk, a file that may not be written, …: what the system says, and of which file."""
    where = f": {error.filename}" if error.filename else ""
    return f"{reason(error)}{where}"


def reason(error: OSError) -> str:
    """``in_words`` where the file is named already."""
    return (error.strerror or str(error)).lower()


def reason_unanswered(error: Exception) -> str:
    """Why a request got no answer, or none that is HTTP; ``error``: an OSError, or one of http.client."""
    return reason(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


_WRITABLE = "make it writable for you, or name another place"
_IN_THE_WAY = "a file stands where a folder is needed: move it away, or name another place"
_WHAT_TO_DO = {  # of what the system refuses
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
}


def what_to_do(error: OSError) -> str | None:
    """The hint of what the system refused; None where nobody knows."""
    return _WHAT_TO_DO.get(error.errno)


class InputError(KvstudyError):
    exit_code = 2


class ExperimentError(InputError):
    pass


class ToolMissing(KvstudyError):
    pass


class RunFailed(KvstudyError):
    pass


class HostLost(RunFailed):
    pass


class RunFolderError(KvstudyError):
    pass


class NotSealed(RunFolderError):
    pass


class SealBroken(RunFolderError):
    pass


class FormatError(KvstudyError):
    """A tool's output that cannot be read; ``line`` counts from 1, None where a line has no meaning."""

    def __init__(self, file: str, line: int | None, what: str, hint: str | None = None):
        where = file if line is None else f"{file}:{line}"
        super().__init__(f"{where}: {what}", hint)
        self.file = file
        self.line = line
