"""What the host tier waits for, on a device whose events are late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from host_events import Event, LateModule, Stream, install, reach
from host_tiers import ids, make_tier, pages

from reference_pools.host import POINTS, Backup, HostIds, HostTier, Load, Waits
from reference_pools.host.streams import Streams, is_reached, keep, make_wait, record, wait_on_host

EXTRAS = {
    "token": (),
    "mla": (),
    "dsa": ("index_keys",),
    "fp8": ("scales",),
    "hybrid": ("state",),
    "hybrid-dsa": ("index_keys", "state"),
}
each_kind = pytest.mark.parametrize("kind", EXTRAS)
with_extras = pytest.mark.parametrize("kind", [kind for kind, extras in EXTRAS.items() if extras])


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> LateModule:
    return install(monkeypatch)


def tier_of(kind: str, **options: Any) -> HostTier:
    """A tier whose stages were free when it was made."""
    tier = make_tier(kind, **options)
    reach(tier.streams.current().events)
    return tier


def back_up(tier: HostTier, *numbers: int, wait: bool = True) -> Backup:
    state = ids(numbers[0]) if hasattr(tier.device_pool, "state") else None
    backup = tier.backup(pages(*numbers), state)
    assert backup is not None
    if wait:
        backup.wait()
    return backup


def load(tier: HostTier, backup: Backup, *numbers: int) -> Load:
    return tier.load(backup, pages(*numbers), None if backup.host.states is None else ids(1))


def lanes(tier: HostTier, way: str) -> dict[str, Stream]:
    direction = tier.backups if way == "backup" else tier.loads
    return {lane.part: lane.stream for lane in direction.lanes}


# -- what is waited for -----------------------------------------------------------------


@each_kind
def test_each_part_has_a_stream_and_an_event_for_each_layer(kind: str, device: LateModule) -> None:
    tier = tier_of(kind)
    started = load(tier, back_up(tier, 7), 3)
    assert started.parts == ("main", *EXTRAS[kind])
    for part, events in started.events.items():
        assert {event.stream for event in events} == {lanes(tier, "load")[part]}
        assert [event.place for event in events] == sorted({event.place for event in events})
        assert len(events) == (4 if part == "state" else 3)
    streams = [stream for way in ("backup", "load") for stream in lanes(tier, way).values()]
    assert len({*streams, device.compute}) == 2 * (1 + len(EXTRAS[kind])) + 1


@pytest.mark.parametrize("way", ["backup", "load"])
@each_kind
def test_copies_wait_for_the_compute_stream(kind: str, way: str, device: LateModule) -> None:
    tier = tier_of(kind)
    backup = back_up(tier, 7)
    device.log.clear()
    back_up(tier, 3, wait=False) if way == "backup" else load(tier, backup, 3)
    computed = device.compute.events[-1]
    for stream in lanes(tier, way).values():
        assert computed in device.waited(stream)


@each_kind
def test_load_waits_for_the_backup_of_its_host_rows(kind: str, device: LateModule) -> None:
    tier = tier_of(kind)
    backup, other = back_up(tier, 7, wait=False), back_up(tier, 5, wait=False)
    load(tier, backup, 3)
    for stream in lanes(tier, "load").values():
        assert {*backup.last_events()} <= {*device.waited(stream)}
        assert not {*other.last_events()} & {*device.waited(stream)}


def test_load_waits_for_the_backup_of_its_device_rows(device: LateModule) -> None:
    tier = tier_of("token")
    first, second = back_up(tier, 7), back_up(tier, 3, wait=False)
    load(tier, first, 3)
    assert {*second.last_events()} <= {*device.waited(lanes(tier, "load")["main"])}


def test_backup_waits_for_the_load_of_its_device_rows(device: LateModule) -> None:
    tier = tier_of("hybrid-dsa")
    backup = back_up(tier, 7)
    loads = [load(tier, backup, 3), tier.load(backup, pages(5), ids(9))]
    tier.backup(pages(3), ids(4))
    tier.backup(pages(6), ids(9))
    for stream in lanes(tier, "backup").values():
        waited = device.waited(stream)
        assert [event for event in waited if event in loads[0].last_events()]
        assert [event for event in waited if event in loads[1].last_events()]


def test_transfers_that_are_done_are_not_waited_for(device: LateModule) -> None:
    tier = tier_of("token")
    backup = back_up(tier, 7)
    load(tier, backup, 3).wait()
    device.log.clear()
    load(tier, backup, 7)
    assert not {*backup.last_events()} & {event for _, event in device.log}


@each_kind
def test_wait_layer_waits_for_that_layer_of_every_buffer(kind: str, device: LateModule) -> None:
    tier = tier_of(kind)
    started = load(tier, back_up(tier, 7), 3)
    for layer in range(3):
        device.log.clear()
        started.wait_layer(layer)
        expected = [events[layer] for events in started.events.values()]
        assert device.log == [(device.compute, event) for event in expected]


def test_parts_with_fewer_layers_are_not_waited_for(device: LateModule) -> None:
    tier = tier_of("hybrid")
    started = load(tier, back_up(tier, 7), 3)
    device.log.clear()
    started.wait_layer(3)
    assert device.log == [(device.compute, started.events["state"][3])]
    for layer in (-1, 4):
        with pytest.raises(IndexError, match=f"^layer {layer} of a load of 4 layers$"):
            started.wait_layer(layer)


def test_wait_layer_is_for_the_stream_that_is_current(device: LateModule) -> None:
    tier = tier_of("token")
    started = load(tier, back_up(tier, 7), 3)
    side = Stream(device, "side")
    with device.stream(side):
        started.wait_layer(1)
    assert device.waited(side) == [started.events["main"][1]]


@with_extras
def test_a_stage_waits_for_the_stream_that_used_it_last(kind: str, device: LateModule) -> None:
    tier = tier_of(kind)
    load(tier, back_up(tier, 7, 2), 3, 5)
    for way in ("backup", "load"):
        streams = lanes(tier, way)
        for stream in streams.values():
            others = {event.stream for event in device.waited(stream)}
            assert others & ({*streams.values()} - {stream})


def test_ids_and_stages_are_kept_for_the_streams_that_use_them(device: LateModule) -> None:
    tier = tier_of("dsa")
    load(tier, back_up(tier, 7), 3)
    for way, last in (("backup", ids(4 * 7)), ("load", ids(4 * 3))):
        for part, stream in lanes(tier, way).items():
            kept = [memory for memory, other in device.kept if other is stream]
            assert [memory.dtype for memory in kept] == [torch.uint8] * 3 + [torch.int64]
            assert int(kept[-1][0]) == int(last) // (4 if part == "index_keys" else 1)


# -- when a copy is complete ------------------------------------------------------------


@each_kind
def test_done_only_when_every_part_is(kind: str, device: LateModule) -> None:
    tier = tier_of(kind)
    started = load(tier, back_up(tier, 7), 3)
    for part in reversed(started.parts):
        assert not started.done
        assert not started.part_done(part)
        reach(started.events[part][:-1])
        assert not started.part_done(part)
        reach(started.events[part])
        assert started.part_done(part)
    assert started.done


@with_extras
def test_main_alone_does_not_make_a_load_done(kind: str, device: LateModule) -> None:
    tier = tier_of(kind)
    started = load(tier, back_up(tier, 7), 3)
    reach(started.events["main"])
    assert started.part_done("main")
    assert not started.done
    with pytest.raises(RuntimeError, match="in use by a load in flight"):
        tier.free(started.host)


@pytest.mark.parametrize("way", ["backup", "load"])
@each_kind
def test_wait_waits_for_the_last_layer_of_every_part(
    kind: str, way: str, device: LateModule
) -> None:
    tier = tier_of(kind)
    backup = back_up(tier, 7, wait=way == "load")
    transfer = backup if way == "backup" else load(tier, backup, 3)
    device.log.clear()
    transfer.wait()
    assert device.waited("host") == [events[-1] for events in transfer.events.values()]
    assert transfer.done


# -- eviction in flight -----------------------------------------------------------------


@pytest.mark.parametrize("way", ["backup", "load"])
@pytest.mark.parametrize("part", ["main", "index_keys", "state"])
def test_rows_in_flight_are_not_freed(part: str, way: str, device: LateModule) -> None:
    tier = tier_of("hybrid-dsa")
    back_up(tier, 2)
    backup = back_up(tier, 7, 3, wait=way == "load")
    transfer = backup if way == "backup" else load(tier, backup, 4, 5)
    for other in {*transfer.parts} - {part}:
        reach(transfer.events[other])
    available = tier.rows.tokens.available()
    message = f"^page 1 is in use by a {way} in flight; free it when the {way} is done$"
    for source in (backup, backup.host, backup.host_ids):
        with pytest.raises(RuntimeError, match=message):
            tier.free(source)
    with pytest.raises(RuntimeError, match=f"^state 1 is in use by a {way} in flight"):
        tier.free(HostIds(ids(), backup.host.states))
    assert tier.rows.tokens.available() == available
    reach(transfer.events[part])
    tier.free(backup)
    assert tier.rows.tokens.available() == available + 8


def test_one_page_of_several_in_flight_is_not_freed(device: LateModule) -> None:
    tier = tier_of("token")
    backup = back_up(tier, 7, 3, 1)
    started = tier.load(backup.host_ids[4:8], pages(5))
    with pytest.raises(RuntimeError, match="^page 1 is in use by a load in flight"):
        tier.free(backup.host_ids[4:])
    tier.free(backup.host_ids[8:])
    tier.free(backup.host_ids[:4])
    started.wait()
    tier.free(backup.host_ids[4:8])
    assert tier.rows.tokens.available() == tier.host_pool.size


def test_other_requests_can_be_freed_meanwhile(device: LateModule) -> None:
    tier = tier_of("hybrid")
    first, second = back_up(tier, 7), back_up(tier, 3)
    load(tier, first, 5)
    tier.free(second)
    assert tier.rows.tokens.available() == tier.host_pool.size - len(first.host_ids)


# -- points ------------------------------------------------------------------------------


def uses(tier: HostTier) -> None:
    """Everything that synchronises: requests one after the other, and a refused free."""
    first = back_up(tier, 7, 2, wait=False)
    started = load(tier, first, 3, 5)
    second = back_up(tier, 3, wait=False)
    for layer in range(started.layers):
        started.wait_layer(layer)
    _ = started.done
    try:
        tier.free(second)
    except RuntimeError:
        second.wait()
        tier.free(second)


def trace(device: LateModule, tier: HostTier) -> list[Any]:
    uses(tier)
    waited = [(getattr(who, "name", who), e.stream.name, e.place) for who, e in device.log]
    asked = sorted(transfer.done for transfer in tier._transfers)
    return [waited, len(device.kept), asked, tier.rows.tokens.available()]


@pytest.mark.parametrize("point", POINTS)
def test_a_point_can_be_left_out(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for skip in ((), (point,), ()):
        device = install(monkeypatch)
        traces.append(trace(device, make_tier("hybrid-dsa", waits=Waits(skip))))
    whole, without, again = traces
    assert whole == again
    if not point.startswith("done_counts"):
        assert without != whole


@pytest.mark.parametrize(
    ("point", "reached"), [("done_counts_extras", ("main",)), ("done_counts_main", ("state",))]
)
def test_done_can_forget_a_part(point: str, reached: tuple[str, ...], device: LateModule) -> None:
    tier = tier_of("hybrid", waits=Waits([point]))
    started = load(tier, back_up(tier, 7), 3)
    assert not started.done
    for part in reached:
        reach(started.events[part])
    assert started.done


def test_unknown_point_is_named() -> None:
    with pytest.raises(ValueError, match="^no such point: a, b; there are backup_waits_for"):
        Waits(["b", "load_waits_for_compute", "a"])


def test_every_point_has_a_reason() -> None:
    assert all(len(reason.split()) > 5 for reason in POINTS.values())


# -- streams ------------------------------------------------------------------------------


def test_cpu_has_no_streams() -> None:
    streams = Streams("cpu")
    assert streams.new() is streams.current() is record(None) is None
    make_wait(None, None)
    wait_on_host(None)
    keep(torch.zeros(3), None)
    assert is_reached(None)
    with streams.within(None):
        pass


@pytest.mark.parametrize("name", ["cuda", "xpu"])
def test_streams_come_from_the_module_of_the_device(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = LateModule()
    asked: list[str] = []
    find: Callable[[Any], Any] = lambda device: asked.append(device.type) or module  # noqa: E731
    monkeypatch.setattr(torch, "get_device_module", find)
    streams = Streams(name)
    stream = streams.new()
    with streams.within(stream):
        assert streams.current() is stream
    event: Event = record(stream)
    make_wait(module.compute, event)
    assert module.log == [(module.compute, event)]
    assert not is_reached(event)
    wait_on_host(event)
    assert is_reached(event)
    assert {*asked} == {name}
