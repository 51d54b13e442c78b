"""Writes pictures.parquet beside it: 20 small pictures as `datasets` writes them. pip install datasets==5.2.0 pillow"""

import io
import random

from datasets import ClassLabel, Dataset, Features, Image
from PIL import Image as Pictures

random.seed(1)
rows = {"image": [], "label": []}
for at in range(20):
    out = io.BytesIO()
    Pictures.frombytes("RGB", (12, 12), random.randbytes(12 * 12 * 3)).save(out, "PNG")
    rows["image"].append({"bytes": out.getvalue(), "path": f"{at:02}.png"})
    rows["label"].append(at % 3)
features = Features({"image": Image(), "label": ClassLabel(names=["cat", "dog", "owl"])})
Dataset.from_dict(rows, features=features).to_parquet("pictures.parquet")
