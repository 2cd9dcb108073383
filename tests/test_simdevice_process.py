"""What the device does to a process: nothing before `enable`, and clear words where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUIET = "import warnings; warnings.filterwarnings('ignore', message='Failed to initialize NumPy')\n"


def run(code: str) -> str:
    """The output of a new process."""
    done = subprocess.run(
        [sys.executable, "-c", QUIET + code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_suite_and_plugin_do_not_import_the_device() -> None:
    assert (
        run(
            "import sys, conformance, conformance.plugin, conformance.suite\n"
            "print([name for name in sys.modules if 'simdevice' in name])"
        )
        == "[]"
    )


def test_importing_the_device_neither_imports_torch_nor_registers() -> None:
    assert (
        run(
            "import sys\n"
            "from conformance import simdevice\n"
            "print(simdevice.is_enabled(), 'torch' in sys.modules)\n"
            "import torch\n"
            "simdevice.Stream, simdevice.pending, simdevice.shims\n"
            "print(simdevice.is_enabled(), torch._C._get_privateuse1_backend_name())\n"
            "print('guarded' in torch.UntypedStorage.__new__.__name__, torch.ones(1).is_pinned())"
        )
        == "False False\nFalse privateuseone\nFalse False"
    )


def test_enabling_twice_is_no_error() -> None:
    assert (
        run(
            "from conformance import simdevice\n"
            "simdevice.enable(); simdevice.enable()\n"
            "import torch\n"
            "print(simdevice.is_enabled(), torch.ones(2, device='sim').tolist())"
        )
        == "True [1.0, 1.0]"
    )


def test_torch_without_the_registration_call() -> None:
    assert (
        run(
            "import torch, torch.utils.backend_registration as registration\n"
            "del registration._setup_privateuseone_for_python_backend\n"
            "torch.__version__ = '2.9.1'\n"
            "from conformance import simdevice\n"
            "try: simdevice.enable()\n"
            "except simdevice.SimUnavailable as error: print(error, simdevice.is_enabled())"
        )
        == "the device sim needs torch 2.10 or newer, this is 2.9.1 False"
    )


def test_process_with_another_backend() -> None:
    assert (
        run(
            "import torch\n"
            "torch.utils.rename_privateuse1_backend('npu')\n"
            "from conformance import simdevice\n"
            "try: simdevice.enable()\n"
            "except simdevice.SimUnavailable as error: print(error)"
        )
        == "this process already has the device 'npu', and torch takes one such backend a "
        "process; run the checks on sim in another process"
    )


def test_process_ends_well_with_work_in_the_queue() -> None:
    assert (
        run(
            "from conformance import simdevice\n"
            "simdevice.enable()\n"
            "import torch\n"
            "kept = torch.ones(2, device='sim')\n"
            "late = kept.to('cpu', non_blocking=True)\n"
            "cycle = [kept]; cycle.append(cycle)\n"
            "print('end')"
        )
        == "end"
    )


def test_unknown_name_is_no_attribute() -> None:
    assert (
        run(
            "from conformance import simdevice\n"
            "print(hasattr(simdevice, 'nothing'), all(map(simdevice.__getattr__, ['reset'])))\n"
            "import torch\n"
            "print([name for name in simdevice.__all__ if not hasattr(simdevice, name)])"
        )
        == "False True\n[]"
    )
