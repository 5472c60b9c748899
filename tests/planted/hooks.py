"""What the planted faults have in common: code that runs in the measuring process, ahead of it."""

WHEN_MEASURING = """
from kvstudy.measure.progress import Progress
from kvstudy.subject.launched import Launched

def when_measuring(act):
    '''Calls ``act`` with the service's process id when the measured window is about to begin.'''
    started, doing = Launched.__init__, Progress.doing
    def noted(self, *arguments, **named):
        started(self, *arguments, **named)
        Launched.running = self.pid
    def acting(self, phase):
        doing(self, phase)
        if phase == "measure":
            act(Launched.running)
    Launched.__init__, Progress.doing = noted, acting
"""

# A process that does nothing is stopped and let go again while the service is measured: at moments that are
# the same in every run, often at the beginning of the run and rarely at its end, and in a rhythm. It is no
# part of what is measured, so no slow answer waits for it. When it happened is written to BYSTANDERS: kind,
# epoch and length in seconds.
BYSTANDER_MOMENTS = {
    "same_phase": "[2 + 4.5 * n + draw.gauss(0, 0.03) for n in range(6)]",
    "decaying": "[min(28, draw.expovariate(1 / 6)) for n in range(9)]",
    "periodic": "[begin + 3.1 * n for n in range(9)]",
}
BYSTANDERS = (
    WHEN_MEASURING
    + """
import os, random, signal, subprocess, threading, time

def bystander(kind, moments, idle):
    begin = time.time()
    for at in sorted(moments):
        time.sleep(max(0, begin + at - time.time()))
        start = time.time()
        os.kill(idle.pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(idle.pid, signal.SIGCONT)
        with open("FILE", "a") as noted:
            noted.write(f"{kind},{start},{time.time() - start}\\n")

def bystanders(pid):
    draw = random.Random(pid)
    begin = draw.uniform(0, 0.2)
    for kind, moments in MOMENTS:
        idle = subprocess.Popen(["sleep", "60"])
        threading.Thread(target=bystander, args=(kind, moments(draw, begin), idle), daemon=True).start()

when_measuring(bystanders)
"""
)


def bystanders(file) -> str:
    """The code of BYSTANDERS that writes to ``file``."""
    moments = ", ".join(
        f"({kind!r}, lambda draw, begin: {moments})" for kind, moments in BYSTANDER_MOMENTS.items()
    )
    return BYSTANDERS.replace("FILE", str(file)).replace("MOMENTS", f"({moments})")


# The load begins at another time after the launch in every run, so that what the JVM does by its own clock is
# out of step.
LATE = """
import random, time
from kvstudy.subject.launched import Launched
ready = Launched.__init__
def late(self, *arguments, **named):
    ready(self, *arguments, **named)
    time.sleep(random.Random(self.pid).uniform(0, 5))
Launched.__init__ = late
"""
