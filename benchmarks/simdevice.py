"""The simulated device beside the CPU: ratios per operation and per round trip.

    python benchmarks/simdevice.py [--rounds 7] [--number 300] [--profile POOL]

Rounds of the two alternate in one process; a ratio is the median over rounds. An operation on
"sim" is timed with the wait that makes it run. Then, where the time of a round trip goes.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch  # noqa: E402

from conformance import Pool, simdevice  # noqa: E402
from conformance.geometry import geometries  # noqa: E402
from reference_pools.declarations import kv_pools  # noqa: E402

TARGET = 8.0
ROWS, TOKENS, LAYERS = 256, 64, 3
POOLS = {pool.name: pool for pool in kv_pools() if isinstance(pool, Pool)}

Run = Callable[[], object]


def operations(device: str) -> dict[str, Run]:
    """What pools do, on tensors of their size; on "sim" each is left in the queue."""
    pool = torch.zeros(ROWS, 3, 8, device=device)
    ids = torch.arange(TOKENS, device=device)
    rows, host = pool[ids], torch.zeros(TOKENS, 3, 8).pin_memory()
    return {
        "rows[ids]": lambda: pool[ids],
        "rows[ids] = values": lambda: pool.__setitem__(ids, rows),
        "slice": lambda: pool[3:9],
        "view": lambda: pool.view(ROWS, 24),
        "fill_": lambda: pool.fill_(1.0),
        "zeros": lambda: torch.zeros(TOKENS, 3, 8, device=device),
        "clone": lambda: rows.clone(),
        "cat": lambda: torch.cat([rows, rows]),
        "arange": lambda: torch.arange(TOKENS, device=device),
        "aminmax": lambda: torch.aminmax(ids),
        "bincount": lambda: torch.bincount(ids),
        "equal": lambda: torch.equal(rows, rows),
        "item": lambda: ids[3].item(),
        "rows + rows": lambda: rows + rows,
        "copy to host": lambda: host.copy_(rows, non_blocking=True),
        "copy to device": lambda: rows.copy_(host, non_blocking=True),
    }


def round_trip(declared: Pool, device: str) -> Run:
    """Offload and reload of 64 tokens, and of a state where the pool has any."""
    sizes = {"size": ROWS, "page_size": TOKENS, "layers": LAYERS}
    pool = declared.make(replace(geometries(declared, device)[0], **sizes))
    ids = torch.arange(TOKENS, 2 * TOKENS).to(device)
    state = torch.tensor([3]).to(device) if declared.has_state else None

    def run() -> None:
        pool.load_cpu_copy(pool.get_cpu_copy(ids, state), ids, state)

    return run


def seconds(run: Run, number: int, wait: Run) -> float:
    begin = time.perf_counter()
    for _ in range(number):
        run()
    wait()
    return (time.perf_counter() - begin) / number


def compared(cpu: Run, sim: Run, rounds: int, number: int) -> tuple[float, float, float]:
    """Microseconds on the CPU and on sim, and the ratio, all medians."""
    times = []
    for _ in range(1 + rounds):
        one = seconds(cpu, number, lambda: None)
        times.append((one, seconds(sim, number, simdevice.synchronize)))
    kept = times[1:]
    ratio = statistics.median(b / a for a, b in kept)
    a, b = (statistics.median(each[i] for each in kept) * 1e6 for i in range(2))
    return a, b, ratio


def profile(run: Run, number: int) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(number):
        run()
    simdevice.synchronize()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(14)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--profile", choices=POOLS, help="profile a round trip of this pool")
    options = parser.parse_args()
    torch.set_num_threads(1)
    simdevice.enable()
    simdevice.reset()
    gc.freeze()
    print(f"{'':<20} {'cpu us':>8} {'sim us':>8}  ratio")
    with simdevice.shims():
        on_cpu, on_sim = operations("cpu"), operations("sim")
        for name, cpu in on_cpu.items():
            show(name, compared(cpu, on_sim[name], options.rounds, options.number))
        ratios = {}
        for name, pool in POOLS.items():
            trips = round_trip(pool, "cpu"), round_trip(pool, "sim")
            result = compared(*trips, options.rounds, max(options.number // 6, 1))
            show(name, result)
            ratios[name] = result[2]
        if options.profile:
            profile(round_trip(POOLS[options.profile], "sim"), options.number)
    slow = [name for name, ratio in ratios.items() if ratio > TARGET]
    print(f"over {TARGET:.0f}: {', '.join(slow) or 'none'}")
    return int(bool(slow))


def show(name: str, result: tuple[float, float, float]) -> None:
    print(f"{name:<20} {result[0]:8.1f} {result[1]:8.1f}  {result[2]:5.1f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
