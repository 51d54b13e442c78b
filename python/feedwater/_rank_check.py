"""Whether all ranks make the same order, of which each takes its part: compared by torch.distributed's store.

Ranks that differ in a seed, a batch size or a Subset would have samples twice and others never, and each would find its
own batches right. The first rank that comes says what it has, and the others compare. Nobody waits, for some ranks may
never come: an evaluation on rank 0 alone meets nobody.

Loaders of several ranks are the same one if the same lines of the program made them, for the same time. Passes are the
same one by the epoch that the program told, else by their number. A pass counts from its second batch on: a rank that
looks at one batch alone, before the training, is no other order.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._agent.plan_info import PlanInfo
from ._agent.revisions import UNITS
from ._common.rank_store import RankStore, find_store, identify_caller
from ._common.ranks import Ranks
from ._order.samplers import BatchSamplerOrder, SamplerOrder
from ._order.steps import Order, digest_indices

if TYPE_CHECKING:
    from ._config import Config

__all__ = ["RankCheck"]

_made: Counter[str] = Counter()
"""How many Loaders each place of the program has made."""

PLACE, DATA, SEED = "the place at which the pass begins", "the data set (fingerprint)", "seed"
CLASS = "the sampler's class"
ADVICE = {
    PLACE: "Load the same state on all ranks, and tell all of them the same epochs. A rank that looks at batches alone "
    "does it by peek(), or by a Loader of its own with rank=0, num_replicas=1",
    DATA: "For data of its own pass each rank rank=0, num_replicas=1",
    SEED: "One seed is right for all: draws go by the sample, and no two ranks have the same one",
}
GIVEN = "what "
"""How the name of what a sampler gave begins."""
OTHERWISE = "Give all ranks the same"
DRAWN = (
    "Give all ranks the same sampler. One that gives each rank its own part says so by its attributes rank and "
    "num_replicas, as DistributedSampler does; or pass rank=0, num_replicas=1"
)
LONGEST = 160
"""Characters of a value that is told as it is."""


class RankCheck:
    """Of one Loader: what it shares with those of other ranks, and with which of their passes its own compare."""

    def __init__(self, config: Config, sampler: Any) -> None:
        self._config, self._sampler = config, sampler
        place = identify_caller()
        self._loader = f"{place} {_made[place]}"
        _made[place] += 1
        self.due = False
        """Whether the pass that has begun is to be compared at its second batch."""
        self._began: tuple[int, int] | None = None
        self._told: int | None = None
        self._named = self._loaded = self._settled = False
        self._numbered = 0
        self._visits: Counter[int] = Counter()

    def note_epoch(self, epoch: int) -> None:
        """The program has told the epoch of the next pass."""
        self._told = epoch

    def note_state(self) -> None:
        """A state was loaded."""
        self._loaded = True

    def begin_pass(self, place: tuple[int, int]) -> None:
        """A pass begins. One amid an epoch goes on with the last, after an error, unless a state says so."""
        told, loaded = self._told, self._loaded
        self._told, self._loaded = None, False
        if (
            self._began is not None
            and not loaded
            and (place[1] or (self.due and told is None and place == self._began))
        ):
            return
        self._began, self.due = place, True
        self._named = told == place[0] and not place[1]

    def compare_pass(self, order: Order, opened: PlanInfo, ranks: Ranks, place: tuple[int, int]) -> None:
        """Raises ValueError if the rank that came first has another order. place is the cursor, behind a batch."""
        store = find_store(self._config.rank, self._config.mesh, ranks)
        if store is None or self._began is None:
            self.due = False
            return
        if not self._settled:
            theirs, mine = self._exchange(store, ranks, "settings", self._describe_settings(order, opened))
            _check_equal(theirs, mine, [*mine["has"], *theirs["has"]], ranks)
            self._settled = True
        epoch = self._began[0]
        key = f"epoch {epoch} {self._visits[epoch]}" if self._named else f"pass {self._numbered}"
        theirs, mine = self._exchange(store, ranks, key, self._describe_pass(order, ranks, place))
        # After an error of one rank the other's second batch is behind another sample.
        _check_equal(theirs, mine, [what for what in mine["has"] if what in theirs["has"]], ranks)
        if self._named:
            self._visits[epoch] += 1
        else:
            self._numbered += 1
        self.due = False

    def _exchange(
        self, store: RankStore, ranks: Ranks, key: str, mine: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the first rank has, and what we have."""
        word = json.dumps({"rank": ranks.rank, "has": mine})
        said = store.exchange(f"{self._loader} {key}", word)
        return json.loads(word if said is None else said), json.loads(word)

    def _describe_settings(self, order: Order, opened: PlanInfo) -> dict[str, Any]:
        """What decides the order and what is made of a sample, by names for people."""
        config = self._config
        known: dict[str, Any] = {f"the revision of {unit} of this package": rev for unit, rev in UNITS.items()}
        for unit, revision in ((opened.revisions or {}).get("plan") or {}).items():
            known[f"the revision of {unit} of the program"] = revision
        known |= {SEED: config.seed, "shuffle": config.shuffle, "tail": config.tail}
        if not _splits(order):  # one that splits gives each rank what is its own, in batches of any size
            known["batch_size"] = config.batch_size
        known |= {"steps_per_epoch": config.steps_per_epoch, DATA: opened.fingerprint}
        if config.source.indices is not None:
            known["the Subset's number of samples"] = len(config.source.indices)
            known["the Subset's indices (digest)"] = digest_indices(config.source.indices)
        known |= dict(_describe_sampler(self._sampler, _splits(order)))
        known |= {"image": config.image_column, "on_error": config.on_error, "apply_exif": config.apply_exif}
        for at, picture in enumerate(config.pictures):
            view = f" of view {at + 1}" if config.views else ""
            for number, op in enumerate(picture.compiled.plan_ops(), 1):
                known[f"transform {number}{view}"] = _write_value(op)
        return known

    def _describe_pass(self, order: Order, ranks: Ranks, place: tuple[int, int]) -> dict[str, Any]:
        """Where a pass begins, and what its sampler gave up to its second batch."""
        assert self._began is not None
        epoch, consumed = self._began
        if _splits(order):  # in batches of its own: other samples were consumed
            return {PLACE: f"epoch {epoch}"}
        known: dict[str, Any] = {PLACE: f"epoch {epoch}, sample {consumed}"}
        if isinstance(order, (SamplerOrder, BatchSamplerOrder)) and place[0] == epoch:
            digest = order.save_state(*place, ranks).get("digest")
            if digest is not None:
                known[f"{GIVEN}{type(self._sampler).__name__} gave before sample {place[1]} (digest)"] = digest
        return known


