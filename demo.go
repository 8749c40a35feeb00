// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"roce_exporter/collectors"
	"roce_exporter/collectors/demo"
	"roce_exporter/collectors/sonic"
	"roce_exporter/exporter"
)

// A demoFabric is a made-up fabric with an exporter for each node, which reads
// it as the exporter reads a real one.
type demoFabric struct {
	fabric    *demo.Fabric
	look      demo.Look // At the present.
	exporters map[string]*exporter.Exporter
	closers   []func()
}

// serveDemo serves a made-up fabric until ctx ends.
func serveDemo(ctx context.Context, f *flags, logger *slog.Logger, stdout io.Writer) error {
	f.fabric.Start = time.Now()
	dir, err := os.MkdirTemp("", "roce_exporter-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fabric, err := newFabric(f)
	if err != nil {
		return err
	}
	d, err := newDemo(f, logger, dir, fabric, fabric.Live(time.Now))
	if err != nil {
		return err
	}
	defer d.close()
	listen := splitAddresses(f.listen)
	_, _ = fmt.Fprintf(stdout, "A fabric of %d nodes: %d spines, %d leaves, %d hosts. Ctrl-C ends it.\n", len(d.fabric.Nodes), d.fabric.Spines, d.fabric.Leaves, d.fabric.Hosts)
	for _, address := range listen {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, _ = fmt.Fprintf(stdout, "  the fabric and its incidents  http://localhost:%s/\n  targets for Prometheus        http://localhost:%s/sd\n", port, port)
		}
	}
	_, _ = fmt.Fprintf(stdout, "  the databases of its switches %s/<switch>/redis/sonic-db\n", dir)
	return exporter.Serve(ctx, d.handler(f), &web.FlagConfig{WebListenAddresses: &listen, WebSystemdSocket: &f.systemdSocket, WebConfigFile: &f.webConfig}, logger)
}

// newFabric makes the fabric that the flags describe, with its incidents.
func newFabric(f *flags) (*demo.Fabric, error) {
	if o := f.fabric; min(o.Spines, o.Leaves, o.Hosts, o.Rails) < 1 {
		return nil, errors.New("--spines, --leaves, --hosts and --rails must be at least 1")
	}
	fabric, err := demo.New(f.fabric)
	if err != nil {
		return nil, err
	}
	return fabric, f.incidents.begin(fabric)
}

// listIncidents prints what can happen to a fabric.
func listIncidents(stdout io.Writer) error {
	for _, i := range demo.Incidents() {
		if _, err := fmt.Fprintf(stdout, "%-26s%s\n", i.Name, i.Title); err != nil {
			return err
		}
	}
	return nil
}

// newDemo starts the nodes; what they need of files is written to dir.
func newDemo(f *flags, logger *slog.Logger, dir string, fabric *demo.Fabric, look demo.Look) (*demoFabric, error) {
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		return nil, err
	}
	d := &demoFabric{fabric: fabric, look: look, exporters: map[string]*exporter.Exporter{}}
	for _, n := range fabric.Nodes {
		e, err := d.start(f, catalog, logger.With("node", n.Name), filepath.Join(dir, n.Name), n)
		if err != nil {
			d.close()
			return nil, err
		}
		d.exporters[n.Name] = e
	}
	return d, nil
}

