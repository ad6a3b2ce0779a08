#!/usr/bin/env bash
# Opens the page of the local agent in Chromium and works with it. Installs the browser
# once, below target/; pictures of the views are in target/page/.
# `--pictures` takes those of the README instead.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/venv/page
# The browser of its package needs no further program, and its driver installs none.
lock=tests/page/package-lock.json
if ! cmp -s "$lock" "$tools/.ready"; then
    rm -rf "$tools"
    mkdir -p "$tools"
    cp tests/page/package*.json "$tools"
    npm ci --prefix "$tools" --ignore-scripts --loglevel=error --no-audit --no-fund --no-update-notifier >/dev/null
    cp "$lock" "$tools/.ready"
fi

cargo build --locked -q -p local-agent
export PAGE_TOOLS=$tools PAGE_PROGRAM=$target/debug/a2a-local PAGE_PICTURES=$target/page
# The browser and the cases reach this machine only.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

if [ "${1:-}" = --pictures ]; then
    cat >"$tools/fonts.conf" <<END
<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>$tools/node_modules/@expo-google-fonts</dir><cachedir>$tools/fonts</cachedir></fontconfig>
END
    FONTCONFIG_FILE=$tools/fonts.conf PAGE_PICTURES=$PWD/docs/images node tests/page/pictures.mjs
    exit
fi

node --test --test-concurrency=1 "$@" tests/page/page.test.mjs
