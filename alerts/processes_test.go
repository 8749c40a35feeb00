// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// startAlertmanager runs a real one with the shipped configuration until the test
// ends. What is changed of it, and nothing else: the receivers' examples become a
// webhook that lets hear know of each alert, and groups wait for so long.
func startAlertmanager(t *testing.T, wait string, hear func(receiver, status string, labels map[string]string)) string {
	t.Helper()
	path, err := exec.LookPath("prometheus-alertmanager") // Debian's name.
	if err != nil {
		path = tool(t, "alertmanager")
	}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct {
			Receiver string
			Alerts   []struct {
				Status string
				Labels map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		for _, a := range message.Alerts {
			hear(message.Receiver, a.Status, a.Labels)
		}
	}))
	t.Cleanup(hook.Close)
	shipped, err := os.ReadFile("alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile(`http://[a-z-]+\.example\.com/`).ReplaceAllString(string(shipped), hook.URL)
	config = regexp.MustCompile(`(group_wait|group_interval): .*`).ReplaceAllString(config, "${1}: "+wait)
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	run(t, address, path, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	return "http://" + address
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// run runs a server until the test ends, and returns when it is ready.
func run(t *testing.T, address, path string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(path), &log)
		}
	})
	for range 500 {
		if answer, err := http.Get("http://" + address + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s does not become ready", filepath.Base(path))
}
