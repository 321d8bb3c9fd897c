"""Device allocation for claims, compared with exhaustive search."""

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.live.kubernetes.device_allocation import Devices, allocate, share_of
from poolwise.live.kubernetes.devices import DeviceShare, DeviceUsage, Inventory
from poolwise.live.kubernetes.objects.claim import ClaimDevices, ClaimSpec, DeviceRequest, ExactRequest, ResourceClaim
from poolwise.live.kubernetes.objects.device import (
    Capacity,
    Cel,
    ClassSpec,
    CounterSet,
    CounterUse,
    DeviceClass,
    DeviceId,
    DevicePool,
    DeviceSelector,
    PublishedDevice,
    RequestPolicy,
    ResourceSlice,
    SliceSpec,
)
from poolwise.live.kubernetes.objects.meta import Meta, ResourceRequests
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.selectors import NodeSelector, Requirement, SelectorTerm

NODE = Node(metadata=Meta(name="n0"))


def inventory(*devices: PublishedDevice, counters: dict[str, str] | None = None) -> Inventory:
    built = Inventory()
    sets = [CounterSet(name="set", counters={k: Capacity(value=v) for k, v in (counters or {}).items()})]
    spec = SliceSpec(driver="d", pool=DevicePool(name="p"), all_nodes=True, devices=list(devices), shared_counters=sets)
    built.apply_slice(ResourceSlice(metadata=Meta(name="s"), spec=spec))
    return built


def kind(name: str, expression: str = "true") -> DeviceClass:
    return DeviceClass(metadata=Meta(name=name), spec=ClassSpec(selectors=[DeviceSelector(cel=Cel(expression=expression))]))


def claim(uid: str, *requests: DeviceRequest) -> ResourceClaim:
    return ResourceClaim(metadata=Meta(name=uid, uid=uid), spec=ClaimSpec(devices=ClaimDevices(requests=list(requests))))


def device_request(name: str, *classes: str, count: int = 1) -> DeviceRequest:
    if len(classes) == 1:
        return DeviceRequest(name=name, exactly=ExactRequest(device_class_name=classes[0], count=count))
    return DeviceRequest(name=name, first_available=[ExactRequest(name=c, device_class_name=c, count=count) for c in classes])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=5),
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2)), min_size=1, max_size=2), min_size=1, max_size=3),
    st.sets(st.integers(0, 4)),
)
def test_allocation_succeeds_if_and_only_if_an_assignment_exists(
    colors: list[int], requested: list[list[tuple[int, int]]], taken: set[int]
) -> None:
    """Device classes are bits of a device's color; other claims hold some devices."""
    devices = [
        PublishedDevice(name=f"g{k}", attributes={f"c{b}": {"bool": bool(c >> b & 1)} for b in range(3)})
        for k, c in enumerate(colors)
    ]
    available = inventory(*devices)
    usage = DeviceUsage()
    for k, id in enumerate(available.devices):
        if k in taken:
            usage.hold(f"other{k}", [DeviceShare(id)])
    before = {uid: parts for uid, parts in usage.claims.items()}
    classes = {f"k{b}": kind(f"k{b}", f'device.attributes["d"].c{b}') for b in range(3)}
    claims = [
        claim(f"c{i}", *(device_request(f"r{j}", f"k{b}", count=n) for j, (b, n) in enumerate(a)))
        for i, a in enumerate(requested)
    ]
    allocation = allocate(claims, NODE, Devices(available, usage, classes))
    slots = [b for a in requested for b, n in a for _ in range(n)]
    free = [c for k, c in enumerate(colors) if k not in taken]
    possible = any(
        all(c >> b & 1 for b, c in zip(slots, chosen, strict=True)) for chosen in itertools.permutations(free, len(slots))
    )
    assert (not isinstance(allocation, str)) == possible
    assert usage.claims == before and set(usage.whole) == {parts[0].id for parts in before.values()}
    if not isinstance(allocation, str):
        ids = [allocated.device.id for chosen in allocation for allocated in chosen]
        assert len(set(ids)) == len(ids) == len(slots)
        assert not set(ids) & set(usage.whole)


