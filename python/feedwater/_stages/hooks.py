"""Where a Timeline learns of stages: hooks on loaders, torch modules, optimizers, backward and copies.

Everything is taken off again by close. A hook that is left somewhere after it, in a copy of a model say, does nothing.
Calls of other threads, and calls that torch.compile is tracing, are passed through unseen.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .. import _pass
from .._device.transfer import Transfer
from .._meter import gpu_events
from .timeline import BACKWARD, COPY, DATA, FORWARD, OPTIMIZER, OTHER, Host, Loop, Timeline

__all__ = ["Hooks"]

SEARCHED_STEPS = 4
"""Calls of next after which modules that were found are enough, and the costlier search for them ends."""


class Hook:
    """A hook that can be copied and pickled with the module it is on: a pickled one does nothing."""

    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> None:
        if not sys.modules["torch"].compiler.is_compiling():
            self._call(*args)

    def __deepcopy__(self, memo: Any) -> Hook:
        return self

    def __reduce__(self) -> Any:
        return _idle_hook, ()


def _do_nothing(*_: Any) -> None:
    pass


def _idle_hook() -> Hook:
    return Hook(_do_nothing)


class Hooks:
    """Hooks of one timeline. models and optimizers: those to watch; without, all that are seen."""

    def __init__(self, timeline: Timeline, models: Iterable[Any], optimizers: Iterable[Any]) -> None:
        self.timeline = timeline
        self.on = True
        self.problems: list[str] = []
        self.models: list[Any] = []
        self.searching = False
        self._undo: list[Callable[[], None]] = []
        self._search: list[Callable[[], None]] = []
        self._calls = 0
        try:
            self._hook_loaders()
            if "torch" in sys.modules:
                self._hook_torch(sys.modules["torch"], list(models), list(optimizers))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Takes all hooks off."""
        self.on = False
        for undo in reversed([*self._undo, *self._search]):
            undo()
        self._undo, self._search = [], []

    def _is_seen(self) -> bool:
        return self.on and self.timeline.in_own_thread()

    # -- loaders ------------------------------------------------------------------------------------------------------

    def _hook_loaders(self) -> None:
        self._replace_attribute(_pass.Pass, "__next__", functools.partial(self._hook_next, self._pass_place))
        self._replace_attribute(Transfer, "receive_tensors", self._hook_landing)
        module = sys.modules.get("torch.utils.data.dataloader")
        if module is not None:
            self._replace_attribute(module.DataLoader, "__iter__", self._hook_iter)
            place = functools.partial(self._hook_next, self._iterator_place)
            self._replace_attribute(module._BaseDataLoaderIter, "__next__", place)

    def _hook_landing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Of a batch that a Loader copies: what the loop's stream waits for it is the copy's, though inside next."""

        def receive(transfer: Transfer, *args: Any) -> Any:
            if not self._is_seen():
                return original(transfer, *args)
            return self._time_call(COPY, object(), original, transfer, *args)

        return receive

    def _hook_iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def begin(loader: Any) -> Any:
            iterator = original(loader)
            if self.on:
                self.timeline.loop_of[iterator] = self._loop_of(loader)
            return iterator

        return begin

    def _hook_next(self, place: Callable[[Any], tuple[Loop, bool]], original: Callable[..., Any]) -> Callable[..., Any]:
        def advance(iterator: Any) -> Any:
            if not self._is_seen() or self.timeline.stage == DATA:  # a loader inside a loader
                return original(iterator)
            searching = self.searching
            self._look_around()
            loop, first = place(iterator)
            self.timeline.begin_next(loop, first=first, warm=not searching)
            got = False
            try:
                batch = original(iterator)
                got = True
                return batch
            finally:
                self.timeline.end_next(loop, got)

        return advance

    def _loop_of(self, loader: Any) -> Loop:
        """Of a loader, or of an iterator whose loader is not known."""
        loop = self.timeline.loop_of.get(loader)
        if loop is None:
            loop = self.timeline.loop_of[loader] = Loop()
        return loop

    def _pass_place(self, iterator: Any) -> tuple[Loop, bool]:
        """Our loader's loop, and whether a pass begins."""
        loader = iterator._loader
        return self._loop_of(loader), loader._progress.must_begin(iterator._number)

    def _iterator_place(self, iterator: Any) -> tuple[Loop, bool]:
        return self._loop_of(iterator), iterator._num_yielded == 0

    def _look_around(self) -> None:
        """At each next: a GPU that came into use since, and the end of the search for models."""
        if isinstance(self.timeline.clock, Host):
            gpu = gpu_events.find_gpu()
            if gpu is not None:
                self.timeline.restart(gpu)
        self._calls += 1
        if self.searching and self._calls > SEARCHED_STEPS and self.models:
            self._end_search()

    # -- torch --------------------------------------------------------------------------------------------------------

    def _hook_torch(self, torch: Any, models: list[Any], optimizers: list[Any]) -> None:
        self._replace_attribute(torch.autograd, "backward", self._hook_backward)
        for name in ("to", "cuda"):
            self._replace_attribute(torch.Tensor, name, self._hook_copy)
        for model in models:
            self._hook_model(model)
        if not models:
            self._begin_search(torch.nn.modules.module)
        self._hook_optimizers(sys.modules["torch.optim.optimizer"], optimizers)

    def _time_call(self, stage: int, owner: object, original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """What original returns; its time is the stage's."""
        self.timeline.enter_stage(stage, owner)
        try:
            return original(*args, **kwargs)
        finally:
            self.timeline.leave_stage(owner)

    def _hook_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if not self._is_seen():
                return original(*args, **kwargs)
            return self._time_call(BACKWARD, object(), original, *args, **kwargs)

        return backward

    def _hook_copy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Of a tensor from the host to a device; where it goes is known when the arguments are read, or it is there."""

        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if not tensor.is_cpu or not self._is_seen() or not _goes_elsewhere(original.__name__, args, kwargs):
                return original(tensor, *args, **kwargs)
            return self._time_call(COPY, object(), original, tensor, *args, **kwargs)

        return copy

    def _hook_model(self, model: Any) -> None:
        """Its forward, seen from outside. A model that compiled itself is called past its hooks: that is hooked."""
        self.models.append(model)
        if getattr(model, "_compiled_call_impl", None) is not None:
            self._replace_attribute(model, "_compiled_call_impl", functools.partial(self._hook_forward, model))
            return
        try:
            before = model.register_forward_pre_hook(Hook(self._enter_model))
            self._undo.append(before.remove)
            self._undo.append(model.register_forward_hook(Hook(self._leave_stage), always_call=True).remove)
        except Exception as error:  # scripted and other special modules
            self.problems.append(f"the forward of {type(model).__name__} cannot be seen ({error}): it is in other")

    def _hook_forward(self, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._is_seen():
                return original(*args, **kwargs)
            return self._time_call(FORWARD, model, original, *args, **kwargs)

        return call

    def _enter_model(self, model: Any, *_: Any) -> None:
        if self._is_seen():
            self.timeline.enter_stage(FORWARD, model)

    def _enter_optimizer(self, optimizer: Any, *_: Any) -> None:
        if self._is_seen():
            self.timeline.enter_stage(OPTIMIZER, optimizer)

    def _leave_stage(self, owner: Any, *_: Any) -> None:
        if self._is_seen():
            self.timeline.leave_stage(owner)

    def _hook_optimizers(self, module: Any, optimizers: list[Any]) -> None:
        enter, leave = Hook(self._enter_optimizer), Hook(self._leave_stage)
        if not optimizers:
            self._undo.append(module.register_optimizer_step_pre_hook(enter).remove)
            self._undo.append(module.register_optimizer_step_post_hook(leave).remove)
        for optimizer in optimizers:
            self._undo.append(optimizer.register_step_pre_hook(enter).remove)
            self._undo.append(optimizer.register_step_post_hook(leave).remove)

    # -- models that are not given ------------------------------------------------------------------------------------

    def _begin_search(self, module: Any) -> None:
        """Hooks on all modules, for a few steps: each call costs them, the outermost modules alone are of interest."""
        self.searching = True
        self._search = [
            module.register_module_forward_pre_hook(Hook(self._find_model)).remove,
            module.register_module_forward_hook(Hook(self._leave_stage), always_call=True).remove,
        ]

    def _find_model(self, model: Any, *_: Any) -> None:
        if not self._is_seen() or self.timeline.stage not in (OTHER, OPTIMIZER, COPY):
            return
        if next(model.parameters(), None) is None:  # a loss, a transform: no model
            return
        if not any(model is known for known in self.models):
            self.models.append(model)
        self.timeline.enter_stage(FORWARD, model)

    def _end_search(self) -> None:
        self.searching = False
        for undo in self._search:
            undo()
        found, self.models, self._search = self.models, [], []
        for model in found:
            self._hook_model(model)

    # -- putting things in the place of others ------------------------------------------------------------------------

    def _replace_attribute(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """owner.name becomes make(owner.name). close puts it back, if nobody has replaced it again."""
        absent = object()
        before = vars(owner).get(name, absent)
        original = getattr(owner, name)
        ours = make(original)
        functools.update_wrapper(ours, original)
        setattr(owner, name, ours)

        def undo() -> None:
            if vars(owner).get(name) is not ours:
                return
            if before is absent:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(undo)


def _goes_elsewhere(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Tensor.to or Tensor.cuda with these arguments takes a tensor of the host to another device."""
    if name == "cuda":
        return True
    target = kwargs.get("device", kwargs.get("other", args[0] if args else None))
    if isinstance(target, int):
        return True
    if isinstance(target, str):
        return not target.startswith("cpu")
    kind = getattr(getattr(target, "device", target), "type", "cpu")  # a tensor, a device, or a dtype
    return isinstance(kind, str) and kind != "cpu"
