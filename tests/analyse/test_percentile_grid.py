import numpy as np
import pandas as pd

from kvstudy.analyse.percentile_grid import QUOTED, at, grid


def test_a_distribution_has_one_value_at_every_quoted_percentile():
    every = grid(20)
    for percentile in QUOTED:
        assert at(np.array(every), percentile).sum() == at(pd.Series(every), percentile).sum() == 1, (
            percentile
        )
