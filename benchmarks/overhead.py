"""Checked round trips per second: the suite beside a hand-written loop, in one process.

    python benchmarks/overhead.py

Both build a pool, fill every row, write a request, offload it, compare every row,
overwrite every row, reload it into other rows and compare every row again, and look at the
ids and the copy as the suite does. The loop draws from torch's generator and knows nothing
of clauses, diagnosis, or shrinking. Rounds of the two alternate; the ratio is the median
over rounds of the loop's rate by the suite's.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from conformance import Pool  # noqa: E402
from conformance.case import Case  # noqa: E402
from conformance.contract import find_clause  # noqa: E402
from conformance.geometry import Geometry, geometries  # noqa: E402
from conformance.scenarios import other_rows  # noqa: E402
from reference_pools.declarations import kv_pools  # noqa: E402

CLAUSE = find_clause("reload_restores_other_rows")


def suite_rate(pool: Pool, examples: int) -> float:
    """Round trips per second of the suite's own check of one clause."""
    case = Case(pool, CLAUSE, "cpu", "strict", 1)

    @settings(max_examples=examples, deadline=None, database=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case.check(data, other_rows)

    begin = time.perf_counter()
    check()
    return case.tally.reloads / (time.perf_counter() - begin)


def loop_rate(pool: Pool, trips: int) -> float:
    """Round trips per second of the loop."""
    options = geometries(pool)
    picks = torch.randint(len(options), (trips,)).tolist()
    begin = time.perf_counter()
    for pick in picks:
        round_trip(pool.make, options[pick], pool.ids == "page")
    return trips / (time.perf_counter() - begin)


def round_trip(make: Callable[[Geometry], Any], geometry: Geometry, paged: bool) -> None:
    """One checked round trip, as one would write it by hand."""
    pool = make(geometry)
    rows = [layer.flatten(1).view(torch.uint8) for b in pool.buffers().values() for layer in b]
    expected = randomize(rows)
    source, start = pick_ids(geometry, paged, None)
    target, _ = pick_ids(geometry, paged, (len(source), start))
    state = state_ids(geometry)
    into = state_ids(geometry)
    for row, want in zip(rows, expected, strict=True):
        ids = ids_for(row, geometry, source, state)
        row[ids] = want[ids] = torch.randint(256, (len(ids), row.shape[1]), dtype=torch.uint8)
    before = source.clone()
    copy = pool.get_cpu_copy(source, mamba_indices=state)
    assert torch.equal(before, source)
    compare(rows, expected)
    hosts = host_tensors(copy)
    kept = [host.clone() for host in hosts]
    assert all(host.device.type == "cpu" for host in hosts)
    assert sum(h.untyped_storage().nbytes() for h in hosts) <= 1 << 30
    saved = [
        want[ids_for(row, geometry, source, state)]
        for row, want in zip(rows, expected, strict=True)
    ]
    expected = randomize(rows)
    assert all(
        map(torch.equal, [h.view(torch.uint8) for h in hosts], [k.view(torch.uint8) for k in kept])
    )
    before = target.clone()
    pool.load_cpu_copy(copy, target, mamba_indices=into)
    assert torch.equal(before, target)
    for row, want, was in zip(rows, expected, saved, strict=True):
        ids = ids_for(row, geometry, target, into)
        want[ids] = was
        if row.shape[0] == geometry.page_rows and start:
            head = start * geometry.index_head_dim
            want[ids[0], :head] = row[ids[0], :head]
    compare(rows, expected, skip_first_page=bool(start))


def randomize(rows: list[torch.Tensor]) -> list[torch.Tensor]:
    for row in rows:
        row.random_(0, 256)
    return [row.clone() for row in rows]


def compare(
    rows: list[torch.Tensor], expected: list[torch.Tensor], skip_first_page: bool = False
) -> None:
    for row, want in zip(rows, expected, strict=True):
        assert skip_first_page or torch.equal(row, want)


def ids_for(
    row: torch.Tensor, geometry: Geometry, tokens: torch.Tensor, state: torch.Tensor | None
) -> torch.Tensor:
    if row.shape[0] == geometry.token_rows:
        return tokens
    if row.shape[0] == geometry.page_rows:
        return torch.unique_consecutive(tokens // geometry.page_size)
    return tokens[:0] if state is None else state


def state_ids(geometry: Geometry) -> torch.Tensor | None:
    if not geometry.state_size:
        return None
    return torch.randint(1, geometry.state_rows, (1,))


def pick_ids(
    geometry: Geometry, paged: bool, like: tuple[int, int] | None
) -> tuple[torch.Tensor, int]:
    if not paged:
        length = like[0] if like else int(torch.randint(1, geometry.size + 1, ()))
        return geometry.page_size + torch.randperm(geometry.size)[:length], 0
    size = geometry.page_size
    start = like[1] if like else int(torch.randint(size, ()))
    length = like[0] if like else int(torch.randint(1, geometry.size - start + 1, ()))
    pages = 1 + torch.randperm(geometry.size // size)[: -(-(start + length) // size)]
    ids = (pages[:, None] * size + torch.arange(size)).flatten()
    return ids[start : start + length], start


def host_tensors(copy: Any) -> list[torch.Tensor]:
    halves = [copy, copy.state] if copy.state is not None else [copy]
    return [
        chunk
        for half in halves
        for layers in half.chunks.values()
        for layer in layers
        for chunk in layer
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trips", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.freeze()
    print(f"{'family':<8}  {'loop/s':>8}  {'suite/s':>8}  {'ratio':>6}")
    for pool in kv_pools():
        if isinstance(pool, Pool):
            rounds = [
                (loop_rate(pool, options.trips), suite_rate(pool, options.trips))
                for _ in range(1 + options.rounds)
            ][1:]
            loop, suite = (statistics.median(r[i] for r in rounds) for i in (0, 1))
            ratio = statistics.median(a / b for a, b in rounds)
            print(f"{pool.name:<8}  {loop:8.0f}  {suite:8.0f}  {ratio:6.2f}")


if __name__ == "__main__":
    main()
