// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"gopkg.in/yaml.v3"

	"roce_exporter/exporter"
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

// The drop-in of a host gives the one right that it is about, and takes none of
// the rest away.
func TestDropInOfAHost(t *testing.T) {
	want := []string{"CapabilityBoundingSet=CAP_SYS_ADMIN", "AmbientCapabilities=CAP_SYS_ADMIN"}
	if got := unitLines(t, "host-root.conf"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A daemonSet is what matters of the manifest. A key that is not of it is for
// Kubernetes to check.
type daemonSet struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				HostNetwork                  bool  `yaml:"hostNetwork"`
				HostPID                      bool  `yaml:"hostPID"`
				AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
				SecurityContext              struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
					RunAsUser    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					LivenessProbe   httpProbe `yaml:"livenessProbe"`
					ReadinessProbe  httpProbe `yaml:"readinessProbe"`
					SecurityContext struct {
						AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
						ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
						Capabilities             struct{ Drop, Add []string }
						Privileged               bool
					} `yaml:"securityContext"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name     string
					HostPath struct{ Path string } `yaml:"hostPath"`
				}
			}
		}
	}
}

type httpProbe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// The DaemonSet sees the host's network, /sys and /proc, and may do nothing.
func TestDaemonSet(t *testing.T) {
	data, err := os.ReadFile("deploy/kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set daemonSet
	if err := yaml.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	if set.APIVersion != "apps/v1" || set.Kind != "DaemonSet" {
		t.Fatalf("a %s of %s", set.Kind, set.APIVersion)
	}
	if selected := set.Spec.Selector.MatchLabels; len(selected) == 0 || !maps.Equal(selected, set.Spec.Template.Metadata.Labels) {
		t.Errorf("it selects %v and makes %v", selected, set.Spec.Template.Metadata.Labels)
	}
	pod := set.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	f, err := parseFlags(t, c.Args...)
	if err != nil {
		t.Fatal(err)
	}
	if f.sysPath != "/host/sys" || f.procPath != "/host/proc" || f.switchMode != off || f.hostMode != on {
		t.Errorf("flags: %q", c.Args)
	}
	mounted := map[string]string{}
	for _, m := range c.VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name == m.Name && m.ReadOnly {
				mounted[m.MountPath] = v.HostPath.Path
			}
		}
	}
	if want := map[string]string{f.sysPath: "/sys", f.procPath: "/proc"}; !maps.Equal(mounted, want) || len(c.VolumeMounts) != len(want) {
		t.Errorf("mounted read-only: %v, want %v and nothing else", mounted, want)
	}
	port := ""
	for _, address := range f.listen {
		_, port, _ = net.SplitHostPort(address)
	}
	if len(c.Ports) != 1 || strconv.Itoa(c.Ports[0].ContainerPort) != port {
		t.Errorf("ports %v, it listens on %s", c.Ports, port)
	}
	for name, p := range map[string]httpProbe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if p.HTTPGet.Path != "/-/healthy" || p.HTTPGet.Port != c.Ports[0].Name {
			t.Errorf("%s: asks %+v", name, p)
		}
	}
	s := c.SecurityContext
	for what, ok := range map[string]bool{
		"the host's network":           pod.HostNetwork,
		"no processes of the host":     !pod.HostPID,
		"no token of Kubernetes":       pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken,
		"a user that is not root":      pod.SecurityContext.RunAsNonRoot && pod.SecurityContext.RunAsUser > 0,
		"no capabilities":              slices.Equal(s.Capabilities.Drop, []string{"ALL"}) && s.Capabilities.Add == nil && !s.Privileged,
		"no way to more rights":        s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation,
		"a file system to read only":   s.ReadOnlyRootFilesystem,
		"the host's name for its node": !strings.Contains(string(data), "hostname:"),
	} {
		if !ok {
			t.Errorf("the pod needs %s", what)
		}
	}
}

// What the README gives to copy for a host is right.
func TestREADMEOfAHost(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n## On a host\n")
	_, config, _ := strings.Cut(text, "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	c, err := exporter.ReadConfig(strings.NewReader(config), "the README's configuration")
	if err != nil || len(c.Host.RawStats) != 2 || c.Policy == nil || c.Policy.Ports[0].MTU != 9000 {
		t.Errorf("%v: %+v", err, c)
	}
	_, run, _ := strings.Cut(text, "\ndocker run ")
	run, _, _ = strings.Cut(run, "```")
	_, args, _ := strings.Cut(run, " roce_exporter \\\n")
	f, err := parseFlags(t, strings.Fields(args)...)
	if err != nil || f.hostMode != on {
		t.Fatalf("docker run: %q, %v", args, err)
	}
	for _, want := range []string{"--network=host ", "-v /sys:" + f.sysPath + ":ro ", "-v /proc:" + f.procPath + ":ro "} {
		if !strings.Contains(run, want) {
			t.Errorf("docker run has no %s", want)
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