// start starts the exporter of a node, and its databases.
func (d *demoFabric) start(f *flags, catalog *collectors.Catalog, logger *slog.Logger, dir string, n *demo.Node) (*exporter.Exporter, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "roce_exporter.yml")
	if err := os.WriteFile(config, []byte(demoConfig(d.fabric.Name, n)), 0o644); err != nil {
		return nil, err
	}
	build := func(c exporter.Config) ([]exporter.Enabled, error) {
		options := hostOptions(f, c)
		options.Required = true
		// A reload forgets everything: history jumps in time.
		devices := collectors.NewDevices(n.Sources(d.look))
		return []exporter.Enabled{{Collector: collectors.NewHost(catalog, devices, options)}}, nil
	}
	if n.IsSwitch() {
		served, err := n.Serve(dir, d.look)
		if err != nil {
			return nil, err
		}
		d.closers = append(d.closers, served.Close)
		build = func(c exporter.Config) ([]exporter.Enabled, error) {
			options := liveOptions(c)
			options.Files = served.Files
			live := sonic.NewLive(served.Dir, options)
			return []exporter.Enabled{{Collector: collectors.NewSwitch(catalog, live, switchOptions(c)), Close: live.Close}}, nil
		}
	}
	e, err := exporter.New(exporter.Options{
		Catalog: catalog, Logger: logger, Build: build, ConfigFile: config, DisableExporterMetrics: true,
		Web: exporter.WebOptions{TelemetryPath: f.telemetryPath, MaxRequests: f.maxRequests},
	})
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	d.closers = append(d.closers, e.Close)
	return e, nil
}

// demoConfig is the configuration of a node: what its operator intends.
func demoConfig(fabric string, n *demo.Node) string {
	ports := `{match: ".*", mtu: 9000, speed: 100G}`
	if n.IsSwitch() {
		ports = `{match: ".*", mtu: 9100}`
	}
	return fmt.Sprintf(`node: {fabric: %q, tier: %s}
refresh: {config: 5s, fdb: 15s}
policy:
  lossless_priorities: [3]
  ports: [%s]
  rdma_mtu: 4096
  dscp: {data: [26], cnp: [48]}
  congestion_control: dcqcn
`, fabric, n.Tier, ports)
}

func (d *demoFabric) close() {
	for _, end := range slices.Backward(d.closers) {
		end()
	}
}

// handler serves the fabric.
func (d *demoFabric) handler(f *flags) http.Handler {
	mux := http.NewServeMux()
	for name, e := range d.exporters {
		n, metrics := d.fabric.Node(name), http.StripPrefix("/node/"+name, e.Handler())
		mux.HandleFunc("GET /node/"+name+f.telemetryPath, func(w http.ResponseWriter, r *http.Request) {
			if d.look().Node(n).Gone {
				http.Error(w, "the exporter of "+name+" is away: an incident of the demo", http.StatusServiceUnavailable)
				return
			}
			metrics.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc("GET /sd", func(w http.ResponseWriter, r *http.Request) { d.serveTargets(w, r, f.telemetryPath) })
	mux.HandleFunc("GET /{$}", d.servePage)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "The demo is healthy.") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "The demo is ready.") })
	if f.pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	// A page of another site must not begin incidents through a browser.
	own := http.NewCrossOriginProtection()
	change := func(do func(name string) error) http.Handler {
		return own.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.serveChange(w, r, do) }))
	}
	end := change(func(name string) error { return d.fabric.End(name, d.look().Time) })
	mux.Handle("POST /incident/{name}", change(func(name string) error { return d.fabric.Begin(name, d.look().Time, time.Time{}) }))
	mux.Handle("DELETE /incident/{name}", end)
	mux.Handle("POST /incident/{name}/end", end) // What a form without scripts can do.
	return mux
}

// serveTargets lists the nodes as Prometheus' HTTP service discovery wants it.
func (d *demoFabric) serveTargets(w http.ResponseWriter, r *http.Request, telemetryPath string) {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := make([]group, 0, len(d.fabric.Nodes))
	for _, n := range d.fabric.Nodes {
		groups = append(groups, group{[]string{r.Host}, map[string]string{"__metrics_path__": "/node/" + n.Name + telemetryPath, "instance": n.Name}})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(groups)
}

// serveChange begins or ends an incident. A browser goes back to the page.
func (d *demoFabric) serveChange(w http.ResponseWriter, r *http.Request, do func(name string) error) {
	name := r.PathValue("name")
	if demo.FindIncident(name) == nil {
		http.Error(w, fmt.Sprintf("no incident is called %q: the page / lists them", name), http.StatusNotFound)
		return
	}
	if err := do(name); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	if r.Method == http.MethodPost {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (d *demoFabric) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := d.look().WritePage(w); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
