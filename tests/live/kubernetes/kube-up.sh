#!/usr/bin/env bash
# A real Kubernetes control plane on loopback, built once through the Go module proxy and then started in seconds.
#
#   kube-up.sh build            build into the cache (skipped if already built)
#   kube-up.sh start            start etcd, API server, controller manager and kwok; print the kubeconfig's path
#   kube-up.sh start-scheduler  also start kube-scheduler (a baseline; it takes pods with schedulerName default-scheduler)
#   kube-up.sh stop             stop what `start` started (by its pid files); the data stays
#   kube-up.sh clean            stop, and remove the data
#   kube-up.sh status           list running processes with their memory
#
# Settings (environment): KUBE_CACHE (binaries), KUBE_DATA (one cluster's data), KUBE_PORT (API server; the next two
# are etcd's), KUBE_JOBS (compiler jobs), KUBE_GATES (feature gates), KUBE_RUNTIME_CONFIG (APIs), KUBE_KEEP=1 (keep
# the Go build cache and the modules used for the build), KUBE_SCHEDULER_PROFILES (profiles of kube-scheduler, as JSON),
# KUBE_SCHEDULER_FLAGS (further options of kube-scheduler), KUBE_NODE_LEASE_S (duration of node leases in seconds, 40 by
# default; fake nodes renew them four times as often: 500 renewals per second with 5,000 nodes).
set -euo pipefail

version=1.36.3 etcd=3.6.8 kwok=0.8.0
cache=${KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/poolwise/kube}/$version
data=${KUBE_DATA:-${TMPDIR:-/tmp}/poolwise-kube-$(id -u)}
port=${KUBE_PORT:-26443}
lease=${KUBE_NODE_LEASE_S:-40}
gates=${KUBE_GATES:-GenericWorkload=true,GangScheduling=true,DRADeviceTaintRules=true}
apis=${KUBE_RUNTIME_CONFIG:-scheduling.k8s.io/v1alpha2=true,resource.k8s.io/v1beta2=true,resource.k8s.io/v1alpha3=true}
bin=$cache/bin
url=https://127.0.0.1:$port
pki=$data/pki

say() { echo "kube-up: $*" >&2; }

# Build ---------------------------------------------------------------------------------------------------------------

built() { [ -f "$cache/built" ]; }

build() {
    if built; then say "already built in $bin"; return; fi
    command -v go >/dev/null || { say "needs Go 1.26 or later"; exit 1; }
    local work=$cache/work since=$SECONDS module source
    mkdir -p "$work" "$bin"
    exec 9>"$cache/lock"; flock 9 2>/dev/null || true # two builds at once: the second waits
    if built; then return; fi
    export CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=mod -modcacherw -buildvcs=false"
    if [ -z "${KUBE_KEEP:-}" ]; then export GOCACHE=$work/go-build GOMODCACHE=$work/mod; fi
    cd "$work"
    source=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    {   # every staging module is replaced in the kubernetes module by a folder that the proxy does not serve
        printf 'module poolwise.invalid/kube\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$version"
        sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$source/go.mod" | while read -r module; do
            printf '\t%s => %s v0.%s\n' "$module" "$module" "${version#1.}"
        done
        printf ')\n'
    } >go.mod
    say "downloading modules"
    go get -tool "k8s.io/kubernetes/cmd/kube-apiserver@v$version" "k8s.io/kubernetes/cmd/kube-controller-manager@v$version" \
        "k8s.io/kubernetes/cmd/kube-scheduler@v$version" "go.etcd.io/etcd/server/v3@v$etcd" "sigs.k8s.io/kwok/cmd/kwok@v$kwok" 2>get.log ||
        { tail -20 get.log >&2; exit 1; }
    say "compiling (minutes)"
    # the version alone: with gitMajor and no gitMinor the API server panics, with no version it calls itself v0.0.0
    local stamp="-X k8s.io/component-base/version.gitVersion=v$version -X k8s.io/client-go/pkg/version.gitVersion=v$version"
    nice go build -p "${KUBE_JOBS:-2}" -trimpath -ldflags "-s -w $stamp" -o "$bin/" k8s.io/kubernetes/cmd/kube-apiserver \
        k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler go.etcd.io/etcd/server/v3 \
        sigs.k8s.io/kwok/cmd/kwok
    mv "$bin/server" "$bin/etcd"
    cp go.mod go.sum "$cache/"
    stages "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage" >"$cache/stages.yaml"
    du -sm "$work" "$bin" | awk '{ printf "kube-up: %d MB in %s\n", $1, $2 }' >&2
    cd "$cache"
    rm -rf "$work"
    touch "$cache/built"
    say "built in $((SECONDS - since)) s"
}

