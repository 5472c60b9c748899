"""Writing the study ends at once when it is interrupted."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from kvstudy.present import report


def test_kernels_of_notebooks_under_way_are_ended_and_nothing_else():
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        subprocess.Popen([*sleep, "ipykernel_launcher"], start_new_session=True) as kernel,
        subprocess.Popen(sleep) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        report._end_kernels([pool.submit(kernel.wait)])
        assert kernel.poll() == -9 and other.poll() is None
        other.kill()
