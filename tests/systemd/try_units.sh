#!/usr/bin/env bash
# Runs the units of deploy/systemd under the systemd of a fresh Debian 12, which boots in a container without a network. Installs the
# built programs as docs/operations.md says, with the page's own commands, and checks what the page and the units promise. Prints a line
# for each promise that held.
#
#   tests/systemd/try_units.sh [BASE]      BASE: where the fresh Debian is kept for the next run; by default it is deleted
#
# Needs root, debootstrap, a network for Debian's packages, and 3 GB while it runs. If it cannot run, exits with 77 and the reason as its
# last line.
set -euo pipefail
cd "$(dirname "$0")/../.."

cannot() { echo "the units were not tried: $*"; exit 77; }
[ "$(id -u)" = 0 ] || cannot "only root can boot a container"
mirror=$(find /etc/apt -name '*.list' -o -name '*.sources' | sort | xargs cat |
  sed -nE 's#^(URIs:|deb( \[[^]]*\])?) (https?://[^ ]+/debian)/?( .*)?$#\3#p' | head -1)

work=$(mktemp -d "${TMPDIR:-/var/tmp}/lengthwise-systemd-XXXXXX")
root=$work/root base=${1:-$work/root} container="" cgroups=()
clean() {
  if [ -n "$container" ]; then
    # The second signal does not wait for its services.
    for _ in 1 2; do
      kill "$container" 2>/dev/null || true
      sleep 1
    done
    wait "$container" || true
  fi
  for cgroup in "${cgroups[@]}"; do find "$cgroup" -depth -type d -exec rmdir {} + || true; done
  rm -rf --one-file-system "$work"
}
trap clean EXIT

# --- the machine ---

if [ ! -e "$base/etc/debian_version" ]; then
  command -v debootstrap >/dev/null || cannot "debootstrap is not installed"
  [ -n "$mirror" ] || cannot "apt has no source of Debian's packages here"
  packages=(ca-certificates curl dbus iproute2 munge openssl procps rsync slurm-client slurm-wlm-basic-plugins slurmctld slurmd sudo systemd
    systemd-container)
  echo "making a fresh Debian 12"
  debootstrap --variant=minbase --include="$(IFS=, && echo "${packages[*]}")" bookworm "$base" "$mirror" >"$work/log" 2>&1 ||
    { tail -5 "$work/log"; cannot "debootstrap could not make a Debian 12 from $mirror"; }
fi
[ "$base" = "$root" ] || cp -a "$base" "$root"
# Without the Python environment, which is large and makes comparisons only.
HOME=$work XDG_CACHE_HOME="" deploy/collect.sh "$work/collected"
# The page installs them itself; without a network it finds them installed.
cp --dereference --remove-destination /etc/resolv.conf "$root/etc/"
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
mapfile -t packages <"$work/collected/usr/local/share/lengthwise/packages"
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends "${packages[@]}" >"$work/log" 2>&1 ||
  { tail -5 "$work/log"; cannot "no packages from $mirror"; }
chroot "$root" useradd --create-home --shell /bin/bash ada
echo 'ada ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/ada"
echo '127.0.0.1 localhost head.example.org head' >"$root/etc/hosts"
echo head >"$root/etc/hostname"
mkdir "$root/home/ada/lengthwise" "$root/home/ada/lengthwise/collected"
cp -r deploy experiments "$root/home/ada/lengthwise/"
chroot "$root" chown -R ada: /home/ada/lengthwise

# systemd-nspawn of the fresh Debian, so that this machine's systemd does not matter. It makes the controllers of cgroup v1 read-only; a
# cgroup of its own in each lets the container's systemd limit memory and processors. With cgroup v2 alone it delegates them itself.
nspawn=("$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu/systemd"
  "$root/usr/bin/systemd-nspawn" --quiet --boot --directory="$root" --machine=head --register=no --keep-unit --private-network
  --console=pipe --bind-ro="$work/collected:/home/ada/lengthwise/collected")
for name in memory pids cpu cpuacct cpu,cpuacct systemd unified; do
  own=$(awk -F: -v name=$name '$2 == name || $2 == "name=" name || (name == "unified" && $2 == "") { print $3 }' /proc/self/cgroup)
  cgroup=/sys/fs/cgroup/$name${own%/}/lengthwise-systemd-$$
  if [ -z "$own" ] || ! mkdir "$cgroup" 2>/dev/null; then continue; fi
  cgroups+=("$cgroup")
  case $name in systemd | unified) ;; *) nspawn+=("--bind=$cgroup:/sys/fs/cgroup/$name") ;; esac
