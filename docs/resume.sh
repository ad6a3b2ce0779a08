#!/usr/bin/env bash
# Demonstrates that a task outlives its process, and that a client can resume its
# stream: starts a task of five steps, kills the program with SIGKILL in the middle,
# starts it again, and resumes the stream after the last event. Needs Python 3; build
# the program with `cargo build` first.
#
# usage: docs/resume.sh [PROGRAM]
set -euo pipefail

program=$(realpath "${1:-target/debug/a2a-local}")
folder=$(mktemp -d)
cd "$folder"
pid=
trap 'kill -9 $pid 2>/dev/null || true; rm -rf "$folder"' EXIT

# Starts the program on a free port; it keeps its tasks in this folder.
start() {
  : >said.txt
  "$program" --agent conformance --port 0 >said.txt &
  pid=$!
  disown
  until grep -q '^listening on ' said.txt; do sleep 0.1; done
  base=$(sed -n 's/^listening on //p' said.txt)
}

# Reads a stream into a file until its end, or the end of the program.
follow() {
  python3 - "${@:2}" >"$1" <<'PYTHON'
import http.client, sys, urllib.request

url, *options = sys.argv[1:]
headers, body = {"A2A-Version": "1.0"}, None
for option, value in zip(options[::2], options[1::2]):
    if option == "--header":
        name, _, text = value.partition(": ")
        headers[name] = text
    else:
        body = value.encode()
try:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        for line in answer:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
except (OSError, http.client.HTTPException):
    pass  # the program has ended
PYTHON
}

# Prints the events of a stream, one per line: the id and the text.
events() {
  awk '/^id: /   { id = $2 }
       /^data: / { said = match($0, /"text":"step [^"]*"/) ? substr($0, RSTART + 8, RLENGTH - 9) : ""
                   restarted = /a2a-lambda\/restarted/ ? "(restarted)" : ""
                   match($0, /TASK_STATE_[A-Z_]*/)
                   state = RSTART ? substr($0, RSTART, RLENGTH) : "the artifact"
                   print (id ? id : "-") " " state (said ? " " said : "") (restarted ? " " restarted : ""); id = "" }' "$1"
}

start
echo "== a stream"
message='{"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "steps 5 1000"}]}}'
follow first.txt "$base/message:stream" --header 'Content-Type: application/json' --data "$message" &
until grep -q 'step 2: ' first.txt 2>/dev/null; do sleep 0.1; done
kill -9 $pid
wait
events first.txt

start
echo "== killed, started again, and resumed after the last event"
task=$(grep -o 'task-[0-9a-f]*' first.txt | head -n 1)
last=$(sed -n 's/^id: //p' first.txt | tail -n 1)
follow second.txt "$base/tasks/$task:subscribe" --header "Last-Event-ID: $last"
events second.txt

# The first line of a resumed stream is the task in its state at that event.
first=$(sed -n 's/^id: //p' first.txt | head -n 1)
follow log.txt "$base/tasks/$task:subscribe" --header "Last-Event-ID: $first"
if { events first.txt | tail -n +2; events second.txt | tail -n +2; } | cmp - <(events log.txt | tail -n +2); then
  echo "== both together are the log of the task"
fi