stages() { # kwok's folder of stages: how fake nodes and pods behave; a Running pod ends where an annotation says when
    local file
    for file in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready pod/fast/pod-delete; do
        cat "$1/$file.yaml"
        echo ---
    done
    cat <<'END'
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-finish}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
    - {key: '.metadata.annotations["poolwise/runtime"]', operator: Exists}
  delay:
    durationMilliseconds: 1000
    durationFrom: {expressionFrom: '.metadata.annotations["poolwise/runtime"]'}
  next:
    statusTemplate: |
      {{ $now := Now }}
      {{ $root := . }}
      containerStatuses:
      {{ range $index, $item := .spec.containers }}
      {{ $origin := index $root.status.containerStatuses $index }}
      - image: {{ $item.image | Quote }}
        name: {{ $item.name | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          terminated:
            exitCode: 0
            finishedAt: {{ $now | Quote }}
            reason: Completed
            startedAt: {{ $origin.state.running.startedAt | Quote }}
      {{ end }}
      phase: Succeeded
END
}

# Start ---------------------------------------------------------------------------------------------------------------

alive() { # name: a process that was killed and not yet reaped does not count
    local pid
    [ -f "$data/$1.pid" ] && pid=$(cat "$data/$1.pid") && kill -0 "$pid" 2>/dev/null &&
        ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null
}

launch() { # name command...: keeps running after this script; its pid and log are in the data folder
    local name=$1
    shift
    if alive "$name"; then return; fi
    setsid nohup "$@" >"$data/$name.log" 2>&1 </dev/null 9>&- &
    echo $! >"$data/$name.pid"
}

await() { # name seconds command...: until the command succeeds
    local name=$1 until=$((SECONDS + $2))
    shift 2
    until "$@" >/dev/null 2>&1; do
        if ! alive "$name" || [ $SECONDS -ge $until ]; then
            say "$name is not ready: the end of $data/$name.log"
            tail -5 "$data/$name.log" >&2
            stop
            exit 1
        fi
        sleep 0.1
    done
}

ready() { curl --silent --fail --max-time 2 --cacert "$pki/apiserver.crt" -H "Authorization: Bearer $(cat "$pki/admin.token")" "$url/readyz"; }

kubeconfig() { # user
    cat >"$data/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: poolwise
clusters: [{name: poolwise, cluster: {server: "$url", certificate-authority: "$pki/apiserver.crt"}}]
users: [{name: $1, user: {token: "$(cat "$pki/$1.token")"}}]
contexts: [{name: poolwise, context: {cluster: poolwise, user: $1}}]
END
    chmod 600 "$data/$1.kubeconfig"
}

identity() { # name user groups: a line of the token file
    [ -f "$pki/$1.token" ] || openssl rand -hex 16 >"$pki/$1.token"
    printf '%s,%s,%s,"%s"\n' "$(cat "$pki/$1.token")" "$2" "$1" "$3" >>"$pki/tokens.csv"
}

start() {
    built || build
    local since=$SECONDS name
    mkdir -p "$data" "$pki"
    chmod 700 "$data" "$pki"
    if ! alive apiserver && (echo >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        say "port $port is taken: set KUBE_PORT"
        exit 1
    fi
    [ -f "$pki/sa.key" ] || openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
    rm -f "$pki/tokens.csv"
    (umask 077; touch "$pki/tokens.csv")
    identity admin admin system:masters
    identity controller-manager system:kube-controller-manager system:authenticated
    identity scheduler system:kube-scheduler system:authenticated
    identity poolwise poolwise poolwise
    identity driver driver poolwise-drivers
    for name in admin controller-manager scheduler poolwise driver; do kubeconfig $name; done

    launch etcd "$bin/etcd" --name poolwise --data-dir "$data/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls "http://127.0.0.1:$((port + 1))" --advertise-client-urls "http://127.0.0.1:$((port + 1))" \
        --listen-peer-urls "http://127.0.0.1:$((port + 2))" --initial-advertise-peer-urls "http://127.0.0.1:$((port + 2))" \
        --initial-cluster "poolwise=http://127.0.0.1:$((port + 2))" --quota-backend-bytes 4294967296
    launch apiserver "$bin/kube-apiserver" --etcd-servers "http://127.0.0.1:$((port + 1))" --bind-address 127.0.0.1 \
        --advertise-address 127.0.0.1 --secure-port "$port" --cert-dir "$pki" --token-auth-file "$pki/tokens.csv" \
        --authorization-mode RBAC --anonymous-auth=false --service-account-issuer https://poolwise.invalid \
        --service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key" \
        --service-cluster-ip-range 10.0.0.0/24 --endpoint-reconciler-type none --disable-admission-plugins ServiceAccount \
        --event-ttl 10m --feature-gates "$gates" --runtime-config "$apis" ${KUBE_APISERVER_FLAGS:-}
    await apiserver 60 ready
    launch controller-manager "$bin/kube-controller-manager" --kubeconfig "$data/controller-manager.kubeconfig" \
        --authentication-kubeconfig "$data/controller-manager.kubeconfig" \
        --authorization-kubeconfig "$data/controller-manager.kubeconfig" --leader-elect=false --secure-port 0 \
        --use-service-account-credentials=true --kube-api-qps 500 --kube-api-burst 1000 \
        --node-monitor-grace-period "$((lease + 10))s" --feature-gates "$gates" --controllers "resourceclaim-controller,job-controller,garbage-collector-controller,\
namespace-controller,pod-garbage-collector-controller,node-lifecycle-controller,taint-eviction-controller,\
device-taint-eviction-controller,podgroup-protection-controller,persistentvolume-binder-controller,ephemeral-volume-controller,\
persistentvolume-protection-controller,persistentvolumeclaim-protection-controller"
    if [ -n "${KUBE_STARTUP_MS:-}" ]; then # time from binding to Running; immediately by default
        sed "/name: pod-ready/,/^  next:/s/^  next:/  delay: {durationMilliseconds: $KUBE_STARTUP_MS}\\n  next:/" \
            "$cache/stages.yaml" >"$data/stages.yaml"
        KWOK_CONFIG="$data/stages.yaml"
    fi
    launch kwok "$bin/kwok" --kubeconfig "$data/admin.kubeconfig" --manage-all-nodes=false \
        --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake --node-lease-duration-seconds "$lease" \
        --config "${KWOK_CONFIG:-$cache/stages.yaml}"
    sleep 0.5
    for name in etcd apiserver controller-manager kwok; do
        alive $name || { say "$name ended: $data/$name.log"; tail -2 "$data/$name.log" >&2; stop; exit 1; }
    done
    say "ready in $((SECONDS - since)) s"
    echo "$data/admin.kubeconfig"
}

start_scheduler() {
    cat >"$data/scheduler.yaml" <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "$data/scheduler.kubeconfig", qps: ${KUBE_SCHEDULER_QPS:-1000}, burst: ${KUBE_SCHEDULER_QPS:-1000}}
profiles: ${KUBE_SCHEDULER_PROFILES:-[]}
END
    # shellcheck disable=SC2086 # a list of options
    launch scheduler "$bin/kube-scheduler" --config "$data/scheduler.yaml" --secure-port 0 --feature-gates "$gates" \
        ${KUBE_SCHEDULER_FLAGS:-}
    sleep 1
    alive scheduler || { tail -5 "$data/scheduler.log" >&2; exit 1; }
}

# Stop ----------------------------------------------------------------------------------------------------------------

stop() {
    local name
    for name in scheduler kwok controller-manager apiserver etcd; do
        if alive $name; then
            kill "$(cat "$data/$name.pid")"
            for _ in $(seq 100); do alive $name || break; sleep 0.1; done
            if alive $name; then kill -KILL "$(cat "$data/$name.pid")"; fi
        fi
        rm -f "$data/$name.pid"
    done
}

status() {
    local name
    for name in etcd apiserver controller-manager kwok scheduler; do
        if alive $name; then
            echo "$name: pid $(cat "$data/$name.pid"), $(($(ps -o rss= -p "$(cat "$data/$name.pid")") / 1024)) MB"
        else
            echo "$name: not running"
        fi
    done
}

case ${1:-} in
build) build ;;
start) start ;;
start-scheduler) start_scheduler ;;
stop) stop ;;
clean) stop; rm -rf "$data" ;;
status) status ;;
*) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2 ;;
esac
