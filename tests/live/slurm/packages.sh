#!/bin/sh
# Installs what tests/live/slurm needs where it is missing: Slurm with its accounting, from the distribution's packages.
# It says what it does. Nothing is started: policy-rc.d keeps the packages' own daemons off while they are installed.
set -eu
NEEDED="slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins slurmdbd slurm-wlm-mysql-plugin mariadb-server"
PATH=$PATH:/usr/sbin:/sbin
missing=; for b in slurmctld slurmd sbatch munged slurmdbd mariadbd; do command -v $b >/dev/null || missing="$missing $b"; done
[ -n "$missing" ] || { echo "a Slurm is installed: $(slurmctld -V)"; exit 0; }
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not found:$missing; only root can install $NEEDED (by apt-get); the tests against a real Slurm are skipped"
  exit 0
fi
echo "installing $NEEDED"
own=; [ -e /usr/sbin/policy-rc.d ] || { own=1; printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; }
done=0
{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $NEEDED; } >/dev/null || done=$?
[ -z "$own" ] || rm -f /usr/sbin/policy-rc.d
[ "$done" = 0 ] || { echo "the packages could not be installed; the tests against a real Slurm are skipped"; exit 0; }
slurmctld -V
