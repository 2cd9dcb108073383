"""What a downstream declares: pools, the families they belong to, and known failures.

Declarations are checked when they are built. This module imports neither torch nor
hypothesis, so a `conftest.py` that only declares costs nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from conformance.contract import LEVELS, Level
from conformance.known import Known
from conformance.validation import (
    check_known,
    check_member,
    check_size,
    check_tested,
)

if TYPE_CHECKING:
    from conformance.adapters import Adapter
    from conformance.geometry import Geometry

Kind = Literal["token", "mla", "dsa", "hybrid"]
KINDS: tuple[Kind, ...] = ("token", "mla", "dsa", "hybrid")
ATTENTION: tuple[Kind, ...] = ("token", "mla", "dsa")

CAPABILITIES = ("offload", "state", "move", "copy_state", "zero_state")

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


@dataclass(frozen=True, slots=True, init=False)
class Pool:
    """One pool under test.

    `make` takes a `Geometry` and returns a new pool on `geometry.device`. `kind` says which
    sizes the geometry has: `token`, `mla`, `dsa`, or `hybrid`, whose attention layers are of
    kind `attention`. `ids` is `"token"` where any order of rows is legal and `"page"` where a
    request's ids run through its pages slot after slot (the default for `dsa`).

    `lacks` names what the pool does not support (`offload`, `state`, `move`, `copy_state`,
    `zero_state`); the suite checks that it is refused. `undefined` switches a strict clause
    off, with the engine's reason. `known` maps clause names to `Known`. `level` is
    `required`, `strict`, or None for the ini option `kv_level`. `isolated` runs each program
    in a child process, so that one that crashes it fails a check (CPU only, slower).
    `adapter` gives the verbs other names.

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
    undefined: Mapping[str, str]
    known: Mapping[str, Known]
    level: Level | None
    isolated: bool
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
        undefined: Mapping[str, str] | None = None,
        known: Mapping[str, Known] | None = None,
        level: Level | None = None,
        isolated: bool = False,
        adapter: Adapter | None = None,
        **constraints: Collection[Any],
    ) -> None:
        known = dict(known or {})
        check_tested(
            "Pool",
            name,
            make,
            lacks=lacks,
            capabilities=CAPABILITIES,
            undefined=undefined or {},
            known=known,
            level=level,
            adapter=adapter,
        )
        check_member(f"Pool {name!r}: kind", kind, KINDS)
        if attention is not None and kind != "hybrid":
            raise ValueError(f"Pool {name!r}: attention is for kind 'hybrid', not {kind!r}")
        attention = attention or ("token" if kind == "hybrid" else kind)
        check_member(f"Pool {name!r}: attention", attention, ATTENTION)
        ids = ids or ("page" if attention == "dsa" else "token")
        check_member(f"Pool {name!r}: ids", ids, ("token", "page"))
        for constraint, values in constraints.items():
            check_member(f"Pool {name!r}: constraint", constraint, CONSTRAINTS)
            if isinstance(values, str) or not isinstance(values, Collection) or not values:
                raise TypeError(
                    f"Pool {name!r}: {constraint} must be a sequence of allowed values, "
                    f"got {values!r}"
                )
            for value in values:
                check_size(f"Pool {name!r}: {constraint}", constraint, value)
        values_of = {
            "name": name,
            "make": make,
            "kind": kind,
            "attention": attention,
            "ids": ids,
            "lacks": frozenset(lacks),
            "undefined": dict(undefined or {}),
            "known": known,
            "level": level,
            "isolated": isolated,
            "adapter": adapter,
            "constraints": {key: tuple(values) for key, values in constraints.items()},
        }
        for attribute, value in values_of.items():
            object.__setattr__(self, attribute, value)

    @property
    def has_state(self) -> bool:
        return self.kind == "hybrid"

    @property
    def offers(self) -> frozenset[str]:
        """What the clauses on pools may ask for, companions apart, which only a built pool
        shows."""
        offers = {"offload", "move"}
        if "state" not in self.lacks:
            offers |= {"state", "copy_state", "zero_state"} if self.has_state else {"stateless"}
        offers -= self.lacks
        offers |= {"lacks"} if self.lacks else set()
        return frozenset(offers | ({"paged"} if self.ids == "page" else set()))


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A root class, all of whose subclasses are held to its signatures.

    `packages` are imported (packages with all their modules) so that every subclass exists.
    Each concrete subclass needs a `Pool` or an entry in `exempt`, keyed by class or by
    dotted name; a module that cannot be imported needs an entry too. With `source` the
    packages are read instead, so that classes count which cannot be imported here, and what
    their callers pass is checked too. `known` maps a class name to its known signature
    failures. `verbs` are the offload and reload methods, in
    this order, then others whose signatures must agree.
    """

    root: type
    _: KW_ONLY
    packages: Collection[str] = ()
    source: bool = False
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
        if self.source and not self.packages:
            raise ValueError(f"{name}: source=True needs the packages that are to be read")
        for key, reason in self.exempt.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"{name}: exemption of {key!r} needs a reason")
        for class_name, entries in self.known.items():
            for clause_id, entry in entries.items():
                check_known(f"{name}, class {class_name}", clause_id, entry, "Family")
        if len(self.verbs) < 2:
            raise ValueError(f"{name}: verbs must name offload and reload, got {self.verbs!r}")
        for verb in self.verbs[:2]:
            if not hasattr(self.root, verb):
                raise ValueError(f"{name}: the root has no method {verb!r}")
        if self.level is not None:
            check_member(f"{name}: level", self.level, LEVELS)

    @property
    def name(self) -> str:
        return self.root.__name__
