#!/usr/bin/env bash
# Installs the package of `make packages` with dpkg in a folder: its files, its configuration through an upgrade, its removal. With rpm, looks at the
# other one. Run by make test-packages.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
arch=$(dpkg --print-architecture)
deb=$(ls dist/feedwater_*_"$arch".deb)
dir=$(mktemp -d)
node=''
end() {
  if [ -n "$node" ]; then kill -KILL "$node" 2>/dev/null || true; fi
  rm -rf "$dir"
}
trap end EXIT
root=$dir/root
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
touch "$root/var/lib/dpkg/status"
# Scripts run outside the folder, with DPKG_ROOT: it has no shell.
package() { dpkg --instdir="$root" --admindir="$root/var/lib/dpkg" --log="$dir/dpkg.log" --force-not-root,script-chrootless,bad-path "$@" >"$dir/said" 2>&1 || fail "dpkg $*: $(cat "$dir/said")"; }

package --install "$deb"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' python/feedwater/_version.py)
"$root/usr/bin/feedwater" version | grep -qF "$version" || fail "the program says $("$root/usr/bin/feedwater" version)"
cmp deploy/systemd/feedwater.service "$root/usr/lib/systemd/system/feedwater.service"
for file in copyright NOTICES.txt feedwater.cdx.json; do [ -s "$root/usr/share/doc/feedwater/$file" ] || fail "$file is missing"; done
grep -q '^.TH FEEDWATER 1' "$root/usr/share/man/man1/feedwater.1" || fail 'the manual page is missing'
[ "$(find "$root" -path "$root/var/lib/dpkg" -prune -o -type f -perm /6022 -print)" = '' ] || fail 'others may write what was installed'
differ=$(dpkg --instdir="$root" --admindir="$root/var/lib/dpkg" --verify feedwater 2>&1) || true
[ -z "$differ" ] || fail "files differ from what the package says: $differ"

# As it is, there is nothing to serve, and it says so.
"$root/usr/bin/feedwater" serve --config "$root/etc/feedwater/feedwater.yaml" 2>"$dir/said" && fail 'it serves nothing'
grep -q 'nothing to serve' "$dir/said" || fail "$(cat "$dir/said")"

# Told what to serve, it does.
mkdir -p "$dir/pictures/class"
sed -i "s|^#data: .*|data: {pictures: $dir/pictures}|; s|^#listen: .*|listen: 127.0.0.1:0|" "$root/etc/feedwater/feedwater.yaml"
FEEDWATER_CACHE_DIR=$dir/cache "$root/usr/bin/feedwater" serve --config "$root/etc/feedwater/feedwater.yaml" 2>"$dir/log" &
node=$!
for _ in $(seq 200); do
  if grep -qs msg=listening "$dir/log"; then break; fi
  kill -0 $node || fail "$(cat "$dir/log")"
  sleep 0.1
done
kill -TERM $node
wait $node || fail "$(cat "$dir/log")"
node=''
grep -q msg=listening "$dir/log" || fail "$(cat "$dir/log")"

# What was edited stays, through an upgrade and a removal; purge takes it away.
package --install "$deb"
grep -q '^listen: 127.0.0.1:0' "$root/etc/feedwater/feedwater.yaml" || fail 'an upgrade replaced the configuration'
package --remove feedwater
[ ! -e "$root/usr/bin/feedwater" ] || fail 'removal left the program'
grep -q '^listen: 127.0.0.1:0' "$root/etc/feedwater/feedwater.yaml" || fail 'removal took the configuration away'
mkdir -p "$root/var/cache/private/feedwater"
package --purge feedwater
left=$(find "$root" -path "$root/var/lib/dpkg" -prune -o -type f -print; ls -d "$root"/var/cache/private/feedwater 2>/dev/null || true)
[ -z "$left" ] || fail "purge left $left"
echo "installed, started, upgraded, removed: $deb, $(stat -c %s "$deb") bytes"

rpm=$(ls dist/feedwater-*."$(uname -m)".rpm)
if command -v rpm >/dev/null; then
  rpm --query --package --list "$rpm" | sort >"$dir/rpm"
  dpkg --contents "$deb" | sed -n 's/^-.* \.\(\/.*\)/\1/p' | sort >"$dir/deb"
  cmp "$dir/rpm" "$dir/deb" || fail 'the two packages have other files'
  [ "$(rpm --query --package --configfiles "$rpm")" = /etc/feedwater/feedwater.yaml ] || fail 'the configuration would be replaced'
  rpm --install --root "$dir/redhat" --nodeps --noscripts "$rpm"
  "$dir/redhat/usr/bin/feedwater" version | grep -qF "$version"
  echo "installed: $rpm"
else
  echo "not looked at, it needs rpm: $rpm"
fi
