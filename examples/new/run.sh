#!/bin/sh
# Runs the system with its code; give a number of seconds, 2 unless given. With real-time priorities if they are permitted.
cd "$(dirname "$0")" && exec cargo run --release --quiet -- "$@"