@given(
    st.lists(st.booleans(), min_size=1, max_size=6), st.sets(st.integers(0, 5)), st.permutations(range(6)), st.integers(0, 6)
)
def test_preferred_devices_are_tried_first(accepted: list[bool], taken: set[int], order: list[int], many: int) -> None:
    """The others follow by name; devices that are in use, rejected by the class, or missing are skipped."""
    available = inventory(
        *(PublishedDevice(name=f"g{k}", attributes={"good": {"bool": good}}) for k, good in enumerate(accepted))
    )
    usage, preferred = DeviceUsage(), [DeviceId("d", "p", f"g{k}") for k in order[:many]]
    for k in taken:
        usage.hold(f"other{k}", [DeviceShare(DeviceId("d", "p", f"g{k}"))])
    devices = Devices(available, usage, {"x": kind("x", 'device.attributes["d"].good')})
    allocation = allocate([claim("c", device_request("r", "x"))], NODE, devices, preferred)
    is_usable = [k for k in range(len(accepted)) if accepted[k] and k not in taken]
    expected = next((k for k in (*order[:many], *is_usable) if k in is_usable), None)
    assert (None if isinstance(allocation, str) else allocation[0][0].device.id.name) == (
        None if expected is None else f"g{expected}"
    )
    every = DeviceRequest(name="r", exactly=ExactRequest(device_class_name="x", allocation_mode="All"))
    all_of_them = allocate([claim("c", every)], NODE, devices, preferred)
    assert isinstance(all_of_them, str) == (not any(accepted) or len(is_usable) < sum(accepted))


_demands = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2)), min_size=1, max_size=2)


@given(
    st.lists(st.integers(4, 12), min_size=1, max_size=4),
    st.lists(st.one_of(_demands, st.integers(0, 5)), min_size=1, max_size=12),
)
def test_cached_failures_of_shared_devices_do_not_change_allocations(
    sizes: list[int], steps: list[list[tuple[int, int]] | int]
) -> None:
    """Claims with requests of (amount, devices) come and go; compared with usage without a cache."""
    available = inventory(
        *(
            PublishedDevice(name=f"g{k}", allow_multiple_allocations=True, capacity={"x": Capacity(value=str(size))})
            for k, size in enumerate(sizes)
        )
    )
    usage, classes = DeviceUsage(), {"k": kind("k")}
    for step, what in enumerate(steps):
        if isinstance(what, int):
            usage.release(f"c{what}")
            continue
        requests = [
            DeviceRequest(
                name=f"r{i}",
                exactly=ExactRequest(
                    device_class_name="k", count=count, capacity=ResourceRequests(requests={"x": str(amount)})
                ),
            )
            for i, (amount, count) in enumerate(what)
        ]
        fresh = DeviceUsage()
        for uid, parts in usage.claims.items():
            fresh.hold(uid, parts)
        requesting = claim(f"c{step}", *requests)
        allocation, expected = (allocate([requesting], NODE, Devices(available, used, classes)) for used in (usage, fresh))
        assert isinstance(allocation, str) == isinstance(expected, str)
        if not isinstance(allocation, str) and not isinstance(expected, str):
            assert [(c.request, c.share) for c in allocation[0]] == [(c.request, c.share) for c in expected[0]]
            usage.hold(requesting.metadata.uid, [c.share for c in allocation[0]])
        assert all(sum(used.values()) <= sizes[int(id.name[1:])] for id, used in usage.consumed.items())


def test_request_for_more_devices_than_exist_fails_immediately() -> None:
    available = inventory(*(PublishedDevice(name=f"g{k:02d}") for k in range(20)))
    refusal = allocate(
        [claim("c", device_request("r", "x", count=21))], NODE, Devices(available, DeviceUsage(), {"x": kind("x")})
    )
    assert refusal == "node n0 has too few free devices of x that match the claim"


def test_first_available_alternative_is_allocated() -> None:
    available, usage = inventory(PublishedDevice(name="a"), PublishedDevice(name="b")), DeviceUsage()
    classes = {"x": kind("x", "false"), "y": kind("y")}
    allocation = allocate([claim("c", device_request("r", "x", "y"))], NODE, Devices(available, usage, classes))
    assert not isinstance(allocation, str) and [
        (allocated.request, allocated.device.id.name) for allocated in allocation[0]
    ] == [("r/y", "a")]


def test_partitions_consume_shared_counters() -> None:
    def part(name: str, slices: str) -> PublishedDevice:
        use = CounterUse(counter_set="set", counters={"slices": Capacity(value=slices)})
        return PublishedDevice(name=name, consumes_counters=[use])

    available, usage = inventory(part("a", "1"), part("b", "1"), part("whole", "2"), counters={"slices": "2"}), DeviceUsage()
    devices = Devices(available, usage, {"x": kind("x")})
    assert not isinstance(allocate([claim("c", device_request("r", "x", count=2))], NODE, devices), str)
    assert isinstance(allocate([claim("c", device_request("r", "x", count=3))], NODE, devices), str)
    usage.hold("other", [DeviceShare(next(id for id in available.devices if id.name == "whole"))])
    assert isinstance(allocate([claim("c", device_request("r", "x"))], NODE, devices), str)


