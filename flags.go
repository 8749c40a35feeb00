// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"roce_exporter/collectors/demo"
)

const (
	serveCommand   = "serve"
	captureCommand = "capture"
	demoRun        = "run"
	demoHistory    = "history"
	demoIncidents  = "incidents"
)

// flags are the values of all flags.
type flags struct {
	listen                   []string
	webConfig                string
	systemdSocket            bool
	telemetryPath            string
	maxRequests              int
	noSelf, lifecycle, pprof bool
	config                   string
	check, autoReload        bool
	switchMode, hostMode     mode
	sysPath, procPath        string
	include, exclude         pattern
	disableDefaults          bool
	databaseDir, replay      string
	memoryLimit              byteSize
	maxProcs                 int
	logLevel, logFormat      string
	version                  bool
	captureDir               string
	samples                  int
	every                    time.Duration
	anonymise                bool
	fabric                   demo.Options
	incidents                scenario
	history                  historyOptions

	afterScrape func()
}

// newApp describes the command line. Every flag can be set by an environment
// variable too, since a SONiC package can pass nothing else.
func newApp() (*kingpin.Application, *flags) {
	f := &flags{}
	app := kingpin.New("roce_exporter", "Exports the state of a RoCE fabric, of its switches and hosts, to Prometheus.").DefaultEnvars()
	app.UsageTemplate(kingpin.LongHelpTemplate)
	app.HelpFlag.NoEnvar().Short('h')
	app.Flag("log.level", "Least severe lines that are logged: debug, info, warn, error.").Default("info").EnumVar(&f.logLevel, "debug", "info", "warn", "error")
	app.Flag("log.format", "Format of the lines that are logged: logfmt, json.").Default("logfmt").EnumVar(&f.logFormat, "logfmt", "json")
	app.Flag("config.file", "Configuration file (YAML). Without one the defaults hold.").StringVar(&f.config)
	app.Flag("sonic.database-dir", "Directory of SONiC's database_config.json.").Default("/var/run/redis/sonic-db").StringVar(&f.databaseDir)
	app.Flag("path.sysfs", "Where sysfs is mounted.").Default("/sys").StringVar(&f.sysPath)
	app.Flag("path.procfs", "Where procfs is mounted.").Default("/proc").StringVar(&f.procPath)
	app.Flag("host.device-include", "Regular expression of the whole names of network and RDMA devices to read, of both: ens.*|mlx5_.*. Has precedence over host.device_include of the configuration.").PlaceHolder("REGEXP").SetValue(&f.include)
	app.Flag("host.device-exclude", "The same of those not to read, here too of both.").PlaceHolder("REGEXP").SetValue(&f.exclude)

	app.Flag("runtime.memory-limit", "Memory that the process keeps below if it can (64MiB; 0 for none); a switch that needs more gets it. GOMEMLIMIT has precedence.").Default("48MiB").SetValue(&f.memoryLimit)
	app.Flag("runtime.gomaxprocs", "CPUs that the process uses at a time (0 for all). GOMAXPROCS has precedence.").Default("1").IntVar(&f.maxProcs)
	app.Flag("version", "Print the version.").BoolVar(&f.version)

	serve := app.Command(serveCommand, "Serve the metrics of this node.").Default()
	webFlags(serve, f)
	serve.Flag("config.check", "Check the configuration file and exit.").BoolVar(&f.check)
	serve.Flag("config.enable-auto-reload", "Reload the configuration file when it has changed.").BoolVar(&f.autoReload)
	serve.Flag("collector.switch", "Read a SONiC switch. Without either form: if there is one. In the environment: true, false, auto.").SetValue(&f.switchMode)
	serve.Flag("collector.host", "Read the NICs of a host. Without either form: if there is an RDMA device or a NIC of a known driver, and no switch. In the environment: true, false, auto.").SetValue(&f.hostMode)
	serve.Flag("collector.disable-defaults", "Run no collectors but those that are asked for.").BoolVar(&f.disableDefaults)
	serve.Flag("replay", "Serve the capture in this directory instead of what is on this machine, of several samples one a scrape.").PlaceHolder("DIR").StringVar(&f.replay)

	demo := app.Command("demo", "Serve a made-up fabric, with incidents on demand.")
	run := demo.Command(demoRun, "Serve it; what demo alone does.").Default()
	webFlags(run, f)
	fabricFlags(run, f)
	demo.Command(demoIncidents, "List the incidents that can happen to it.")
	history := demo.Command(demoHistory, "Write the past of such a fabric as OpenMetrics, a file for each day, for promtool tsdb create-blocks-from openmetrics.")
	fabricFlags(history, f)
	history.Flag("start", "Begin: 2026-01-31T12:00:00Z, seconds since the epoch, or 36h, 90d for so long ago. Without it a day before the end.").NoEnvar().SetValue(&f.history.start)
	history.Flag("end", "End, in the same forms. Without it now.").NoEnvar().SetValue(&f.history.end)
	history.Flag("step", "Time between two samples. Without it 15s, and 5m of what is recorded.").NoEnvar().DurationVar(&f.history.step)
	history.Flag("what", "raw: what Prometheus would have scraped; recorded: what the rules of the review would have recorded.").NoEnvar().Default(rawHistory).EnumVar(&f.history.what, rawHistory, recordedHistory)
	history.Flag("out", "Directory for the files.").NoEnvar().Required().StringVar(&f.history.out)
	history.Flag("families", "Regular expression of the whole names of families to write. Without it all.").NoEnvar().PlaceHolder("REGEXP").SetValue(&f.history.families)

	capture := app.Command(captureCommand, "Write what the exporter reads from this node, a switch, a host or both, into a directory, for --replay and bug reports.")
	capture.Arg("dir", "A new directory.").Required().StringVar(&f.captureDir)
	capture.Flag("samples", "How often to read: counters that stand still show in two.").NoEnvar().Default("1").IntVar(&f.samples)
	capture.Flag("every", "Time between two samples.").NoEnvar().Default("15s").DurationVar(&f.every)
	capture.Flag("anonymise", "Replace the names of nodes, MAC and IP addresses, the same by the same.").NoEnvar().Default("true").BoolVar(&f.anonymise)
	return app, f
}