def _check_equal(theirs: dict[str, Any], mine: dict[str, Any], names: Iterable[str], ranks: Ranks) -> None:
    """Raises ValueError that names the first difference."""
    for what in names:
        there, here = (one["has"].get(what) for one in (theirs, mine))
        if there != here:
            advice = DRAWN if what.startswith(GIVEN) else ADVICE.get(what, OTHERWISE)
            raise ValueError(
                f"{what} is {there} on rank {theirs['rank']} and {here} on rank {mine['rank']} of {ranks.world}: ranks "
                f"take their parts of one order, and here some samples would come twice and others never. {advice}"
            )


def _splits(order: Order) -> bool:
    return isinstance(order, (SamplerOrder, BatchSamplerOrder)) and order.sharded


def _describe_sampler(sampler: Any, splits: bool) -> Iterator[tuple[str, Any]]:
    """What tells one sampler from another, besides what it gives. One that splits may have generators of its own."""
    from ._order.generators import Generators
    from ._order.sampler_epoch import parts_of

    if sampler is None:
        return
    yield CLASS, type(sampler).__qualname__
    for part in parts_of(sampler):
        for name in ("seed", "shuffle"):
            value = getattr(part, name, None)
            if isinstance(value, int):
                yield f"{name} of {type(part).__name__}", value
    if not splits and (seeds := Generators(sampler).read_seeds()):
        yield "the seed of the sampler's generator", seeds[0]


def _write_value(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({hashlib.sha256(text.encode()).hexdigest()[:8]})"
