"""Run SGLang's pools on the simulated device: as they are, and with their waits left out.

    python examples/sglang/simulate_releases.py FOLDER

They must pass as they are. Where `synchronize` of the platform and of `torch.cuda` does
nothing, each must fail, since the host reads a copy that is not there yet.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from run_releases import accused

RELEASES = ("0.5.14", "0.5.23")
POOLS = ("mha", "mla", "dsa")
IN_FLIGHT = "copy_is_complete_on_return"
CHECKS = f"({' or '.join(f'[{name}]' for name in POOLS)}) and"
AS_THEY_ARE = f"{CHECKS} (complete or timing or same_rows or companions_travel)"
WITHOUT_WAITS = f"{CHECKS} {IN_FLIGHT}"


def main(folder: Path) -> int:
    wrong = 0
    for release in RELEASES:
        print(f"\n---- sglang {release}, as it is", flush=True)
        found = accused(release, folder, ["--kv-device=sim", "-k", AS_THEY_ARE])
        print(f"---- sglang {release}, without waits", flush=True)
        os.environ["KV_UNSYNCHRONIZED"] = "1"
        missed = {(name, IN_FLIGHT) for name in POOLS}
        missed -= accused(release, folder, ["--kv-device=sim", "-k", WITHOUT_WAITS])
        del os.environ["KV_UNSYNCHRONIZED"]
        for name, clause in sorted(found):
            print(f"NOT EXPECTED: {name} breaks {clause or 'no clause, but fails'}")
        for name, clause in sorted(missed):
            print(f"EXPECTED, NOT FOUND: {name} breaks {clause} without its waits")
        wrong += bool(found or missed)
    print(f"\n{len(RELEASES) - wrong} of {len(RELEASES)} releases are as expected")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
