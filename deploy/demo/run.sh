#!/usr/bin/env bash
# The demo fabric, and Prometheus and Alertmanager with the rules of this
# repository where they are installed. Ctrl-C ends all of it.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=$(mktemp -d)
pids=()
stop() {
	trap - EXIT INT TERM
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 0' INT TERM

# up waits until something answers; it fails if the process ends first.
up() { # name url pid
	for _ in $(seq 100); do
		kill -0 "$3" 2>/dev/null || break
		curl -fs -o /dev/null "$2" && return
		sleep 0.1
	done
	echo "$1 did not start; its last words:" >&2
	tail -n 5 "$dir/$1.log" >&2
	exit 1
}

# free says whether nobody listens on a port yet.
free() { # port what
	if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
		echo "Port $1 is taken: end what listens there first${2:+ ($2)}." >&2
		exit 1
	fi
}

# found prints the first of some commands that is installed.
found() {
	for name; do command -v "$name" && return; done
	return 1
}

command -v curl >/dev/null || { echo 'curl is missing: apt-get install curl' >&2; exit 1; }

free 14791 'another roce_exporter?'

./roce_exporter demo --web.listen-address=127.0.0.1:14791 --log.level=warn "$@" >"$dir/demo.log" 2>&1 &
pids+=($!)
up demo http://127.0.0.1:14791/-/healthy $!
head -n 1 "$dir/demo.log"
echo '  the fabric and its incidents  http://localhost:14791/'
echo '  what one node exports         http://localhost:14791/node/leaf1/metrics'

if alertmanager=$(found alertmanager prometheus-alertmanager) && [ -e alerts/alertmanager.yml ]; then
	free 9093 'systemctl stop prometheus-alertmanager?'
	"$alertmanager" --config.file=alerts/alertmanager.yml --storage.path="$dir/alertmanager" \
		--web.listen-address=127.0.0.1:9093 --cluster.listen-address= >"$dir/alertmanager.log" 2>&1 &
	pids+=($!)
	up alertmanager http://127.0.0.1:9093/-/healthy $!
	echo '  Alertmanager                  http://localhost:9093/'
else
	echo '  Alertmanager is not installed (Debian: apt-get install prometheus-alertmanager)'
fi
if prometheus=$(found prometheus); then
	free 9090 'systemctl stop prometheus?'
	"$prometheus" --config.file=deploy/demo/prometheus.yml --storage.tsdb.path="$dir/prometheus" \
		--web.listen-address=127.0.0.1:9090 >"$dir/prometheus.log" 2>&1 &
	pids+=($!)
	up prometheus http://127.0.0.1:9090/-/ready $!
	echo '  Prometheus                    http://localhost:9090/alerts'
else
	echo '  Prometheus is not installed (Debian: apt-get install prometheus)'
fi
echo 'Ctrl-C ends all of it.'
wait -n || true
echo 'One of them has ended by itself; its last words:' >&2
tail -qn 2 "$dir"/*.log >&2
exit 1
