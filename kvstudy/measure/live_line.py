"""What loadgen tells of each second while it runs, heard by a program.

loadgen draws a line once a second where its stderr is a terminal, and only there: so it is given one. What
else it writes there goes to its log, as without.

    line = LiveLine(progress.second, folder / "generator.log")
    process = OwnedProcess(…, stderr=line.descriptor)
    …                                                   process ends
    line.close()                                        the log is whole now

Pseudo-terminals were chosen over a new option of loadgen: what is measured stays the same command line. The
price is that of the line, once a second a copy of what each thread recorded (loadgen/src/live.rs).
"""

import os
import pty
import re
import threading
import tty
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kvstudy.measure.progress import Second

_NEW_LINE = b"\r\x1b[K"
_LINE = re.compile(rb"(\d+)/s  p50 (\S+)  p99 (\S+)  \d+s left")
_CLOSE_TIMEOUT_S = 2.0


class LiveLine:
    """``tell`` is called in a thread of its own. ``descriptor``: what the process gets as its stderr."""

    def __init__(self, tell: Callable[[Second], None], log: Path):
        self._tell, self._log = tell, log
        self._leader, self.descriptor = pty.openpty()
        tty.setraw(self.descriptor)  # what is written arrives as it was written
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """After the process has ended; twice does no harm."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
            self._thread.join(_CLOSE_TIMEOUT_S)
            os.close(self._leader)

    def _hear(self) -> None:
        heard = b""
        with self._log.open("ab") as log, suppress(OSError):  # EIO: nobody has the terminal any more
            while part := os.read(self._leader, 4096):
                *whole, heard = (heard + part).split(_NEW_LINE)
                for text in whole:
                    self._take(text, log)
                if _LINE.fullmatch(heard) or heard.endswith(b"\n"):
                    self._take(heard, log)
                    heard = b""
        if heard:
            with self._log.open("ab") as log:
                self._take(heard, log)

    def _take(self, text: bytes, log) -> None:
        if found := _LINE.fullmatch(text):
            rate, p50, p99 = (value.decode() for value in found.groups())
            self._tell(Second(int(rate), p50, p99))
        elif text:
            log.write(text)
