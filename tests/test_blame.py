"""Which clause a failing program of an allocator is blamed on, and what is shown of it."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from conformance import Allocator, Pool
from conformance.adapters.plain import Plain
from conformance.case import Case
from conformance.contract import CLAUSES
from conformance.violation import Violation
from reference_pools.allocators import PagedAllocator
from reference_pools.broken.lmcache_993 import ClearsPerOwner
from reference_pools.broken.lmcache_1130 import UnpinFreesNothing
from reference_pools.broken.sglang_4977 import FreesFullPages
from reference_pools.broken.sglang_7819 import ForwardsNothing
from reference_pools.broken.sglang_27779 import FreesPageByOneToken
from reference_pools.broken.sglang_38519 import FreesUnmappedRows
from reference_pools.broken.tensorrt_llm_12834 import FreesToTheOtherLevel
from reference_pools.broken.tensorrt_llm_15018 import TracksTheFirstBlocks
from reference_pools.declarations import make_sliding_window, make_token

CONSERVED, SHARED = "ids_are_conserved", "shared_ids_outlive_one_owner"
GROUPS, MAPPING = "free_groups_free_at_the_end", "mapping_dies_with_its_page"
CLEARS, VALUES = "clear_resets_everything", "ids_keep_their_values"
FORWARDS = "allocator_forwards_the_verbs"


class KeepsCallersIds(PagedAllocator):
    """Frees at the end of a group what the tensors of its caller hold by then."""

    kept: list[Tensor] | None = None

    def begin_free_group(self) -> None:
        self.kept = []

    def free(self, ids: Tensor) -> None:
        if self.kept is None:
            super().free(ids)
        else:
            self.kept.append(ids)

    def end_free_group(self) -> None:
        kept, self.kept = self.kept or [], None
        for ids in kept:
            super().free(ids[ids >= self.first])


class EndsTwice(PagedAllocator):
    """The end of a group frees twice what the group holds."""

    def end_free_group(self) -> None:
        held = list(self.free_list.pending or [])
        super().end_free_group()
        self.free_list.free_pages += held


class ForgetsTheGroup(PagedAllocator):
    """A clear loses what the open group holds."""

    def clear(self) -> None:
        held = self.free_list.pending or []
        super().clear()
        self.free_list.free_pages = [p for p in self.free_list.free_pages if p not in held]


class ReloadsNothing(PagedAllocator):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("front", "program", "clause", "shown"),
    [
        (FreesFullPages, "extend r0 by 1; free r0", CONSERVED, ...),
        (
            FreesFullPages,
            "extend r0 by 5; extend r1 by 1; overwrite ids; free r0; free r1",
            CONSERVED,
            "extend r1 by 1; free r1",
        ),
        (
            FreesFullPages,
            "extend r0 by 1; begin group; free r0; end group",
            CONSERVED,
            "extend r0 by 1; free r0",
        ),
        (
            FreesFullPages,
            "extend r0 by 6; share r0[:5] as r1; free r1; begin group; free r0; end group",
            CONSERVED,
            "extend r0 by 6; free r0",
        ),
        (
            FreesFullPages,
            "extend r0 by 1; begin group; free r0; clear; extend r1 by 1; free r1",
            CONSERVED,
            "extend r0 by 1; free r0",
        ),
        (
            TracksTheFirstBlocks,
            "extend r0 by 5; share r0[:5] as r1; free r0; extend r1 by 1; free r1",
            CONSERVED,
            "extend r0 by 5; extend r0 by 1; free r0",
        ),
        (
            TracksTheFirstBlocks,
            "extend r0 by 20; share r0[:20] as r1; extend r1 by 1; retract r1 as c0",
            CONSERVED,
            "extend r0 by 20; extend r0 by 1; retract r0 as c0",
        ),
        (
            UnpinFreesNothing,
            "extend r0 by 5; share r0[:5] as r1; overwrite ids; free r0; free r1",
            SHARED,
            "extend r0 by 5; share r0[:5] as r1; free r0; free r1",
        ),
        (EndsTwice, "extend r0 by 1; begin group; free r0; end group", GROUPS, ...),
        (
            KeepsCallersIds,
            "extend r0 by 1; begin group; free r0; overwrite ids; end group",
            VALUES,
            ...,
        ),
        (ForgetsTheGroup, "extend r0 by 1; begin group; free r0; clear", CLEARS, ...),
        (ClearsPerOwner, "extend r0 by 5; share r0[:5] as r1; clear", CLEARS, ...),
        (
            FreesToTheOtherLevel,
            "extend r0 by 10; slide r0[0:5]; free r0",
            CONSERVED,
            "extend r0 by 10; free r0",
        ),
        (FreesUnmappedRows, "extend r0 by 5; slide r0[0:5]; free r0", MAPPING, ...),
        (FreesPageByOneToken, "extend r0 by 5; slide r0[0:1]", MAPPING, ...),
        (ForwardsNothing, "extend r0 by 1; retract r0 as c0", FORWARDS, ...),
        (
            ReloadsNothing,
            "extend r0 by 1; retract r0 as c0; resume r1 from c0",
            FORWARDS,
            ...,
        ),
    ],
)
def test_program_is_blamed_on_the_plainest_clause(
    front: Any, program: str, clause: str, shown: Any
) -> None:
    window = Pool("p", make_sliding_window, kind="token", adapter=Plain(metadata=["mapping"]))
    slides = front in (FreesToTheOtherLevel, FreesUnmappedRows, FreesPageByOneToken)
    pool = window if slides else Pool("p", make_token, kind="token")
    allocator = Allocator("a", front, pool, kind="window" if slides else "token")
    case = Case(pool, CLAUSES[CONSERVED], "cpu", "strict", 1, front=allocator)
    with pytest.raises(Violation) as caught:
        case.run(*case.read(program))
    assert caught.value.clause == clause
    assert caught.value.finding is not None
    assert str(caught.value.finding.program) == (program if shown is ... else shown)
