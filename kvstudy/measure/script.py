"""What a script says: a digest of its text and of all that it requires, by which a run of a script that was
changed is told from one of before.

    script_digest(root / "experiments/workloads/get.lua", root / "experiments/workloads")
    fill_digest(root / "experiments/workloads")

A module is looked for where the generators do (measure/generator.py): beside the script, then among the
project's own workloads. Which ones are required is read off the names in quotes, of the script and of what it
requires: were all that lies there taken, a script that is only added would end what was measured before. A
name that is put together while the script runs is not found.
"""

import hashlib
import re
from pathlib import Path

FILL = "fill.lua"  # among the project's own workloads
_IN_QUOTES = re.compile(rb"""["']([\w-]+(?:\.[\w-]+)*)["']""")


def script_digest(script: Path, workloads: Path, filled: bool = False) -> str:
    """The same wherever the project lies. A script that is gone says nothing, and has a digest of that.
    ``filled``: with what fills the store before."""
    texts = {script.name: _text(script) or b""} | ({FILL: _text(workloads / FILL) or b""} if filled else {})
    waiting = [*texts.values()]
    while waiting:
        for name in set(_IN_QUOTES.findall(waiting.pop())):
            module = f"{name.decode().replace('.', '/')}.lua"
            text = _text(script.parent / module)
            text = _text(workloads / module) if text is None else text
            if text is not None and module not in texts:
                texts[module] = text
                waiting.append(text)
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(name.encode() + b"\0" + text + b"\0")
    return digest.hexdigest()[:16]


def fill_digest(workloads: Path) -> str:
    """Of what fills a store: one that another script filled is another store."""
    return script_digest(workloads / FILL, workloads)


def _text(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
