"""When is a slot free? Exactly when nothing made from the batch is left, whatever it was."""

from __future__ import annotations

import ctypes
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from feedwater._agent.slots import Field, Slots, align_stride

torch = pytest.importorskip("torch")

FIELD = Field("image", "uint8", (10, 20, 3), 64)


@pytest.fixture
def slots() -> Any:
    made = Slots(3, 8192)
    yield made
    made.close()


NUMPY: dict[str, Callable[[Any], Any]] = {
    "itself": lambda a: a,
    "slice": lambda a: a[1:],
    "slice of a slice": lambda a: a[1:][:, 2:],
    "reshape": lambda a: a.reshape(-1),
    "transposed": lambda a: a.transpose(0, 3, 1, 2),
    "other type": lambda a: a.reshape(-1).view(np.uint16),
    "memoryview": memoryview,
    "array of a memoryview": lambda a: np.asarray(memoryview(a)),
    "frombuffer": lambda a: np.frombuffer(a, np.uint8)[9:],
    "broadcast of a subclass": lambda a: np.broadcast_to(a.view(type("Mine", (np.ndarray,), {})), (2, *a.shape)),
    "ctypes": lambda a: ctypes.c_uint8.from_buffer(a),
    "dlpack": np.from_dlpack,
    "rows": list,
    "one row": lambda a: a[0],
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "strided": lambda a: np.lib.stride_tricks.as_strided(a, (3,), (1,)),
    "squeezed": lambda a: a[None].squeeze().ravel(),
    "subclass": lambda a: a.view(type("Mine", (np.ndarray,), {})),
    "tensor": torch.from_numpy,
    "closure": lambda a: lambda: a[1:],
}
TORCH: dict[str, Callable[[Any], Any]] = {
    "itself": lambda t: t,
    "slice": lambda t: t[1:],
    "view": lambda t: t.reshape(-1),
    "permute": lambda t: t.permute(0, 3, 1, 2),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "numpy": lambda t: t.numpy(),
    "slice of numpy": lambda t: t.numpy()[1:],
    "asarray": lambda t: np.asarray(t)[1:],
    "storage": lambda t: t.untyped_storage(),
    "dlpack": torch.from_dlpack,
    "numpy's dlpack": np.from_dlpack,
    "unbind": lambda t: t.unbind(),
    "chunk": lambda t: t.chunk(2)[1],
    "expand": lambda t: t.expand(2, *t.shape),
    "memoryview": lambda t: memoryview(t.numpy()),
    "set_": lambda t: torch.empty(0, dtype=torch.uint8).set_(t),
    "other type": lambda t: t.reshape(-1).view(torch.int16),
    "parameter": lambda t: torch.nn.Parameter(t, requires_grad=False),
    "as_tensor": lambda t: torch.as_tensor(t)[1:],
    "frombuffer": lambda t: torch.frombuffer(t.numpy(), dtype=torch.uint8),
    "strided": lambda t: torch.as_strided(t, (3,), (1,)),
    "a graph that holds it": lambda t: torch.ones(600, requires_grad=True) * t.reshape(2, -1)[0].view(torch.uint8),
}


def uses() -> list[Any]:
    numpy = [pytest.param(False, use, id=f"numpy: {name}") for name, use in NUMPY.items()]
    return numpy + [pytest.param(True, use, id=f"torch: {name}") for name, use in TORCH.items()]


@pytest.mark.parametrize(("tensor", "use"), uses())
def test_a_slot_is_held_as_long_as_anything_made_of_it_lives(
    slots: Slots, tensor: bool, use: Callable[[Any], Any]
) -> None:
    batch: Any = slots.lease_array(0, FIELD, 2)
    if tensor:
        batch = torch.from_numpy(batch)
    kept = use(batch)
    del batch
    gc.collect()
    assert slots.find_free_slot(set()) == 1, "taken back too early"
    del kept
    gc.collect()
    assert slots.find_free_slot(set()) == 0, "never given back"


def test_a_cycle_holds_its_slot_until_the_collector_comes(slots: Slots) -> None:
    class Cycle: ...

    gc.disable()
    try:
        cycle: Any = Cycle()
        cycle.me, cycle.batch = cycle, torch.from_numpy(slots.lease_array(0, FIELD, 2))
        del cycle
        assert slots.count_unleased() == 2
    finally:
        gc.enable()
    gc.collect()
    assert slots.count_unleased() == 3


def test_copies_hold_nothing(slots: Slots) -> None:
    tensor = torch.from_numpy(slots.lease_array(0, FIELD, 2))
    file = io.BytesIO()
    torch.save(tensor, file)
    copies = [tensor.clone(), tensor.float(), pickle.loads(pickle.dumps(tensor)), tensor.numpy().copy()]
    with pytest.raises(RuntimeError):
        tensor.resize_(1 << 20)  # what is not ours cannot grow
    copies.append(tensor.share_memory_())
    del tensor
    gc.collect()
    assert slots.find_free_slot(set()) == 0
    assert len(copies) == 5


def test_a_batch_may_be_written_and_outlives_slots_and_file(slots: Slots) -> None:
    tensor = torch.from_numpy(slots.lease_array(1, FIELD, 2))
    tensor.add_(7)
    slots.close()
    gone = weakref.ref(slots.memory)
    slots.memory, slots._bytes, slots.columns = None, None, {}  # type: ignore[assignment]
    gc.collect()
    assert gone() is not None, "unmapped under a live tensor"
    assert int(tensor.sum()) == 7 * 2 * 600
    del tensor
    gc.collect()
    assert gone() is None, "mapped for ever"


def test_the_lowest_free_slot_is_taken_so_that_others_are_never_touched(slots: Slots) -> None:
    first = slots.lease_array(0, FIELD, 1)
    assert slots.find_free_slot({1}) == 2
    assert slots.find_free_slot({1, 2}) is None
    del first
    assert slots.find_free_slot({1, 2}) == 0


def test_fields_lie_where_the_agent_said(slots: Slots) -> None:
    slots.place_fields([FIELD, Field("label", "int64", (), 0)], 4)
    slots.lease_array(2, FIELD, 2)[:] = 5
    start = 2 * slots.stride + 64
    assert slots._bytes[start - 1] == 0
    assert slots._bytes[start : start + 1200].tolist() == [5] * 1200
    assert slots._bytes[start + 1200] == 0
    slots.columns["label"][1, :3] = [1, 2, -3]
    assert slots._bytes[slots.stride : slots.stride + 24].view("int64").tolist() == [1, 2, -3]
    assert slots.columns["label"].tolist() == [[0] * 4, [1, 2, -3, 0], [0] * 4]
    assert slots.lease_array(2, FIELD, 2).shape == (2, 10, 20, 3)


def test_strides_are_whole_pages() -> None:
    assert [align_stride(size) for size in (1, 4096, 4097, 3 << 20)] == [4096, 4096, 8192, 4 << 20]
