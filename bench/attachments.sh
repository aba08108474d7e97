#!/usr/bin/env bash
# Compares uploads of attachments in durable chunks with the raw disk and nginx' WebDAV, in one run.
# Needs root only to install nginx.
set -euo pipefail
exec "$(dirname "$0")/run.sh" attachments
