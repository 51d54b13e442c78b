#!/bin/sh
# A node that runs goes on with the new program once it has finished what it has begun. One that does not run is not started.
set -e
if [ -d /run/systemd/system ] && [ -z "$DPKG_ROOT" ]; then
  systemctl daemon-reload
  systemctl try-restart feedwater.service
fi
