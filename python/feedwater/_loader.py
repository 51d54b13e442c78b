"""Loader: what the training loop touches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, SupportsIndex, TypeVar, overload

from ._agent.binary import check_system
from ._agent.index_use import IndexUse
from ._agent.replay import Last, Sample, Totals
from ._arguments.unknown import refuse_unknown
from ._attributes import DataLoaderAttributes
from ._batch.copies import copy_of
from ._common.numbers import to_whole
from ._common.torch_modes import leave_inference_mode
from ._config import Config
from ._dataset.change_guard import ChangeGuard
from ._engine.engine import Engine
from ._explain import explain_plan
from ._meter.pace import Stats
from ._order.cursor import Cursor
from ._order.steps import Tail
from ._pass import Pass
from ._preview import Preview, draw_preview
from ._progress import Progress
from ._replays import Replays
from ._state import State
from .errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from typing_extensions import Unpack

    from ._dataset.mask_files import Masks
    from ._typing import Options
    from .doctor.verdict import Verdict
    from .transforms import Views

__all__ = ["Loader"]

B = TypeVar("B")


class Loader(DataLoaderAttributes, Generic[B]):
    """Batches of decoded and augmented pictures, in a fixed order, from this machine or from nodes.

        train = feedwater.Loader("photos", transform, batch_size=256, shuffle=True)
        for images, labels in train: ...

    Iterate it like a PyTorch DataLoader, once per epoch; the epoch number advances by itself. Every sample comes once
    per epoch, and its pixels depend on seed, epoch and sample alone: not on nodes, ranks, restarts or timing. Nothing
    is started before the first batch is asked for. One thread at a time may use it.

    source           a folder of class folders; with nodes, "root/path": a root's name and a path below it (or, if it
                     begins with / . or ~, a folder here that they have too); or a torchvision ImageFolder or
                     another of its data sets that list files, a datasets.Dataset, a feedwater.Table of paths and
                     labels, a feedwater.Coco, or a Subset of one, as it is when the Loader is made; or
                     feedwater.Bytes, which the program reads by itself
    transform        torchvision.transforms objects or feedwater.transforms; None: the ImageFolder's, else none.
                     feedwater.Views([t1, t2, …]) makes several pictures of each: image is a list, a batch for each view
    batch_size       samples per batch and rank
    shuffle          another order each epoch, by seed. "blocks:64" permutes runs of 64 neighbours of the list, which
                     stay in their own order: longer reads of tar files in a bucket, for data that was shuffled when
                     it was written
    sampler          indices in the order to use, as PyTorch has it: the order of all ranks, split among them, unless
                     it splits by itself (DistributedSampler), by the Loader's rank and num_replicas. Of a Subset they
                     are places in it. It is told each epoch by its set_epoch, the next one when a pass ends: one that
                     others use too would move on under them
    batch_sampler    lists of indices, in place of batch_size: each the batch of one step over all ranks, or of this
                     rank if it, or the sampler inside, splits by itself
    tail             the last step when samples are left over: "short", a smaller one, equal on all ranks, for which up
                     to ranks - 1 samples come again, drawn anew (another crop than the first time); "valid", a full
                     one, whose field `valid` says which rows count; "drop", none (also drop_last=True). With a
                     batch_sampler's lists over all ranks, "short" and "valid" go for every list that does not divide
                     among them
    steps_per_epoch  ends an epoch after so many steps, whatever the number of samples
    rank, num_replicas, mesh
                     this process's place; by default torch.distributed's, else RANK and WORLD_SIZE
    masks            a folder of masks, for segmentation: for each picture the PNG of the same name, with a palette or
                     grey, whose numbers are moved as the picture is, by the nearest one, as torchvision moves a
                     tv_tensors.Mask. Batches are (image, mask) then, mask uint8, [B, H, W], with Views a list of such.
                     The pictures may lie in source itself, or in folders below it that masks has too.
                     feedwater.Masks for files of other names, masks of colours, and other numbers
    targets          for detection: a sequence with a dict for each sample, in the data's order. Of it boxes move as the
                     picture does, by torchvision's own functions: "boxes", n × 4, XYXY, and whatever is a
                     tv_tensors.BoundingBoxes, KeyPoints or Mask; SanitizeBoundingBoxes and its like are done too.
                     Batches are (image, target) then, target a list of dicts. feedwater.Coco, and torchvision's
                     CocoDetection in wrap_dataset_for_transforms_v2, have targets by themselves
    fields           what a batch holds: a tuple of names gives tuples, a dict {name: your name} gives dicts. The names
                     are image, mask, target, label, index, key, valid; by default image and label, with masks image
                     and mask. Of tar files and lists further names are members and columns, as txt: lists of bytes
    layout           how a path is laid out, where its name does not tell: "folder", "mds", "tar", "parquet", "csv",
                     "tsv" or "jsonl"
    image            the column of pictures of Parquet files; by default the one that they tell
    label            where labels are: of tar files a member's ending, by default cls, or "json:key"; of others a column
    relabel          {label or name of a class: new label}: others in place of the data's, for each class. The
                     target_transform of an ImageFolder is that if it is the __getitem__ of a dict or list
    python           fn(sample, rng) -> dict, called on each sample behind the transform, in processes of its own: for
                     what transforms cannot say. sample is a dict of image (an array [H, W, C], or what the transform
                     makes of it: with ToImage a tensor [C, H, W]; with Views a list of them), label, index, and with
                     masks= mask ([H, W], or a list). What it returns replaces these or adds fields, which fields= may
                     ask for: arrays, tensors and numbers, of the first one's shape and type, stacked as they are.
                     index, key and valid are the Loader's, and must not change. rng and the global generators are
                     seeded for each sample. It must be a function of a module (or an object that can be pickled), not
                     a lambda or closure. A transform of albumentations may be passed as it is: it gets the picture, an
                     array, and its mask; of Views each by itself
    python_workers   processes for it; by default as many as there are cores
    batch_transform  fn(batch, rng) -> batch, called on each batch in the training loop's thread; or MixUp, CutMix or
                     another transform of torchvision.transforms.v2, which gets the pictures (all views), masks and
                     labels, of the rows that hold a sample, wherever they are among the fields. rng is a numpy
                     Generator of its own for each batch; the global generators of random, numpy and torch (CPU)
                     are seeded for the call and put back. So batches come out the same again
    device           where batches come to: "cuda", the GPU that is current at the first batch, "cuda:1", a
                     torch.device; by default the CPU's memory. They are copied ahead of the loop, as bytes, and made
                     floats there: docs/device.md
    pin_memory       True: batches in pinned memory of the CPU, which the program copies to a GPU by itself, with
                     non_blocking=True. device="cuda" is simpler, and needs none
    dtype            of images, in place of what the transform gives
    memory_format    torch.channels_last or torch.contiguous_format; by default channels_last for uint8
    memory           bytes for batches that are ready or being made
    apply_exif       turn pictures as their EXIF data says; ImageFolder does not
    on_error         for pictures that do not decode: "raise"; "skip", leave out the row; "substitute", another sample.
                     A step that "skip" leaves nothing of is left out on a single rank, and a DataError on several,
                     which must all make the same steps; an epoch of which nothing is left is a DataError too
    max_errors       how many of them are put up with: a share of what an epoch reads, below 1.0, or a count, as an
                     int; math.inf: all of them; per rank
    timeout          seconds without a batch before StallError; start_timeout before the first one. 0: wait for ever
    nodes            "host:port, …" that make the batches; "dns:name:port", "file:path", "k8s:namespace/service:port"
                     for all that these stand for, now and later (docs/nodes.md); without, this machine does
    local_workers    cores to use on this machine; with nodes, which need a folder here then, as one more node
    job              a name for logs, metrics and `feedwater top`; by default the launcher's id, else the script's
                     with what tells this run from others of it
    tls              connections to nodes are encrypted: True, by the system's CAs; the file of a CA; or a dict of "ca",
                     "cert" and "key" (files: the client certificate, for nodes that ask for one) and "server_name".
                     In place of them FEEDWATER_TLS=1, FEEDWATER_TLS_CA, _CERT, _KEY and _SERVER_NAME
    token_file       a file with the token that nodes ask for; or FEEDWATER_TOKEN_FILE
    insecure         True: nodes on other machines may be reached unencrypted; or FEEDWATER_INSECURE=1

    Not there yet, and refused: weights, fallback.

    Batches are torch tensors if torch was imported before, [B, C, H, W]; otherwise numpy arrays, [B, H, W, C] like
    pictures unless the transform makes tensors. Where pictures come out in different sizes, image is a list.
    """

    if TYPE_CHECKING:
        # Of a transform whose type nobody knows, as torchvision's without types, the batch's is Any.
        @overload
        def __init__(
            self: Loader[tuple[Any, list[dict[str, Any]]]],
            source: Any,
            transform: Any = None,
            *,
            masks: str | os.PathLike[str] | Masks | None = None,
            targets: Sequence[Mapping[str, Any]],
            fields: None = None,
            **options: Unpack[Options],
        ) -> None: ...
        @overload
        def __init__(
            self: Loader[tuple[list[torch.Tensor], list[torch.Tensor]]],
            source: Any,
            transform: Views,
            *,
            masks: str | os.PathLike[str] | Masks,
            targets: None = None,
            fields: None = None,
            **options: Unpack[Options],
        ) -> None: ...
        @overload
        def __init__(
            self: Loader[tuple[list[torch.Tensor], torch.Tensor]],
            source: Any,
            transform: Views,
            *,
            masks: None = None,
            targets: None = None,
            fields: None = None,
            **options: Unpack[Options],
        ) -> None: ...
        @overload
        def __init__(
            self: Loader[tuple[torch.Tensor, torch.Tensor]],
            source: Any,
            transform: Any = None,
            *,
            masks: str | os.PathLike[str] | Masks | None = None,
            targets: None = None,
            fields: None = None,
            **options: Unpack[Options],
        ) -> None: ...
        @overload
        def __init__(
            self: Loader[dict[str, Any]],
            source: Any,
            transform: Any = None,
            *,
            masks: str | os.PathLike[str] | Masks | None = None,
            targets: Sequence[Mapping[str, Any]] | None = None,
            fields: Mapping[str, str],
            **options: Unpack[Options],
        ) -> None: ...
        @overload
        def __init__(
            self: Loader[tuple[Any, ...]],
            source: Any,
            transform: Any = None,
            *,
            masks: str | os.PathLike[str] | Masks | None = None,
            targets: Sequence[Mapping[str, Any]] | None = None,
            fields: Sequence[str],
            **options: Unpack[Options],
        ) -> None: ...
        @overload
        def __init__(
            self: Loader[B],
            source: Any,
            transform: Any = None,
            *,
            masks: str | os.PathLike[str] | Masks | None = None,
            targets: Sequence[Mapping[str, Any]] | None = None,
            batch_transform: Callable[[Any, np.random.Generator], B],
            fields: Sequence[str] | Mapping[str, str] | None = ...,
            **options: Unpack[Options],
        ) -> None: ...

    def __init__(
        self,
        source: Any = None,
        transform: Any = None,
        *misplaced: Any,
        batch_size: int | None = None,
        shuffle: bool | str = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        weights: Any = None,
        tail: Tail = "short",
        drop_last: bool = False,
        seed: int = 0,
        steps_per_epoch: int | None = None,
        rank: int | None = None,
        num_replicas: int | None = None,
        mesh: Any = None,
        fields: Sequence[str] | Mapping[str, str] | None = None,
        layout: str | None = None,
        image: str | None = None,
        label: str | None = None,
        relabel: Mapping[Any, int] | None = None,
        targets: Sequence[Mapping[str, Any]] | None = None,
        masks: str | os.PathLike[str] | Masks | None = None,
        python: Callable[[dict[str, Any], np.random.Generator], Mapping[str, Any]] | None = None,
        python_workers: int | Literal["auto"] = "auto",
        batch_transform: Callable[..., Any] | None = None,
        device: Any = None,
        pin_memory: bool = False,
        dtype: Any = None,
        memory_format: Any = None,
        memory: int | Literal["auto"] = "auto",
        apply_exif: bool = False,
        on_error: Literal["raise", "skip", "substitute"] = "raise",
        max_errors: float = 0.001,
        timeout: float = 120,
        start_timeout: float = 900,
        fallback: Literal["local"] | None = None,
        nodes: str | Sequence[str] | None = None,
        local_workers: int | Literal["auto"] = "auto",
        job: str | None = None,
        tls: bool | str | os.PathLike[str] | Mapping[str, Any] | None = None,
        token_file: str | os.PathLike[str] | None = None,
        insecure: bool | None = None,
        **unknown: Any,
    ) -> None:
        check_system()
        others = ("self", "source", "transform", "misplaced", "unknown", "__class__")
        given = {k: v for k, v in locals().items() if k not in others}
        refuse_unknown(source, misplaced, given, unknown)
        self._config = Config.from_arguments(source, transform, given)
        self._dataset = None if isinstance(source, (str, os.PathLike)) else source
        """Not pickled: a copy of the Loader has only its length."""
        self._begin_anew(ChangeGuard(source, transform, self._config.pictures, self._config.masks is not None))

    def _begin_anew(self, made_of: ChangeGuard | None) -> None:
        self._cursor = Cursor()
        self._engine = Engine(self._config, self._cursor)
        self._progress = Progress(self._engine, self._cursor, made_of)
        self._replays = Replays(self._config, self._engine, self._cursor)

    # -- iteration ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[B]:
        """A pass over an epoch. Nothing happens before its first next.

        It is the next epoch if the last pass returned a batch, and epoch e from its beginning after set_epoch(e), ours
        or that of the sampler that was passed (which is heard if it has an attribute `epoch`, as DistributedSampler
        has). It goes on at the cursor after load_state_dict, and after an error that was ours.
        """
        return Pass(self)

    def __len__(self) -> int:
        """Steps of a whole epoch, the same on every rank. May start the agent, to count the samples."""
        return self._engine.shape.count_steps()

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """The next pass is that epoch. Needed only to go elsewhere than on; a state just loaded keeps its cursor.

        A running pass is not ended by it: it may go on, and the next iter() has that epoch, however the pass ends.
        While it goes on, peek() and state_dict() are about it, and a state does not tell of the epoch to come.
        """
        self._progress.set_epoch(epoch)

    def skip(self, steps: SupportsIndex) -> None:
        """The next pass begins at that step of its epoch: the first ones are left out, and nothing is made for them.

        It is about one pass, and about whichever epoch that has: skip(n) and set_epoch(e), in either order, make it
        step n of epoch e. With as many steps as an epoch has the pass has none. What a script counts in steps goes on
        by it; state_dict() and load_state_dict() need none of it.
        """
        count = to_whole(steps)
        if count is None or count < 0:
            raise ValueError(f"skip({steps!r}): needs a whole number of steps")
        self._cursor.skip_steps(count)

    def peek(self) -> B | None:
        """A copy of the batch that next will return, without consuming it; None at the end of an epoch."""
        ready = self._progress.peek_batch()
        with leave_inference_mode():
            return None if ready is None else copy_of(ready.batch)

    # -- state --------------------------------------------------------------------------------------------------------

    def state_dict(self, lag: int = 0) -> dict[str, Any]:
        """Everything needed to go on from here, on any number of ranks: JSON below 1 KB, the same on every rank.

        It has some KB more with CTAugment, or with a sampler that has a generator, of which it tells where that stood
        before the epoch. Of a sampler that splits by itself it has a digest, and any state, of this rank's part.
        Batches made ahead do not count. lag=n treats the last n returned batches as not consumed. After the last batch
        of an epoch, in the loop too, it is the beginning of the next one. What feedback() teaches is in the states that
        are taken after it: between a batch and its feedback take lag=1.
        """
        epoch, consumed = self._cursor.place_before(lag)
        if lag == 0 and self._cursor.pending and self._cursor.skipped is not None:
            self._engine.start_pass()  # a state of a place amid an epoch has what its sampler gave before
            consumed = self._engine.shape.find_start(epoch, self._cursor.skipped)
        if lag == 0 and self._engine.at_end():
            epoch, consumed = self._cursor.following
        return self._engine.describe_state(epoch, consumed)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Goes on where state was taken; {} is the beginning. The next batch is the first one after it.

        A sampler draws its epoch again, its generator put where it stood. Raises StateMismatchError if the state is of
        other data or another order; with strict, also if it is of other pixels or numerics. For that it opens the data.
        With the first batch it raises the same if a sampler now gives other samples than were consumed.
        """
        self._load_state(state, strict, opens=True)

    def _load_state(self, state: Mapping[str, Any], strict: bool, *, opens: bool) -> None:
        loaded = State.from_dict(state)
        self._engine.load_state(loaded, strict, opens)
        self._cursor.load_place(loaded.epoch, loaded.consumed)
        self._engine.shape.sampler_epoch.note_epoch()
        self._progress.drop_peeked()

    def __getstate__(self) -> dict[str, Any]:
        return {"config": self._config, "state": self.state_dict(), "told": self._engine.shape.sampler_epoch.known}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self._config, self._dataset = pickled["config"], None
        self._begin_anew(None)
        state = pickled["state"]
        if state["epoch"] or state["consumed"] or state.get("sampler"):
            self._load_state(state, True, opens=False)  # ranks may not know of each other yet
        self._engine.shape.sampler_epoch.known = pickled["told"]

    def record_stream(self, stream: Any) -> None:
        """Says that the program copies batches on that stream of torch.cuda too. For pin_memory=True; once is enough.

        It is needed where copies run on a stream that is no GPU's default one and was current in no call of next, and
        these do not wait for it before the batch after the next is asked for: a batch's memory is used again when what
        they have to do by then is done.
        """
        if self._engine.pinning is None:
            raise Error(
                "record_stream() is for pin_memory=True; what device= brings is torch's own memory: call record_stream "
                "of its tensors"
            )
        self._engine.pinning.declare_stream(stream)

    def feedback(self, indices: Any, values: Any) -> None:
        """Teaches CTAugment: how well samples of the batch just returned came out, each from 0 to 1.

        In FixMatch's words 1 - 0.5 * |softmax(model(x)) - onehot(y)|, summed over the classes. Samples that are no
        probes (see probes) teach nothing and may be left out or not. With several ranks each must call it, as often as
        the others: what they learn is gathered by torch.distributed. Call it before the next batch is asked for.
        """
        if self._progress.has_peeked:
            raise Error("feedback() after peek(): the next batch is named already. Call it before")
        self._engine.policies.learn_outcomes(indices, values, self._replays.repeat_at, self._engine.ranks)

    def probes(self) -> npt.NDArray[np.bool_]:
        """Which rows of the batch just returned are CTAugment's probes, that feedback is wanted of."""
        return self._replays.find_probes()

    # -- looking ------------------------------------------------------------------------------------------------------

    @property
    def last(self) -> Last | None:
        """The last batch that the iterator returned: .epoch .position .indices .keys."""
        return self._replays.last

    @property
    def classes(self) -> list[str]:
        """Names of the classes; class i has label i. May start the agent."""
        return list(self._engine.opening.open_plan().classes)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Labels of the classes by name. May start the agent."""
        return {name: label for label, name in enumerate(self.classes)}

    def stats(self) -> Stats:
        """What was done and waited for so far."""
        engine, pace = self._engine, self._engine.pace
        pace.meter.read_marks()
        totals = self._cursor.at.totals or Totals()
        slots = engine.feed.session.slots
        return Stats(
            batches=totals.batches,
            samples=totals.samples,
            received_bytes=totals.nbytes,
            wait_s=pace.wait_s,
            transform_s=pace.transform_s,
            python_wait_s=engine.python.wait_s if engine.python is not None else 0.0,
            step_s=pace.step_s,
            last_wait_s=pace.last_wait_s,
            window=engine.feed.window,
            slots=slots.count if slots else 0,
            copied_batches=totals.copied,
            skipped=totals.skipped,
            substituted=totals.substituted,
            agent_restarts=max(0, engine.feed.session.respawns),
            index=IndexUse(*totals.index),
            **pace.meter.stats_fields(),
        )

    def explain(self) -> str:
        """What the transforms compile to: where each op runs, in whose arithmetic, how exact. May start the agent."""
        opened = self._engine.opening.open_plan()
        return explain_plan(self._config, opened, self._engine.python, self.stats().index, self._progress.late_use)

    def preview(self, samples: int = 4, epochs: int = 5, *, seed: int = 0, width: int = 224) -> Preview:
        """A sheet of pictures, one row per sample: as it is, and as epochs 0, 1, … have it, over what was drawn for it.

        Notebooks show it; save(path) writes a PNG file. Another seed takes other samples; pictures are at most width
        pixels wide and high. It needs the folder on this machine, and shows what comes before the last hop. Draws of a
        Subset and a sampler go by places in their order: there it shows others, and any pictures of the folder.
        CTAugment is shown untaught, and masks are not.
        """
        return draw_preview(self._config, samples, epochs, seed, width)

    def replay(self, index: int, epoch: int | None = None, repeat: int | None = None) -> Sample:
        """One sample as a batch had it: pixels before the last hop, and every number that was drawn for it.

        epoch is that of the last batch by default. repeat tells the appearances of one sample in one epoch apart: by
        default the one in the last batch, if it is there, else the first. With a Subset or a sampler it is the place in
        the order of all ranks, and must be passed for what a sampler draws in other epochs than the one it is at. With
        CTAugment, which draws by what was learnt by then, only samples of the last batch are known.
        """
        return self._replays.replay_sample(index, epoch, repeat)

    def replay_batch(self, position: int, epoch: int | None = None) -> list[Sample]:
        """The samples of this rank's batch that begins at position (loader.last.position), as replay gives them."""
        return self._replays.replay_batch(position, epoch)

    def __repr__(self) -> str:
        return f"Loader({self._config})"

    def _repr_html_(self) -> str:
        """For notebooks: what it does, where it stands, and pictures of the last batch. Starts nothing."""
        from ._html import make_page

        opened = self._engine.feed.session.opened
        last = None if opened is None else self.last
        return make_page(self._config, opened, self._cursor.place, last, self.replay)

    def doctor(self) -> Verdict:
        """Whether data is what the loop waits for, what that costs and what to do, by what was counted so far.

        feedwater.diagnose(loader, step) measures more, and so does `feedwater doctor -- python train.py`. Print it.
        """
        from .doctor.live import of_stats

        return of_stats(self.stats(), elsewhere=bool(self._config.nodes), pictures=self._pictures)

    @property
    def _pictures(self) -> dict[str, Any]:
        """For the doctor: what indexes those of late batches had, how many the data set has, 0 while that is not known,
        its folder, and the room for copies and for pixels.
        """
        opened = self._engine.feed.session.opened
        samples = 0 if opened is None else opened.samples
        room, keep = (os.environ.get(name, "") for name in ("FEEDWATER_INDEX_COPIES", "FEEDWATER_KEEP"))
        known = {"folder": self._config.source.folder, "room": room, "keep": keep}
        return {"use": self._progress.late_use, "samples": samples, **known}

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends it for good; batches that were handed out stay good. The last Loader of the process ends the agent."""
        self._engine.close()

    def __enter__(self) -> Loader[B]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        engine = self.__dict__.get("_engine")
        try:
            if engine is not None:
                engine.drop_handles()
        except Exception:
            if not is_finalizing():  # else modules have lost their names, and the system closes what is open
                raise
