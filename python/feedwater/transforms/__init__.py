"""Transforms without torchvision: the same names, arguments and pixels as torchvision.transforms.v2.

They are plain values that describe what nodes do. The ops up to ToImage run on nodes, on 8-bit pictures. ToImage and
what follows is arithmetic on single values, done at the last hop by a table.
"""

from ._colour import (
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from ._containers import Compose, Identity, RandomApply, RandomChoice, RandomOrder
from ._erasing import RandomErasing
from ._learnt import CTAugment
from ._lossy import JPEG, GaussianBlur, GaussianNoise
from ._policies import AugMix, AutoAugment, RandAugment, TrivialAugmentWide
from ._several import Views
from ._sizes import Pad, RandomCrop, RandomResize, RandomShortestSize, RandomZoomOut, ScaleJitter
from ._values import ConvertImageDtype, Normalize, PILToTensor, ToDtype, ToImage, ToPureTensor, ToTensor
from ._views import CenterCrop, FiveCrop, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Resize, TenCrop
from ._warp import ElasticTransform, RandomAffine, RandomPerspective, RandomRotation

__all__ = [
    "JPEG",
    "AugMix",
    "AutoAugment",
    "CTAugment",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "ElasticTransform",
    "FiveCrop",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Identity",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ScaleJitter",
    "TenCrop",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToTensor",
    "TrivialAugmentWide",
    "Views",
]
