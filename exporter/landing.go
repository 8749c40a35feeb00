// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"html/template"
	"net/http"
	"time"

	"github.com/prometheus/common/version"
)

// page is what people see first. It loads nothing and runs nothing.
const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>RoCE exporter</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1b1f23; background: #fff; }
nav a { margin-right: 1.5rem; }
a { color: #0b5cad; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #d0d7de; }
td { overflow-wrap: anywhere; }
.ok { color: #1a7f37; } .bad { color: #b42318; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; } a { color: #6cb6ff; } th, td { border-color: #30363d; }
  .ok { color: #56d364; } .bad { color: #ff7b72; }
}
</style>
</head>
<body>
<h1>RoCE exporter</h1>
<p>Version {{.Version}}. Last scrape: {{.LastRun}}.{{if not .Reloaded}} <span class="bad">The configuration could not be reloaded; an older one is in force.</span>{{end}}</p>
<nav><a href="{{.Metrics}}">Metrics</a><a href="/config">Configuration</a><a href="/-/healthy">Healthy</a><a href="/-/ready">Ready</a></nav>
{{range .Collectors}}
<h2>Collector {{.Name}}</h2>
<p><span class="{{if .OK}}ok{{else if .Seen}}bad{{end}}">{{.State}}</span>{{with .Seen}}, at {{.}}{{end}}{{with .Duration}}, in {{.}}{{end}}</p>
{{with .Sources}}<table>
<thead><tr><th scope="col">Source</th><th scope="col">State</th><th scope="col">Reached</th><th scope="col">Age of the reading</th></tr></thead>
<tbody>
{{range .}}<tr><td>{{.Name}}</td><td class="{{if .OK}}ok{{else}}bad{{end}}">{{.State}}</td><td>{{.Via}}</td><td>{{.Age}}</td></tr>
{{end}}</tbody>
</table>{{end}}
{{else}}<p class="bad">No collector is enabled.</p>
{{end}}
</body>
</html>
`

// landing serves the page.
func (e *Exporter) landing() http.Handler {
	parsed := template.Must(template.New("landing").Parse(page))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		g := e.acquire()
		defer g.release()
		data := struct {
			Version, LastRun, Metrics string
			Reloaded                  bool
			Collectors                []collectorView
		}{Version: version.Version, LastRun: "none yet", Metrics: e.web.TelemetryPath, Reloaded: e.reloadState().successful}
		if data.Version == "" {
			data.Version = "unknown"
		}
		if last := e.states.lastRun(); !last.IsZero() {
			data.LastRun = last.UTC().Format(time.RFC3339)
		}
		for _, r := range g.runners {
			data.Collectors = append(data.Collectors, e.states.view(r))
		}
		var b bytes.Buffer
		if err := parsed.Execute(&b, data); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = b.WriteTo(w)
	})
}
