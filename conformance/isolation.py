"""A program in a child process, so that a crash is a failure like any other."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any

from conformance.troubles import OnTrouble, StopProgram, Tally, Trouble

Announce = Callable[[int, str], None]
"""Told before each call: the step, and the clause that a crash in it would break."""


def unheard(step: int, clause: str) -> None:
    """Announce to nobody."""


Work = Callable[[OnTrouble, Announce], Tally]


def carry_out(work: Work, on_trouble: OnTrouble, *, isolated: bool) -> Tally:
    """Run `work` here, or in a process of its own."""
    return in_child(work, on_trouble) if isolated else work(on_trouble, unheard)


def in_child(work: Work, on_trouble: OnTrouble) -> Tally:
    """Run `work` in a forked process; its first trouble, or its death, goes to `on_trouble`.

    What follows the first trouble is not run. Only for pools on the CPU: a forked process
    cannot use a CUDA context. Any exception of `work` itself is raised here.
    """
    here, there = Pipe(duplex=False)
    child = os.fork()
    if not child:
        here.close()
        _work_and_exit(work, there)
    there.close()
    messages = _received(here)
    _, status = os.waitpid(child, 0)
    kind, result = messages[-1]
    if kind == "error":
        raise result
    if kind == "at":
        step, clause = result
        on_trouble(Trouble(step, "clause", _cause(status), clause))
        return Tally(programs=1)
    troubles, tally = result
    for trouble in troubles:
        on_trouble(trouble)
    assert isinstance(tally, Tally)
    return tally


def _work_and_exit(work: Work, parent: Connection) -> None:
    troubles: list[Trouble] = []

    def first(trouble: Trouble) -> None:
        troubles.append(trouble)
        raise StopProgram

    faulthandler.disable()  # a crash is told as a failure; its traceback here is noise
    try:
        tally = work(first, lambda step, clause: parent.send(("at", (step, clause))))
        parent.send(("done", (troubles, tally)))
    except BaseException as error:
        told = RuntimeError(f"{type(error).__name__}: {error}")
        parent.send(("error", error if isinstance(error, LookupError) else told))
    finally:
        parent.close()
        os._exit(0)


def _received(connection: Connection) -> list[tuple[str, Any]]:
    messages: list[tuple[str, Any]] = [("at", (0, "every_verb_works"))]
    while True:
        try:
            messages.append(connection.recv())
        except EOFError:
            return messages


def _cause(status: int) -> str:
    """How the process ended, in words."""
    if os.WIFSIGNALED(status):
        return f"the process was killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"the process exited with status {os.waitstatus_to_exitcode(status)}"
