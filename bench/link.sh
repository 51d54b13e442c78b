#!/usr/bin/env bash
# link.sh PYTHON [--verdicts]: batches from one network to another over links of 1 and of 10 Gbit/s, without and with a delay, beside what a plain socket
# gets there in turns, and what `top` and `doctor` say of a job that such a link holds up. For root; what it makes is gone with its namespaces.
# make test-link calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
lacking=()
for need in ip:iproute2 tc:iproute2 nsenter:util-linux setpriv:util-linux; do
  command -v "${need%%:*}" >/dev/null || lacking+=("${need#*:}")
done
[ ${#lacking[@]} = 0 ] || { echo "this needs: apt-get install $(printf '%s\n' "${lacking[@]}" | sort -u | tr '\n' ' ')" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo 'namespaces need root' >&2; exit 1; }
go build -o bin/bench-wire ./bench/wire
go build -o bin/bench-delay ./bench/delay
# What is first in the namespaces hears no signal: it ends with this script, however that ends.
exec setpriv --pdeathsig KILL unshare --net --mount --pid --fork --mount-proc --kill-child=KILL -- "$python" bench/link.py "$@"
