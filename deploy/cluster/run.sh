#!/usr/bin/env bash
# run.sh COMMAND...: runs a command in namespaces of its own, of network, mounts and processes: what it starts, mounts and connects ends with it.
# For root. make cluster and make test-cluster call it.
set -euo pipefail
lacking=()
for need in containerd:containerd ctr:containerd containerd-shim-runc-v2:containerd iptables:iptables nsenter:util-linux setpriv:util-linux openssl:openssl; do
  command -v "${need%%:*}" >/dev/null || lacking+=("${need#*:}")
done
[ -x /usr/lib/cni/bridge ] || lacking+=(containernetworking-plugins)
if [ ${#lacking[@]} -gt 0 ]; then
  echo "a cluster needs: apt-get install $(printf '%s\n' "${lacking[@]}" | sort -u | tr '\n' ' ')" >&2
  exit 1
fi
[ "$(id -u)" = 0 ] || { echo 'a cluster needs root' >&2; exit 1; }
groups=feedwater-$$
export FEEDWATER_CLUSTER_GROUP=$groups

remove_groups() { # NAME
  for controller in /sys/fs/cgroup/*/; do
    [ -L "${controller%/}" ] || find "$controller$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}

# Control groups are the machine's: those of the cluster are made here, and taken away again; those of one that was killed too.
for left in /sys/fs/cgroup/memory/feedwater-*; do
  [ -d "/proc/${left##*-}" ] || remove_groups "$(basename "$left")"
done
for controller in /sys/fs/cgroup/*/; do
  [ -L "${controller%/}" ] || mkdir "$controller$groups"
done
for file in cpus mems; do
  cat /sys/fs/cgroup/cpuset/cpuset.$file >/sys/fs/cgroup/cpuset/$groups/cpuset.$file
done
# Pods are one group beside the programs of this machine: it counts as ten of them, not as one.
echo 10240 >/sys/fs/cgroup/cpu/$groups/cpu.shares
trap 'remove_groups "$groups"' EXIT

code=0
# The namespaces end with this script, however that ends: what is first in them hears no other signal.
# shellcheck disable=SC2016
setpriv --pdeathsig KILL unshare --net --mount --pid --fork --mount-proc --kill-child=KILL -- bash -euc '
  # What Kubernetes writes at fixed places is written into memory, and gone with the mounts.
  for place in /run /var/lib/cni /var/log; do
    if [ -d $place ]; then mount -t tmpfs tmpfs $place; fi
  done
  mkdir -p /run/netns /run/lock
  # The kubelet sets these for the whole machine where they differ: it is shown what it wants to see.
  values=$(mktemp -d /run/values.XXXX)
  for value in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=$values/$(basename ${value%=*})
    echo ${value#*=} >$file
    mount --bind $file /proc/sys/${value%=*}
  done
  # Names are those of the cluster: cluster.py.
  here=10.97.0.1
  [ "${FEEDWATER_CLUSTER_FAMILY:-}" != 6 ] || here=fd00:97::1
  printf "nameserver %s\nsearch svc.cluster.local cluster.local\noptions ndots:5\n" $here >/run/resolv.conf
  mount --bind /run/resolv.conf /etc/resolv.conf
  ip link set lo up
  exec "$@"' run.sh "$@" || code=$?
for _ in $(seq 50); do
  remove_groups "$groups"
  [ -d /sys/fs/cgroup/memory/"$groups" ] || break
  sleep 0.1
done
exit $code
