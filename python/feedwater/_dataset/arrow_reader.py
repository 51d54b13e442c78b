"""datasets.Dataset, of Hugging Face, as Bytes reads it: a row at a time, where its pictures lie in no plain file."""

from __future__ import annotations

from typing import Any

__all__ = ["ArrowReader"]


class ArrowReader:
    """The pictures of a data set's column, as in a file, and labels."""

    def __init__(self, source: Any, image: str, labels: list[int] | None) -> None:
        rows = source.with_format(None).select_columns([image])
        if type(rows.features[image]).__name__ == "Image":
            rows = rows.cast_column(image, type(rows.features[image])(decode=False))
        self._rows, self._image, self._labels = rows, image, labels

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, index: int) -> tuple[bytes, int | None]:
        """The bytes of picture index, and its label."""
        picture = self._rows[index][self._image]
        label = None if self._labels is None else self._labels[index]
        if not isinstance(picture, dict):
            return picture, label
        if picture["bytes"] is not None:
            return picture["bytes"], label
        from datasets.utils.file_utils import xopen  # type: ignore[import-not-found]

        with xopen(picture["path"], "rb") as file:
            return file.read(), label
