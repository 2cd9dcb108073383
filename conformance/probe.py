"""Whether the device still answers. A device error sticks: after it, everything fails.

What a lost device makes of later calls says nothing about the pool, so the first program
that met it is kept as it is, and nothing runs after it.
"""

from __future__ import annotations

from types import TracebackType

import torch

from conformance.devices import is_simulated
from conformance.geometry import Geometry
from conformance.journal.records import DEVICE_LOST, Failure
from conformance.pool import Pool
from conformance.programs import Program
from conformance.troubles import Trouble, told
from conformance.violation import Finding, Violation


class DeviceLost(BaseException):
    """The device no longer answers. Hypothesis catches exceptions to shrink what raised
    them; it lets this pass."""

    def __init__(self, clause: str, finding: Finding, answer: str) -> None:
        lines = [f"{DEVICE_LOST}: it was lost while this program ran", ""]
        evidence = finding.evidence(f"test_{clause}")
        evidence.insert(-1, ("device", answer))
        lines += [f"  {label:<9} {text}".rstrip() for label, text in evidence]
        super().__init__("\n".join(lines))
        self.how = DEVICE_LOST
        self.failures = (Failure(clause, finding.replay, finding.what, crashed=True),)


class Watch:
    """Looks at the device when a program of `name` under `clause` meets trouble. A simulated
    device is new in every program, and never lost.

    As a context, it looks at the device after any other error too. It does not build a pool
    then: where the pool's constructor is what raised, that is no fault of the device.
    """

    def __init__(
        self, clause: str, name: str, pool: Pool, geometry: Geometry, program: Program
    ) -> None:
        self._clause, self._name, self._pool = clause, name, pool
        self._geometry, self._program = geometry, program

    def after(self, trouble: Trouble) -> None:
        """Raise `DeviceLost` where, after this trouble, nothing works any more.

        The pool was built a moment ago: that another one cannot be shows that what failed
        is not this call, but the device (also one that torch knows nothing of).
        """
        if trouble.kind in ("raised", "clause") and not is_simulated(self._geometry.device):
            answer = _tensor(self._geometry.device) or _new_pool(self._pool, self._geometry)
            self._stop_if(answer, trouble.step, trouble.what)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_lasting = not is_simulated(self._geometry.device)
        if is_lasting and isinstance(error, Exception) and not isinstance(error, Violation):
            self._stop_if(_tensor(self._geometry.device), None, f"raised {told(error)}")

    def _stop_if(self, answer: str, step: int | None, what: str) -> None:
        if answer:
            ran = self._program.steps if step is None else self._program.steps[: step + 1]
            finding = Finding(self._name, self._geometry, Program(ran), step, what)
            raise DeviceLost(self._clause, finding, answer)


def _tensor(device: str) -> str:
    """What a new tensor on the device raises; "" if it can be made and read back."""
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:
        message = str(error).split("\n", 1)[0]
        return f"a new tensor on {device} raises {type(error).__name__}: {message}"
    return ""


def _new_pool(pool: Pool, geometry: Geometry) -> str:
    """What a new pool of the same geometry raises; "" if it can be built."""
    try:
        pool.make(geometry)
    except Exception as error:
        return f"a new pool of this geometry raises {told(error)}"
    return ""
