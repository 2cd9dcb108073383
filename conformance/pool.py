"""What a downstream declares: pools, the families they belong to, and known failures.

Declarations are checked when they are built. This module imports neither torch nor
hypothesis, so a `conftest.py` that only declares costs nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from conformance.contract import LEVELS, Level, did_you_mean, find_clause

if TYPE_CHECKING:
    from conformance.adapters import Adapter
    from conformance.geometry import Geometry

Kind = Literal["token", "mla", "dsa", "hybrid"]
KINDS: tuple[Kind, ...] = ("token", "mla", "dsa", "hybrid")
ATTENTION: tuple[Kind, ...] = ("token", "mla", "dsa")

CAPABILITIES = ("offload", "state")

CONSTRAINTS = (
    "page_sizes",
    "pages",
    "layers",
    "first_layers",
    "dtypes",
    "heads",
    "head_dims",
    "v_head_dims",
    "kv_lora_ranks",
    "qk_rope_head_dims",
    "index_head_dims",
    "state_sizes",
    "chunk_tokens",
)


@dataclass(frozen=True, slots=True)
class Known:
    """A failure that is known: the clause is expected to fail, and the run says so.

    `reason` is a sentence for the reader of the table; `link` a public report, where one
    exists. `witness` is a program in text form that shows the failure; it is run each time,
    and when it no longer fails the run fails and asks for this entry to be deleted.
    Clauses on signatures and declarations need no witness: what they look at is one.
    """

    reason: str
    witness: str | None = None
    link: str | None = None

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("Known needs a reason, got an empty one")

    def __str__(self) -> str:
        return f"{self.reason} ({self.link})" if self.link else self.reason


@dataclass(frozen=True, slots=True, init=False)
class Pool:
    """One pool under test.

    `make` takes a `Geometry` and returns a new pool on `geometry.device`. `kind` says which
    sizes the geometry has: `token`, `mla`, `dsa`, or `hybrid`, whose attention layers are of
    kind `attention`. `ids` is `"token"` where any order of rows is legal and `"page"` where a
    request's ids run through its pages slot after slot (the default for `dsa`).

    `lacks` names what the pool does not support (`offload`, `state`); the suite checks that
    it is refused. `known` maps clause names to `Known`. `level` is `required`, `strict`, or
    None for the ini option `kv_level`. `adapter` gives the verbs other names.

    Constraints are sequences of allowed values: `page_sizes`, `pages`, `layers`,
    `first_layers`, `dtypes`, `heads`, `head_dims`, `v_head_dims`, `kv_lora_ranks`,
    `qk_rope_head_dims`, `index_head_dims`, `state_sizes`, `chunk_tokens`.

    Raises `TypeError` or `ValueError` that names what is wrong.
    """

    name: str
    make: Callable[[Geometry], Any]
    kind: Kind
    attention: Kind
    ids: Literal["token", "page"]
    lacks: frozenset[str]
    known: Mapping[str, Known]
    level: Level | None
    adapter: Adapter | None
    constraints: Mapping[str, tuple[Any, ...]]

    def __init__(
        self,
        name: str,
        make: Callable[[Geometry], Any],
        *,
        kind: Kind,
        attention: Kind | None = None,
        ids: Literal["token", "page"] | None = None,
        lacks: Collection[str] = (),
        known: Mapping[str, Known] | None = None,
        level: Level | None = None,
        adapter: Adapter | None = None,
        **constraints: Collection[Any],
    ) -> None:
        _check_name("Pool", name)
        if not callable(make):
            raise TypeError(f"Pool {name!r}: make must be callable, got {make!r}")
        _check_member(f"Pool {name!r}: kind", kind, KINDS)
        if attention is not None and kind != "hybrid":
            raise ValueError(f"Pool {name!r}: attention is for kind 'hybrid', not {kind!r}")
        attention = attention or ("token" if kind == "hybrid" else kind)
        _check_member(f"Pool {name!r}: attention", attention, ATTENTION)
        ids = ids or ("page" if attention == "dsa" else "token")
        _check_member(f"Pool {name!r}: ids", ids, ("token", "page"))
        if isinstance(lacks, str):
            raise TypeError(f"Pool {name!r}: lacks must be a collection, e.g. [{lacks!r}]")
        for capability in lacks:
            _check_member(f"Pool {name!r}: lacks", capability, CAPABILITIES)
        if level is not None:
            _check_member(f"Pool {name!r}: level", level, LEVELS)
        known = dict(known or {})
        for clause_id, entry in known.items():
            _check_known(f"Pool {name!r}", clause_id, entry)
        for constraint, values in constraints.items():
            _check_member(f"Pool {name!r}: constraint", constraint, CONSTRAINTS)
            if isinstance(values, str) or not isinstance(values, Collection) or not values:
                raise TypeError(
                    f"Pool {name!r}: {constraint} must be a sequence of allowed values, "
                    f"got {values!r}"
                )
            for value in values:
                _check_size(f"Pool {name!r}: {constraint}", constraint, value)
        values_of = {
            "name": name,
            "make": make,
            "kind": kind,
            "attention": attention,
            "ids": ids,
            "lacks": frozenset(lacks),
            "known": known,
            "level": level,
            "adapter": adapter,
            "constraints": {key: tuple(values) for key, values in constraints.items()},
        }
        for attribute, value in values_of.items():
            object.__setattr__(self, attribute, value)

    @property
    def has_state(self) -> bool:
        return self.kind == "hybrid"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A root class, all of whose subclasses are held to its signatures.

    `packages` are imported (packages with all their modules) so that every subclass exists.
    Each concrete subclass needs a `Pool` or an entry in `exempt`, keyed by class or by
    dotted name; a module that cannot be imported needs an entry too. `known` maps a class
    name to its known signature failures. `verbs` are the offload and reload methods, in
    this order, then others whose signatures must agree.
    """

    root: type
    _: KW_ONLY
    packages: Collection[str] = ()
    exempt: Mapping[type | str, str] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, Known]] = field(default_factory=dict)
    verbs: tuple[str, ...] = ("get_cpu_copy", "load_cpu_copy", "move_kv_cache")
    level: Level | None = None

    def __post_init__(self) -> None:
        if not inspect.isclass(self.root):
            raise TypeError(f"Family: root must be a class, got {self.root!r}")
        name = f"Family {self.root.__name__}"
        if isinstance(self.packages, str):
            raise TypeError(f"{name}: packages must be a list, e.g. [{self.packages!r}]")
        for key, reason in self.exempt.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"{name}: exemption of {key!r} needs a reason")
        for class_name, entries in self.known.items():
            for clause_id, entry in entries.items():
                _check_known(f"{name}, class {class_name}", clause_id, entry, signature=True)
        if len(self.verbs) < 2:
            raise ValueError(f"{name}: verbs must name offload and reload, got {self.verbs!r}")
        for verb in self.verbs[:2]:
            if not hasattr(self.root, verb):
                raise ValueError(f"{name}: the root has no method {verb!r}")
        if self.level is not None:
            _check_member(f"{name}: level", self.level, LEVELS)

    @property
    def name(self) -> str:
        return self.root.__name__


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or not name.replace("-", "_").isidentifier():
        raise ValueError(
            f"{what}: name must be letters, digits, '-' and '_' (it becomes a test id), "
            f"got {name!r}"
        )


def _check_size(what: str, constraint: str, value: object) -> None:
    if constraint == "dtypes":
        # By name: this module does not import torch.
        if type(value).__name__ != "dtype":
            raise TypeError(f"{what}: {value!r} is not a torch dtype")
    elif not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what}: {value!r} is not a whole number")
    elif value < (0 if constraint == "first_layers" else 1):
        raise ValueError(f"{what}: {value!r} is too small")


def _check_member(what: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{what} {value!r} does not exist{did_you_mean(str(value), allowed)}")


def _check_known(what: str, clause_id: str, entry: object, *, signature: bool = False) -> None:
    try:
        clause = find_clause(clause_id)
    except ValueError as error:
        raise ValueError(f"{what}: known: {error}") from None
    if not isinstance(entry, Known):
        raise TypeError(f"{what}: known[{clause_id!r}] must be a Known, got {entry!r}")
    if signature != (clause.subject == "signatures"):
        place = "Family" if clause.subject == "signatures" else "Pool"
        raise ValueError(f"{what}: {clause_id} belongs in the known of a {place}")
    has_programs = clause.subject not in ("signatures", "declarations")
    if has_programs and entry.witness is None:
        raise ValueError(f"{what}: known[{clause_id!r}] needs a witness program")
