"""When a run measured the machine and not the service: its host or other programs took the CPU.

Decided by what the kernel counted, never by a latency: a run may be measured again for this, and for nothing
else.
"""

from kvstudy.units import percent

STEAL_MAX_SHARE = 0.05  # of the machine's CPU time in the measured seconds, taken by its host
FOREIGN_CPU_MAX_SHARE = 0.20  # used by neither service nor generator


def disturbance(load_during: dict | None) -> str | None:
    """What disturbed the measured seconds; ``load_during`` is machine.json's."""
    for name, whose, most in (
        ("foreign_cpu_share_mean", "other programs used", FOREIGN_CPU_MAX_SHARE),
        ("steal_share_mean", "the machine's host took", STEAL_MAX_SHARE),
    ):
        share = (load_during or {}).get(name, 0.0)
        if share > most:
            return f"{whose} {percent(share, 0, most)} of the CPU time, over {percent(most)}"
    return None
