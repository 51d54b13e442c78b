"""tf.data's way from files to uint8 batches, for bench/pixels/table.py: by an interpreter that has tensorflow alone.

    PYTHON bench/pixels/tfdata.py FOLDER [--images 4000]

The fastest that tf.data offers on CPUs: the crop is cut while decoding, nothing is in order, and the resize has no
antialiasing, so its pixels are others than torchvision's. It prints what bench/path.py prints of a run, or the version.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow as tf

import machine
import path
from path import BATCH, CROP, SIZES


def crop(shape: Any) -> Any:
    """RandomResizedCrop's distribution: top, left, height, width."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], size[:2]], 0)


def picture(name: Any) -> Any:
    """A file's crop, resized and flipped."""
    file = tf.io.read_file(name)
    window = crop(tf.image.extract_jpeg_shape(file))
    pixels = tf.image.decode_and_crop_jpeg(file, window, channels=3)
    pixels = tf.image.resize(pixels, (SIZES[CROP], SIZES[CROP]), method="bilinear", antialias=False)
    return tf.image.random_flip_left_right(tf.cast(tf.round(pixels), tf.uint8))


def batches(folder: str, images: int) -> Iterator[Any]:
    """Batches in this process."""
    files = [str(file) for file in Path(folder).rglob("*") if file.is_file()]
    data = tf.data.Dataset.from_tensor_slices(files).repeat(images // len(files)).shuffle(len(files))
    data = data.map(picture, num_parallel_calls=machine.CORES, deterministic=False)
    yield from data.batch(BATCH, drop_remainder=True).prefetch(2).as_numpy_iterator()


def main() -> None:
    """Prints what a run did as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="image folder, classes in sub-folders; none: print the version")
    parser.add_argument("--images", type=int, default=4000)
    args = parser.parse_args()
    if not args.folder:
        print(f"tensorflow {tf.__version__}")
        return
    print(json.dumps(path.meter(batches(args.folder, args.images))))


if __name__ == "__main__":
    main()
