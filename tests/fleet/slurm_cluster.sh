#!/usr/bin/env bash
# A Slurm of two nodes on this machine's loopback, from Debian's packages, which are unpacked into a
# folder. Installs nothing.
#
#   slurm_cluster.sh unpack ROOT          downloads the packages (apt-get) and unpacks them. Exits 1 with the
#                                         reason if they are unavailable or do not run here.
#   slurm_cluster.sh configure ROOT DIR PORT1 PORT2 PORT3
#                                         writes DIR/slurm.conf and munge's key. Starts no daemon.
#
# Partitions: gpu (default, preemptible, 5 s of grace) and urgent. There is no accounting, so sacct
# reports nothing; jobacct_gather/linux needs cgroups, which a container may lack.
set -euo pipefail
packages=(libhwloc15 liblua5.1-0 libmunge2 munge slurm-client slurm-wlm-basic-plugins slurmctld slurmd)
case "$1" in
  unpack)
    root=$2
    mkdir -p "$root/debs"
    command -v dpkg >/dev/null || { echo "dpkg is not installed; it unpacks Slurm from Debian's packages"; exit 1; }
    (cd "$root/debs" && apt-get download -qq "${packages[@]}" >../download.log 2>&1) ||
      { echo "Debian's Slurm packages cannot be downloaded: $(tail -n 1 "$root/download.log")"; exit 1; }
    for package in "$root"/debs/*.deb; do dpkg -x "$package" "$root"; done
    libraries=$(echo "$root"/usr/lib/*/slurm-wlm)
    for program in slurmctld-wlm slurmd-wlm munged; do
      said=$(LD_LIBRARY_PATH=$(dirname "$libraries"):$libraries "$root/usr/sbin/$program" -V 2>&1) ||
        { echo "$program from Debian's packages does not run here: $said"; exit 1; }
    done
    ;;
  configure)
    root=$2 dir=$3
    libraries=$(echo "$root"/usr/lib/*/slurm-wlm)
    host=$(hostname -s)
    install -d -m 755 "$dir" "$dir/state" "$dir/spool.n1" "$dir/spool.n2" "$dir/socket"
    install -d -m 700 "$dir/munge"
    head -c 128 /dev/urandom >"$dir/munge/key"
    chmod 600 "$dir/munge/key"
    cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$4
PluginDir=$libraries
AuthType=auth/munge
AuthInfo=socket=$dir/socket/munge
CredType=cred/munge
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdTimeout=60
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$5 CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$6 CPUs=1 State=UNKNOWN
PartitionName=gpu Nodes=n1,n2 Default=YES MaxTime=60 DefaultTime=30 State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=5
PartitionName=urgent Nodes=n1,n2 MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF
CONF
    if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
      printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >"$dir/cgroup.conf"
    else
      printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$dir/cgroup.conf"
    fi
    ;;
esac
