"""Programs per second: the suite beside a loop written by hand, in one process.

    python benchmarks/overhead.py [--rounds 5] [--programs 400] [--family NAME]

Both run request lives (several requests written, extended, moved, retracted and resumed) on
a new pool each time, and compare every row after each call. See `by_hand.py` for what the
loop does and leaves out. Rounds of the two alternate; the ratio is the median over rounds of
the loop's rate by the suite's.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from by_hand import ByHand, draw_program  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from conformance import Pool  # noqa: E402
from conformance.case import Case  # noqa: E402
from conformance.contract import find_clause  # noqa: E402
from conformance.scenarios import lives  # noqa: E402
from conformance.suite.checks import quiet  # noqa: E402
from reference_pools.declarations import kv_pools  # noqa: E402

CLAUSE = find_clause("resume_restores_the_request")
LIMIT, TARGET = 2.0, 1.5


def suite_rate(pool: Pool, count: int) -> float:
    """Programs per second of the suite's own check."""
    case = Case(pool, CLAUSE, "cpu", "strict", 1)

    @quiet(settings(max_examples=count, database=None))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case.check(data, lives)

    begin = time.perf_counter()
    check()
    return case.tally.programs / (time.perf_counter() - begin)


def loop_rate(pool: Pool, count: int, rng: random.Random) -> tuple[float, float]:
    """Programs, and rows compared, per second of the loop."""
    rows, begin = 0, time.perf_counter()
    for _ in range(count):
        geometry, program = draw_program(pool, rng)
        loop = ByHand.before(pool, geometry)
        loop.run(program)
        rows += loop.rows_checked
    seconds = time.perf_counter() - begin
    return count / seconds, rows / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--family")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.freeze()
    rng = random.Random(0)
    print(f"{'family':<14}  {'loop/s':>7}  {'suite/s':>7}  {'rows/s':>9}  ratio")
    ratios = []
    for pool in kv_pools():
        if not isinstance(pool, Pool) or options.family not in (None, pool.name):
            continue
        rounds = [
            (*loop_rate(pool, options.programs, rng), suite_rate(pool, options.programs))
            for _ in range(1 + options.rounds)
        ][1:]
        loop, rows, suite = (statistics.median(r[i] for r in rounds) for i in range(3))
        ratios.append(statistics.median(a / b for a, _, b in rounds))
        # Both compare every row after the same calls: rows follow from programs.
        checked = rows / loop * suite
        print(
            f"{pool.name:<14}  {loop:7.0f}  {suite:7.0f}  {checked:9.0f}  {ratios[-1]:5.2f}",
            flush=True,
        )
    print(f"worst ratio {max(ratios):.2f} (limit {LIMIT}, target {TARGET})")
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
