"""False alarms: many programs on the correct pools, allocators and host tiers, with fresh
seeds. There must be none.

    python benchmarks/soak.py [--programs 10000] [--seed N] [--family NAME] [--processes N]
                              [--device sim]

Every scenario that a family is checked with takes an equal share of the programs. On "sim"
each program has a schedule of its own.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from hypothesis import given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from conformance import Allocator, Family, HostTier, Pool, scenarios  # noqa: E402
from conformance.case import Case  # noqa: E402
from conformance.contract import find_clause  # noqa: E402
from conformance.devices import is_simulated  # noqa: E402
from conformance.scenarios import ALL, ALLOCATIONS, LIVES, TIERS, Scenario  # noqa: E402
from conformance.suite.checks import quiet  # noqa: E402
from conformance.timing import prepare  # noqa: E402
from conformance.troubles import Tally  # noqa: E402
from conformance.violation import Violation  # noqa: E402
from reference_pools.declarations import kv_pools  # noqa: E402

SUBJECTS: dict[str, Pool | Allocator | HostTier] = {
    entry.name: entry for entry in kv_pools() if not isinstance(entry, Family)
}


def scenarios_of(entry: Pool | Allocator | HostTier) -> list[Scenario]:
    """Every scenario that `entry` is checked with."""
    if isinstance(entry, HostTier):
        return list(TIERS)
    if isinstance(entry, Allocator):
        return list(ALLOCATIONS)
    for_state = (scenarios.state_copied, scenarios.state_zeroed)
    every = (*ALL, *LIVES, scenarios.empty, scenarios.refusals)
    return [s for s in every if entry.has_state or s not in for_state]


def soak(name: str, programs: int, first_seed: int, device: str) -> tuple[str, Tally, float, str]:
    """Run `programs` programs of one family, up to the first violation, told as text: its
    type is made while running, and cannot be sent to another process."""
    torch.set_num_threads(1)
    if is_simulated(device):
        prepare()
    gc.freeze()
    entry, total, begin = SUBJECTS[name], Tally(), time.perf_counter()
    pool, front = (entry, None) if isinstance(entry, Pool) else (entry.pool, entry)
    share = scenarios_of(entry)
    for number, scenario in enumerate(share):
        clause = find_clause("every_verb_works")
        case = Case(pool, clause, device, "strict", 1, front=front)
        try:
            run_check(case, scenario, -(-programs // len(share)), first_seed + number)
        except Violation as failure:
            return name, total, time.perf_counter() - begin, f"{scenario.__name__}: {failure}"
        total.add(case.tally)
    return name, total, time.perf_counter() - begin, ""


def run_check(case: Case, scenario: Scenario, programs: int, with_seed: int) -> None:
    @seed(with_seed)
    @quiet(settings(max_examples=programs, database=None))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case.check(data, scenario)

    check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--family", choices=SUBJECTS)
    parser.add_argument("--device", default="cpu", choices=["cpu", "sim"])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print(f"seed {options.seed}")
    head = ("family", "programs", "reloads", "rows moved", "ids handed out", "seconds")
    print("{:<14}  {:>8}  {:>8}  {:>10}  {:>14}  {:>7}".format(*head))
    names = [options.family] if options.family else list(SUBJECTS)
    total, failures = 0, []
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as processes:
        jobs = [
            processes.submit(soak, name, options.programs, options.seed + 1000 * at, options.device)
            for at, name in enumerate(names)
        ]
        for job in jobs:
            name, t, seconds, failure = job.result()
            row = (name, t.programs, t.reloads, t.rows, t.ids, seconds)
            print("{:<14}  {:8}  {:8}  {:10}  {:14}  {:7.0f}".format(*row), flush=True)
            total += t.programs
            failures += [f"{name}, {failure}"] if failure else []
    print(f"{total} programs, {len(failures) or 'none'} failed", *failures, sep="\n\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
