// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors"
	"roce_exporter/collectors/demo"
	"roce_exporter/collectors/host"
	"roce_exporter/collectors/sonic"
)

var update = flag.Bool("update", false, "write the golden files and the picture of the demo anew")

// TestDemoOverHTTP uses the demo as Prometheus and a browser do.
func TestDemoOverHTTP(t *testing.T) {
	s := simulate(t, demo.Options{})
	server := httptest.NewServer(s.handler(&flags{telemetryPath: "/metrics"}))
	defer server.Close()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(method, path string, header ...string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}

	var targets []struct {
		Targets []string
		Labels  map[string]string
	}
	if _, body := ask("GET", "/sd"); json.Unmarshal([]byte(body), &targets) != nil || len(targets) != 22 {
		t.Fatalf("targets: %s", body)
	}
	address := strings.TrimPrefix(server.URL, "http://")
	for _, target := range targets {
		if len(target.Targets) != 1 || target.Targets[0] != address || s.fabric.Node(target.Labels["instance"]) == nil {
			t.Errorf("target %v", target)
		}
		code, body := ask("GET", target.Labels["__metrics_path__"])
		if name := target.Labels["instance"]; code != http.StatusOK || !strings.Contains(body, `roce_node_info{fabric="demo"`) || !strings.Contains(body, `node="`+name+`"`) {
			t.Errorf("%s: %d %.200s", name, code, body)
		}
	}

	for _, step := range []struct {
		method, path string
		code         int
		says         string // By the page, afterwards.
	}{
		{"GET", "/", http.StatusOK, "All is quiet"},
		{"POST", "/incident/slow-receiver", http.StatusSeeOther, "gpu02 ens1f0np0 pauses leaf1 Ethernet4 for 70 % of the time"},
		{"POST", "/incident/slow-receiver", http.StatusConflict, "At fault: gpu02 ens1f0np0."},
		{"POST", "/incident/exporter-gone", http.StatusSeeOther, "no answer"},
		{"GET", "/node/gpu12/metrics", http.StatusServiceUnavailable, "no answer"},
		{"DELETE", "/incident/slow-receiver", http.StatusNoContent, "Nobody is paused"},
		{"DELETE", "/incident/slow-receiver", http.StatusConflict, "Nobody is paused"},
		{"POST", "/incident/exporter-gone/end", http.StatusSeeOther, "All is quiet"},
		{"GET", "/node/gpu12/metrics", http.StatusOK, "All is quiet"},
		{"POST", "/incident/no-such", http.StatusNotFound, "All is quiet"},
		{"GET", "/incident/deadlock", http.StatusMethodNotAllowed, "All is quiet"},
		{"GET", "/node/no-such/metrics", http.StatusNotFound, "All is quiet"},
		{"GET", "/-/healthy", http.StatusOK, "All is quiet"},
		{"GET", "/-/ready", http.StatusOK, "All is quiet"},
	} {
		s.now = s.now.Add(time.Second)
		if code, body := ask(step.method, step.path); code != step.code {
			t.Errorf("%s %s: %d %s", step.method, step.path, code, body)
		}
		s.now = s.now.Add(time.Second)
		if _, page := ask("GET", "/"); !strings.Contains(page, step.says) {
			t.Errorf("after %s %s the page does not say %q", step.method, step.path, step.says)
		}
	}
	if code, _ := ask("POST", "/incident/deadlock", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("a page of another site begins an incident: %d", code)
	}
}

// TestPageInABrowser looks whether a browser draws the fabric.
func TestPageInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	s := simulate(t, demo.Options{})
	happen(t, s.fabric, "slow-receiver")
	s.now = s.now.Add(time.Minute)
	server := httptest.NewServer(s.handler(&flags{telemetryPath: "/metrics"}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "page.png")
	arguments := []string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--window-size=1400,980"}
	dom, err := exec.CommandContext(t.Context(), chromium, append(slices.Clip(arguments), "--dump-dom", server.URL)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<svg", "</svg>", `class="node culprit"`, `class="storm"`, ">End slow-receiver</button>"} {
		if !strings.Contains(string(dom), part) {
			t.Errorf("the browser has no %s", part)
		}
	}
	if output, err := exec.CommandContext(t.Context(), chromium, append(slices.Clip(arguments), "--screenshot="+file, server.URL)...).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, output)
	}
	if data, err := os.ReadFile(file); err != nil || len(data) < 20_000 {
		t.Errorf("the picture: %d bytes, %v", len(data), err)
	}
	if *update {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile("deploy/demo/fabric.png", data, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestCapturesOfTheDemo compares the captures of two nodes, while a host takes
// its data too slowly, with those that the collectors' tests replay.
func TestCapturesOfTheDemo(t *testing.T) {
	s := simulate(t, demo.Options{})
	happen(t, s.fabric, "slow-receiver@1m")
	s.now = s.now.Add(10 * time.Minute)
	leaf, gpu := s.fabric.Node("leaf1"), s.fabric.Node("gpu02")
	served, err := leaf.Serve(t.TempDir(), s.look)
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	live := sonic.NewLive(served.Dir, sonic.LiveOptions{Timeout: 5 * time.Second, Files: served.Files})
	defer live.Close()
	found, err := live.Switch()
	if err != nil {
		t.Fatal(err)
	}
	ofLeaf, err := sonic.Record(t.Context(), found, time.Minute)
	if err != nil || len(ofLeaf.LeftOut) > 0 {
		t.Fatal(err, ofLeaf.LeftOut)
	}
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		t.Fatal(err)
	}
	ofGPU, err := host.Record(t.Context(), gpu.Sources(s.look), collectors.HostOptions{}.Reader(catalog), nil, time.Minute)
	if err != nil || len(ofGPU.LeftOut) > 0 {
		t.Fatal(err, ofGPU.LeftOut)
	}
	switchDir, hostDir := filepath.Join(t.TempDir(), "capture"), filepath.Join(t.TempDir(), "capture")
	for dir, recording := range map[string]collectors.Recording{switchDir: {Switch: ofLeaf}, hostDir: {Host: ofGPU}} {
		if err := recording.Write(dir, "demo", s.now); err != nil {
			t.Fatal(err)
		}
	}
	const header = "# Composed: gpu02 of the demo fabric, ten minutes into the incident slow-receiver.\n"
	goldens := map[string]string{"collectors/testdata/hosts/demo.txt": header + treeText(t, hostDir)}
	err = fs.WalkDir(os.DirFS(switchDir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			goldens[filepath.Join("collectors/testdata/demo-leaf", name)] = read(t, filepath.Join(switchDir, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range goldens {
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, file) != text {
			t.Errorf("%s is another capture: go test . -run TestCapturesOfTheDemo -update, and read the diff", file)
		}
	}
}

// treeText is a capture of a host in the form of collectors/testdata/hosts.
func treeText(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil || relative == "meta.json" {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			fmt.Fprintf(&b, "%s -> %s\n", relative, target)
			return err
		}
		sign := "="
		for line := range strings.Lines(read(t, name)) {
			fmt.Fprintf(&b, "%s %s %s\n", relative, sign, strings.TrimRight(line, "\n"))
			sign = "+"
		}
		if sign == "=" {
			fmt.Fprintf(&b, "%s =\n", relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
