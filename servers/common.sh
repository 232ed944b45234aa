# shellcheck shell=bash
# shellcheck disable=SC2154  # name, version, port, timeout and url are the script's
# What the scripts of all servers do alike.
#
# A script sets `name` and `version`, and of a server `port` and `timeout` (seconds to wait for its start), reads this file, and sets
# `url`. It defines `fetch`, which puts the server into "$part" or makes "$server" itself; `started`, which tells whether the server
# answers; `start`, made of the steps below; and calls `main "$@"`. It may define anew `suits`, `workplace` and `stopped`.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KB_SERVERS:-$HOME/.cache/agentkernel-kb-servers}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
python=${PYTHON:-python3}

server=$cache/$name-$version
part=$server.part
run=$cache/run/$name-${port:-0}
log=$run/server.log
stop_signal=TERM
stop_seconds=60

say() { echo "$name: $*" >&2; }
die() { say "$*"; exit 1; }

# Prints the first Java that is new enough (java_min) and suits.
find_java() {
  local java found
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    { [ -n "$java" ] && [ -x "$java" ]; } || continue
    java=$(readlink -f "$java")
    suits "$java" || continue
    found=$("$java" -XshowSettings:properties -version 2>&1 |
      sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p')
    if [ "${found:-0}" -ge "$java_min" ]; then
      echo "$java"
      return
    fi
  done
  die "needs ${java_kind:-Java} $java_min or newer: set JAVA_HOME"
}

suits() { true; }

# The folder that the command of the server's process names.
workplace() { echo "$run"; }

# Is the process of the pid file alive, and ours?
running() {
  local pid place
  place=$(workplace) && pid=$(cat "$run/pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null || return 1
  { cat "/proc/$pid/cmdline" 2>/dev/null || ps -p "$pid" -o command=; } | tr '\0' ' ' | grep -qF -- "$place/"
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Does a GET of path $2 at port $1 answer 200?
answers() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&3
    read -r -t 5 line <&3 && [[ $line == *" 200"* ]]
  ) 2>/dev/null
}

# Fetches a package without its dependencies into "$part".
fetch_with_pip() {
  rm -rf "$part"
  PIP_ROOT_USER_ACTION=ignore "$python" -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: \
    --target "$part" "$1==$version" || die "could not fetch version $version"
}

# Reaches the goals of the script's pom.xml in "$part". What one try has fetched stays for the next.
fetch_with_maven() {
  command -v mvn >/dev/null || die "needs Maven (mvn)"
  mkdir -p "$part"
  cp "$here/$name-pom.xml" "$part/pom.xml"
  local maven=(mvn -B -q -C -ntp -Dstyle.color=never -f "$part/pom.xml"
    "-Dmaven.repo.local=$part/m2" "-D$name.version=$version" "$@")
  "${maven[@]}" >&2 || "${maven[@]}" >&2 || die "could not fetch version $version"
}

install() {
  [ ! -d "$server" ] || return 0
  mkdir -p "$cache"
  (
    # Of several installs at once, one fetches and the others wait.
    ! command -v flock >/dev/null || flock 9
    if [ ! -d "$server" ]; then
      say "fetching version $version into $server"
      fetch
      [ -d "$server" ] || mv "$part" "$server"
      rm -rf "$part"
    fi
  ) 9>"$server.lock"
}

# The first step of a start: is there anything to do? Takes the ports that the server needs.
check_free() {
  local each
  if running; then
    started || die "is still starting or stopping; see $log"
    say "runs already at $url"
    exit 0
  fi
  for each in "$@"; do ! listening "$each" || die "port $each is taken by another program"; done
}

# Of several starts of one server at once, one starts it, and the others wait and find that it runs.
start_alone() {
  mkdir -p "$cache/run"
  (
    ! command -v flock >/dev/null || flock 9
    start 9>&-  # Else the server would hold the lock as long as it runs.
  ) 9>"$run.lock"
}

# The last one: waits until the process $1 answers.
await() {
  local pid=$1 end=$((SECONDS + timeout))
  echo "$pid" >"$run/pid"
  until started; do
    kill -0 "$pid" 2>/dev/null || { tail -n 30 "$log" >&2; die "ended while starting; see $log"; }
    [ "$SECONDS" -lt "$end" ] || { tail -n 30 "$log" >&2; stop; die "did not start within $timeout s; see $log"; }
    sleep 0.1
  done
  say "version $version answers at $url (pid $pid)"
}

# What is left to do once it has stopped.
stopped() { true; }

stop() {
  if ! running; then
    rm -f "$run/pid"
    stopped
    say "does not run on port $port"
    return
  fi
  local pid end=$((SECONDS + stop_seconds))
  pid=$(cat "$run/pid")
  kill "-$stop_signal" "$pid"
  while running; do
    if [ "$SECONDS" -ge "$end" ]; then
      say "did not stop within $stop_seconds s: it is ended"
      kill -KILL "$pid" 2>/dev/null || true
      end=$((SECONDS + 60))
    fi
    sleep 0.1
  done
  rm -f "$run/pid"
  stopped
  say "stopped"
}

main() {
  case ${1:-} in
    install) install; say "version $version is in $server" ;;
    start) start_alone ;;
    stop) stop ;;
    url) echo "$url" ;;
    *) die "usage: $(basename "$0") install | start | stop | url" ;;
  esac
}
