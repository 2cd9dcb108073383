"""What `HostTier` accepts, and what it says of a mistake."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest

from conformance import HostTier, Known, Pool
from conformance.adapters.plain import PLAIN_HOST_TIER
from conformance.host_tier import HOST_TIER_CAPABILITIES
from reference_pools.declarations import make_token

WITNESS = "write r0 at 5..9; back up r0; load r0 at 10..14"
TOKEN = Pool("token", make_token, kind="token")
HYBRID = Pool("hybrid", object, kind="hybrid")


def tier(**arguments: Any) -> HostTier:
    return HostTier(**({"name": "t", "make": object, "pool": TOKEN} | arguments))


# -- the declaration -----------------------------------------------------------------------


def test_host_tier_defaults() -> None:
    made = HostTier("t", object, TOKEN)
    assert (made.name, made.make, made.pool) == ("t", object, TOKEN)
    assert (made.lacks, made.undefined, made.known) == ((), {}, {})
    assert (made.level, made.isolated, made.adapter) == (None, False, None)


def test_host_tier_is_frozen_and_equal_to_itself_alone() -> None:
    made = tier()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    assert made == made
    assert made != tier()


def test_options_are_passed_by_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        HostTier("t", object, TOKEN, ["layers"])  # type: ignore[misc]


@pytest.mark.parametrize(
    ("pool", "lacks", "offers"),
    [
        (TOKEN, [], {"layers", "row_bytes"}),
        (HYBRID, [], {"layers", "row_bytes", "state"}),
        (TOKEN, ["layers"], {"row_bytes", "lacks"}),
        (TOKEN, ["polling"], {"layers", "row_bytes", "lacks"}),
        (HYBRID, ["row_bytes"], {"layers", "state", "lacks"}),
        (HYBRID, ["state"], {"layers", "row_bytes", "lacks"}),
        (HYBRID, HOST_TIER_CAPABILITIES, {"lacks"}),
    ],
)
def test_host_tier_offers_what_it_does_not_lack(pool: Pool, lacks: Any, offers: set[str]) -> None:
    assert tier(pool=pool, lacks=lacks).offers == offers


@pytest.mark.parametrize(
    ("pool", "lacks", "carries"),
    [
        (TOKEN, (), False),
        (HYBRID, (), True),
        (HYBRID, ("state",), False),
        (HYBRID, ["layers"], True),
    ],
)
def test_state_is_carried_where_the_pool_has_it(pool: Pool, lacks: Any, carries: bool) -> None:
    assert tier(pool=pool, lacks=lacks).carries_state is carries


VERBS = "backup, load, wait, is_done, wait_layer, free, available, row_bytes"
MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"name": "a b"},
        ValueError,
        "HostTier: name must be letters, digits, '-' and '_' (it becomes a test id), got 'a b'",
    ),
    (
        {"name": ""},
        ValueError,
        "HostTier: name must be letters, digits, '-' and '_' (it becomes a test id), got ''",
    ),
    (
        {"name": 3},
        ValueError,
        "HostTier: name must be letters, digits, '-' and '_' (it becomes a test id), got 3",
    ),
    ({"make": None}, TypeError, "HostTier 't': make must be callable, got None"),
    ({"pool": "token"}, TypeError, "HostTier 't': pool must be a Pool, got 'token'"),
    ({"pool": object}, TypeError, f"HostTier 't': pool must be a Pool, got {object!r}"),
    ({"lacks": "state"}, TypeError, "HostTier 't': lacks must be a collection, e.g. ['state']"),
    (
        {"lacks": ["layer"]},
        ValueError,
        "HostTier 't': lacks 'layer' does not exist; did you mean 'layers'?",
    ),
    (
        {"lacks": ["offload"]},
        ValueError,
        "HostTier 't': lacks 'offload' does not exist; "
        "it must be one of layers, polling, row_bytes, state",
    ),
    (
        {"lacks": ["state"]},
        ValueError,
        "HostTier 't': lacks 'state', but its pool 'token' has none",
    ),
    (
        {"level": "strickt"},
        ValueError,
        "HostTier 't': level 'strickt' does not exist; did you mean 'strict'?",
    ),
    (
        {"adapter": 3},
        TypeError,
        f"HostTier 't': adapter 3 has no {VERBS}; see conformance.adapters.HostTierAdapter",
    ),
    (
        {"known": {"host_rows_are_conserve": Known("r", WITNESS)}},
        ValueError,
        "HostTier 't': known: no clause is named 'host_rows_are_conserve'; "
        "did you mean 'host_rows_are_conserved'?",
    ),
    (
        {"known": {"host_rows_are_conserved": "r"}},
        TypeError,
        "HostTier 't': known['host_rows_are_conserved'] must be a Known, got 'r'",
    ),
    (
        {"known": {"host_rows_are_conserved": Known("r")}},
        ValueError,
        "HostTier 't': known['host_rows_are_conserved'] needs a witness program",
    ),
    (
        {"known": {"companions_travel": Known("r", WITNESS)}},
        ValueError,
        "HostTier 't': companions_travel belongs in the known of a Pool",
    ),
    (
        {"known": {"ids_are_conserved": Known("r", WITNESS)}},
        ValueError,
        "HostTier 't': ids_are_conserved belongs in the known of an Allocator",
    ),
    (
        {"known": {"override_keeps_names": Known("r")}},
        ValueError,
        "HostTier 't': override_keeps_names belongs in the known of a Family",
    ),
    (
        {"undefined": {"double_drops_are_refused": "never"}},
        ValueError,
        "HostTier 't': undefined: no clause is named 'double_drops_are_refused'; "
        "did you mean 'double_drop_is_refused'?",
    ),
    (
        {"undefined": {"host_rows_are_conserved": "never"}},
        ValueError,
        "HostTier 't': undefined['host_rows_are_conserved']: only what level strict adds can be "
        "undefined; a failure of a required clause belongs in `known`",
    ),
    (
        {"undefined": {"double_free_is_refused": "never"}},
        ValueError,
        "HostTier 't': undefined['double_free_is_refused'] is a clause on an Allocator",
    ),
    (
        {"undefined": {"negative_ids_are_refused": "never"}},
        ValueError,
        "HostTier 't': undefined['negative_ids_are_refused'] is a clause on a Pool",
    ),
    (
        {"undefined": {"override_keeps_names": "never"}},
        ValueError,
        "HostTier 't': undefined['override_keeps_names'] is a clause on a Family",
    ),
    (
        {"undefined": {"double_drop_is_refused": " "}},
        ValueError,
        "HostTier 't': undefined['double_drop_is_refused'] needs a reason",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "message"), MISTAKES)
def test_mistake_in_a_host_tier(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        tier(**arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("missing", VERBS.split(", "))
def test_adapter_that_lacks_one_method_is_told_which(missing: str) -> None:
    class Partial:
        def __repr__(self) -> str:
            return "Partial()"

    for verb in set(VERBS.split(", ")) - {missing}:
        setattr(Partial, verb, len)
    with pytest.raises(TypeError) as caught:
        tier(adapter=Partial())
    assert str(caught.value) == (
        f"HostTier 't': adapter Partial() has no {missing}; "
        "see conformance.adapters.HostTierAdapter"
    )


def test_whole_adapter_is_accepted() -> None:
    assert tier(adapter=PLAIN_HOST_TIER).adapter is PLAIN_HOST_TIER


def test_known_of_what_is_lacking_needs_no_witness() -> None:
    known = {"lacking_host_verbs_are_refused": Known("raises TypeError")}
    assert tier(lacks=["layers"], known=known).known == known


@pytest.mark.parametrize("clause", ["host_rows_are_conserved", "copies_of_one_row_run_in_order"])
def test_known_of_a_host_tier_is_not_that_of_a_pool(clause: str) -> None:
    with pytest.raises(ValueError, match=f"^Pool 'p': {clause} belongs in the known of a HostT"):
        Pool("p", object, kind="token", known={clause: Known("r", WITNESS)})


@pytest.mark.parametrize("clause", ["double_drop_is_refused", "copies_of_one_row_run_in_order"])
def test_strict_clause_can_be_undefined_for_a_reason(clause: str) -> None:
    assert tier(undefined={clause: "nobody does"}).undefined == {clause: "nobody does"}


def test_declaring_a_host_tier_imports_neither_torch_nor_hypothesis() -> None:
    code = (
        "import sys, conformance\n"
        "pool = conformance.Pool('p', object, kind='token')\n"
        "conformance.HostTier('t', object, pool)\n"
        "print(sorted({'torch', 'hypothesis'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
