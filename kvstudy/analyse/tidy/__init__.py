"""The tables on disk: data/tidy, in parts.

    data/tidy/index.json                       which parts hold the tables now, where each run stands, and its
                                               stamp; written last
    data/tidy/<experiment>/<digest>/           a part: up to batches.RUNS_MAX runs of one folder of data/raw
        runs.parquet, percentiles.parquet, …   the rows of these runs, of each table that they have rows of
        part.json                              which runs, by their seals, which of them could not be read,
                                               and size and digest of each file

    batches.py   which runs share a part      version.py   of which code a part is
    part.py      one part, written and read   build.py     brings all parts up to date
    stored.py    rows of the parts, by table, runs and columns
    seals.py     whether a run is as it was sealed, and whether it stands as it stood

Invariants:
1. A part is a function of its runs and of the code: named by the digest of both, the same byte for byte
   whoever makes it, from the run folders or from the parts of before, in whatever order and in however many
   processes.
2. A part is there whole or not at all: it is written into a folder of its own, which then gets its name.
3. What index.json does not list is not data.
4. Whoever changes a file of a run changes its seal in the next tables, whatever its SHA256SUMS says: every
   file is looked at when the run is read, and again when its stamp has moved.
"""
