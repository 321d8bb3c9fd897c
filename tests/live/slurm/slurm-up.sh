#!/bin/sh
# A real Slurm (22.05 or later) with fake nodes on one host, for tests.
#   slurm-up.sh start|stop|clean|status|env      (eval "$(slurm-up.sh env)" puts the clients on PATH)
# Runs as the calling user (SlurmUser = SlurmdUser = you); root is not needed.
# Needs slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins, installed, or unpacked
# with `dpkg -x` below $SLURM_PREFIX. SLURM_UP_DBD=1 also needs slurmdbd,
# slurm-wlm-mysql-plugin and mariadb-server.
set -eu
DIR=${SLURM_UP_DIR:-${TMPDIR:-/tmp}/slurm-up-$(id -un)}
NODES=${SLURM_UP_NODES:-16}; RACKS=${SLURM_UP_RACKS:-4}
CPUS=${SLURM_UP_CPUS:-16}; MEM=${SLURM_UP_MEM:-65536}  # of a node; lists such as 16,16,32,8 have one value for each rack
GPUS=${SLURM_UP_GPUS:-}                    # GPUs of a node of each rack, such as 0,0,0,4
POOL=${SLURM_UP_POOL:-1024}
PORT=${SLURM_UP_PORT:-17000}; DBD=${SLURM_UP_DBD:-0}
PRIORITY=${SLURM_UP_PRIORITY:-basic}      # basic | multifactor
SCHED=${SLURM_UP_SCHED:-sched_interval=2,batch_sched_delay=0,sched_min_interval=200000,bf_interval=2,bf_continue,bf_window=4320,bf_max_job_test=2000,bf_yield_interval=1000000}
WEIGHTS=${SLURM_UP_WEIGHTS:-}              # Weight of the nodes of each rack, such as 10,1,5,5
TOPOLOGY=${SLURM_UP_TOPOLOGY:-}            # contents of topology.conf; by default, racks below one switch
EXTRA=${SLURM_UP_EXTRA:-}                 # a file whose lines are appended to slurm.conf
P=${SLURM_PREFIX:-}
ME=$(id -un)

