#!/usr/bin/env bash
# Rewrites simulator/noise/small_networks.json: what codes and approximate operators make of
# gradients, measured on small networks on this machine's processor (ten seconds of it).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build --preset release --target tidemark_gradient_noise
build/tests/accuracy/tidemark_gradient_noise "$(date +%Y-%m-%d)" > simulator/noise/small_networks.json.new
mv simulator/noise/small_networks.json.new simulator/noise/small_networks.json
