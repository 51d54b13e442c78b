#!/bin/sh
# Debian says remove or upgrade, Red Hat how many versions remain.
set -e
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ] && [ -z "$DPKG_ROOT" ]; then
      systemctl disable --now feedwater.service
    fi
    ;;
esac
