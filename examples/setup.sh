# Sourced by examples/run and tests/run: installs what is missing, then configures and builds.
# Everything it says goes to stderr, so that stdout belongs to the program that runs afterwards.
# shellcheck shell=bash

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
readonly root jobs
trap 'exit 130' INT # an interrupted build must not go on to the next step

say() { printf '%s\n' "$*" >&2; }
fail() { say "$0: $1"; exit "${2:-2}"; }

# quietly LOG COMMAND...: the output goes to LOG and is shown only when the command fails.
quietly() {
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  ((status == 0)) || cat "$log" >&2
  return "$status"
}

# Sets CXX where plain g++ is too old for C++20 but a newer one is there. A CXX from outside is left alone.
find_compiler() {
  local name version
  [[ -z ${CXX-} ]] || return 0
  for name in g++ g++-{12..19}; do
    version=$("$name" -dumpversion 2>/dev/null) || continue
    if ((${version%%.*} >= 12)); then
      [[ $name == g++ ]] || export CXX=$name
      return 0
    fi
  done
  return 1
}

has_command() { command -v "$1" >/dev/null; }
has_header() { "${probe[@]}" -E -x c++ - >/dev/null 2>&1 <<<"#if !__has_include(<$1>)"$'\n#error\n#endif'; }
has_library() { [[ $("${probe[@]}" -print-file-name="lib$1.so" 2>/dev/null) == */* ]]; }

# Fills `missing` with those of the given Debian packages whose tool, header or library is not found,
# however it came to be installed.
find_missing() {
  local package probe
  missing=()
  find_compiler || missing+=(g++)
  read -ra probe <<<"${CXX:-g++}"
  for package; do
    case $package in
      cmake | python3) has_command "$package" ;;
      ninja-build) has_command ninja ;;
      libblis-dev) has_library blis ;;
      libopenblas-dev) [[ -n ${BLA_VENDOR-} ]] || has_library openblas ;;
      libcli11-dev) has_header CLI/CLI.hpp ;;
      nlohmann-json3-dev) has_header nlohmann/json.hpp ;;
      doctest-dev) has_header doctest/doctest.h ;;
      clang) has_command clang++ ;;
      clang-format | clang-tidy) has_command "$package" ;;
      libclang-rt-*-dev) [[ -e $(clang++ -print-file-name=libclang_rt.fuzzer-x86_64.a 2>/dev/null) ]] ;;
      chromium) has_command chromium ;;
      chromium-driver) has_command chromedriver ;;
      python3-selenium) /usr/bin/python3 -c 'import selenium' 2>/dev/null ;;
      python3-venv) /usr/bin/python3 -c 'import ensurepip' 2>/dev/null ;;
      libopenmpi-dev) has_command mpicxx ;;
      openmpi-bin) has_command mpirun ;;
      iproute2) has_command ip ;;
    esac || missing+=("$package")
  done
}

# The package of a compiler that is new enough: g++ itself, or else the oldest numbered one that will do.
compiler_package() {
  local package
  if dpkg --compare-versions "$(apt_version g++)" ge 4:12; then echo g++; return; fi
  for package in g++-{12..19}; do
    if [[ $(apt_version "$package") ]]; then echo "$package"; return; fi
  done
  echo g++-12 # which apt-get will not find, and say so
}

# By exact name: apt-cache takes an unknown name that has a + in it as a pattern.
apt_version() {
  apt-cache show --no-all-versions "$1" 2>/dev/null |
    awk -v name="$1" '$1 == "Package:" { found = $2 == name } found && $1 == "Version:" { print $2; exit }'
}

# apt_install PACKAGE...
apt_install() {
  local package packages=()
  local apt=(env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -qq -o DPkg::Lock::Timeout=300)
  ((EUID == 0)) || apt=(sudo "${apt[@]}")
  "${apt[@]}" update || true # a broken source of some other software need not stop us
  for package; do
    [[ $package != g++ ]] || package=$(compiler_package)
    packages+=("$package")
  done
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}"
}

# install_missing PACKAGE...: says and does nothing when nothing is missing.
install_missing() {
  local missing list
  find_missing "$@"
  ((${#missing[@]})) || return 0
  list=${missing[*]/%g++/g++ (12 or newer)}
  has_command apt-get || fail "please install first (names as in Debian): $list"
  say "installing with apt-get: $list"
  ((EUID == 0)) || sudo true 2>/dev/null || fail "cannot become root with sudo; please have these installed: $list"
  mkdir -p "$root/build"
  quietly "$root/build/install.log" apt_install "${missing[@]}" || fail "could not install: $list"
  find_missing "$@"
  ((${#missing[@]} == 0)) || fail "installed, but still not found: ${missing[*]}"
}

# mpirun_command RANKS: fills `mpirun` with the command that starts as many ranks on this machine. Ranks are not bound to
# one processor each, as each has threads. To end ranks, mpirun waits, sends SIGTERM, waits again, and kills: 2 seconds
# each time instead of 1, so that they can end their step and save. A rank that waits gives way to other programs: else,
# on a busy machine, it may take the time of the rank that it waits for.
mpirun_command() {
  export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
  export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-2}
  mpirun=(mpirun -n "$1" --bind-to none)
  ((EUID != 0)) || mpirun+=(--allow-run-as-root)
  (($1 <= $(cores))) || mpirun+=(--oversubscribe)
}

# Processor cores that this process may use; Open MPI does not count the second thread of a core.
cores() {
  local all
  all=$(LC_ALL=C lscpu -p=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l)
  echo $((all > 0 && all < $(nproc) ? all : $(nproc)))
}

# What `build` tells cmake beside the preset.
configure_options=()

# build PRESET NAME TARGET: one build at a time in a checkout; silent when there is nothing to do.
build() (
  preset=$1 name=$2 target=$3 dir=$root/build/$1 announced=
  announce() { [[ $announced ]] || say "building $name ..."; announced=yes; }
  trap 'exit 130' INT
  mkdir -p "$root/build"
  cd "$root" || exit
  exec 9>build/lock
  if has_command flock && ! flock -n 9; then
    say "waiting for another build to end"
    flock 9
  fi
  # A checkout that was moved or copied starts afresh: ninja would go on building the old place.
  grep -qsFx "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt" || rm -rf "$dir"
  [[ -e $dir/build.ninja ]] || announce
  quietly "build/$preset.log" cmake --preset "$preset" "${configure_options[@]}" 9>&- || fail "could not configure preset $preset" 1
  command=(cmake --build "$dir" --target "$target" --parallel "$jobs")
  [[ $("${command[@]}" -- -n 2>&1 9>&-) != *"no work to do"* ]] || return 0
  announce
  if [[ -t 2 ]]; then # ninja shows its progress on one line, and the output of a command that fails
    "${command[@]}" >&2 </dev/null 9>&-
  else
    quietly "build/$preset.log" "${command[@]}" 9>&-
  fi || fail "could not build $name" 1
)
