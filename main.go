// SPDX-License-Identifier: Apache-2.0

// Command roce_exporter exports the state of a RoCE fabric to Prometheus.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/go-kit/log"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/redis/go-redis/v9"
	sloggokit "github.com/tjhop/slog-gokit"

	"roce_exporter/collectors"
	"roce_exporter/exporter"
)

// watchInterval is how often the configuration file is compared.
const watchInterval = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // From the start: until it is handled it would end the process.
	code := runCommand(ctx, hangup, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runCommand runs one command and returns the exit code of the process.
func runCommand(ctx context.Context, hangup <-chan os.Signal, args []string, stdout, stderr io.Writer) int {
	app, f := newApp()
	app.UsageWriter(stdout).ErrorWriter(stderr)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		app.UsageTemplate(kingpin.DefaultUsageTemplate) // Of the command that is named, not of all.
	}
	command, err := app.Parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "roce_exporter: %s%v%s (--help lists the flags)\n", wrongFlag(app, args, err), err, fromEnvironment(app))
		return 2
	}
	if f.version {
		_, _ = fmt.Fprintln(stdout, version.Print("roce_exporter"))
		return 0
	}
	logger := newLogger(stderr, f.logLevel, f.logFormat)
	redis.SetLogger(redisLog{logger})
	if !strings.HasPrefix(command, "demo") { // That is no guest on a switch.
		f.afterScrape = limitRuntime(f.memoryLimit, f.maxProcs)
	}
	switch command {
	case serveCommand:
		err = serve(ctx, f, logger, hangup, stdout)
	case captureCommand:
		err = capture(ctx, f, stdout)
	case "demo " + demoRun:
		err = serveDemo(ctx, f, logger, stdout)
	case "demo " + demoIncidents:
		err = listIncidents(stdout)
	case "demo " + demoHistory:
		err = writeHistory(ctx, f, stdout, stderr)
	default:
		err = fmt.Errorf("unknown command %q", command)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "roce_exporter: %v\n", err)
		return 1
	}
	return 0
}

// newLogger is the one place that knows go-kit/log, which writes the lines.
// slog-gokit adds the time and the caller of a line.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	sink := log.NewLogfmtLogger(log.NewSyncWriter(w))
	if format == "json" {
		sink = log.NewJSONLogger(log.NewSyncWriter(w))
	}
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // The flag takes no others.
	return slog.New(sloggokit.NewGoKitHandler(sink, least))
}

// redisLog takes what go-redis logs by itself; the errors it returns are
// logged where they are handled.
type redisLog struct{ logger *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, v ...any) {
	r.logger.DebugContext(ctx, fmt.Sprintf(format, v...), "component", "redis")
}

// serve serves metrics until ctx ends.
func serve(ctx context.Context, f *flags, logger *slog.Logger, hangup <-chan os.Signal, stdout io.Writer) error {
	if f.check {
		return check(f.config, stdout)
	}
	catalog, err := collectors.NewDefaultCatalog()
	if err != nil {
		return err
	}
	b := &builder{flags: f, catalog: catalog}
	listen := splitAddresses(f.listen)
	e, err := exporter.New(exporter.Options{
		Catalog: catalog, Logger: logger, ConfigFile: f.config, DisableExporterMetrics: f.noSelf,
		AfterScrape: f.afterScrape,
		Build:       b.build,
		Web: exporter.WebOptions{
			TelemetryPath: f.telemetryPath, MaxRequests: f.maxRequests, Lifecycle: f.lifecycle, Pprof: f.pprof,
			Listen: &web.FlagConfig{WebListenAddresses: &listen, WebSystemdSocket: &f.systemdSocket, WebConfigFile: &f.webConfig},
		},
	})
	if err != nil {
		return err
	}
	defer e.Close()
	logger.Info("roce_exporter starts", "version", version.Info(), "build", version.BuildContext())
	if f.replay != "" {
		for _, what := range collectors.LeftOut(os.DirFS(f.replay)) {
			logger.Warn("the machine could not read this when the capture was made; the replay does not have it and calls its source good", "left_out", what)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { reloadOn(ctx, hangup, e) })
	if f.autoReload {
		background.Go(func() { e.Watch(ctx, watchInterval) })
	}
	return e.Serve(ctx)
}

// reloadOn reloads at each signal until ctx ends.
func reloadOn(ctx context.Context, hangup <-chan os.Signal, e *exporter.Exporter) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			_ = e.Reload() // It has logged what is wrong, and the old configuration goes on.
		}
	}
}

// check says whether the configuration file is good.
func check(file string, stdout io.Writer) error {
	if file == "" {
		return errors.New("--config.check: there is nothing to check without --config.file")
	}
	if _, err := readConfig(file); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%s: ok\n", file)
	return nil
}

// splitAddresses takes several addresses out of one value, as the environment
// has them.
func splitAddresses(values []string) []string {
	var addresses []string
	for _, value := range values {
		for address := range strings.SplitSeq(value, ",") {
			if address != "" {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}
