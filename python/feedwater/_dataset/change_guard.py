"""What a Loader reads of the objects that it is made of, once: what is edited later is told, never ignored."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .._order.steps import Indices
from ..errors import DataError
from .arrow_rows import is_arrow_dataset
from .bytes_source import Bytes
from .coco import Coco, is_coco_detection
from .file_lists import is_file_list, read_rows
from .image_folder import is_image_folder
from .subset import indices_of
from .table import Table

if TYPE_CHECKING:
    from .._plan.pictures import Picture

__all__ = ["ChangeGuard"]


class ChangeGuard:
    """What a Loader was made of: an ImageFolder, a Table, a Subset of one or a path, and a transform, or its own.

    pictures are what the transform meant then, and masked says whether they have masks.
    """

    def __init__(self, source: Any, transform: Any, pictures: tuple[Picture, ...], masked: bool = False) -> None:
        self._subsets: list[tuple[Any, Indices]] = []
        while hasattr(source, "indices"):
            self._subsets.append((source, indices_of(source)))
            source = source.dataset
        self._folder = self._list = self._wrapped = None
        if is_coco_detection(source):
            self._wrapped = source
        elif is_file_list(source) and not is_image_folder(source):
            self._list = source
            self._rows = read_rows(source)
        elif not isinstance(source, (str, os.PathLike, Table, Bytes, Coco)) and not is_arrow_dataset(source):
            self._folder = source
        if self._folder is not None:
            self._samples = list(source.samples)
            self._attributes = [(name, getattr(source, name)) for name in ("loader", "target_transform")]
        self._masked, self._transform, self._compiled = masked, transform, [picture.compiled for picture in pictures]

    def check_unchanged(self) -> None:
        """Raises DataError where something that was read is another thing now, replaced or changed in place."""
        from .._plan.albumentations import split_transform
        from .._plan.pictures import resolve_pictures
        from .image_folder import check_reader

        for subset, indices in self._subsets:
            if not np.array_equal(indices_of(subset), indices):
                raise DataError(
                    "the Subset's indices were changed after the Loader was made, which read them then: make a new "
                    "Loader of the Subset, and go on with the next epoch by new.set_epoch(old.state_dict()['epoch'])"
                )
        if self._list is not None and read_rows(self._list) != self._rows:
            raise _change_error(f"the {type(self._list).__name__}'s list of files, its labels or its transform")
        folder, transform, owner = self._folder, self._transform, "the"
        if folder is not None:
            check_reader(folder)
            if list(folder.samples) != self._samples:
                from .listing import ADVICE

                raise DataError(f"{folder.root}: the ImageFolder's samples were changed. {ADVICE}")
            for name, value in self._attributes:
                if getattr(folder, name) is not value:
                    raise _change_error(f"{folder.root}: the ImageFolder's {name}")
            if transform is None:
                transform, owner = folder.transform, f"{folder.root}: the ImageFolder's"
        elif self._list is not None and transform is None:
            transform, owner = self._rows.transforms[0], f"the {type(self._list).__name__}'s"
        elif self._wrapped is not None and transform is None:
            transform, owner = self._wrapped.transforms, "the CocoDetection's"
        kept = split_transform(transform, self._masked).transform
        if [picture.compiled for picture in resolve_pictures(kept, None, None)] != self._compiled:
            raise _change_error(f"{owner} transform")


def _change_error(what: str) -> DataError:
    return DataError(
        f"{what} was changed after the Loader was made, which read it then: make a new Loader, and go on where this "
        "one is by new.load_state_dict(old.state_dict(), strict=False)"
    )
