#!/usr/bin/env bash
# The Debian package on a system that never saw it: `tests/package.sh FILE.deb`, as root.
#
# The system is this machine's own files under an overlay that is thrown away, in namespaces of its own (processes, mounts,
# network), with systemd as process 1. So the unit runs as it will run, with its user and its sandbox, on the ports of the
# configuration that the package brings; and nothing of this machine is changed.
set -euo pipefail

# Where inside the test keeps its files.
PLACE=/mnt/package-test

say() { echo "package: $*"; }
fail() {
  say "FAILED: $*"
  exit 1
}
expect() { # WHAT WANTED GOT
  [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
  say "$1: $3"
}

# --- outside: namespaces, and a control group that systemd can have for itself

group= result=

outside() {
  local deb groups code
  deb=$(realpath "$1")
  [ "$(id -u)" -eq 0 ] || fail "it must be run as root"
  groups=$(findmnt -n -t cgroup2 -o TARGET | head -1)
  [ -n "$groups" ] || fail "no cgroup2 is mounted: systemd needs one"
  group=$groups/shardwise-package-$$
  result=$(mktemp)
  mkdir "$group"
  # The group can go when the last process in it has ended.
  trap 'rm -f "$result"; for _ in $(seq 50); do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; [ -e "$group" ] || break; sleep 0.1; done' EXIT
  bash -c 'echo $BASHPID >"$1/cgroup.procs"; shift; exec "$@"' - "$group" \
    timeout -s KILL 300 unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup \
    "$0" --namespaces "$deb" </dev/null 9>"$result" || true # it ends by a poweroff, which is a signal here
  code=$(cat "$result")
  [ "$code" = 0 ] || fail "see above"
}

# --- in the namespaces: the file system, then systemd

namespaces() {
  local deb=$1 here root
  mount --make-rprivate /
  here=$(mktemp -d)
  mount -t tmpfs tmpfs "$here"
  root=$here/root
  mkdir "$here/changes" "$here/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$here/changes,workdir=$here/work" "$root"
  mount -t proc proc "$root/proc"
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup" 2>/dev/null || true
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  local device
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  ip link set lo up

  # Not under /tmp: systemd mounts one of its own there.
  mkdir -p "$root$PLACE"
  cp "$deb" "$root$PLACE/shardwise.deb"
  cp "$0" "$root$PLACE/package.sh"
  # What systemd starts by itself: nothing.
  printf '[Unit]\nDefaultDependencies=no\n' >"$root/etc/systemd/system/bare.target"
  local unit
  for unit in systemd-sysctl systemd-modules-load systemd-binfmt systemd-remount-fs systemd-random-seed systemd-udevd; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
  done
  # The test may find a machine on which policy forbids packages to start anything.
  rm -f "$root/usr/sbin/policy-rc.d"
  exec setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio \
    chroot "$root" env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 PLACE=$PLACE \
    sh -c 'bash $PLACE/package.sh --inside & exec 9>&-; exec /lib/systemd/systemd --system --unit=bare.target --show-status=no'
}

# --- inside: what an operator does

# What of the file system a package can leave behind; the records of dpkg, apt, PackageKit, systemd and man are theirs.
files() {
  find /etc /usr /var /opt /srv -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \
    -o -path /var/lib/systemd -o -path /var/lib/PackageKit \
    -o -path /var/backups -o -path /var/tmp \) -prune -o -print | grep -v '^/etc/.*-$' | sort
  cksum /etc/passwd /etc/group /etc/shadow /etc/gshadow
}
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" >apt.log 2>&1 || {
  cat apt.log
  fail "apt-get $*"
}; }
version() { dpkg-query -W -f '${Version}' shardwise; }
state() { systemctl is-active shardwise.service || true; }
main_pid() { systemctl show -P MainPID shardwise.service; }
ask() { redis-cli -p 22121 "$@"; }

# The next version, whose own configuration has changed as well.
make_upgrade() {
  dpkg-deb -R shardwise.deb next
  sed -i "s/^Version: .*/Version: $1/" next/DEBIAN/control
  echo '# new in this version' >>next/etc/shardwise/shardwise.yml
  dpkg-deb --root-owner-group -Zgzip -z1 -b next next.deb >/dev/null
}

