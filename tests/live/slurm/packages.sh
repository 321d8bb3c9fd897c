#!/bin/sh
# Installs the packages that tests/live/slurm needs, if missing: Slurm with accounting, from the distribution.
# Starts nothing: policy-rc.d prevents the packages from starting their daemons during installation.
set -eu
NEEDED="slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins slurmdbd slurm-wlm-mysql-plugin mariadb-server"
PATH=$PATH:/usr/sbin:/sbin
missing=; for b in slurmctld slurmd sbatch munged slurmdbd mariadbd; do command -v $b >/dev/null || missing="$missing $b"; done
[ -n "$missing" ] || { echo "Slurm is installed: $(slurmctld -V)"; exit 0; }
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not found:$missing; root permissions are needed to install $NEEDED with apt-get; skipping tests against a real Slurm"
  exit 0
fi
echo "installing $NEEDED"
own=; [ -e /usr/sbin/policy-rc.d ] || { own=1; printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; }
done=0
{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $NEEDED; } >/dev/null || done=$?
[ -z "$own" ] || rm -f /usr/sbin/policy-rc.d
[ "$done" = 0 ] || { echo "the packages could not be installed; skipping tests against a real Slurm"; exit 0; }
slurmctld -V
