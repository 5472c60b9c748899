"""Every chart of the study: a pure function each, tables in (``analyse.schema``), one plotly Figure out.

    spectrum      latency by percentile on HdrHistogram's 1/(1−p) axis
    rate          latency and achieved rate against offered rate, saturation point
    seconds       heat map and time line of one run, second by second, with the store's and the JVM's events
    scalability   achieved rate of closed loops by connections, with the Universal Scalability Law fitted to
                  each configuration
    ratios        before/after ratios with their intervals
    stacks        icicle overview of a profile, shares by subsystem

What holds for all of them: a repeat is a thin line or a point and the median over the valid repeats the
strong line; a run whose verdict is FAIL is grey and dotted, left out of every median, and says why when
pointed at; the title states the finding, computed from the same rows; an empty table gives an empty chart
that says so. Nothing is filtered here: pass ``tables.select(…)``.
"""
