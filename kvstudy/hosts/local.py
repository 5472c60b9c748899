"""This machine as a host: objects live in this process, and files there are files here."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from kvstudy.hosts.host import Here

T = TypeVar("T")


class LocalHost:
    name = ""
    address = "127.0.0.1"
    is_remote = False

    def __init__(self, root: Path, work: Path, registered: Callable[[int, bool], None]):
        self._here = Here(root, work, registered)

    def stationed(self, make: Callable[..., T], *arguments: object) -> T:
        return make(self._here, *arguments)

    def tell(self, word: str) -> None:
        self._here.messages.add(word)

    def run_folder(self, here: Path) -> Path:
        return here

    def fetch(self, there: Path, here: Path, only: Collection[str] | None = None) -> None:
        """They are there."""

    def drop(self, there: Path) -> None:
        """It is the run's own."""

    def settle(self) -> None:
        """What was asked for has returned."""

    def abandon(self, why: str) -> None:
        """Who measures ends his children himself."""

    def give_up(self, why: str) -> None:
        """The same."""

    def send(self, here: Path, there: Path) -> None:
        """It is there."""

    def end(self) -> None:
        """Who measures ends its children himself: hosts/session.py."""
