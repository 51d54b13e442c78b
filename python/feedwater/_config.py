"""A Loader's arguments, checked. Nothing is ignored in silence: what has no meaning here is refused with the reason."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ._agent.trust import Trust
from ._arguments import checks
from ._batch import batch_transform
from ._batch.relabel import Relabelling
from ._common import ranks
from ._common.urls import without_secrets
from ._dataset import sources
from ._dataset.sources import Source
from ._device.runtime import check_built
from ._order.steps import Tail
from ._plan import output
from ._torchvision.origin import is_v2
from .errors import NotYetError, UnsupportedTransformError

if TYPE_CHECKING:
    from ._batch.targets import Targets
    from ._plan.pictures import Picture

__all__ = ["Config"]


@dataclass(frozen=True)
class Config:
    """What a Loader was asked to do."""

    source: Source
    masks: Source | None
    """Of the masks, which have the names of the pictures but for the ending."""
    mask_files: dict[str, Any]
    """What the plan says of them besides: suffixes of names, numbers of colours."""
    targets: Targets | None
    """Boxes and whatever else comes with each sample, and how they move with its picture."""
    pictures: tuple[Picture, ...]
    names: dict[str, str]
    """Wanted fields: our names to the user's."""
    as_dict: bool
    relabel: Relabelling | None
    layout: str | None
    """How the path is laid out; None: as its name tells."""
    image: str | None
    """The column of pictures; None: the one that the data tells."""
    label: str | None
    """Where labels are; None: where the data has them by itself."""
    batch_size: int | None
    shuffle: bool | str
    """Whether each epoch has another order; "blocks:N": of runs of N neighbours."""
    sampler: Any
    batch_sampler: Any
    tail: Tail
    seed: int
    steps_per_epoch: int | None
    rank: int | None
    num_replicas: int | None
    mesh: Any
    python: Callable[..., Any] | None
    python_workers: int
    """Processes for python; 0: as many as there are cores."""
    batch_transform: Callable[..., Any] | None
    device: str | None
    """"cuda", the GPU that is current at the first batch, or "cuda:1"; None: the CPU's memory."""
    pin_memory: bool
    memory: int | None
    apply_exif: bool
    on_error: str
    max_errors: float
    timeout: float
    start_timeout: float
    nodes: tuple[str, ...]
    local_workers: int
    job: str | None
    trust: Trust
    cut: str
    """Where a transform of albumentations was cut in two, for people; empty: there is none."""
    most_pixels: int | None
    """Of a picture, where PIL.Image.MAX_IMAGE_PIXELS is lower than Pillow's own."""

    @classmethod
    def from_arguments(cls, source: Any, transform: Any, given: Mapping[str, Any]) -> Config:
        """The arguments of Loader, each checked and all together; raises TypeError, ValueError or NotYetError."""
        from ._plan.albumentations import split_transform
        from ._python.albumentations import adapt_function
        from ._torchvision import pillow  # all transforms come with it, half of what the package takes to import

        nodes = checks.nodes_of(given["nodes"])
        image, label = checks.column_of("image", given["image"]), checks.label_of(given["label"])
        layout = checks.layout_of(given["layout"], source)
        resolved = sources.resolve_source(source, nodes, image=image, label=label, layout=layout)
        masks, mask_files = sources.resolve_masks(given["masks"], nodes)
        transform = resolved.transform if transform is None else transform
        device = checks.device_of(given["device"])
        cut = split_transform(transform, masks is not None)
        transform, given = cut.transform, _with_rest(given, cut.rest)
        made = _pictures_of(transform, device, given)
        targets = _targets_of(resolved.targets if given["targets"] is None else given["targets"], transform)
        fields = _fields_of(given["fields"], masks is not None, targets is not None)
        return cls(
            source=replace(resolved, transform=None, relabel=None, targets=None),
            masks=masks,
            mask_files=mask_files,
            targets=targets,
            pictures=made,
            names=_names_of(fields, resolved, more=given["python"] is not None or targets is not None),
            as_dict=isinstance(fields, Mapping),
            relabel=_relabelling_of(given["relabel"], resolved.relabel),
            layout=layout,
            image=None if resolved.image else image,
            label=None if resolved.image else label,
            batch_size=checks.optional_count("batch_size", given["batch_size"]),
            shuffle=checks.shuffle_of(False if given["shuffle"] is None else given["shuffle"]),
            sampler=checks.sampler_of("sampler", given["sampler"]),
            batch_sampler=checks.sampler_of("batch_sampler", given["batch_sampler"]),
            tail=checks.tail_of(given["tail"], given["drop_last"]),
            seed=checks.seed_of(given["seed"]),
            steps_per_epoch=checks.optional_count("steps_per_epoch", given["steps_per_epoch"]),
            rank=checks.rank_of(given["rank"]),
            num_replicas=checks.optional_count("num_replicas", given["num_replicas"]),
            mesh=given["mesh"],
            python=None if given["python"] is None else adapt_function(given["python"]),
            python_workers=checks.python_workers_of(given["python_workers"], given["python"]),
            batch_transform=given["batch_transform"],
            device=device,
            pin_memory=_pins_memory(given["pin_memory"]) and device is None,
            memory=checks.memory_of(given["memory"]),
            apply_exif=bool(given["apply_exif"]) or resolved.turned,
            on_error=checks.one_of("on_error", given["on_error"], ("raise", "skip", "substitute")),
            max_errors=checks.max_errors_of(given["max_errors"]),
            timeout=checks.seconds_of("timeout", given["timeout"]),
            start_timeout=checks.seconds_of("start_timeout", given["start_timeout"]),
            nodes=nodes,
            local_workers=checks.workers_of(given["local_workers"], nodes, resolved.local),
            job=checks.job_of(given["job"]),
            trust=Trust.from_arguments(given["tls"], given["token_file"], given["insecure"], nodes),
            cut=cut.told,
            most_pixels=pillow.most_pixels(),
        )._checked()

    def _checked(self) -> Config:
        """This, if the arguments go together; raises TypeError or ValueError."""
        self._check_batch()
        self._check_masks()
        self._check_targets()
        if self.steps_per_epoch is not None and self.listed:
            raise ValueError("steps_per_epoch does not go with a sampler or a Subset: their length is the epoch's")
        if (self.rank is None) != (self.num_replicas is None):
            raise ValueError("rank and num_replicas go together: pass both or none")
        if self.rank is not None and self.mesh is not None:
            raise ValueError("mesh says what rank and num_replicas say: pass one or the other")
        if self.rank is not None and self.num_replicas is not None:
            ranks.check_ranks(self.rank, self.num_replicas)
        checks.check_mesh(self.mesh)
        if self.tail == "valid" and "valid" not in self.names:
            raise ValueError(
                'tail="valid" fills up the last batch: ask for the mask too, fields=("image", "label", "valid")'
            )
        if self.relabel is not None and self.python is not None:
            raise ValueError("relabel together with python=: return another label from that function instead")
        if self.python is not None:
            from ._python.function import check_function

            check_function(self.python)
        if self.batch_transform is not None:
            batch_transform.check_batch_transform(self.batch_transform, self.names, self.masks is not None)
        return self

    def _check_masks(self) -> None:
        if self.masks is not None and self.values:
            raise ValueError(f"masks go with class folders, which have no {self.values[0]!r}: leave one of them out")
        if self.masks is None:
            if output.MASK in self.names and self.python is None:  # which may give a field of that name
                raise ValueError("fields asks for masks: say where they are, masks=folder")
            return
        if self.masks.local and not self.source.local:
            raise ValueError(
                f"masks={self.masks.local!r} is a folder of this machine, and the pictures are named as nodes do: name "
                'both as "root/path", or both as folders here, which nodes find by their fingerprints'
            )
        if self.apply_exif:
            raise ValueError(
                "apply_exif=True turns pictures, and not their masks: leave it out, and where pictures lie on their "
                "side rotate the files once"
            )
        from ._plan.masks import check_followed

        check_followed(op for picture in self.pictures for op in picture.compiled.ops)
        if any(picture.compiled.spoils_masks for picture in self.pictures):
            raise UnsupportedTransformError(
                "a fill behind ToDtype goes around masks as it is, and these hold 0 to 255: say what they get, like "
                'fill={tv_tensors.Mask: 255, "others": -1.0}'
            )

    def _check_targets(self) -> None:
        if self.targets is None:
            return
        other = {
            "masks=": self.masks is not None,
            "python=": self.python is not None,
            "Views": self.views,
            "an Image column, whose pictures are turned as their EXIF data says,": self.source.turned,
            "apply_exif=True": self.apply_exif,
            "a transform of torchvision as batch_transform=": is_v2(self.batch_transform),
        }
        clash = next((name for name, given in other.items() if given), None)
        if clash is not None:
            raise NotYetError(f"targets together with {clash} is not there yet: leave one of them out")

    def _check_batch(self) -> None:
        if self.batch_sampler is not None:
            others = {
                "batch_size": self.batch_size,
                "sampler": self.sampler,
                "shuffle": self.shuffle or None,
                'drop_last (tail="drop")': self.tail == "drop" or None,
            }
            clash = next((name for name, value in others.items() if value is not None), None)
            if clash:
                raise ValueError(f"batch_sampler decides about {clash} already: leave it out")
            return
        if self.batch_size is None:
            raise ValueError("batch_size is missing: the samples of one batch of one rank")
        if self.sampler is not None and self.shuffle:
            raise ValueError("sampler decides the order: leave out shuffle")

    def __str__(self) -> str:
        """The arguments that matter most, as they were given."""
        said = [repr(without_secrets(self.source.name)), f"batch_size={self.batch_size}", f"seed={self.seed}"]
        if self.source.indices is not None:
            said[0] += f" (a Subset of {len(self.source.indices):,})"
        if self.shuffle:
            said.append(f"shuffle={self.shuffle!r}")
        for name, sampler in (("sampler", self.sampler), ("batch_sampler", self.batch_sampler)):
            if sampler is not None:
                said.append(f"{name}={type(sampler).__name__}(…)")
        for name, value, default in (("tail", self.tail, "short"), ("on_error", self.on_error, "raise")):
            if value != default:
                said.append(f"{name}={value!r}")
        if self.device is not None:
            said.append(f"device={self.device!r}")
        if self.pin_memory:
            said.append("pin_memory=True")
        if self.nodes:
            said.append(f"nodes={','.join(self.nodes)!r}")
        return ", ".join(said)

    @property
    def listed(self) -> bool:
        """Whether the trainer's side decides the order."""
        return self.sampler is not None or self.batch_sampler is not None or self.source.indices is not None

    @property
    def split_unasked(self) -> bool:
        """Whether nothing here says that ranks share an epoch, which a DataLoader's do not by themselves."""
        placed = self.rank is not None or self.mesh is not None
        ordered = self.shuffle or self.sampler is not None or self.batch_sampler is not None
        return not placed and not ordered and self.tail != "valid"

    @property
    def values(self) -> tuple[str, ...]:
        """Fields that the data has besides pictures and labels, in sorted order; python= gives such fields itself."""
        if self.python is not None:
            return ()
        ours = output.FIELDS if self.targets is None else (*output.FIELDS, output.TARGET)
        return tuple(sorted(name for name in self.names if name not in ours))

    @property
    def views(self) -> bool:
        """Whether image is a list of views."""
        return self.pictures[0].field != output.IMAGE

    @property
    def image_column(self) -> str | None:
        """The column of pictures that was named or chosen here; None: the one that the data tells."""
        return self.image or self.source.image

    def _plan_transforms(self) -> dict[str, Any]:
        made = [picture.compiled.plan_ops() for picture in self.pictures]
        return {"views": made} if self.views else {"transforms": made[0]}

    def to_plan(self) -> dict[str, Any]:
        """The plan as JSON says it (docs/plan.md)."""
        plan: dict[str, Any] = {
            "version": 1,
            "source": self.source.to_plan(),
            "seed": self.seed,
            "shuffle": False if self.listed else self.shuffle,
            **self._plan_transforms(),
            "fields": ["image", "label", *self.values],
            "on_error": self.on_error,
        }
        if self.layout is not None:
            plan["source"]["layout"] = self.layout
        if self.targets is not None and output.TARGET in self.names:
            plan["fields"].append(output.DRAWS)
        if self.image is not None:
            plan["source"]["image"] = self.image
        if self.label is not None:
            plan["source"]["label"] = self.label
        if self.masks is not None:
            where = {"root": "", "path": self.masks.local} if self.masks.local else self.masks.to_plan()
            plan |= {"masks": where | self.mask_files, "fields": ["image", "label", "mask"]}
        if self.most_pixels is not None:
            plan["limits"] = {"pixels": self.most_pixels}
        return plan | {"apply_exif": True} if self.apply_exif else plan


