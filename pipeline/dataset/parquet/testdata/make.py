"""Writes the files beside it: the same ten rows as several writers and options write them. pip install pyarrow==26.0.1 datasets==5.2.0 duckdb==2.0.1

A picture is `picture 3 ` and the letter d 30 times for row 3, so it lies in the file in words; rows 2, 5 and 8 have equal ones.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = [0, 1, 7, 3, 4, 7, 6, 2, 7, 9]
PICTURES = [f"picture {n} ".encode() + bytes([97 + n]) * 30 for n in NUMBERS]
CLASSES = ["cat", "dog", "owl"]
LABELS = [n % 3 for n in range(10)]
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
FEATURES = {
    "info": {"features": {"picture": {"_type": "Image"}, "kind": {"names": CLASSES, "_type": "ClassLabel"}}}
}


def hub(pictures=PICTURES, labels=LABELS):
    rows = [picture if isinstance(picture, dict) else {"bytes": picture, "path": f"{at}.png"} for at, picture in enumerate(pictures)]
    table = pa.table({"picture": pa.array(rows, STRUCT), "kind": pa.array(labels, pa.int64())})
    return table.replace_schema_metadata({"huggingface": json.dumps(FEATURES)})


def write(name, table, **options):
    pq.write_table(table, f"{name}.parquet", **options)


plain = {"compression": "none", "use_dictionary": False, "row_group_size": 4}
write("plain", hub(), **plain)
write("v2", hub(), **plain, data_page_version="2.0", write_page_index=True)
write("small_pages", hub(), **plain, data_page_size=1, write_batch_size=1)
write("dictionary", hub(), compression="none", row_group_size=4)
for codec in ("snappy", "gzip", "zstd", "brotli", "lz4"):
    write(codec, hub(), compression=codec, row_group_size=4)
write("snappy_v2", hub(), compression="snappy", data_page_version="2.0", use_dictionary=False)
write("checksum", hub(), compression="snappy", write_page_checksum=True)
bare = pa.table({"id": pa.array(range(10), pa.int32()), "jpg": PICTURES, "target": pa.array([CLASSES[n] for n in LABELS])})
write("texts", bare, **plain)
write("texts_dictionary", bare, compression="zstd")
write("required", pa.table([pa.array(PICTURES), pa.array(LABELS, pa.int32())], pa.schema([pa.field("img", pa.binary(), False), pa.field("label", pa.int32(), False)])), **plain)
write("unlabelled", hub(labels=[-1] * 10), **plain)
write("no_labels", pa.table({"image": PICTURES}), **plain)
write("null_image", hub([*PICTURES[:3], {"bytes": None, "path": "a/b.png"}, *PICTURES[4:]]), **plain)
write("null_label", hub(labels=[*LABELS[:5], None, *LABELS[6:]]), **plain)
write("label_of_no_class", hub(labels=[*LABELS[:9], 3]), **plain)
UNSIGNED = [4_000_000_000, *range(9)]
for name, numbers, kind, how in (
    ("unsigned", UNSIGNED, pa.uint32(), plain),
    ("unsigned_dictionary", UNSIGNED, pa.uint32(), {"compression": "none"}),
    ("unsigned64", UNSIGNED, pa.uint64(), plain),
    ("too_large", [*range(9), 2**63 + 5], pa.uint64(), plain),
):
    write(name, pa.table({"image": PICTURES, "label": pa.array(numbers, kind)}), **how)
write("several", pa.table({"image": pa.array([[{"bytes": picture, "path": None}] for picture in PICTURES], pa.list_(STRUCT))}), **plain)
write("two", pa.table({"left": pa.array(PICTURES), "right": pa.array(PICTURES)}), **plain)
write("paths", pa.table({"image": [f"{at}.png" for at in range(10)]}), **plain)
write("int96", pa.table({"image": PICTURES, "label": pa.array(range(10), pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True, **plain)
write("delta", pa.table({"image": PICTURES}), **plain, column_encoding={"image": "DELTA_LENGTH_BYTE_ARRAY"})
write("empty", hub([], []), **plain)

write("null_images", hub([{"bytes": None, "path": "a.png"}] * 10), compression="snappy")

import duckdb

columns = pa.table({"image": PICTURES, "label": LABELS})
duckdb.sql("copy columns to 'duckdb.parquet' (format parquet, compression uncompressed)")

from datasets import ClassLabel, Dataset, Features, Image

rows = {"image": [{"bytes": picture, "path": None} for picture in PICTURES], "label": LABELS}
features = Features({"image": Image(), "label": ClassLabel(names=CLASSES)})
Dataset.from_dict(rows, features=features).to_parquet("datasets.parquet")
