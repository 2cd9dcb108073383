"""What a run asks of a host tier in flight, and by which clause its faults are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from broken_tiers import ForgetsIndexKeys, ForgetsState, WrongDirection, ZeroesPadding, make
from tier_cases import (
    DSA,
    HYBRID,
    IN_FLIGHT,
    LOADED,
    SAVED,
    TOKEN,
    FreesLater,
    RefusesInFlight,
    Told,
    of,
    told,
)
from torch import Tensor

from conformance import HostTier
from conformance.adapters.plain import PlainHostTier
from conformance.tiers.front import POLLS
from reference_pools.host import HostTier as Tier
from reference_pools.host import Load

CONSERVED, TWICE = "host_rows_are_conserved", "double_drop_is_refused"


# -- drops in flight -----------------------------------------------------------------------


class FreesNever(FreesLater):
    def available(self) -> dict[str, int]:
        return Tier.available(self)


@pytest.mark.parametrize("cls", [Tier, RefusesInFlight, FreesLater])
@pytest.mark.parametrize(
    "text",
    [
        f"{IN_FLIGHT}; drop r0; await backup of r0; drop r0; refuse drop r0",
        f"{LOADED}; drop r0; use r0; await load of r0; drop r0",
        f"{LOADED}; drop r0; drop r0; write r1 at 15..19; back up r1; await backup of r1",
        f"{LOADED}; use r0; drop r0; read r0; write r1 at 15..29; back up r1; await backup of r1",
        f"{LOADED}; drop r0; write r1 at 15..29,5..9; back up r1; load r1 at 5..9,15..29",
        "write r0 at 5..24; back up r0; drop r0; claim r1 at 5..24; back up r1; load r1 at 10..29",
        f"{LOADED}; drop r0; await load of r0; drop r0; write r1 at 15..29; back up r1",
    ],
)
def test_drop_in_flight_is_refused_or_takes_effect_at_once_or_later(
    cls: type[Tier], text: str
) -> None:
    assert told(of(cls), text) == []


@pytest.mark.parametrize("error", [TypeError, ValueError, IndexError, RuntimeError])
def test_drop_in_flight_is_refused_by_any_of_these(error: type[Exception]) -> None:
    refusing = type("Refuses", (RefusesInFlight,), {"error": error})
    assert told(of(refusing), f"{IN_FLIGHT}; drop r0; await backup of r0; drop r0") == []


@pytest.mark.parametrize("error", [KeyError, AssertionError, OSError])
def test_drop_in_flight_is_refused_by_any_exception(error: type[Exception]) -> None:
    refusing = type("Refuses", (RefusesInFlight,), {"error": error})
    assert told(of(refusing), f"{IN_FLIGHT}; drop r0; await backup of r0") == []


class RefusesTheFirst(Tier):
    """Thinks that copies are in flight which are not."""

    def free(self, source: Any) -> None:
        raise RuntimeError("in use")


def test_drop_is_not_refused_once_everything_was_awaited() -> None:
    text = "; ".join((LOADED, "await load of r0", "drop r0"))
    ((at, kind, what),) = told(of(RefusesTheFirst), text)
    assert (at, kind) == (5, "raised")
    assert what.startswith("raised RuntimeError: in use (test_tier_front_faults.py:")
    assert told(of(RefusesTheFirst), f"{LOADED}; drop r0; await load of r0") == []


def test_drop_that_never_takes_effect_is_told_at_the_end() -> None:
    text = f"{LOADED}; drop r0; await load of r0; write r1 at 15..19"
    what = "15 host rows are free (token), expected 20"
    assert told(of(FreesNever), text) == [(6, CONSERVED, what)]


class FreesAPage(Tier):
    def free(self, source: Any) -> None:
        super().free(source.host_ids[: self.host_pool.page_size])


class FreesOthersToo(Tier):
    def free(self, source: Any) -> None:
        self.rows.tokens.clear()


@pytest.mark.parametrize(
    ("cls", "free"),
    [(FreesAPage, 10), (FreesOthersToo, 20)],
)
def test_drop_of_other_rows_is_told_at_the_drop(cls: type[Tier], free: int) -> None:
    text = (
        "write r0 at 5..14; back up r0; write r1 at 15..19; back up r1; await backup of r0; "
        "drop r0; read r1"
    )
    what = f"{free} host rows are free (token), expected 15"
    assert told(of(cls), text) == [(5, CONSERVED, what)]


# -- a drop once more ----------------------------------------------------------------------


class DropsTwice(Tier):
    """What a second drop does is up to `again`; `asked` counts all drops."""

    asked = 0
    error: type[Exception] | None = None

    def free(self, source: Any) -> None:
        type(self).asked += 1
        if self.rows.tokens.free_list.owners[source.host_ids].all():
            super().free(source)
        elif self.error is not None:
            raise self.error("twice")


def dropping(error: type[Exception] | None = None) -> type[DropsTwice]:
    return type("Drops", (DropsTwice,), {"error": error, "asked": 0})


@pytest.mark.parametrize("error", [TypeError, ValueError, IndexError, RuntimeError])
def test_second_drop_is_refused_by_any_of_these(error: type[Exception]) -> None:
    cls = dropping(error)
    assert told(of(cls), f"{SAVED}; drop r0; refuse drop r0") == []
    assert cls.asked == 2


def test_second_drop_that_is_accepted_is_told() -> None:
    text = f"{SAVED}; drop r0; refuse drop r0; write r1 at 5..9"
    assert told(of(dropping()), text) == [(4, TWICE, "the call was accepted")]
    assert told(of(dropping(KeyError)), text) == []


def test_second_drop_is_not_tried_of_rows_that_others_may_have() -> None:
    cls = dropping()
    again = "write r1 at 10..14; back up r1; refuse drop r0"
    assert told(of(cls), f"{SAVED}; drop r0; {again}") == []
    assert cls.asked == 1


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("refuse drop r0", "'refuse drop r0': r0 holds host rows; drop it first"),
        ("drop r0; back up r0; refuse drop r0", "'refuse drop r0': r0 holds host rows; drop it"),
        ("drop r0; drop r0", "'drop r0': r0 was dropped already; try `refuse drop`"),
    ],
)
def test_drop_that_would_try_nothing_is_a_wrong_program(steps: str, message: str) -> None:
    with pytest.raises(LookupError, match=f"^program: {message}"):
        told(TOKEN, f"{SAVED}; {steps}")


def test_request_may_be_backed_up_again_once_it_was_dropped() -> None:
    text = f"{SAVED}; drop r0; write r0 at 15..24; back up r0; load r0 at 5..14; read r0"
    with pytest.raises(LookupError, match="`await load of r0` first"):
        told(TOKEN, text)
    assert told(TOKEN, text.replace("read", "use")) == []


# -- waiting and asking --------------------------------------------------------------------


@dataclass(frozen=True)
class Asked(PlainHostTier):
    """Says done from ask number `after` on; `log` has every wait, ask and layer."""

    after: int
    log: list[Any] = field(default_factory=list)

    @property
    def waited(self) -> int:
        return self.log.count("wait")

    @property
    def asked(self) -> int:
        return self.log.count("ask")

    def wait(self, tier: Any, transfer: Any) -> None:
        self.log.append("wait")

    def is_done(self, tier: Any, transfer: Any) -> bool:
        self.log.append("ask")
        return self.asked >= self.after

    def wait_layer(self, tier: Any, load: Any, layer: int) -> None:
        self.log.append(layer)


def asked(text: str, after: int = 1, like: HostTier = TOKEN) -> tuple[Told, Asked]:
    adapter = Asked(after)
    return told(of(Tier, like, adapter=adapter), text), adapter


@pytest.mark.parametrize("after", [1, 3, POLLS])
def test_copy_is_asked_until_it_is_done_and_then_not_waited_for(after: int) -> None:
    found, adapter = asked(f"{IN_FLIGHT}; poll backup of r0", after)
    assert (found, adapter.asked, adapter.waited) == ([], after, 0)


def test_copy_that_is_done_only_when_waited_for_is_in_order() -> None:
    found, adapter = asked(f"{IN_FLIGHT}; poll backup of r0", POLLS + 1)
    assert (found, adapter.asked, adapter.waited) == ([], POLLS + 1, 1)


@pytest.mark.parametrize("way", ["backup", "load"])
def test_copy_that_is_never_done_is_told(way: str) -> None:
    text = f"{IN_FLIGHT}; load r0 at 10..14; poll {way} of r0"
    found, adapter = asked(text, POLLS + 2)
    what = f"the {way} of r0 says that it is not done after its wait"
    assert found == [(3, f"{way}_is_complete_when_awaited", what)]
    assert adapter.waited == 2


def test_copy_that_was_awaited_is_not_awaited_again_but_must_say_that_it_is_done() -> None:
    text = f"{SAVED}; await backup of r0; poll backup of r0"
    found, adapter = asked(text)
    assert (found, adapter.asked, adapter.waited) == ([], 1, 1)
    ((at, clause, _),), _ = asked(text, after=2)
    assert (at, clause) == (4, "backup_is_complete_when_awaited")


def test_copies_that_nobody_awaited_are_awaited_at_the_end() -> None:
    found, adapter = asked(f"{IN_FLIGHT}; load r0 at 10..14; load r0 at 15..19")
    assert (found, adapter.waited) == ([], 3)


def test_layers_that_only_state_has_are_awaited_where_there_is_state() -> None:
    steps = "write r0 at 5..9 state 3; back up r0; await backup of r0; load r0 at 10..14 state 4"
    found, adapter = asked(f"{steps}; use r0", like=HYBRID)
    assert (found, adapter.log) == ([], ["wait", 0, 1, 2, 3, "wait"])


@pytest.mark.parametrize(("like", "layers"), [(TOKEN, [0, 1, 2]), (HYBRID, [0, 1, 2])])
def test_every_layer_is_awaited_in_order_when_a_load_is_used(
    like: HostTier, layers: list[int]
) -> None:
    found, adapter = asked(f"{LOADED}; use r0", like=like)
    assert (found, adapter.log) == ([], ["wait", *layers, "wait"])


@pytest.mark.parametrize(
    ("step", "verb"),
    [("await load of r0", "wait"), ("poll load of r0", "is_done"), ("use r0", "wait_layer")],
)
def test_wait_that_raises_is_told(step: str, verb: str) -> None:
    class Raises(PlainHostTier):
        pass

    def fail(*given: Any) -> Any:
        raise OSError("no such stream")

    setattr(Raises, verb, fail)
    text = f"{IN_FLIGHT}; load r0 at 10..14; {step}"
    ((at, kind, what),) = told(of(Tier, adapter=Raises()), text)
    assert (at, kind) == (3, "raised")
    assert what.startswith("raised OSError: no such stream (test_tier_front_faults.py:")


# -- bytes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "at"),
    [("await load of r0", 5), ("poll load of r0", 5), ("read r1; await load of r0", 6), ("", 4)],
)
def test_wrong_bytes_are_told_where_the_load_is_awaited(steps: str, at: int) -> None:
    found = told(of(WrongDirection), f"write r1 at 15..19; {LOADED}; {steps}")
    assert [(step, kind) for step, kind, _ in found] == [(at, "payload"), (at, "payload")]
    assert found[0][2] == (
        "token row 10 of k, layer 1: holds bytes of nobody (k, layer 1, row 10, write 0), "
        "expected token 0 of r0 (k, layer 1, row 5, write 2) (and 14 more cells of k)"
    )


def test_wrong_bytes_are_told_by_the_role_of_their_buffer() -> None:
    text = "write r0 at 5..9 state 1; back up r0; load r0 at 10..14 state 2"
    assert [kind for _, kind, _ in told(of(ForgetsState, HYBRID), text)] == ["state", "state"]
    assert [kind for _, kind, _ in told(of(ForgetsIndexKeys, DSA), LOADED)] == ["companion"]


def test_wrong_bytes_of_a_used_load_are_told_as_what_the_stream_read() -> None:
    found = told(of(ForgetsIndexKeys, DSA), f"{LOADED}; use r0; await load of r0")
    seen = [(at, what) for at, _, what in found if what.startswith("the stream read it: ")]
    assert [at for at, _ in seen] == [4, 4, 4]
    assert seen[1][1] == (
        "the stream read it: token row 10 of index_k, layer 2: holds bytes of nobody "
        "(index_k, layer 2, row 10, write 0), expected token 0 of r0 "
        "(index_k, layer 2, row 5, write 1) (and 4 more cells of index_k)"
    )


def test_bytes_of_other_rows_are_told_at_the_end() -> None:
    found = told(of(ZeroesPadding), f"{LOADED}; await load of r0; read r0")
    what = "holds zero bytes, expected bytes of nobody"
    assert found == [
        (
            5,
            "host_tier_leaves_other_rows_alone",
            f"token row 0 of {name}, layer 1: {what} ({name}, layer 1, row 0, write 0)",
        )
        for name in ("k", "v")
    ]


class LoadsTwice(Tier):
    """A load is copied once more when it is awaited."""

    def load(self, source: Any, device_ids: Tensor, state_id: Tensor | None = None) -> Load:
        load = super().load(source, device_ids, state_id)
        again = super().load
        load.wait = lambda: again(source, device_ids, state_id).wait()  # type: ignore[method-assign]
        return load


def test_load_into_rows_that_somebody_wrote_since_is_told() -> None:
    text = f"{LOADED}; use r0; write r1 at 10..14; read r1; await load of r0"
    ((at, kind, what),) = told(of(LoadsTwice), text)[:1]
    assert (at, kind) == (3, "payload")
    assert what.startswith("token row 10 of k, layer 1: holds token 0 of r0 (k, layer 1, row 5")
    assert told(TOKEN, text) == []


# -- the adapter ---------------------------------------------------------------------------


class Renamed:
    """Another engine's names."""

    def __init__(self, pool: Any) -> None:
        self.tier = make(pool)

    def write(self, ids: Tensor) -> Any:
        return self.tier.backup(ids)


class Renaming(PlainHostTier):
    def backup(self, tier: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return tier.write(ids)

    def load(self, tier: Any, backup: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return tier.tier.load(backup, ids, state_ids)

    def free(self, tier: Any, backup: Any) -> None:
        tier.tier.free(backup)

    def available(self, tier: Any) -> Any:
        return tier.tier.available()


def test_adapter_gives_the_verbs_other_names() -> None:
    declared = HostTier("t", Renamed, TOKEN.pool, adapter=Renaming())
    text = f"{LOADED}; use r0; await load of r0; drop r0; refuse drop r0"
    assert told(declared, text) == []