@pytest.mark.parametrize(
    ("requested", "policy", "expected"),
    [
        (None, RequestPolicy(default="2"), 2),
        (None, None, 10),
        ("3", None, 3),
        ("1", RequestPolicy(valid_range={"min": "2", "step": "3"}), 2),
        ("3", RequestPolicy(valid_range={"min": "2", "step": "3"}), 5),
        ("6", RequestPolicy(valid_range={"min": "2", "max": "5"}), None),
        ("3", RequestPolicy(valid_values=["1", "4", "8"]), 4),
        ("9", RequestPolicy(valid_values=["1", "4", "8"]), None),
        ("11", None, None),
    ],
)
def test_request_policy_rounds_amounts(requested: str | None, policy: RequestPolicy | None, expected: int | None) -> None:
    shared = PublishedDevice(
        name="a", allow_multiple_allocations=True, capacity={"x": Capacity(value="10", request_policy=policy)}
    )
    available = inventory(shared)
    wanted = ExactRequest(
        device_class_name="k", capacity=ResourceRequests(requests={} if requested is None else {"x": requested})
    )
    part = share_of(next(iter(available.devices.values())), wanted)
    assert (None if part is None else part.amounts) == (None if expected is None else (("x", Fraction(expected)),))


def test_pool_counts_once_all_its_slices_exist() -> None:
    pools = Inventory()

    def slice(name: str, generation: int, count: int) -> ResourceSlice:
        pool = DevicePool(name="p", generation=generation, resource_slice_count=count)
        spec = SliceSpec(driver="d", pool=pool, all_nodes=True, devices=[PublishedDevice(name=f"{name}{generation}")])
        return ResourceSlice(metadata=Meta(name=name), spec=spec)

    pools.apply_slice(slice("a", 1, 2))
    assert not pools.devices
    pools.apply_slice(slice("b", 1, 2))
    assert {id.name for id in pools.devices} == {"a1", "b1"}
    pools.apply_slice(slice("a", 2, 1))
    assert {id.name for id in pools.devices} == {"a2"}
    pools.apply_slice(slice("a", 2, 1), deleted=True)
    assert not list(pools.serving(NODE)) or {id.name for id in pools.devices} == set()


def test_pool_with_duplicate_device_names_is_ignored() -> None:
    """The API server validates each slice on its own."""
    pools = Inventory()

    def slice(name: str, device: str) -> ResourceSlice:
        pool = DevicePool(name="p", generation=1, resource_slice_count=2)
        spec = SliceSpec(driver="d", pool=pool, all_nodes=True, devices=[PublishedDevice(name=device)])
        return ResourceSlice(metadata=Meta(name=name), spec=spec)

    pools.apply_slice(slice("a", "g0"))
    pools.apply_slice(slice("b", "g0"))
    assert not pools.devices and not list(pools.serving(NODE))
    pools.apply_slice(slice("b", "g1"))
    assert [device.id.name for device in pools.serving(NODE)] == ["g0", "g1"]


_racks = st.sampled_from(["a", "b", "c"])
_slices = st.tuples(
    st.integers(0, 3),  # pool, which also names the slice
    st.one_of(st.none(), st.integers(0, 2), st.lists(_racks, min_size=1, max_size=2)),  # every node, one node, or racks
    st.integers(0, 3),  # devices
    st.booleans(),  # deleted
)


@given(st.lists(st.tuples(_slices, st.lists(_racks, min_size=3, max_size=3)), min_size=1, max_size=8))
def test_devices_that_serve_a_node_match_their_node_selection(
    steps: list[tuple[tuple[int, Any, int, bool], list[str]]],
) -> None:
    """Compared with checking every device, while slices come and go and nodes move to other racks."""
    published = Inventory()
    for (pool, where, many, gone), racks in steps:
        need = Requirement(key="rack", operator="In", values=where if isinstance(where, list) else [])
        spec = SliceSpec(
            driver="d",
            pool=DevicePool(name=f"p{pool}"),
            all_nodes=where is None,
            node_name=f"n{where}" if isinstance(where, int) else None,
            node_selector=NodeSelector(node_selector_terms=[SelectorTerm(match_expressions=[need])])
            if isinstance(where, list)
            else None,
            devices=[PublishedDevice(name=f"g{k}") for k in range(many)],
        )
        published.apply_slice(ResourceSlice(metadata=Meta(name=f"s{pool}"), spec=spec), deleted=gone)
        for k, rack in enumerate(racks):
            node = Node(metadata=Meta(name=f"n{k}", labels={"rack": rack}))
            serving = sorted(
                (d for d in published.devices.values() if d.serves(node)), key=lambda d: (d.node_name is None, d.id)
            )
            assert list(published.serving(node)) == serving


def test_unsupported_cel_function_is_rejected() -> None:
    available = inventory(PublishedDevice(name="a"))
    classes = {"x": kind("x", 'device.driver.reverse() == "d"')}
    with pytest.raises(InputError, match="reverse"):
        allocate([claim("c", device_request("r", "x"))], NODE, Devices(available, DeviceUsage(), classes))