if [ -n "$P" ]; then
  L=$(ls -d "$P"/usr/lib/*-linux-gnu | head -n 1)
  LIBS="$L:$L/slurm-wlm"; PLUG="$L/slurm-wlm"
  PATH="$P/usr/bin:$P/usr/sbin:$PATH"; LD_LIBRARY_PATH="$LIBS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export LD_LIBRARY_PATH
else
  PLUG=; LIBS=
fi
PATH=$PATH:/usr/sbin:/sbin
SLURM_CONF=$DIR/etc/slurm.conf; export PATH SLURM_CONF

find_bin() { for b; do command -v "$b" && return; done; echo "no $1" >&2; return 1; }
alive() { # pid file: a process that was killed and not yet reaped does not count
  local pid
  [ -s "$1" ] && pid=$(cat "$1") && kill -0 "$pid" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null
}
wait_for() { i=0; while ! eval "$1"; do i=$((i+1)); [ $i -gt "${2:-150}" ] && { echo "timed out: $1" >&2; return 1; }; sleep 0.1; done; }

of_rack() { echo "$1" | cut -d, -f$((r+1)); } # list: a list without commas is the value of every rack
write_conf() {
  umask 077
  mkdir -p "$DIR/etc" "$DIR/run" "$DIR/log" "$DIR/state" "$DIR/spool" "$DIR/munge" "$DIR/db"
  chmod 755 "$DIR" "$DIR/etc" "$DIR/run" "$DIR/spool"; umask 022  # jobs of other users read their scripts in spool
  per=$(( (NODES + RACKS - 1) / RACKS )); lic=; nodes=; topo=; gres=; r=0
  while [ $r -lt "$RACKS" ]; do
    a=$((r*per)); b=$((a+per-1)); [ $b -ge "$NODES" ] && b=$((NODES-1))
    [ $a -gt $b ] && break
    rng=$(printf 'n[%03d-%03d]' $a $b)
    g=$(of_rack "$GPUS"); [ "${g:-0}" = 0 ] && g=
    nodes="$nodes
NodeName=$rng NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((PORT+100+a))-$((PORT+100+b))] CPUs=$(of_rack "$CPUS") RealMemory=$(of_rack "$MEM") Feature=rack$r${WEIGHTS:+ Weight=$(of_rack "$WEIGHTS")}${g:+ Gres=gpu:$g} State=UNKNOWN"
    gres="$gres${g:+
NodeName=$rng Name=gpu File=$DIR/gpu/[1-$g]}"
    topo="$topo
SwitchName=rack$r Nodes=$rng"
    lic="$lic${lic:+,}pool_rack$r:$POOL"; r=$((r+1))
  done
  lic="$lic${SLURM_UP_LICENSES:+,$SLURM_UP_LICENSES}"
  [ -n "$TOPOLOGY" ] || TOPOLOGY="$topo
SwitchName=top Switches=rack[0-$((r-1))]"
  echo "$TOPOLOGY" > "$DIR/etc/topology.conf"
  if [ -n "$gres" ]; then # a file for each GPU, which stands for its device
    mkdir -p "$DIR/gpu"; for n in 1 2 3 4 5 6 7 8; do : > "$DIR/gpu/$n"; done
    echo "AutoDetect=off$gres" > "$DIR/etc/gres.conf"
  fi
  cat > "$DIR/etc/cgroup.conf" <<X
$(case $("$(find_bin slurmctld slurmctld-wlm)" -V) in *" 22."*|*" 23.02"*) echo CgroupPlugin=cgroup/v1;; *) echo CgroupPlugin=disabled;; esac)
X
  cat > "$SLURM_CONF" <<X
ClusterName=poolwise
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$((PORT+1))
SlurmUser=$ME
SlurmdUser=$ME
AuthType=auth/munge
AuthInfo=socket=$DIR/run/munge.sock
CredType=cred/munge
${PLUG:+PluginDir=$PLUG}
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd-%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd-%n.log
SlurmSchedLogFile=$DIR/log/sched.log
SlurmctldDebug=info
SlurmdDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=1
TopologyPlugin=topology/tree
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=$SCHED
PriorityType=priority/$PRIORITY
JobCompType=jobcomp/filetxt
JobCompLoc=$DIR/log/jobcomp.txt
MaxJobCount=20000
MinJobAge=600
ReturnToService=2
SlurmdTimeout=300
InactiveLimit=0
DebugFlags=NO_CONF_HASH
KillWait=2
CompleteWait=0
Licenses=$lic
$( [ "$DBD" = 1 ] && cat <<Y
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORT+2))
AccountingStoragePass=$DIR/run/munge.sock
Y
)
${gres:+GresTypes=gpu}
$nodes
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
$( [ -n "$EXTRA" ] && cat "$EXTRA")
X
  if [ "$DBD" = 1 ]; then
    ( umask 077; cat > "$DIR/etc/slurmdbd.conf" <<X
AuthType=auth/munge
AuthInfo=socket=$DIR/run/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((PORT+2))
SlurmUser=$ME
PidFile=$DIR/run/slurmdbd.pid
LogFile=$DIR/log/slurmdbd.log
${PLUG:+PluginDir=$PLUG}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((PORT+3))
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
X
    )
  fi
}

start_db() {
  my=$(find_bin mariadbd mysqld)
  if [ ! -d "$DIR/db/mysql" ]; then
    "$(find_bin mariadb-install-db)" --no-defaults ${P:+--basedir="$P/usr"} --datadir="$DIR/db" \
      --auth-root-authentication-method=normal --skip-test-db --user="$ME" >"$DIR/log/db-install.log" 2>&1
  fi
  "$my" --no-defaults ${P:+--basedir="$P/usr"} --datadir="$DIR/db" --user="$ME" --bind-address=127.0.0.1 --port=$((PORT+3)) \
    --socket="$DIR/run/db.sock" --pid-file="$DIR/run/db.pid" --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
    --innodb-flush-log-at-trx-commit=0 >"$DIR/log/db.log" 2>&1 &
  q() { "$(find_bin mariadb mysql)" --no-defaults -u root -S "$DIR/run/db.sock" "$@"; }
  wait_for 'q -e "select 1" >/dev/null 2>&1' 300
  q -e "create user if not exists slurm@localhost identified by 'slurm'; grant all on slurm_acct.* to slurm@localhost; create user if not exists slurm@127.0.0.1 identified by 'slurm'; grant all on slurm_acct.* to slurm@127.0.0.1;"
  "$(find_bin slurmdbd)"; : slurmdbd.conf has to be in the folder of SLURM_CONF
}

case ${1:-} in
start)
  [ -f "$SLURM_CONF" ] || write_conf
  ( umask 077; [ -s "$DIR/munge/key" ] || "$(find_bin mungekey)" --create --keyfile="$DIR/munge/key" )
  if ! alive "$DIR/run/munged.pid"; then
    rm -f "$DIR"/run/munge.sock*
    "$(find_bin munged)" --socket="$DIR/run/munge.sock" --key-file="$DIR/munge/key" --pid-file="$DIR/run/munged.pid" \
      --log-file="$DIR/log/munged.log" --seed-file="$DIR/munge/seed" --num-threads=4 
  fi
  if grep -q ^AccountingStorageHost "$SLURM_CONF" && ! alive "$DIR/run/slurmdbd.pid"; then start_db; wait_for 'sacctmgr -n -Q show cluster >/dev/null 2>&1' 300; fi
  if grep -q ^AccountingStorageHost "$SLURM_CONF"; then sacctmgr -i -Q add cluster poolwise >/dev/null 2>&1 || :; fi
  if ! alive "$DIR/run/slurmctld.pid"; then "$(find_bin slurmctld slurmctld-wlm)" -f "$SLURM_CONF"; fi
  wait_for 'scontrol ping 2>/dev/null | grep -q UP'
  d=$(find_bin slurmd slurmd-wlm); s=$(find_bin slurmstepd slurmstepd-wlm)
  for n in $(scontrol show hostnames "$(sinfo -ho %N)"); do
    alive "$DIR/run/slurmd-$n.pid" && continue
    mkdir -p "$DIR/spool/$n"
    "$d" -N "$n" -f "$SLURM_CONF" -d "$s"
  done
  wait_for '[ -z "$(sinfo -h -N -t unk,down,no_respond -o %N)" ]' 300
  ;;
stop)
  for n in "$DIR"/run/slurmd-*.pid "$DIR/run/slurmctld.pid" "$DIR/run/slurmdbd.pid" "$DIR/run/db.pid" "$DIR/run/munged.pid"; do
    alive "$n" || continue
    pid=$(cat "$n"); kill "$pid" || :
    case $n in *slurmd-*) ;; *) wait_for "! kill -0 $pid 2>/dev/null" 100 || :;; esac
  done
  ;;
clean) timeout 5 scancel -u "$ME" 2>/dev/null || :; sleep 1; "$0" stop; case $DIR in */slurm-up*) rm -rf "$DIR";; *) echo "not removing $DIR" >&2; exit 1;; esac ;;
status) scontrol ping; sinfo -h -o '%D %t %N' ;;
env)
  echo "export SLURM_CONF='$SLURM_CONF'"
  [ -z "$P" ] || echo "export PATH='$P/usr/bin:$P/usr/sbin':\$PATH LD_LIBRARY_PATH='$LIBS'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" ;;
*) sed -n 2,8p "$0"; exit 2 ;;
esac