def _with_rest(given: Mapping[str, Any], rest: Any) -> Mapping[str, Any]:
    """The arguments, where the rest of a transform of albumentations is called as python= is."""
    if rest is None:
        return given
    if given["python"] is not None:
        raise ValueError("python= beside a transform of albumentations, which is called in its place: call it there")
    return {**given, "python": rest}


def _names_of(fields: Any, source: sources.Source, *, more: bool) -> dict[str, str]:
    """Names of the wanted fields; more says that something else than the source may have them."""
    return output.field_names(fields, lambda: more or source.may_have_values, source.no_values)


def _fields_of(fields: Any, masked: bool, targeted: bool) -> Any:
    """The fields of a batch; None: the picture, and the first there is of targets, masks and labels."""
    if fields is not None:
        return fields
    return output.IMAGE, output.TARGET if targeted else output.MASK if masked else "label"


def _pins_memory(value: Any) -> bool:
    if value and "torch" not in sys.modules:
        raise TypeError("pin_memory=True needs torch: import it before the Loader is made")
    return checks.flag_of("pin_memory", value or False)


def _pictures_of(transform: Any, device: str | None, given: Mapping[str, Any]) -> tuple[Picture, ...]:
    """What is made of each picture. A GPU does the last hop, unless a function of python= makes the result."""
    from ._plan import pictures  # all transforms come with it, half of what the package takes to import

    made = pictures.resolve_pictures(transform, given["dtype"], given["memory_format"])
    if device is None:
        return made
    if "torch" not in sys.modules:
        raise TypeError(f"device={device!r} needs torch: import it before the Loader is made")
    check_built(sys.modules["torch"], device)
    return made if given["python"] is not None else tuple(picture.leave_hop_to_device() for picture in made)


def _targets_of(rows: Any, transform: Any) -> Targets | None:
    """The targets that rows are, moved as a transform moves pictures. Raises where it needs some and there are none."""
    from ._plan.target_steps import list_target_steps, name_target_only

    if rows is None:
        if (name := name_target_only(transform)) is not None:
            raise UnsupportedTransformError(
                f"{name} works on boxes, and there are none: pass targets=, or leave it out"
            )
        return None
    from ._batch.targets import Targets

    return Targets(rows, list_target_steps(transform))


def _relabelling_of(given: Any, held: dict[Any, Any] | None) -> Relabelling | None:
    """That of relabel=, or of the data set's own target_transform."""
    if given is not None and held is not None:
        raise ValueError("relabel beside a target_transform, which changes labels too: leave one of them out")
    wanted = held if given is None else given
    return None if wanted is None else Relabelling(wanted)
