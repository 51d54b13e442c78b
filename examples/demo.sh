#!/usr/bin/env bash
# What `make demo` runs: a node on this machine makes images, a training loop takes them. Everything it writes lies in demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }

mkdir -p demo
data=${DATA:-}
if [ -z "$data" ]; then
  data=$PWD/demo/pictures
  if [ ! -d "$data" ]; then
    say "generating 600 JPEGs in demo/pictures (your own: make demo DATA=folder)"
    go run ./pipeline/codec/jpeg/jpegtest/jpegfolder -classes 10 -images 60 "$data.part"
    mv "$data.part" "$data"
  fi
fi
pictures=$(find -L "$data" -type f | wc -l)

say "starting a node:  feedwater serve --data demo=$data"
bin/feedwater serve --data demo="$data" --listen 127.0.0.1:0 --http 127.0.0.1:0 --cache-dir demo/cache 2>demo/node.log &
node=$!
trap 'kill $node 2>/dev/null || true; wait $node 2>/dev/null || true' EXIT
address() { sed -n "s/.*msg=$1 addr=\([^ ]*\).*/\1/p" demo/node.log; }
for _ in $(seq 100); do
  [ -n "$(address listening)" ] && break
  kill -0 $node 2>/dev/null || { cat demo/node.log; exit 1; }
  sleep 0.1
done
echo "node $node listens on $(address listening), metrics on http://$(address http)/metrics"

say "training on $pictures pictures from that node:  python examples/train.py --data demo --nodes $(address listening)"
"$VENV/bin/python" examples/train.py --data demo --nodes "$(address listening)" --epochs 3

say "what the node did"
"$VENV/bin/python" - "http://$(address http)/metrics" <<'PY'
import sys
from urllib.request import urlopen

lines = (line.rsplit(" ", 1) for line in urlopen(sys.argv[1]).read().decode().splitlines() if not line.startswith("#"))
value = {name: float(number) for name, number in lines}
samples, core = value["feedwater_node_samples_total"], value["feedwater_node_make_core_seconds_total"]
print(f"{samples:,.0f} images sent, {core / samples * 1e3:.2f} core-milliseconds each: {samples / core:,.0f} images/s and core")
PY

say "the same without a node, on this machine alone:  python examples/train.py --data $data"
"$VENV/bin/python" examples/train.py --data "$data" --epochs 2

cat <<'TEXT'

Next:
  examples/train.py          the training loop you just saw, under 60 lines
  docs/README.md             your own data, several nodes, resuming: every page, by reader
  make bench DATA=folder     against PyTorch's DataLoader on your own pictures
TEXT
