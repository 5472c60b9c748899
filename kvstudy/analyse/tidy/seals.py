"""By what the tables know a run: its seal, and, so that nobody has to read its files again, their stamp.

    seal_of(folder)     of a run as it is: reads every file
    stamp_of(folder)    reads none; another one whenever a file was written, replaced, added or taken away

A run that is not as it was sealed has another seal than it had, so that it is read again, fails its check
``readable`` and is left out by rule; put back, it has the first one again. Stamps are of one disk and of one
copy of a run, and no part of the tables depends on them.
"""

import hashlib
import os
from pathlib import Path

from kvstudy.record.run_folder import seal_digest
from kvstudy.record.verification import verify


def seal_of(run: Path) -> str:
    """The digest of its SHA256SUMS, which names every other file by digest; of a run that is not as it was
    sealed a digest of that and of what is wrong."""
    problems = [f"{problem.file}: {problem.what}" for problem in verify(run)]
    sealed = seal_digest(run)
    return hashlib.sha256("\n".join([sealed, *problems]).encode()).hexdigest() if problems else sealed


def stamp_of(run: Path) -> str:
    """Of names, sizes and times: the time of the last change of a file's name or rights too, which nobody can
    set back. Of what is no file its name."""
    with os.scandir(run) as entries:
        found = sorted((entry.name, entry.stat() if entry.is_file() else None) for entry in entries)
    known = [
        (name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) if stat else (name,) for name, stat in found
    ]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]
