"""Finds a JDK 25, also beside an older default one: JAVA_HOME, then that of the active conda environment,
then the usual places of each system, then PATH."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import ToolMissing

JAVA_FEATURE_VERSION = 25
USUAL_PLACES = (
    "/usr/lib/jvm",
    "/opt",
    "/opt/java",
    "/usr/java",
    "/Library/Java/JavaVirtualMachines",
    "~/.sdkman/candidates/java",
    "~/.jdks",
    "/opt/homebrew/opt",
)
INSTALL_HINT = (
    f"install one: apt-get install openjdk-{JAVA_FEATURE_VERSION}-jdk (Debian, Ubuntu), conda install "
    f"openjdk={JAVA_FEATURE_VERSION}, "
    f"or sdk install java {JAVA_FEATURE_VERSION}-tem; or set JAVA_HOME to where it is"
)


@dataclass(frozen=True)
class Jdk:
    """``home``: its folder; ``version``: as its ``release`` file gives it, ``25.0.1``."""

    home: Path
    version: str

    def tool(self, name: str) -> str:
        return str(self.home / "bin" / name)

    def environment(self) -> dict[str, str]:
        """The current environment with this JDK in front."""
        return os.environ | {
            "JAVA_HOME": str(self.home),
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        }


def find_jdk(usual_places: tuple[str, ...] = USUAL_PLACES) -> Jdk:
    """The first JDK of the feature version; ToolMissing names those that were found instead."""
    others = []
    for home in _candidates(usual_places):
        version = version_of(home)
        if version is None:
            continue
        if feature_of(version) == JAVA_FEATURE_VERSION and (home / "bin" / "javac").exists():
            return Jdk(home, version)
        others.append(
            f"{home} is {version}"
            if feature_of(version) != JAVA_FEATURE_VERSION
            else f"{home} has no compiler"
        )
    found = "; ".join(dict.fromkeys(others)) or "none at all"
    raise ToolMissing(f"no JDK {JAVA_FEATURE_VERSION}: found {found}", INSTALL_HINT)


def _candidates(usual_places: tuple[str, ...]) -> list[Path]:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if os.environ.get("CONDA_PREFIX"):
        homes.append(Path(os.environ["CONDA_PREFIX"]) / "lib" / "jvm")
    for place in usual_places:
        folder = Path(os.path.expanduser(place))  # Path's own raises where nobody has a home
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            homes += [
                entry,
                entry / "Contents" / "Home",
                entry / "libexec" / "openjdk.jdk" / "Contents" / "Home",
            ]
    for name in ("javac", "java"):
        on_path = shutil.which(name)
        if on_path:
            homes.append(Path(on_path).resolve().parent.parent)
    return homes


def version_of(home: Path) -> str | None:
    """The version of a Java home, from its ``release`` file, else by asking it; None where there is no
    Java."""
    if not (home / "bin" / "java").is_file():
        return None
    try:
        match = re.search(
            r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(encoding="utf-8"), re.MULTILINE
        )
        if match:
            return match[1]
    except OSError:
        pass
    try:
        asked = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', asked.stderr)
    return match[1] if match else None


def feature_of(version: str) -> int:
    """``25.0.1`` → 25, ``1.8.0_292`` → 8."""
    parts = re.findall(r"\d+", version)
    return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])
