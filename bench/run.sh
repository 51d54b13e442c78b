#!/usr/bin/env bash
# What `make bench` runs: all measurements that have limits, one after the other, then a table of the figures.
#
#   VENV               Python environment with feedwater, torch and torchvision
#   FEEDWATER_BINARY   the program
#   FEEDWATER_PHOTOS   folder of pictures, classes in sub-folders; generated ones if it is empty
#   ROUNDS             how often each contestant runs: 5
#
# It takes about a quarter of an hour. Leave the machine alone meanwhile: each part says how much of it others used.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }

python=$VENV/bin/python
rounds=${ROUNDS:-5}
data=${FEEDWATER_PHOTOS:-}
if [ -z "$data" ]; then
  data=$PWD/demo/pictures
  if [ ! -d "$data" ]; then
    say "generating 600 JPEGs in demo/pictures"
    go run ./pipeline/codec/jpeg/jpegtest/jpegfolder -classes 10 -images 60 "$data.part"
    mv "$data.part" "$data"
  fi
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
figures=$scratch/figures

say "the whole path, files to tensor: bench/path.py"
"$python" bench/path.py "$data" --index --rounds "$rounds" --figures "$figures"
say "the wire, a node with ready batches to a trainer's memory: go run ./bench/wire"
go run ./bench/wire --rounds "$rounds" --python "$python" --figures "$figures"
say "the training process: bench/trainer.py"
"$python" bench/trainer.py "$data" --rounds "$rounds" --figures "$figures"
say "resuming in an epoch of 1.28 million samples: bench/resume.py"
"$python" bench/resume.py "$data" --rounds $((2 * rounds - 1)) --figures "$figures"
say "the import: bench/imports.py"
"$python" bench/imports.py --rounds "$rounds" --figures "$figures"
say "measuring a training step: bench/stages.py"
"$python" bench/stages.py --rounds $((5 * rounds)) --figures "$figures"
say "the doctor's probe in a training step: bench/doctor/cost.py"
"$python" bench/doctor/cost.py --rounds "$rounds" --figures "$figures"
say "all figures"
"$python" bench/figure.py "$figures"
