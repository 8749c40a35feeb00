// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"roce_exporter/collectors"
)

// A Config is the content of the configuration file, with defaults for what it
// leaves out. It is immutable.
type Config struct {
	Node    NodeConfig    `yaml:"node"`
	Switch  SwitchConfig  `yaml:"switch"`
	Host    HostConfig    `yaml:"host"`
	Scrape  ScrapeConfig  `yaml:"scrape"`
	Refresh RefreshConfig `yaml:"refresh"`
	Limits  LimitsConfig  `yaml:"limits"`
	Policy  *PolicyConfig `yaml:"policy,omitempty"` // nil: nothing intended.
}

// A NodeConfig says who the node is.
type NodeConfig struct {
	Name   string `yaml:"name"` // Empty: as it calls itself.
	Fabric string `yaml:"fabric"`
	Tier   string `yaml:"tier"`
	Names  string `yaml:"names"` // short or full.
}

// A SwitchConfig says what to export of a switch.
type SwitchConfig struct {
	Queues            string      `yaml:"queues"`     // lossless or all.
	Priorities        string      `yaml:"priorities"` // lossless or all.
	Windows           []string    `yaml:"windows,flow"`
	VOQ               string      `yaml:"voq"`                 // off, dropped or all.
	PauseDurationUnit string      `yaml:"pause_duration_unit"` // microseconds or quanta; empty: unknown.
	Ports             PortsConfig `yaml:"ports"`
	AttachedMACLimit  int         `yaml:"attached_mac_limit"`
	Redis             RedisConfig `yaml:"redis"`
}

// A PortsConfig chooses ports.
type PortsConfig struct {
	Include Pattern `yaml:"include"`
	Exclude Pattern `yaml:"exclude"`
}

// A RedisConfig says how to log in to Redis.
type RedisConfig struct {
	Username     string `yaml:"username"`
	PasswordFile Secret `yaml:"password_file"`
}

// A HostConfig says what to export of a host.
type HostConfig struct {
	DeviceInclude Pattern  `yaml:"device_include"`
	DeviceExclude Pattern  `yaml:"device_exclude"`
	Priorities    string   `yaml:"priorities"` // lossless or all.
	RawStats      []string `yaml:"raw_stats,flow"`
}

// A ScrapeConfig bounds a scrape.
type ScrapeConfig struct {
	Timeout     Duration `yaml:"timeout"`
	MinInterval Duration `yaml:"min_interval"` // A reading younger than this is served again.
}

// A RefreshConfig says how old tables that rarely change may be.
type RefreshConfig struct {
	Config Duration `yaml:"config"`
	FDB    Duration `yaml:"fdb"` // 0: never read.
}

// A LimitsConfig bounds what is exported.
type LimitsConfig struct {
	Series int `yaml:"series"` // Of one collector; 0: no limit.
}

// A PolicyConfig is what the operator intends.
type PolicyConfig struct {
	LosslessPriorities []int              `yaml:"lossless_priorities,flow,omitempty"`
	Ports              []PortPolicyConfig `yaml:"ports,omitempty"`
	RDMAMTU            int                `yaml:"rdma_mtu,omitempty"`
	DSCP               DSCPConfig         `yaml:"dscp,omitempty"`
	CongestionControl  string             `yaml:"congestion_control,omitempty"`
}

// A PortPolicyConfig is what the operator intends for the ports that match.
type PortPolicyConfig struct {
	Match Pattern `yaml:"match"`
	MTU   int     `yaml:"mtu,omitempty"`
	Speed Speed   `yaml:"speed,omitempty"`
}

// A DSCPConfig lists the DSCPs that RDMA uses.
type DSCPConfig struct {
	Data []int `yaml:"data,flow,omitempty"`
	CNP  []int `yaml:"cnp,flow,omitempty"`
}

// A Duration is written with its unit: 10s.
type Duration time.Duration

// MarshalYAML writes it the way it is read.
func (d Duration) MarshalYAML() (any, error) {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text, nil
}

// A Pattern is a regular expression that must match a whole name. The zero
// Pattern is none.
type Pattern struct {
	text   string
	Regexp *regexp.Regexp
}

// MarshalYAML writes it the way it is read.
func (p Pattern) MarshalYAML() (any, error) { return p.text, nil }

// newPattern anchors the expression at both ends.
func newPattern(text string) (Pattern, error) {
	if text == "" {
		return Pattern{}, nil
	}
	if _, err := regexp.Compile(text); err != nil {
		return Pattern{}, err // Before the anchors: they would make "a)|(?:b" a good one.
	}
	re, err := regexp.Compile("^(?:" + text + ")$")
	return Pattern{text, re}, err
}

// A Speed is in bytes per second. It is written in bits per second: 100G.
type Speed float64

// speedUnits are the bits per second of each unit, largest first.
func speedUnits() []struct {
	name string
	bits float64
} {
	return []struct {
		name string
		bits float64
	}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}}
}

// MarshalYAML writes it the way it is read.
func (s Speed) MarshalYAML() (any, error) {
	bits := float64(s) * 8
	for _, unit := range speedUnits() {
		if bits >= unit.bits {
			return strconv.FormatFloat(bits/unit.bits, 'f', -1, 64) + unit.name, nil
		}
	}
	return strconv.FormatFloat(bits/1e6, 'f', -1, 64) + "M", nil
}

// A Secret is shown to nobody.
type Secret string

// MarshalYAML hides it.
func (s Secret) MarshalYAML() (any, error) {
	if s == "" {
		return "", nil
	}
	return "<secret>", nil
}

