#!/usr/bin/env bash
# Builds deploy/Dockerfile with buildah, and compares the program in the image and its configuration with those of make image. Run by make test-image.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
buildah() { command buildah --root "$dir/root" --runroot "$dir/run" --storage-driver vfs "$@"; }
trap 'command buildah --root "$dir/root" --runroot "$dir/run" --storage-driver vfs rm --all >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
buildah bud --isolation chroot -q -f deploy/Dockerfile -t feedwater-dockerfile . >/dev/null
config=$(buildah inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' feedwater-dockerfile)
[ "$config" = '65532:65532 [/usr/bin/feedwater]' ] || { echo "the Dockerfile's image is configured as $config"; exit 1; }
container=$(buildah from feedwater-dockerfile)
place=$(buildah mount "$container")
cmp bin/image/feedwater-linux-amd64 "$place/usr/bin/feedwater"
cmp bin/image/ca-certificates.crt "$place/etc/ssl/certs/ca-certificates.crt"
cmp bin/image/NOTICES.txt "$place/usr/share/doc/feedwater/NOTICES.txt"
