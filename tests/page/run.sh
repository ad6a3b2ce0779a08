#!/usr/bin/env bash
# Opens the page of the local agent in Chromium and works with it. Installs the browser
# once, below target/; pictures of the views are in target/page/.
# `--pictures` takes those of the README instead, with fonts that it installs too.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/venv/page
# The browser of this package needs no further program. Its driver installs none.
packages=(@sparticuz/chromium@147 playwright-core@1.65 axe-core@4.14)

if [ "$(cat "$tools/.ready" 2>/dev/null)" != "${packages[*]}" ]; then
    rm -rf "$tools"
    mkdir -p "$tools"
    npm install --prefix "$tools" --loglevel=error --no-audit --no-fund --no-update-notifier "${packages[@]}" >/dev/null
    echo "${packages[*]}" >"$tools/.ready"
fi

cargo build --locked -q -p local-agent
export PAGE_TOOLS=$tools PAGE_PROGRAM=$target/debug/a2a-local PAGE_PICTURES=$target/page
# The browser and the cases reach this machine only.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

if [ "${1:-}" = --pictures ]; then
    fonts=$tools/fonts
    npm install --prefix "$fonts" --loglevel=error --no-audit --no-fund --no-update-notifier \
        @expo-google-fonts/inter@0.4 @expo-google-fonts/jetbrains-mono@0.4 >/dev/null
    cat >"$fonts/fonts.conf" <<END
<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>$fonts/node_modules</dir><cachedir>$fonts/cache</cachedir></fontconfig>
END
    FONTCONFIG_FILE=$fonts/fonts.conf PAGE_PICTURES=$PWD/docs/images node tests/page/pictures.mjs
    exit
fi

node --test --test-concurrency=1 "$@" tests/page/page.test.mjs
