#!/usr/bin/env bash
# Attachments in durable chunks, beside the raw disk and nginx' WebDAV, in one run. Root is needed
# only to install nginx.
set -euo pipefail
exec "$(dirname "$0")/run.sh" attachments
