"""The contract: every clause, as one sentence that a pool keeps or breaks."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

VERSION = 1
"""The newest version of the contract. A clause binds from the version in its `since`."""

Level = Literal["required", "strict"]
LEVELS: tuple[Level, ...] = ("required", "strict")

Subject = Literal["reload", "state", "errors", "declarations", "signatures"]

Need = Literal["paged", "companions", "state", "stateless", "offload", "lacks"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence of the contract.

    `needs` says to which pools it applies: `paged` (ids run through pages in order),
    `companions`, `state` or `stateless`, `offload` (the verbs are not in `lacks`), `lacks`
    (something is). `source` is where the rule comes from: public faults, a paper, a PR.
    """

    id: str
    sentence: str
    subject: Subject
    source: str
    level: Level = "required"
    needs: frozenset[Need] = frozenset({"offload"})
    since: int = 1


def _clause(id: str, subject: Subject, sentence: str, source: str, *needs: Need) -> Clause:
    every: set[Need] = {"offload"} if subject in ("reload", "state", "errors") else set()
    return Clause(id, sentence, subject, source, needs=frozenset({*every, *needs}))


def _strict(id: str, subject: Subject, sentence: str, source: str, *needs: Need) -> Clause:
    required = _clause(id, subject, sentence, source, *needs)
    return Clause(id, sentence, subject, source, level="strict", needs=required.needs)


