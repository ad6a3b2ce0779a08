#!/usr/bin/env bash
# Compiles the smallest function so that a panic ends its process, and starts it: it must
# refuse, and name the line of the profile. Compiles into a folder of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}/ship
CARGO_TARGET_DIR=$target cargo build --locked -p agent-card --config 'profile.dev.panic="abort"'
if said=$(env -u AWS_LAMBDA_RUNTIME_API "$target/debug/agent-card" 2>&1); then
    echo "FAILED: a function that aborts at a panic starts"
    exit 1
fi
for words in 'panic = "abort"' 'panic = "unwind"' '[profile.release]'; do
    if [[ $said != *"$words"* ]]; then
        echo "FAILED: the error does not name $words: $said"
        exit 1
    fi
done
echo "ok  a function that aborts at a panic does not start: $said"
