"""Prints what torchvision's ImageFolder lists for each folder: a line per sample, its label and its path in hex, then "end"."""

import os
import sys

from torchvision.datasets.folder import (  # type: ignore[import-untyped]
    IMG_EXTENSIONS,
    find_classes,
    make_dataset,
)

for root in sys.argv[1:]:
    for path, label in make_dataset(root, find_classes(root)[1], IMG_EXTENSIONS):
        print(label, os.fsencode(os.path.relpath(path, root)).hex())
    print("end")
