"""What the planted faults have in common: code that runs in the measuring process, ahead of it."""

WHEN_MEASURING = """
from kvstudy.measure.progress import Progress
from kvstudy.measure.service import Service

def when_measuring(act):
    '''Calls ``act`` with the service's process id when the measured window is about to begin.'''
    started, doing = Service.__init__, Progress.doing
    def noted(self, *arguments, **named):
        started(self, *arguments, **named)
        Service.running = self.pid
    def acting(self, phase):
        doing(self, phase)
        if phase == "measure":
            act(Service.running)
    Service.__init__, Progress.doing = noted, acting
"""