_ALL = (
    _clause(
        "every_verb_works",
        "reload",
        "Offload and reload accept every legal index set, or `lacks` names what they refuse.",
        "sglang 7819, 25249, 33385, 36591",
    ),
    _clause(
        "reload_restores_the_same_rows",
        "reload",
        "Reloading into the rows that were offloaded restores every byte of every layer.",
        "sglang 38645, 37534, 40304; LightLLM 997",
    ),
    _clause(
        "reload_restores_other_rows",
        "reload",
        "Token i of a copy goes to the i-th row given, whichever rows it came from.",
        "sglang 23346; llama.cpp 17982",
    ),
    _clause(
        "any_rows_in_any_order",
        "reload",
        "An index set may have gaps and any order that its engine can hand out.",
        "llama.cpp 17982",
    ),
    _clause(
        "runs_may_begin_mid_page",
        "reload",
        "A run that begins in the middle of a page is offloaded and reloaded whole.",
        "sglang 5221",
        "paged",
    ),
    _clause(
        "reload_leaves_other_rows_alone",
        "reload",
        "Rows outside the index set keep every byte (the rest of its last page may be restored).",
        "TensorRT-LLM 4943; sglang 31060",
    ),
    _clause(
        "offload_changes_nothing",
        "reload",
        "Offload leaves every byte of the pool as it was.",
        "LightLLM 997",
    ),
    _clause(
        "copy_is_its_own_memory",
        "reload",
        "A copy shares no memory with the pool: writes to either do not reach the other.",
        "sglang 23346, 21624; Megatron-LM 6584",
    ),
    _clause(
        "reload_can_be_repeated",
        "reload",
        "Reload does not use a copy up: a second time it restores the same bytes.",
        "llama.cpp 18552",
    ),
    _clause(
        "copies_are_independent",
        "reload",
        "Several copies alive at once each restore what they were taken from.",
        "sglang 23346; llama.cpp 18552",
    ),
    _clause(
        "splitting_gives_the_whole",
        "reload",
        "An index set offloaded in two parts and reloaded in two parts restores the whole.",
        "sglang 5221, 4977",
    ),
    _clause(
        "chunking_changes_nothing",
        "reload",
        "The number of chunks in which a copy is made does not change what it restores.",
        "sglang 7409",
    ),
    _clause(
        "empty_set_is_legal",
        "reload",
        "Offload and reload of no rows succeed and change nothing.",
        "LMCache 2768",
    ),
    _clause(
        "companions_travel",
        "reload",
        "Buffers that belong to the payload (index keys, scales) are restored with it.",
        "sglang 23346, 35888, 39089; llama.cpp 27813",
        "companions",
    ),
    _clause(
        "index_tensors_are_not_modified",
        "reload",
        "The tensors of ids that a caller passes are not changed.",
        "sglang 21624; Megatron-LM 6584",
    ),
    _clause(
        "every_index_form_is_accepted",
        "reload",
        "Ids may be int32 or int64, on the host or the pool's device, strided or contiguous.",
        "sglang 38761 (request tables hold int32 ids)",
    ),
    _clause(
        "copy_is_on_the_host",
        "reload",
        "Every tensor of a copy lives in host memory.",
        "the purpose of the verb: sglang PR 7409",
    ),
    _clause(
        "copy_size_is_bounded",
        "reload",
        "A copy holds no more than twice its rows, counted in whole pages, and their ids.",
        "sglang 21624; vllm 50443",
    ),
    _clause(
        "every_tensor_is_accounted_for",
        "declarations",
        "Every device tensor that a pool owns is a buffer or declared metadata.",
        "sglang 23346, 22493; llama.cpp 27813",
    ),
    _clause(
        "state_travels",
        "state",
        "With state ids, every state buffer is offloaded and restored beside the attention.",
        "sglang 22493; TensorRT-LLM 16304",
        "state",
    ),
    _clause(
        "state_stays_without_ids",
        "state",
        "Without state ids, no state row changes and nothing is raised.",
        "sglang 22493 (requests without state share the pool)",
        "state",
    ),
    _strict(
        "state_is_refused_not_dropped",
        "state",
        "A pool that holds no state refuses state ids.",
        "sglang 22493",
        "stateless",
    ),
    _strict(
        "state_mismatch_is_refused",
        "errors",
        "A copy with state needs state ids on reload, and one without refuses them.",
        "sglang 22493; llama.cpp 28498",
        "state",
    ),
    _strict(
        "out_of_range_ids_are_refused",
        "errors",
        "An id past the last row raises an error that names it; nothing changes.",
        "sglang 38645, 34399",
    ),
    _strict(
        "negative_ids_are_refused",
        "errors",
        "A negative id raises an error that names it; nothing changes.",
        "sglang 38997",
    ),
    _strict(
        "reserved_rows_are_refused",
        "errors",
        "An id in the reserved first page raises an error that names it; nothing changes.",
        "sglang 38519, 38997",
    ),
    _strict(
        "wrong_dtype_is_refused",
        "errors",
        "Ids that are not int32 or int64 raise an error that names the dtype; nothing changes.",
        "sglang 38761",
    ),
    _strict(
        "wrong_length_is_refused",
        "errors",
        "A copy reloaded into another number of rows raises an error; nothing changes.",
        "llama.cpp 27052",
    ),
    _strict(
        "foreign_copy_is_refused",
        "errors",
        "A copy made by a pool of another geometry raises an error; nothing changes.",
        "llama.cpp 28498",
    ),
    _clause(
        "lacks_is_refused_first",
        "declarations",
        "What a pool lacks raises NotImplementedError before anything changes.",
        "sglang 36591 (a stub that callers reach)",
        "lacks",
    ),
    _clause(
        "override_accepts_every_keyword",
        "signatures",
        "An override accepts every optional keyword that the root of its family accepts.",
        "sglang 25828; sglang PRs 27645, 27229, 27802, 29146, 36730",
    ),
    _clause(
        "override_binds_by_position",
        "signatures",
        "Every positional call that is legal on the root is legal on the override.",
        "sglang 25828 (substitutability: Liskov and Wing, 1994)",
    ),
    _clause(
        "override_requires_nothing_more",
        "signatures",
        "An override requires no parameter that the root does not require.",
        "sglang 25828 (substitutability: Liskov and Wing, 1994)",
    ),
    _clause(
        "pair_accepts_the_same_keywords",
        "signatures",
        "An optional keyword that a class adds to one half of the pair is on the other half.",
        "sglang PR 36730 (req_pool_index)",
    ),
    _strict(
        "override_keeps_names",
        "signatures",
        "The required parameters of an override can be passed by the root's names.",
        "sglang 25828 (harmless while callers pass them by position)",
    ),
    _strict(
        "override_keeps_defaults",
        "signatures",
        "An optional parameter of an override has the root's default.",
        "substitutability: Liskov and Wing, 1994",
    ),
    _clause(
        "every_subclass_is_covered",
        "signatures",
        "Every concrete subclass of a family's root has a Pool, or an exemption with a reason.",
        "sglang PRs 27229, 27802, 29146 (fixed one class at a time)",
    ),
)

CLAUSES: MappingProxyType[str, Clause] = MappingProxyType({c.id: c for c in _ALL})


def find_clause(id: str) -> Clause:
    """The clause named `id`; `ValueError` with the nearest name for one that does not exist."""
    if id in CLAUSES:
        return CLAUSES[id]
    raise ValueError(f"no clause is named {id!r}{did_you_mean(id, CLAUSES)}")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """`; did you mean 'x'?`, or the list of what is known where nothing is near."""
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; it must be one of {', '.join(sorted(known))}"


def applies(clause: Clause, *, level: Level, version: int) -> bool:
    """Whether a subject declared at `level` under contract `version` is held to `clause`."""
    return clause.since <= version and LEVELS.index(clause.level) <= LEVELS.index(level)
