"""The claims of the published reports beside our runs.

rules.py        by which measure of ours each claim is judged
measures.py     the measures, from tables
duet_ratios.py  the same of a duet that asks the same
verdicts.py     reproduced, not reproduced, or cannot tell
"""