inside() {
  cd $PLACE
  local conf=/etc/shardwise/shardwise.yml port before pid
  trap 'code=$?; echo $code >&9; exec 9>&-; systemctl poweroff -ff >/dev/null' EXIT
  for _ in $(seq 100); do systemctl is-active -q bare.target 2>/dev/null && break || sleep 0.1; done
  expect "process 1" systemd "$(cat /proc/1/comm)"
  systemctl start basic.target
  for port in 6379 6380 6381 6382; do
    redis-server --port $port --save '' --daemonize yes --dir $PLACE --logfile /dev/null >/dev/null
  done
  files >before

  say "--- install"
  apt install ./shardwise.deb
  before=$(version)
  expect "state" "install ok installed $before" "$(dpkg-query -W -f '${Status} ${Version}' shardwise)"
  expect "conffile" $conf "$(dpkg-query -W -f '${Conffiles}' shardwise | awk '{ print $1 }' | xargs)"
  expect "its rights" "root shardwise 640" "$(stat -c '%U %G %a' $conf)"
  expect "files as packed" "" "$(dpkg --verify shardwise)"
  expect "manual" /usr/share/man/man1/shardwise.1.gz "$(ls /usr/share/man/man1/shardwise.1*)"
  expect "systemd-analyze verify finds" "" "$(systemd-analyze verify shardwise.service shardwise.socket 2>&1 | grep shardwise || true)"
  say "systemd-analyze security: $(systemd-analyze security --no-pager shardwise.service | tail -1 | sed 's/^[^O]*//')"
  expect "not started by the installation" "inactive disabled" "$(state) $(systemctl is-enabled shardwise.service || true)"

  say "--- start"
  systemctl -q enable --now shardwise.service || { journalctl -u shardwise --no-pager; fail "it doesn't start"; }
  pid=$(main_pid)
  expect "unit" active "$(state)"
  expect "user" shardwise "$(ps -o user:20= -p "$pid" | xargs)"
  expect "no rights, none to be had, system calls filtered" "0000000000000000 1 2" \
    "$(awk '/^(CapEff|NoNewPrivs|Seccomp):/ { printf "%s ", $2 }' "/proc/$pid/status" | xargs)"
  expect "SET" OK "$(ask set greeting hello)"
  expect "GET" hello "$(ask get greeting)"
  expect "its log is the journal's" yes "$(journalctl -u shardwise --no-pager | grep -q 'listening on 127.0.0.1:22121' && echo yes)"

  say "--- reload"
  sed -i 's/timeout: 400/timeout: 444/' $conf
  systemctl reload shardwise.service
  expect "reloaded" yes "$(journalctl -u shardwise --no-pager | grep -q 'reload:.*timeout' && echo yes)"
  cp -p $conf good.yml
  sed -i 's/timeout:/timeuot:/' $conf
  systemctl reload shardwise.service 2>/dev/null && fail "a wrong file is reloaded"
  expect "a wrong file changes nothing" "active hello" "$(state) $(ask get greeting)"
  cp -p good.yml $conf
  expect "one process all along" "$pid" "$(main_pid)"

  say "--- socket activation"
  systemctl stop shardwise.service
  expect "unit" inactive "$(state)"
  systemctl start shardwise.socket
  expect "the first client starts it" "hello active" "$(ask get greeting) $(state)"
  systemctl stop shardwise.socket shardwise.service
  systemctl start shardwise.service

  say "--- upgrade"
  make_upgrade "$before+next"
  pid=$(main_pid)
  apt install ./next.deb
  expect "version" "$before+next" "$(version)"
  expect "the changed conffile is kept" yes "$(cmp -s $conf good.yml && echo yes)"
  expect "its rights" "root shardwise 640" "$(stat -c '%U %G %a' $conf)"
  expect "the new one lies beside it" "# new in this version" "$(tail -1 $conf.dpkg-dist)"
  expect "unit" active "$(state)"
  [ "$(main_pid)" != "$pid" ] || fail "the old program still runs"
  expect "the new program answers" hello "$(ask get greeting)"

  say "--- remove"
  pid=$(main_pid)
  apt remove shardwise
  expect "state" "deinstall ok config-files" "$(dpkg-query -W -f '${Status}' shardwise)"
  expect "the process has ended" "" "$(ps -o pid= -p "$pid" || true)"
  expect "program" "" "$(ls /usr/bin/shardwise 2>/dev/null || true)"
  expect "the conffile is kept" yes "$(cmp -s $conf good.yml && echo yes)"

  say "--- purge"
  apt purge shardwise
  files >after
  expect "left behind" "" "$(diff before after | grep '^[<>]' || true)"
  expect "user" "" "$(getent passwd shardwise || true)$(getent group shardwise || true)"
  expect "units" "" "$(systemctl list-units --all --no-legend 'shardwise*' | xargs)"
  say "all is well"
}

case ${1:-} in
  --namespaces) namespaces "$2" ;;
  --inside) inside ;;
  ?*) outside "$1" ;;
  *) fail "usage: tests/package.sh FILE.deb" ;;
esac