// webFlags are those of whatever serves over HTTP.
func webFlags(command *kingpin.CmdClause, f *flags) {
	command.Flag("web.listen-address", "Address to listen on, repeatable. In the environment: separated by commas.").Default(":14791").StringsVar(&f.listen)
	command.Flag("web.config.file", "File with TLS certificates and users.").StringVar(&f.webConfig)
	command.Flag("web.systemd-socket", "Listen on the sockets that systemd passes instead.").BoolVar(&f.systemdSocket)
	command.Flag("web.telemetry-path", "Path of the metrics.").Default("/metrics").StringVar(&f.telemetryPath)
	command.Flag("web.max-requests", "Scrapes that are answered at a time; those beyond get 503 (0 for no limit).").Default("40").IntVar(&f.maxRequests)
	command.Flag("web.disable-exporter-metrics", "Leave out what is about the exporter itself: go_*, process_*, promhttp_*.").BoolVar(&f.noSelf)
	command.Flag("web.enable-lifecycle", "Let POST /-/reload reload the configuration.").BoolVar(&f.lifecycle)
	command.Flag("web.enable-pprof", "Serve profiles under /debug/pprof/.").BoolVar(&f.pprof)
}

// fabricFlags describe a made-up fabric.
func fabricFlags(command *kingpin.CmdClause, f *flags) {
	command.Flag("fabric", "Name of the fabric.").NoEnvar().Default("demo").StringVar(&f.fabric.Name)
	command.Flag("spines", "Spines of the fabric.").NoEnvar().Default("2").IntVar(&f.fabric.Spines)
	command.Flag("leaves", "Leaves of the fabric.").NoEnvar().Default("4").IntVar(&f.fabric.Leaves)
	command.Flag("hosts", "Hosts of the fabric.").NoEnvar().Default("16").IntVar(&f.fabric.Hosts)
	command.Flag("rails", "NICs of a host, each on a leaf of its own.").NoEnvar().Default("2").IntVar(&f.fabric.Rails)
	command.Flag("variant", "Another number makes another fabric of the same size.").NoEnvar().Default("1").Uint64Var(&f.fabric.Variant)
	command.Flag("incident", "An incident: NAME from the begin on, NAME@AFTER so long after it, NAME@AFTER+LASTING not for ever: slow-receiver@10m+5m. Repeatable; demo incidents lists the names.").NoEnvar().SetValue(&f.incidents)
}

// mode says whether a collector is wanted; auto: if there is something to read.
type mode string

const (
	auto mode = ""
	on   mode = "true"
	off  mode = "false"
)

func (m *mode) String() string { return string(*m) }

