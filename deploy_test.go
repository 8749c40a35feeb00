// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
)

// unitLines reads a unit of systemd: its settings in order, "Key=value".
func unitLines(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("deploy/systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "[") {
			lines = append(lines, line)
		}
	}
	return lines
}

// The unit starts the exporter with flags that it has.
func TestUnitsUseFlagsThatExist(t *testing.T) {
	started, known := false, append(variables(t), "GOMEMLIMIT", "GOMAXPROCS")
	for _, name := range []string{"roce_exporter.service", "switch.conf", "socket.conf"} {
		for _, line := range unitLines(t, name) {
			key, value, _ := strings.Cut(line, "=")
			switch key {
			case "ExecStart":
				started = true
				words := strings.Fields(value)
				if filepath.Base(words[0]) != "roce_exporter" {
					t.Errorf("%s starts %s", name, words[0])
				}
				if _, err := parseFlags(t, words[1:]...); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case "Environment":
				variable, set, _ := strings.Cut(value, "=")
				if !slices.Contains(known, variable) {
					t.Errorf("%s sets %s, which nothing reads", name, variable)
				}
				t.Setenv(variable, set)
				if f, err := parseFlags(t); err != nil || !f.systemdSocket && f.switchMode != on {
					t.Errorf("%s: %s: %v", name, value, err)
				}
			}
		}
	}
	if !started {
		t.Error("the service starts nothing")
	}
}

// What keeps the exporter harmless on a switch, and at work.
func TestUnitIsHardened(t *testing.T) {
	lines := unitLines(t, "roce_exporter.service")
	for _, want := range []string{
		"DynamicUser=yes", "ProtectSystem=strict", "ProtectHome=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=",
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK", "Restart=always", "StartLimitIntervalSec=0",
		"ExecReload=/bin/kill -HUP $MAINPID", "MemoryMax=192M", "CPUQuota=50%", "Nice=10",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the service has no %s", want)
		}
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "SupplementaryGroups=") }) {
		t.Error("a host has no group redis: systemd would not start the service there")
	}
	if !slices.Contains(unitLines(t, "switch.conf"), "SupplementaryGroups=redis") {
		t.Error("on a switch the socket of Redis belongs to the group redis")
	}
	if !slices.Contains(unitLines(t, "roce_exporter.socket"), "ListenStream=14791") {
		t.Error("the socket is not at the port of the exporter")
	}
}

func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	stages := regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(text, -1)
	if len(stages) != 2 || !strings.Contains(stages[0], " golang:1.26 ") || stages[1] != "FROM scratch" {
		t.Errorf("stages: %q", stages)
	}
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(module), "\ngo 1.26") {
		t.Error("go.mod wants another Go than the image has")
	}
	build, last, _ := strings.Cut(text, "FROM scratch")
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", `-ldflags "-s -w`, "-X github.com/prometheus/common/version.Version=$VERSION"} {
		if !strings.Contains(build, want) {
			t.Errorf("the build has no %s", want)
		}
	}
	for _, want := range []string{"COPY --from=build /roce_exporter /roce_exporter", "USER 65532:65532", "EXPOSE 14791", `ENTRYPOINT ["/roce_exporter"]`} {
		if !strings.Contains(last, "\n"+want+"\n") {
			t.Errorf("the image has no %s", want)
		}
	}
	if strings.Contains(last, "\nRUN ") || strings.Contains(last, "\nADD ") {
		t.Error("nothing can run in an empty image, and nothing else belongs into it")
	}
	ignored, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range []string{"go.mod", "go.sum", "main.go", "exporter", "collectors"} {
		if slices.Contains(strings.Split(string(ignored), "\n"), needed) {
			t.Errorf("the build needs %s", needed)
		}
	}
}

// The example is a good one once its certificate is there.
func TestWebConfigExample(t *testing.T) {
	data, err := os.ReadFile("deploy/web-config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"web.yml": data,
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := web.Validate(filepath.Join(dir, "web.yml")); err != nil {
		t.Error(err)
	}
	p := startChild(t, "--no-collector.switch", "--web.config.file="+filepath.Join(dir, "web.yml"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Get("https://" + p.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a password: %d", resp.StatusCode)
	}
	if !regexp.MustCompile(`\n  prometheus: \$2a\$10\$`).Match(data) {
		t.Error("the example has no user")
	}
}
