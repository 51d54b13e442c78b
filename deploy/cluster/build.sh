#!/usr/bin/env bash
# build.sh FOLDER: the programs of a cluster, from their Go modules: Kubernetes, etcd, CoreDNS, KEDA, runc, Helm. What is there already is left
# alone. Cold, it takes 35 minutes of processor time and a GB there.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
out=$(cd "$1" && pwd)
kubernetes=v1.36.3
export CGO_ENABLED=0 GOFLAGS=-trimpath
unset GOBIN

# build NAME FOLDER PACKAGE [FLAG...]
build() {
  local name=$1 folder=$2 package=$3
  shift 3
  [ ! -x "$out/$name" ] || return 0
  printf 'building %s\n' "$name"
  (cd "$folder" && go build -ldflags "-s -w ${LDFLAGS:-}" "$@" -o "$out/$name.part" "$package")
  mv "$out/$name.part" "$out/$name"
}

build etcd etcd .
build pause pause .
LDFLAGS="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
LDFLAGS="$LDFLAGS -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes"
for name in kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet kube-proxy; do
  build $name kubernetes k8s.io/kubernetes/cmd/$name
done
LDFLAGS=''
build coredns coredns .
build keda-operator keda github.com/kedacore/keda/v2/cmd/operator
build keda-adapter keda github.com/kedacore/keda/v2/cmd/adapter
if [ ! -x "$out/helm" ]; then
  echo 'building helm'
  GOBIN=$out go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0
fi
if [ ! -x "$out/runc" ]; then
  pkg-config --exists libseccomp || { echo 'runc needs a C compiler and libseccomp: apt-get install gcc pkg-config libseccomp-dev' >&2; exit 1; }
  echo 'building runc'
  CGO_ENABLED=1 GOBIN=$out go install -tags seccomp -ldflags '-s -w' github.com/opencontainers/runc@v1.5.2
fi
