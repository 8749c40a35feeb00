// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// live is the switch for the tests that take minutes: incidents that happen now,
// before a real Prometheus and a real Alertmanager.
var live = flag.Bool("live", false, "let incidents happen live (make test-full)")

// hurried is how rules are made faster for a live test, and the only thing that is
// changed of them: groups are evaluated every five seconds, and no alert waits for
// longer than longest. Windows stay, and so what waits for less than them: two
// minutes of a rate take two minutes, and a deadlock is to be found before the
// storms that it makes.
func hurried(t *testing.T, rules string) string {
	t.Helper()
	const longest = 150 * time.Second // A reboot takes less.
	rules = regexp.MustCompile(`(?m)^(\s+)interval: .*$`).ReplaceAllString(rules, "${1}interval: 5s")
	return regexp.MustCompile(`(?m)^(\s+for: )(.*)$`).ReplaceAllStringFunc(rules, func(line string) string {
		name, text, _ := strings.Cut(line, ": ")
		waits, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return name + ": " + fmt.Sprintf("%ds", int(min(waits, longest).Seconds()))
	})
}

// Who is told of what when an incident happens live: receiver, alert, node.
var liveStories = []struct {
	incident string
	told     []string
}{
	{"", nil},
	{"slow-receiver", []string{"network-pager RoCEPFCStormOrigin gpu02", "network-queue RoCEPCIeDowngraded gpu02"}},
	{"deadlock", []string{"network-pager RoCEPFCDeadlockSuspected leaf1", "network-pager RoCEPFCDeadlockSuspected spine1"}},
	{"mask-lost", []string{"network-pager RoCEPFCMaskLost leaf1", "network-queue RoCEPFCMaskLinkMismatch spine1", "network-queue RoCEPFCMaskLinkMismatch spine2"}},
	{"mtu-host", []string{"network-pager RoCEMTURegression gpu04"}},
	{"exporter-gone", []string{"network-queue RoCEExporterDown gpu12"}},
}

// TestLive lets incidents happen in fabrics of their own, scraped by one
// Prometheus with hurried rules.
func TestLive(t *testing.T) {
	if !*live {
		t.Skip("make test-full runs it")
	}
	prometheus, binary := tool(t, "prometheus"), filepath.Join(t.TempDir(), "roce_exporter")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	var mu sync.Mutex
	told := map[string]map[string]bool{} // By fabric.
	alertmanager := startAlertmanager(t, "3s", func(receiver, status string, labels map[string]string) {
		if status != "firing" || receiver == "heartbeat" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fabric := labels["fabric"]
		if told[fabric] == nil {
			told[fabric] = map[string]bool{}
		}
		told[fabric][receiver+" "+labels["alertname"]+" "+labels["node"]] = true
	})

	dir := t.TempDir()
	var jobs strings.Builder
	for _, s := range liveStories {
		fabric := "live-" + s.incident
		address := startDemo(t, binary, fabric)
		fmt.Fprintf(&jobs, "  - job_name: roce-%s\n    honor_labels: true\n    http_sd_configs: [{url: 'http://%s/sd', refresh_interval: 5s}]\n", fabric, address)
		if s.incident != "" {
			// Rates of two minutes are to be there before anything happens.
			time.AfterFunc(150*time.Second, func() {
				answer, err := http.Post("http://"+address+"/incident/"+s.incident, "", nil)
				if err != nil || answer.StatusCode >= 400 {
					t.Errorf("%s: %v %v", s.incident, answer, err)
				}
			})
		}
	}
	var files []string
	for _, name := range []string{"thresholds.yml", "recording.yml", "alerts.yml", "review.yml"} {
		rules, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(hurried(t, string(rules))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf("global: {scrape_interval: 5s, evaluation_interval: 5s}\nscrape_configs:\n%srule_files: [%s]\nalerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\n",
		&jobs, strings.Join(files, ", "), strings.TrimPrefix(alertmanager, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	run(t, address, prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)

	time.Sleep(150*time.Second + 420*time.Second)
	mu.Lock()
	defer mu.Unlock()
	for _, s := range liveStories {
		got := slices.Sorted(maps.Keys(told["live-"+s.incident]))
		if diff := cmp.Diff(s.told, got); diff != "" {
			t.Errorf("%s: who is told, wanted and got:\n%s", s.incident, diff)
		}
	}
}

func startDemo(t *testing.T, binary, fabric string) string {
	t.Helper()
	address := freeAddress(t)
	run(t, address, binary, "demo", "--fabric="+fabric, "--web.listen-address="+address, "--log.level=error")
	return address
}