// IsBoolFlag gives the flag a --no- form.
func (m *mode) IsBoolFlag() bool { return true }

func (m *mode) Set(text string) error {
	if text == "auto" {
		*m = auto
		return nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("must be true, false or auto, not %q", text)
	}
	*m = off
	if value {
		*m = on
	}
	return nil
}

// pattern is a regular expression that must match a whole name; empty: none.
type pattern struct {
	text   string
	regexp *regexp.Regexp
}

func (p *pattern) String() string { return p.text }

func (p *pattern) Set(text string) error {
	*p = pattern{text: text}
	if text == "" {
		return nil
	}
	_, err := regexp.Compile(text) // Before the anchors: they would make "a)|(?:b" a good one.
	if err == nil {
		p.regexp, err = regexp.Compile("^(?:" + text + ")$")
	}
	return err
}

// scenario are the incidents of a made-up fabric.
type scenario []planned

// A planned is an incident, with times after the begin of the story. A lasting
// of 0 has no end.
type planned struct {
	name           string
	after, lasting time.Duration
}

func (s *scenario) String() string { return fmt.Sprint(*s) }

// IsCumulative lets the flag be repeated.
func (s *scenario) IsCumulative() bool { return true }

func (s *scenario) Set(text string) error {
	var p planned
	name, at, timed := strings.Cut(text, "@")
	p.name = name
	if timed {
		after, lasting, ends := strings.Cut(at, "+")
		var err error
		if p.after, err = time.ParseDuration(after); err == nil && ends {
			p.lasting, err = time.ParseDuration(lasting)
		}
		if err != nil {
			return fmt.Errorf("%q: %w: give something like slow-receiver@10m+5m", text, err)
		}
		if p.after < 0 || ends && p.lasting <= 0 {
			return fmt.Errorf("%q: times go forward", text)
		}
	}
	if demo.FindIncident(name) == nil {
		var names []string
		for _, i := range demo.Incidents() {
			names = append(names, i.Name)
		}
		return fmt.Errorf("no incident is called %q; there are %s", name, strings.Join(names, ", "))
	}
	*s = append(*s, p)
	return nil
}

// begin lets the incidents happen.
func (s scenario) begin(f *demo.Fabric) error {
	for _, p := range s {
		start, end := f.Start.Add(p.after), time.Time{}
		if p.lasting > 0 {
			end = start.Add(p.lasting)
		}
		if err := f.Begin(p.name, start, end); err != nil {
			return err
		}
	}
	return nil
}

// byteSize is a number of bytes as GOMEMLIMIT has it.
type byteSize int64

func (b *byteSize) String() string { return strconv.FormatInt(int64(*b), 10) }

func (b *byteSize) Set(text string) error {
	number, factor := text, int64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			number, factor = n, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(number, "B"), 10, 32)
	if factor == 1 {
		n, err = strconv.ParseInt(strings.TrimSuffix(number, "B"), 10, 64)
	}
	if err != nil || n < 0 {
		return fmt.Errorf("must be a size like 64MiB, or 0, not %q", text)
	}
	*b = byteSize(n * factor)
	return nil
}

// wrongFlag names the flag whose value was refused: the error does not.
func wrongFlag(app *kingpin.Application, args []string, refused error) string {
	parsed, err := app.ParseContext(args)
	if err != nil {
		return ""
	}
	for _, element := range parsed.Elements {
		flag, ok := element.Clause.(*kingpin.FlagClause)
		if !ok || element.Value == nil {
			continue
		}
		if err := flag.Model().Value.Set(*element.Value); err != nil && err.Error() == refused.Error() {
			return "--" + flag.Model().Name + ": "
		}
	}
	return ""
}

// fromEnvironment lists the flags that the environment sets: an error of
// theirs does not name them.
func fromEnvironment(app *kingpin.Application) string {
	var set []string
	for _, name := range environment(app) {
		if value := os.Getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	if set == nil {
		return ""
	}
	return ", with " + strings.Join(set, " ") + " from the environment"
}

// environment lists the variables that set flags.
func environment(app *kingpin.Application) []string {
	var names []string
	model := app.Model()
	groups := []*kingpin.FlagGroupModel{model.FlagGroupModel}
	for _, command := range model.Commands {
		groups = append(groups, command.FlagGroupModel)
	}
	for _, group := range groups {
		for _, flag := range group.Flags {
			if flag.Envar != "" && !flag.Hidden {
				names = append(names, flag.Envar)
			}
		}
	}
	return names
}
