"""What to do about a transform that nodes do not have: a brother of it that they have, or where to cut for python=."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import transforms
from ..errors import UnsupportedTransformError

__all__ = ["CONVERSIONS", "UnknownTransformError"]

CONVERSIONS = ("ToImage", "PILToTensor", "ToTensor")
"""Steps that make tensors of pictures, by their classes."""
ANYWHERE = (
    "code of any kind can run behind the plan: on each sample, in processes of its own, python=fn(sample, rng), whose "
    "picture is sample['image']; on whole batches, in this one, batch_transform=fn(batch, rng)"
)
INSTEAD = {
    "MixUp": "pass batch_transform=MixUp(…), as it works on batches",
    "CutMix": "pass batch_transform=CutMix(…), as it works on batches",
    "RandomIoUCrop": "write RandomResizedCrop or RandomCrop: where it crops hangs on the boxes, which nodes have not",
    "ToPILImage": "leave it out, as pictures are pictures until ToImage",
    "Lambda": "leave it out, if it makes pictures RGB, which they are",
    "partial": "write weights.transforms(), with the parentheses, if that is meant",
}
"""What to do about a transform that is not there, by its class: torchvision's and functools'."""
NOT_ON_A_SAMPLE = ("MixUp", "CutMix", "RandomIoUCrop", "partial")
"""Those of them that do nothing to the picture of a sample alone."""
SEVERAL = ("view", "crops", "simclr", "byol", "dino", "swav", "moco", "contrast", "multi", "twice")
"""What classes are called that make several pictures of one."""


class UnknownTransformError(UnsupportedTransformError):
    """Nodes have no such transform; the way out without a word of where it stands."""

    def __init__(self, leaf: Any, why: str) -> None:
        self.leaf, self.why = leaf, why
        super().__init__(self._say(ANYWHERE))

    def say_where(self, before: Sequence[Any], rest: Sequence[Any]) -> str:
        """The same with how to cut the transform in two: nodes do what is before it, python= the rest."""
        if not before or (self._advise(known=True) and _name_of(self.leaf) in NOT_ON_A_SAMPLE):
            return str(self)
        tensor = any(type(step).__name__.removeprefix("Maybe") in CONVERSIONS for step in before)
        picture = "sample['image']" if tensor else "Image.fromarray(sample['image'])"
        kept, cut = (", ".join(map(_name_of, steps)) for steps in (before, rest))
        return self._say(
            f"cut the transform in two. transform=Compose([{kept}]) stays, and python=fn, a function of a module, does "
            f"rest = Compose([{cut}]): def fn(sample, rng): return {{**sample, 'image': rest({picture})}}. It is "
            "called on each sample, in processes of its own, with random numbers seeded for the sample"
        )

    def _say(self, way: str) -> str:
        advice = self._advise(known=True) or self._advise(known=False)
        if _name_of(self.leaf) == "Lambda" and way is not ANYWHERE:  # behind other steps: pictures are RGB before these
            advice = ""
        if advice:
            said = f"{advice}. As it is: {self.why}. Else {way}"
        elif way is ANYWHERE:
            said = f"{self.why}; {way}"
        else:
            said = f"{way}. As it is: {self.why}"
        return f"transform {_name_of(self.leaf)}: {said}. docs/plan.md lists what is there"

    def _advise(self, known: bool) -> str:
        """What to write in its place: of a library's transform that is known, or by what another one is called."""
        leaf, name = self.leaf, _name_of(self.leaf)
        home = type(leaf).__module__.split(".")[0]
        if known:
            return INSTEAD.get(name, "") if home in ("torchvision", "functools") else ""
        if home == "albumentations":
            return "pass it as python=, which calls it on each sample behind transform=, in processes of its own"
        names = (base.__name__ for base in type(leaf).__mro__)
        above = next((base for base in names if base in transforms.__all__ and base != "Compose"), None)
        if above and home != "timm":  # whose classes of these names do something else
            return f"write {above}, if it does no more than that"
        if any(word in name.lower() for word in SEVERAL):
            return "write feedwater.Views([…]), with a transform for each, if it makes several pictures of one"
        return ""


def _name_of(leaf: Any) -> str:
    return str(getattr(leaf, "__name__", type(leaf).__name__))
