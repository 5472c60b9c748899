"""What a host has that a run needs: asked there, answered as JSON.

python -m kvstudy.measure.host_facts ~/.cache/kvstudy
"""

import errno
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from kvstudy.errors import ToolMissing
from kvstudy.hosts.lease import holder
from kvstudy.hosts.version import code_digest, installed
from kvstudy.subject.jdk import find_jdk


def host_facts(folder: str) -> dict:
    """``folder``: where the study's files go there."""
    here = Path(folder).expanduser()
    while not here.exists():
        here = here.parent
    try:
        jdk, no_jdk = find_jdk().version, None
    except ToolMissing as error:
        jdk, no_jdk = None, error.message
    return {
        "kvstudy": code_digest(),
        "python": platform.python_version(),
        "dask": installed("distributed"),
        "jdk": jdk,
        "no_jdk": no_jdk,
        "disk_free_bytes": shutil.disk_usage(here).free,
        "is_writable": _is_writable(here),
        "platform": platform_here(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "holder": holder(),
    }


def _is_writable(folder: Path) -> bool:
    """Tried by a file without a name: rights alone do not say it of /proc, nor of a file. A full disk is."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return True


def platform_here() -> str:
    """``Linux x86_64``: what programs are built for."""
    return f"{platform.system()} {platform.machine()}"


if __name__ == "__main__":
    print(json.dumps(host_facts(sys.argv[1])))