done
[ ${#cgroups[@]} = 0 ] || nspawn+=(--tmpfs=/sys/fs/cgroup)
(
  for cgroup in "${cgroups[@]}"; do echo $BASHPID >"$cgroup/cgroup.procs"; done
  exec "${nspawn[@]}"
) </dev/null >"$work/boot.log" 2>&1 &
container=$!

# inside COMMAND...: as root in the container. as_ada SCRIPT: as somebody who may use sudo, in a checkout.
inside() {
  local first
  first=$(cat "/proc/$container/task/$container/children" 2>/dev/null) && [ -n "$first" ] || return 1
  env --ignore-environment PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root \
    nsenter --target "${first%% *}" --mount --uts --ipc --net --pid --cgroup --root --wd -- "$@"
}
as_ada() { inside runuser -u ada -- env HOME=/home/ada USER=ada bash -euo pipefail -c "cd ~/lengthwise; $1"; }

step="the start of the container"
fail() {
  printf 'failed: %s: %s\n' "$step" "$*" >&2
  inside journalctl --no-pager --lines=40 --unit='lengthwise*' >&2 || cat "$work/boot.log" >&2
  exit 1
}
holds() { printf 'holds: %s\n' "$*"; }
# within SECONDS COMMAND...: until it succeeds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
    sleep 0.2
  done
}
property() { inside systemctl show --value --property="$2" "$1"; }
# is UNIT PROPERTY VALUE
is() { [ "$(property "$1" "$2")" = "$3" ] || fail "$2 of $1 is $(property "$1" "$2"); expected $3"; }
journal() { inside journalctl --no-pager --output=cat --unit "$@"; }
# documented TEXT: the commands in docs/operations.md whose block has this text.
documented() {
  awk -v text="$1" '/^```/ { if (inside && index(block, text)) { printf "%s", block; found = 1 }; inside = !inside; block = ""; next }
    inside { block = block $0 "\n" } END { exit !found }' docs/operations.md || fail "docs/operations.md has no command $1"
}

end=$((SECONDS + 60))
until state=$(inside systemctl is-system-running 2>/dev/null) || [ "$state" = degraded ]; do
  kill -0 "$container" 2>/dev/null && [ $SECONDS -lt $end ] ||
    { tail -5 "$work/boot.log"; cannot "systemd does not boot in a container here"; }
  sleep 0.2
done
inside systemctl --version | head -1
# Slurm resolves no address, not even 127.0.0.1, where the loopback has no other.
inside ip address add 192.0.2.1/32 dev lo

# --- the page's first block ---

cat >"$root/home/ada/lengthwise/uploads.yaml" <<'YAML'
name: uploads
tasks: {name: examples, label: pairs, train: pairs.jsonl, test: pairs.jsonl}
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: sin_cos
learning_rates: 1e-3
training: {steps: 20, batch_size: 8}
evaluation: {lengths: [4], attention_lengths: [4]}
YAML
for ((i = 0; i < 20; i++)); do echo '{"input": [1, 2, 2, 1], "target": [1, 1, 2, 2]}'; done >"$root/home/ada/lengthwise/pairs.jsonl"
cat >"$root/home/ada/lengthwise/long.yaml" <<'YAML'
name: long
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: sin_cos
learning_rates: 1e-3
training: {steps: 10000000, batch_size: 8, lengths: 1..8, checkpoint_every_steps: 100}
evaluation: {lengths: [4, 8], sequences: 8}
YAML

server=lengthwise-server worker=lengthwise-worker@cpu
caller=:
as_caller() { as_ada "$caller; $1"; }
# quietly FUNCTION TEXT: shows what was printed only if it fails.
quietly() { "$1" "$2" >"$work/log" 2>&1 || fail "$(tail -5 "$work/log")"; }
# prints COMMAND PATTERN: the caller's command has a line that matches.
prints() { as_caller "$1" | grep -E "$2" >/dev/null; }
checkpoint() { as_caller 'lengthwise show long-1/0' | sed -nE 's/^ *checkpoint +after step ([0-9,]+)$/\1/p' | tr -d ,; }
trained_beyond() { [ "$(checkpoint)" -gt "$1" ]; }
# restarted UNIT TIMES: it has been restarted so often and is active.
restarted() { [ "$(property "$1" NRestarts)" -ge "$2" ] && is_active "$1"; }
is_active() { [ "$(property "$1" ActiveState)" = active ]; }

step="the installation"
quietly as_ada "$(documented 'enable --now lengthwise-server' | grep -v 'journalctl .* -f')"
inside curl --silent --show-error --fail 127.0.0.1:9464/metrics | grep '^lengthwise_trials' >/dev/null || fail "no metrics"
for unit in $server $worker; do is $unit ActiveState active; done
is $server StatusText 'serving on 127.0.0.1:7070'
within 30 prints 'lengthwise workers' '^head-cpu-.* idle '
quietly as_ada 'lengthwise doctor'
holds "both programs are installed, and ready once systemctl returns (Type=notify)"

step="an experiment"
quietly as_ada 'lengthwise submit uploads.yaml'
within 60 prints 'lengthwise list' '^uploads-1 .* 1 done'
quietly as_ada 'lengthwise attention uploads-1/0 --input 1,2,2,1'
quietly as_ada 'lengthwise submit long.yaml'
within 60 trained_beyond 0
quietly as_ada 'lengthwise backup nightly'
[ "$(inside stat -c %U:%a /var/lib/lengthwise/backups/nightly)" = lengthwise:700 ] || fail "others may read a backup"
holds "uploads, training, attention and a backup work in the sandbox"

step="the sandbox"
for unit in $server $worker; do
  pid=$(property $unit MainPID)
  for line in $'CapEff:\t0*' $'NoNewPrivs:\t1' $'Seccomp:\t2'; do
    inside grep -q "^$line\$" "/proc/$pid/status" || fail "$unit: no $line in its status"
  done
  # A container cannot raise the limit that it was started with.
  files=$(inside awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")
  [ "$files" = 65536 ] || [ "$files" = "$(ulimit -Hn)" ] || fail "$unit may open $files files"
  inside nsenter --target "$pid" --mount -- sh -c '! touch /etc/written /usr/written && ! ls /home/ada' 2>/dev/null ||
    fail "$unit writes to the system or sees home directories"
  exposure=$(inside systemd-analyze security --no-pager $unit | tail -1)
  holds "$unit has no capability, writes to no system directory and sees no home (exposure ${exposure##*: })"
done

step="a reload"
for unit in $server $worker; do
  pid=$(property $unit MainPID)
  inside systemctl reload $unit
  sleep 1
  is $unit MainPID "$pid"
  is $unit ActiveState active
done
journal $server | grep 'SIGHUP: reading the certificates again' >/dev/null || fail "the server's log does not mention it"
holds "a reload (SIGHUP) ends neither of them"

step="a killed server"
worker_pid=$(property $worker MainPID)
inside kill -KILL "$(property $server MainPID)"
within 30 restarted $server 1
before=$(checkpoint)
within 60 trained_beyond "$before"
is $worker MainPID "$worker_pid"
holds "a killed server starts again, and its worker goes on"

step="a stopped worker"
inside systemctl stop $worker
is $worker Result success
is $worker ExecMainStatus 0
stopped=$(checkpoint)
prints 'lengthwise list' '^long-1 .* 1 queued' || fail "its trial is not in the queue: $(as_caller 'lengthwise list')"
inside systemctl start $worker
within 60 trained_beyond "$stopped"
prints 'lengthwise show long-1/0' "^ *reason .* from step $stopped\$" || fail "$(as_caller 'lengthwise show long-1/0')"
holds "systemctl stop drains a worker: its trial waits with a checkpoint of the last step and goes on from there"

step="a killed worker"
inside kill -KILL "$(property $worker MainPID)"
within 30 restarted $worker 1
before=$(checkpoint)
within 90 trained_beyond "$before"
holds "a killed worker starts again, and its trial goes on"

step="the journal"
journal $server --priority=warning | grep -E ' WARNING .* lost' >/dev/null || fail "no lost worker: $(journal $server --priority=warning)"
! journal $server --priority=warning | grep ' INFO ' || fail "an INFO has a warning's priority"
journal $server --priority=info | grep ' INFO ' >/dev/null || fail "no INFO"
holds "the journal has each line's priority: journalctl -p warning shows the lost worker and no INFO"

step="wrong flags"
echo 'LENGTHWISE_SERVER_FLAGS=--no_such_flag' >"$root/etc/lengthwise/server.env"
! inside systemctl restart $server 2>/dev/null || fail "it started"
sleep 5 # more than RestartSec=
is $server ActiveState failed
is $server ExecMainStatus 2
journal $server --lines=5 | grep no_such_flag >/dev/null || fail "the journal does not name the flag"
rm "$root/etc/lengthwise/server.env"
inside systemctl start $server
holds "a server with wrong flags exits with code 2, is not started again, and the journal names the flag"

step="limits"
if [ -n "$(inside find /sys/fs/cgroup -path '*/lengthwise-server.service/*' '(' -name memory.limit_in_bytes -o -name memory.max ')')" ]; then
  is $server MemoryMax $((4 << 30))
  restarts=$(property $server NRestarts) worker_pid=$(property $worker MainPID)
  inside systemctl set-property --runtime $server MemoryMax=2M
  inside systemctl restart --no-block $server
  killed_again() { [ "$(property $server NRestarts)" -ge $((restarts + 2)) ]; }
  within 60 killed_again
  is $worker MainPID "$worker_pid"
  inside systemctl set-property --runtime $server MemoryMax=4G
  within 60 is_active $server
  holds "a server beyond MemoryMax= is killed alone, again and again, and serves once it has enough"
else
  echo "not tried: MemoryMax=, because systemd may not limit memory in a container here"
fi
if [ -n "$(inside find /sys/fs/cgroup -path '*/lengthwise*' '(' -name cpu.cfs_quota_us -o -name cpu.max ')')" ] || [ ${#cgroups[@]} -gt 0 ]; then
  inside systemctl set-property --runtime $worker CPUQuota=100%
  inside systemctl restart $worker
  said=$(journal $worker | grep 'CPU thread' | tail -1)
  [[ $said == *" 1 CPU thread"*quota* ]] || fail "$said"
  inside systemctl set-property --runtime $worker CPUQuota=
  holds "a worker has as many threads as CPUQuota= allows"
else
  echo "not tried: CPUQuota=, because systemd may not limit processors in a container here"
fi

# --- the page's other blocks ---

step="tokens and TLS"
inside systemctl stop $worker
quietly as_ada "$(sed 's/IP:127.0.0.1/DNS:head.example.org/' deploy/certificates.sh)"
quietly as_ada "$(documented 'sudo chown $USER admin.token')"
caller='export LENGTHWISE_SERVER=head.example.org:7070 LENGTHWISE_TLS_CA=/etc/lengthwise/house-ca.pem LENGTHWISE_TOKEN_FILE=admin.token'
quietly as_ada "$(documented '-o lengthwise-worker worker.token' | sed 's/cuda:0/cpu/')"
within 60 prints 'lengthwise workers' '^head-cpu-.* busy '
! as_caller 'unset LENGTHWISE_TOKEN_FILE; lengthwise list' >/dev/null 2>&1 || fail "a caller needs no token"
holds "a server with tokens and TLS serves a worker with a token"

step="a new certificate"
served() {
  inside openssl s_client -connect head.example.org:7070 -CAfile /etc/lengthwise/house-ca.pem </dev/null 2>/dev/null |
    openssl x509 -noout -serial
}
pid=$(property $server MainPID) old=$(served)
quietly as_ada 'openssl x509 -req -in server.csr -CA house-ca.pem -CAkey house-ca.key -CAcreateserial -days 1 -copy_extensions copy -out server.pem
  sudo install -m 644 server.pem /etc/lengthwise/ && sudo systemctl reload lengthwise-server'
serves_another() { local new && new=$(served) && [ "$new" != "$old" ]; }
within 5 serves_another
is $server MainPID "$pid"
prints 'lengthwise workers' '^head-cpu-.* busy ' || fail "$(as_caller 'lengthwise workers')"
holds "after a reload the server serves its new certificate, and its worker goes on"

step="the drop-in"
quietly as_ada "$(documented drain.conf)"
is $worker ActiveState active
is $worker TimeoutStopUSec '10min 10s'
inside sh -c "tr '\\0' ' ' </proc/$(property $worker MainPID)/cmdline" | grep -e '--drain_timeout 10m' >/dev/null || fail "its flag is not set"
holds "a drop-in replaces a flag of a unit"

step="the backup's timer"
quietly as_caller 'lengthwise auth create-token timer --role backup --out backup.token && sudo install -m 400 backup.token /etc/lengthwise/'
mkdir -p "$root/srv/backups"
documented 'rsync -aH' | sed 's#backup.example.org:lengthwise/#/srv/backups/#' >"$root/usr/local/sbin/lengthwise-backup"
chmod +x "$root/usr/local/sbin/lengthwise-backup"
inside systemd-run --quiet --on-active=1 --timer-property=AccuracySec=100ms --unit=lengthwise-backup /usr/local/sbin/lengthwise-backup
copied() { [ "$(inside find /srv/backups -name manifest.json | wc -l)" = 2 ]; }
within 30 copied
ended() { [ "$(property lengthwise-backup.service ActiveState)" = inactive ]; }
within 10 ended
is lengthwise-backup.service Result success
holds "a timer makes a backup, with a token of the role backup, and copies it"

step="a restore"
quietly as_caller 'lengthwise backup with_tokens'
inside systemctl stop $worker
quietly as_caller "$(documented '--restore /var/lib/lengthwise.old/backups/nightly' | sed -E 's#backups/nightly#backups/with_tokens#
  s/^sudo lengthwise_server .*/& 2>serves \&\nuntil grep " serving on " serves; do sleep 0.1; done\nsudo pkill -INT lengthwise_serv\nwait/')"
inside systemctl start $worker
within 90 prints 'lengthwise workers' '^head-cpu-.* busy '
prints 'lengthwise list' '^uploads-1 .* 1 done' || fail "$(as_caller 'lengthwise list')"
holds "a backup is restored, and the unit serves it with its tokens"

step="an upgrade"
quietly as_ada "$(documented ' --check_upgrade ' | sed 's#--data_dir data#--data_dir /var/lib/lengthwise#; s#^collected#sudo &#; /^lengthwise backup/d')"
quietly as_caller "$(documented 'lengthwise.old && sudo mv')"
for unit in $server $worker; do is $unit ActiveState active; done
holds "the programs are replaced while the units run, and doctor finds no fault"

step="a fleet"
inside systemctl stop $worker
cat >"$root/etc/slurm/slurm.conf" <<'CONF'
ClusterName=test
SlurmctldHost=head(127.0.0.1)
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
NodeName=head NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
CONF
if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
  printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n'
else
  printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n'
fi >"$root/etc/slurm/cgroup.conf"
inside install -d -o slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd
inside systemctl restart munge slurmctld
inside systemctl restart slurmd
has_a_node() { inside sinfo --noheader --format=%T | grep '^idle$'; }
within 60 has_a_node
cat >"$root/etc/lengthwise/fleet.env" <<'ENV'
LENGTHWISE_SERVER=head.example.org:7070
LENGTHWISE_TLS_CA=/etc/lengthwise/house-ca.pem
LENGTHWISE_TOKEN_FILE=/home/ada/lengthwise/admin.token
LENGTHWISE_UP_FLAGS=--worker_token_file /home/ada/lengthwise/worker.token --max 1 -- --time=30
ENV
inside systemctl start lengthwise-fleet@ada
within 90 prints 'lengthwise workers' '^slurm-.* busy '
[ "$(inside squeue --noheader --user=ada --format=%T)" = RUNNING ] || fail "$(inside squeue)"
inside kill -KILL "$(property lengthwise-fleet@ada MainPID)"
within 60 restarted lengthwise-fleet@ada 1
inside systemctl stop lengthwise-fleet@ada
is lengthwise-fleet@ada Result success
[ "$(inside squeue --noheader --user=ada --format=%T)" = RUNNING ] || fail "the job did not outlive the fleet: $(inside squeue)"
holds "the fleet's unit starts a worker by Slurm, starts again when killed, and leaves the job when it stops"

step="the end"
[ "$(journal $server | grep -c ' is lost: ')" = 1 ] || fail "only the killed worker was lost"
inside systemctl stop $server
is $server Result success
is $server ExecMainStatus 0
[ -z "$(journal $server | grep -E 'Killing|timed out')" ] || fail "systemd had to kill the server"
holds "the server stops in time"
