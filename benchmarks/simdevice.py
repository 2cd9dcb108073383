"""The simulated device beside the CPU: ratios per operation and per round trip.

    python benchmarks/simdevice.py [--rounds 7] [--number 300]

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

from conformance import simdevice  # noqa: E402
from conformance.geometry import Geometry  # noqa: E402
from reference_pools import KVPool  # noqa: E402
from reference_pools.declarations import make_dsa, make_mla, make_token  # noqa: E402

TARGET = 8.0
ROWS, TOKENS, LAYERS = 256, 64, 3
GEOMETRY = Geometry(
    kind="dsa",
    attention="dsa",
    size=ROWS,
    page_size=64,
    layers=LAYERS,
    first_layer=1,
    dtype=torch.bfloat16,
    chunk_tokens=8192,
    heads=7,
    head_dim=8,
    v_head_dim=11,
    kv_lora_rank=17,
    qk_rope_head_dim=8,
    index_head_dim=14,
)
MAKERS = {"token": make_token, "mla": make_mla, "dsa": make_dsa}

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


def round_trip(make: Callable[[Geometry], KVPool], device: str) -> Run:
    """Offload and reload of 64 tokens."""
    pool = make(replace(GEOMETRY, device=device))
    ids = torch.arange(64, 64 + TOKENS).to(device)

    def run() -> None:
        pool.load_cpu_copy(pool.get_cpu_copy(ids), ids)

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
    parser.add_argument("--profile", action="store_true", help="profile a token round trip")
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
        for name, make in MAKERS.items():
            trips = round_trip(make, "cpu"), round_trip(make, "sim")
            result = compared(*trips, options.rounds, max(options.number // 6, 1))
            show(f"round trip, {name}", result)
            ratios[name] = result[2]
        if options.profile:
            profile(round_trip(make_token, "sim"), options.number)
    print(f"round trip of the token pool {ratios['token']:.1f} (target {TARGET:.0f})")
    return int(ratios["token"] > TARGET)


def show(name: str, result: tuple[float, float, float]) -> None:
    print(f"{name:<20} {result[0]:8.1f} {result[1]:8.1f}  {result[2]:5.1f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
