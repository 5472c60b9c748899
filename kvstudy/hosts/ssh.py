"""Commands on a host by the ssh that this machine has: its configuration, keys and known hosts are the
user's."""

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.hosts.hosts_file import HostsFile

CONNECT_TIMEOUT_S = 5
SILENCE_S, SILENCES = 6, 3  # a host that says nothing for so long is gone, as for a beat: remote.py
ANSWER_TIMEOUT_S = 15
COULD_NOT_CONNECT = 255


class Unreachable(KvstudyError):
    pass


@dataclass(frozen=True)
class Remote:
    """One host of the file."""

    name: str
    address: str
    file: HostsFile

    @property
    def python(self) -> str:
        """For a shell there: ``~`` is expanded, blanks are kept."""
        return _for_a_shell(self.file.ssh.python)

    @property
    def folder(self) -> str:
        return _for_a_shell(self.file.folder)

    def command(self, words: str, may_ask: bool = False) -> list[str]:
        """``words``: for a POSIX shell, whatever that of the user there is. ``may_ask``: for somebody who
        types it, and can be asked for a passphrase or about a host's key."""
        ssh = self.file.ssh
        return [
            "ssh",
            *([] if may_ask else ("-o", "BatchMode=yes")),
            *("-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"),
            *("-o", f"ServerAliveInterval={SILENCE_S // SILENCES}", "-o", f"ServerAliveCountMax={SILENCES}"),
            *(["-p", str(ssh.port)] if ssh.port else []),
            *(["-i", str(Path(ssh.key).expanduser())] if ssh.key else []),
            *(["-l", ssh.user] if ssh.user else []),
            *ssh.options,
            self.address,
            words if may_ask else f"exec sh -c {shlex.quote(words)}",
        ]

    def asked(
        self, words: str, given: str | None = None, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> subprocess.CompletedProcess:
        """Unreachable when ssh does not get there; any exit code of the command itself is the caller's."""
        try:
            done = subprocess.run(
                self.command(words),
                input=given if given is not None else "",
                capture_output=True,
                text=True,
                errors="replace",  # what a shell there says may be in any encoding
                timeout=timeout_s,
            )
        except FileNotFoundError:
            raise ToolMissing("no ssh", "apt-get install openssh-client") from None
        except subprocess.TimeoutExpired:
            raise Unreachable(f"host {self.name} does not answer over ssh within {timeout_s:g} s") from None
        if done.returncode == COULD_NOT_CONNECT:
            said = done.stderr.strip().splitlines()
            why = said[-1] if said else "ssh says nothing"
            raise Unreachable(f"host {self.name} cannot be reached over ssh: {why}", self._remedy(why))
        return done

    def _remedy(self, why: str) -> str:
        """kvstudy's own ssh asks nothing; what it would have asked is answered once by hand."""
        by_hand = shlex.join(self.command("true", may_ask=True))
        if "Host key verification failed" in why:
            return f"its key is not known here: compare it, and say yes once: {by_hand}"
        if "Permission denied" in why:
            return (
                f"it has to let you in without a question (ssh-copy-id there, ssh-add here for a key with a "
                f"passphrase): {by_hand}"
            )
        return f"try it: {by_hand}"


def remotes(file: HostsFile) -> list[Remote]:
    return [Remote(name, entry.address, file) for name, entry in file.hosts.items()]


def _for_a_shell(path: str) -> str:
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)
