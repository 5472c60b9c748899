"""Facts in which two runs may differ that are then no repeats of one another: what run.json and machine.json
say of each.

Chosen by what an experiment may ask for, and not by what the code compares: a column that the code forgets is
missed here. PLANTED are differences from ASKED, our service; PLANTED_IN are all, by the kind of run that they
are differences from.
"""

MACHINE = {
    "cpu_model": "a",
    "cores": 2,
    "kernel": "6.1",
    "memory_bytes": 25276510208,
    "processors_awake": True,
    "pinning": "not pinned",
    "disk_free_bytes": 5,
}
ASKED = {
    "arrivals": "uniform",
    "spin": "auto",
    "awake": "auto",
    "pause": None,
    "statuses": None,
    "subject": None,
    "tool_digests": {"service": "jar-1", "loadgen": "gen-1"},
    "tool_versions": {"jdk": "25"},
}
PLANTED = {
    "arrivals": {"arrivals": "poisson"},
    "spin": {"spin": "off"},
    "timeout": {"timeout_s": 5},
    "duration": {"duration_s": 10},
    "warm-up": {"warm_up_s": 3},
    "JVM options": {"jvm": ["-Xmx256m"]},
    "pause": {"pause": {"at": 1, "length": 1}},
    "fill": {"fill": {"records": 10}},
    "head start": {"head_start_bytes": 4 << 20},
    "a rebuilt service": {"tool_digests": {"service": "jar-2", "loadgen": "gen-1"}},
    "a rebuilt generator": {"tool_digests": {"service": "jar-1", "loadgen": "gen-2"}},
    "a changed script": {"tool_digests": {"service": "jar-1", "loadgen": "gen-1", "script": "lua-2"}},
    "the JDK": {"tool_versions": {"jdk": "26"}},
    "awake": {"awake": True},
    "cores asked for": {"cores": "apart"},
    "the machine": {"machine": {"kernel": "6.2"}},
    "its cores": {"machine": {"pinning": "service on 0, generator on 1"}},
    "over a network": {"hosts": {"service": "a", "generators": ["b"]}},
    "asleep": {"machine": {"processors_awake": False}},
    "answers that the workload expects": {"statuses": [201, 507]},
    "another service": {"server": "nginx", "subject": {"command": ["nginx"], "name": "nginx"}},
    "a profiler": {"profile": ["cpu"]},
}
# What serves already, of which no digest is known: its address and what it was told are all there is.
ADDRESS = {"url": "http://127.0.0.1:8080", "paths": {"GET": "/small/{key}"}, "statuses": {"GET": [200]}}
AT_AN_ADDRESS = {
    **ASKED,
    "server": "mine",
    "subject": {"name": "mine", **ADDRESS},
    "tool_digests": {"loadgen": "gen-1"},
}
UNIQUE_PUT = {
    **ASKED,
    "workload": "unique_put",
    "method": "PUT",
    "workload_args": {"key_count": 10_000_000, "value_bytes": 100},
}
PROFILED = {**ASKED, "profile": ["cpu", "alloc"], "profiler": {"cpu_engine": "perf_events"}}
PLANTED_IN = {
    "ours": (ASKED, PLANTED),
    "at an address": (
        AT_AN_ADDRESS,
        {
            f"its {name}": {"subject": {"name": "mine", **ADDRESS, **change}}
            for name, change in (
                ("address", {"url": "http://127.0.0.1:8081"}),
                ("paths", {"paths": {"GET": "/large/{key}"}}),
                ("answers", {"statuses": {"GET": [200, 404]}}),
            )
        },
    ),
    "unique PUT": (
        UNIQUE_PUT,
        {
            name: {"workload_args": {"value_bytes": 100, "key_count": count}}
            for name, count in (("fewer keys", 1000), ("as many keys as a plan chooses", 18_000))
        },
    ),
    "profiled": (
        PROFILED,
        {
            "its events": {"profile": ["cpu"]},
            "how it sampled": {"profiler": {"cpu_engine": "itimer"}},
        },
    ),
}
