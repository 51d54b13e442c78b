#!/bin/sh
set -e
if [ "$1" = purge ]; then
  rm -rf "$DPKG_ROOT/var/cache/feedwater" "$DPKG_ROOT/var/cache/private/feedwater"
fi
if [ -d /run/systemd/system ] && [ -z "$DPKG_ROOT" ]; then
  systemctl daemon-reload
fi
