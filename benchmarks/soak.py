"""False alarms: many programs on the correct pools, with fresh seeds. There must be none.

    python benchmarks/soak.py [--examples 20000] [--seed N] [--family NAME]

Every check that a family has takes an equal share of the examples.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from hypothesis import given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from conformance import Pool  # noqa: E402
from conformance.case import Case  # noqa: E402
from conformance.contract import find_clause  # noqa: E402
from conformance.runner import Tally  # noqa: E402
from conformance.scenarios import ALL, REFUSALS, Scenario, empty, state_mismatch, unwanted_state  # noqa: E402
from reference_pools.declarations import kv_pools  # noqa: E402


def scenarios_of(pool: Pool) -> list[Scenario]:
    """Every scenario that a pool of this kind is checked with."""
    foreign = unwanted_state if pool.has_state else state_mismatch
    return [s for s in (*ALL, empty, *REFUSALS) if s is not foreign]


def soak(pool: Pool, examples: int, first_seed: int) -> Tally:
    """Run `examples` programs; the first violation is raised."""
    total, share = Tally(), scenarios_of(pool)
    for number, scenario in enumerate(share):
        case = Case(pool, find_clause("every_verb_works"), "cpu", "strict", 1)
        run_check(case, scenario, -(-examples // len(share)), first_seed + number)
        total.add(case.tally)
    return total


def run_check(case: Case, scenario: Scenario, examples: int, with_seed: int) -> None:
    @seed(with_seed)
    @settings(max_examples=examples, deadline=None, database=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case.check(data, scenario)

    check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--family")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.freeze()
    print(f"seed {options.seed}")
    print(f"{'family':<8}  {'programs':>8}  {'reloads':>8}  {'rows moved':>10}  {'seconds':>7}")
    for pool in kv_pools():
        if isinstance(pool, Pool) and options.family in (None, pool.name):
            begin = time.perf_counter()
            tally = soak(pool, options.examples, options.seed)
            seconds = time.perf_counter() - begin
            print(
                f"{pool.name:<8}  {tally.programs:8}  {tally.reloads:8}  {tally.rows:10}"
                f"  {seconds:7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