// DefaultConfig is the configuration of an empty file.
func DefaultConfig() Config {
	return Config{
		Node: NodeConfig{Names: "short"},
		Switch: SwitchConfig{
			Queues: "lossless", Priorities: "lossless", Windows: []string{"periodic", "user"}, VOQ: "off", AttachedMACLimit: 4,
		},
		Host:    HostConfig{Priorities: "lossless", RawStats: []string{}},
		Scrape:  ScrapeConfig{Timeout: Duration(10 * time.Second)},
		Refresh: RefreshConfig{Config: Duration(time.Minute), FDB: Duration(5 * time.Minute)},
		Limits:  LimitsConfig{Series: 200000},
	}
}

// maxConfigBytes is far more than a policy of a thousand ports needs.
const maxConfigBytes = 1 << 20

// ReadConfig reads a configuration whole or not at all. name stands for the
// file in the error, which has one line for each thing that is wrong.
func ReadConfig(r io.Reader, name string) (Config, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxConfigBytes+1))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxConfigBytes {
		return Config{}, fmt.Errorf("%s: larger than %d bytes: this is no configuration of the exporter", name, maxConfigBytes)
	}
	d := &decoder{name: name}
	root := d.document(data)
	config := DefaultConfig()
	if root != nil {
		config.decode(d, root)
	}
	if err := d.err(); err != nil {
		return Config{}, err
	}
	return config, nil
}

// decode reads the whole file.
func (c *Config) decode(d *decoder, root *yaml.Node) {
	d.object(root, "", keys{
		"node": asObject(keys{
			"name": asLabel(&c.Node.Name), "fabric": asLabel(&c.Node.Fabric), "tier": asLabel(&c.Node.Tier),
			"names": asOneOf(&c.Node.Names, "short", "full"),
		}),
		"switch": asObject(keys{
			"queues":              asOneOf(&c.Switch.Queues, "lossless", "all"),
			"priorities":          asOneOf(&c.Switch.Priorities, "lossless", "all"),
			"windows":             asList(&c.Switch.Windows, func(s *string) value { return asOneOf(s, "periodic", "user", "persistent") }),
			"voq":                 asOneOf(&c.Switch.VOQ, "off", "dropped", "all"),
			"pause_duration_unit": asOneOf(&c.Switch.PauseDurationUnit, "", "microseconds", "quanta"),
			"ports":               asObject(keys{"include": asPattern(&c.Switch.Ports.Include), "exclude": asPattern(&c.Switch.Ports.Exclude)}),
			"attached_mac_limit":  asInteger(&c.Switch.AttachedMACLimit, 0, 1024),
			"redis":               asObject(keys{"username": asText(&c.Switch.Redis.Username), "password_file": asText(&c.Switch.Redis.PasswordFile)}),
		}),
		"host": asObject(keys{
			"device_include": asPattern(&c.Host.DeviceInclude), "device_exclude": asPattern(&c.Host.DeviceExclude),
			"priorities": asOneOf(&c.Host.Priorities, "lossless", "all"),
			"raw_stats":  asList(&c.Host.RawStats, asNamePattern),
		}),
		"scrape": asObject(keys{
			"timeout":      asDuration(&c.Scrape.Timeout, time.Millisecond),
			"min_interval": asDuration(&c.Scrape.MinInterval, 0),
		}),
		"refresh": asObject(keys{"config": asDuration(&c.Refresh.Config, 0), "fdb": asDuration(&c.Refresh.FDB, 0)}),
		"limits":  asObject(keys{"series": asInteger(&c.Limits.Series, 0, 10_000_000)}),
		"policy": func(d *decoder, n *yaml.Node, path string) {
			c.Policy = &PolicyConfig{}
			d.object(n, path, c.Policy.keys())
		},
	})
}

func (p *PolicyConfig) keys() keys {
	dscp := func(v *int) value { return asInteger(v, 0, 63) }
	return keys{
		"lossless_priorities": asList(&p.LosslessPriorities, func(v *int) value { return asInteger(v, 0, 7) }),
		"ports":               p.decodePorts,
		"rdma_mtu":            asOneOfNumbers(&p.RDMAMTU, 256, 512, 1024, 2048, 4096),
		"dscp":                asObject(keys{"data": asList(&p.DSCP.Data, dscp), "cnp": asList(&p.DSCP.CNP, dscp)}),
		"congestion_control":  asOneOf(&p.CongestionControl, "dcqcn", "pfc_only", "other"),
	}
}

func (p *PolicyConfig) decodePorts(d *decoder, n *yaml.Node, path string) {
	// The largest MTU that the kernel and SAI know is of 16 bits; IPv4 wants 68.
	for i, item := range d.items(n, path) {
		port, at := PortPolicyConfig{}, fmt.Sprintf("%s[%d]", path, i)
		d.object(item, at, keys{"match": asPattern(&port.Match), "mtu": asInteger(&port.MTU, 68, 65535), "speed": asSpeed(&port.Speed)})
		if port.Match.Regexp == nil && !d.failed(at) {
			d.fail(item, at, `match is missing: say which ports are meant, match: ".*" for all`)
		}
		p.Ports = append(p.Ports, port)
	}
}

// Intent is the policy in the form that collectors use; nil if there is none.
func (c Config) Intent() *collectors.Policy {
	if c.Policy == nil {
		return nil
	}
	p := &collectors.Policy{
		LosslessPriorities: c.Policy.LosslessPriorities, RDMAMTU: c.Policy.RDMAMTU,
		DataDSCP: c.Policy.DSCP.Data, CNPDSCP: c.Policy.DSCP.CNP, CongestionControl: c.Policy.CongestionControl,
	}
	for _, port := range c.Policy.Ports {
		p.Ports = append(p.Ports, collectors.PortPolicy{Match: port.Match.Regexp, MTU: port.MTU, Speed: float64(port.Speed)})
	}
	return p
}
