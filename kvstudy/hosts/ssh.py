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

    def command(self, words: str) -> list[str]:
        ssh = self.file.ssh
        return [
            "ssh",
            *("-o", "BatchMode=yes"),
            *("-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"),
            *("-o", f"ServerAliveInterval={SILENCE_S // SILENCES}", "-o", f"ServerAliveCountMax={SILENCES}"),
            *(["-p", str(ssh.port)] if ssh.port else []),
            *(["-i", str(Path(ssh.key).expanduser())] if ssh.key else []),
            *(["-l", ssh.user] if ssh.user else []),
            *ssh.options,
            self.address,
            words,
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
                timeout=timeout_s,
            )
        except FileNotFoundError:
            raise ToolMissing("no ssh", "apt-get install openssh-client") from None
        except subprocess.TimeoutExpired:
            raise Unreachable(f"host {self.name} does not answer over ssh within {timeout_s:g} s") from None
        if done.returncode == COULD_NOT_CONNECT:
            said = done.stderr.strip().splitlines()
            raise Unreachable(
                f"host {self.name} cannot be reached over ssh: {said[-1] if said else 'ssh says nothing'}",
                f"try it: {shlex.join(self.command('true'))}",
            )
        return done


def remotes(file: HostsFile) -> list[Remote]:
    return [Remote(name, entry.address, file) for name, entry in file.hosts.items()]


def _for_a_shell(path: str) -> str:
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)
