"""What a clause is: one sentence, its level, and to what it applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["required", "strict"]

Subject = Literal[
    "reload",
    "orderings",
    "move",
    "state",
    "errors",
    "timing",
    "allocators",
    "host tiers",
    "declarations",
    "signatures",
]

Need = Literal[
    "paged",
    "companions",
    "state",
    "stateless",
    "offload",
    "move",
    "copy_state",
    "zero_state",
    "groups",
    "sharing",
    "window",
    "virtual",
    "zeroing",
    "layers",
    "row_bytes",
    "lacks",
    "source",
    "simulated",
]


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence of the contract.

    `needs` says to which pools, allocators or host tiers it applies: `paged` (ids run through
    pages in order), `companions`, `state` or `stateless`, `offload`, `move` and the other verbs
    where they are not in `lacks`, `window` and `virtual` (kinds of allocators), `layers`
    and `row_bytes` (what a host tier may lack), `lacks` (something is lacking),
    `source` (a family that is read from source), `simulated` (a device whose operations finish
    as late as they may). The attribute `source` is where the rule comes from: public faults, a
    paper, a PR.
    """

    id: str
    sentence: str
    subject: Subject
    source: str
    level: Level = "required"
    needs: frozenset[Need] = frozenset({"offload"})
    since: int = 1


def clause(id: str, subject: Subject, sentence: str, source: str, *needs: Need) -> Clause:
    every: dict[Subject, Need] = {
        "reload": "offload",
        "orderings": "offload",
        "state": "offload",
        "errors": "offload",
        "timing": "offload",
        "move": "move",
    }
    needs = (*needs, every[subject]) if subject in every else needs
    return Clause(id, sentence, subject, source, needs=frozenset(needs))


def strict(id: str, subject: Subject, sentence: str, source: str, *needs: Need) -> Clause:
    required = clause(id, subject, sentence, source, *needs)
    return Clause(id, sentence, subject, source, level="strict", needs=required.needs)
