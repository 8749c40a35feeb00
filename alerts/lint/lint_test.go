// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// complaints are what the checks find in a rule.
func (s *set) complaints(r *rule, of ...check) []string {
	var all []string
	for _, c := range of {
		c.find(s, r, func(format string, args ...any) {
			all = append(all, c.name+": "+fmt.Sprintf(format, args...))
		})
	}
	return all
}

func TestShippedRules(t *testing.T) {
	s := shipped(t)
	for _, r := range s.rules {
		for _, c := range s.complaints(r, checks...) {
			t.Errorf("%s: %s", r.name(), c)
		}
	}
}

// A threshold that nothing reads is a promise to the operator that is not kept.
func TestThresholdsAreRead(t *testing.T) {
	s := shipped(t)
	read := map[string]bool{}
	for _, r := range s.rules {
		for _, v := range selectors(r.expr) {
			read[v.Name] = true
		}
	}
	for _, r := range s.rules {
		if isThreshold.MatchString(r.Record) && !read[r.Record] {
			t.Errorf("nothing reads %s", r.Record)
		}
	}
}

// What the bad rules below refer to.
const basis = `
groups:
- name: roce-basis
  rules:
  - record: roce:pfc_storm:threshold
    expr: vector(0.5)
  - record: instance_job:roce_node:info
    expr: group by (instance, job, fabric, tier, role, node) (topk by (instance, job) (1, timestamp(roce_node_info)))
  - record: port_priority:roce_pfc_paused:ratio_rate2m
    expr: max by (fabric, tier, role, node, port, priority) (rate(roce_pfc_receive_pause_seconds_total{method!="estimated"}[2m]) * on (instance, job) group_left (fabric, tier, role, node) instance_job:roce_node:info)
  - record: port:roce_port_oper_up
    expr: max by (fabric, tier, role, node, port) (roce_port_oper_up * on (instance, job) group_left (fabric, tier, role, node) instance_job:roce_node:info)
  - record: port:roce_link:info
    expr: group by (fabric, tier, role, node, port, neighbor) (roce_port_neighbor_info * on (instance, job) group_left (fabric, tier, role, node) instance_job:roce_node:info)
`

const storm = `
  - alert: RoCEPFCStorm
    expr: port_priority:roce_pfc_paused:ratio_rate2m > on () group_left () roce:pfc_storm:threshold and on (fabric, node, port) port:roce_port_oper_up == 1
    for: 1m
    labels: {severity: critical, layer: pfc, team: network}
    annotations:
      summary: "{{ $labels.node }} {{ $labels.port }}"
      description: "Priority {{ $labels.priority }}."
      runbook_url: https://example.com/RUNBOOK.md#rocepfcstorm
      dashboard_url: https://grafana.example.com/d/roce-switch?var-fabric={{ $labels.fabric }}
`

// alone is a set of rules with one that is looked at, the last.
func alone(t *testing.T, text string) (*set, *rule) {
	t.Helper()
	s := load(t, []byte(basis), []byte("groups:\n- name: roce-test\n  rules:\n"+text))
	s.runbook = map[string]bool{"RoCEPFCStorm": true}
	return s, s.rules[len(s.rules)-1]
}

// A good rule passes all checks, so that none complains of everything.
func TestGoodRulePasses(t *testing.T) {
	s, r := alone(t, storm)
	for _, c := range s.complaints(r, checks...) {
		t.Error(c)
	}
}

// query is a recording of a query, for checks that look at that alone.
func query(expr string) string {
	return fmt.Sprintf("  - record: node:roce_x:y\n    expr: %q\n", expr)
}

// but is the good alert with one thing changed.
func but(old, new string) string {
	if !strings.Contains(storm, old) {
		panic("the good rule has no " + old)
	}
	return strings.ReplaceAll(storm, old, new)
}

// Each check finds its bad rules.
func TestBadRulesAreCaught(t *testing.T) {
	for _, bad := range []struct{ check, rule, want string }{
		{"names, labels and joins", query(`roce_pfc_paused`), "roce_pfc_paused is neither exported nor recorded"},
		{"names, labels and joins", query(`roce_port_oper_up{node="leaf1"}`), "roce_port_oper_up has no label node"},
		{"names, labels and joins", query(`max by (node) (roce_port_oper_up)`), "max by (node): what it aggregates has no node"},
		{"names, labels and joins", query(`max without (instance) (roce_port_oper_up)`), "name those that stay"},
		{"names, labels and joins", query(`roce_port_oper_up and on (fabric, node, port) roce_port_admin_up`), "the left side has no fabric"},
		{"names, labels and joins", query(`roce_port_oper_up and on (fabric, node, port) port:roce_port_oper_up`), "the left side has no fabric"},
		{"names, labels and joins", query(`roce_port_oper_up and on (port) roce_port_admin_up`), "raw series are of an instance and a job"},
		{"names, labels and joins", query(`port:roce_port_oper_up and on (node, port) port:roce_link:info`), "the same name may be in two fabrics"},
		{"names, labels and joins", query(`port_priority:roce_pfc_paused:ratio_rate2m > on () roce:pfc_storm:threshold`), "the left side can have several, told apart by fabric, node, port, priority, role, tier: group_left?"},
		{"names, labels and joins", query(`port_priority:roce_pfc_paused:ratio_rate2m * on (fabric, node, port) group_left (neighbor) port:roce_link:info`), "the side of one can have several"}, // A neighbour that changed.
		{"names, labels and joins", query(`roce_port_oper_up * on (instance, job) group_left (node) roce_node_info`), "the side of one can have several"},                                        // An upgrade changes os_version.
		{"names, labels and joins", query(`roce_pfc_enabled{source="asic"} != on (instance, job, port, priority) roce_pfc_enabled{source!="asic"}`), "the right side can have several"},
		{"names, labels and joins", query(`roce_pfc_enabled{source="asic"} != ignoring (source) roce_port_oper_up`), "!= ignoring: one side has"},
		{"names, labels and joins", query(`port:roce_port_oper_up * on (fabric, node, port) group_left (speed) group by (fabric, node, port) (port:roce_link:info)`), "group_left takes speed"},
		{"names, labels and joins", query(`roce_port_oper_up == roce_pfc_enabled{source="asic"}`), "== without on"},
		{"names, labels and joins", query(`label_replace(roce_port_oper_up, "peer", "$1", "node", "(.*)")`), "label_replace reads node"},
		{"names, labels and joins", query(`max by (instance, job, pool) (roce_buffer_pool_watermark_bytes) / on (instance, job, pool) roce_buffer_pool_size_bytes`), "the right side can have several"}, // One a pool and ASIC.

		{"counters", query(`roce_queue_dropped_packets_total > 0`), "rate or increase, not its value"},
		{"counters", query(`roce_queue_dropped_packets_total - roce_queue_dropped_packets_total offset 5m`), "rate or increase, not its value"},
		{"counters", query(`rate(roce_queue_occupancy_bytes[5m])`), "which is no counter"},
		{"counters", query(`rate(port:roce_port_oper_up[5m])`), "take it before it is recorded"},
		{"counters", query(`irate(roce_pfc_receive_frames_total[5m])`), "luck"},

		{"windows", query(`rate(roce_pfc_receive_frames_total[1m])`), "roce_pfc_receive_frames_total over 1m0s: at least 2m0s"},
		{"windows", query(`increase(roce_queue_dropped_packets_total[2m])`), "at least 5m0s"},
		{"windows", query(`increase(roce_pg_dropped_packets_total[2m])`), "at least 5m0s"},
		{"windows", query(`max_over_time(max_over_time(roce_port_oper_up[5m])[30m:])`), "a subquery without a step"},
		{"windows", query(`max_over_time(roce_port_mtu_bytes{source="asic"}[1d])`), "record it"},
		{"windows", query(`max_over_time(port:roce_port_oper_up[1d])`), "record it every 5m"},

		{"watermarks", query(`max_over_time(roce_pg_headroom_watermark_bytes{window="user"}[10m])`), `without window="periodic"`},
		{"watermarks", query(`roce_pg_headroom_watermark_bytes{window="periodic"}`), "max_over_time of at least 10m"},
		{"watermarks", query(`max_over_time(roce_pg_headroom_watermark_bytes{window="periodic"}[5m])`), "max_over_time of at least 10m"},

		{"denominators", query(`rate(roce_queue_ecn_marked_packets_total[5m]) / rate(roce_queue_packets_total[5m])`), "divided by"},
		{"denominators", query(`sum by (instance) (rate(roce_queue_ecn_marked_packets_total[5m])) / sum by (instance) (rate(roce_queue_packets_total[5m]) > 0)`), "divided by"},

		{"sources", query(`roce_pfc_enabled == 0`), "roce_pfc_enabled without source"},
		{"sources", query(`roce_port_mtu_bytes < 4200`), "roce_port_mtu_bytes without source"},

		{"thresholds", query(`port_priority:roce_pfc_paused:ratio_rate2m > scalar(roce:pfc_storm:threshold)`), "is silent where it is missing"},
		{"thresholds", query(`port_priority:roce_pfc_paused:ratio_rate2m > on () roce:pfc_storm:threshold`), "on () group_left ()"},
		{"thresholds", but("on () group_left () roce:pfc_storm:threshold", "0.5"), "… > 0.5: a number that is compared with stands in thresholds.yml"},

		{"no topk in alerts", but("expr: ", "expr: topk(5, roce_port_oper_up) and "), "topk in an alert"},
		{"pages wait", but("for: 1m", "for: 30s"), "does not wait a minute"},
		{"what it must ask", but(" and on (fabric, node, port) port:roce_port_oper_up == 1", ""), "does not ask roce_port_oper_up"},
		{"after a reboot", but("layer: pfc", "layer: config"), "when the node booted"},
		{"missing history", query(`port:roce_port_oper_up unless on (fabric, node, port) port:roce_port_oper_up offset 1d`), "fires where there is no history"},
		{"missing history", query(`absent(port:roce_port_oper_up offset 1d)`), "fires where there is no history"},
		{"jobs", query(`up == 0`), `up of all jobs: job=~".*roce.*"`},
		{"jobs", query(`scrape_samples_scraped > 20000`), "scrape_samples_scraped of all jobs"},

		{"identity", but("severity: critical", "severity: page"), `severity "page"`},
		{"identity", but("layer: pfc", "layer: pause"), `layer "pause"`},
		{"identity", but(", team: network", ""), "no label team"},
		{"identity", but("port_priority:roce_pfc_paused:ratio_rate2m > on () group_left () roce:pfc_storm:threshold and on (fabric, node, port) port:roce_port_oper_up == 1", "roce_port_oper_up == 0"), "has no label node"},
		{"identity", but("port_priority:roce_pfc_paused:ratio_rate2m > on () group_left () roce:pfc_storm:threshold and on (fabric, node, port) port:roce_port_oper_up == 1", "roce_port_oper_up * on (instance, job) group_left (fabric, node) instance_job:roce_node:info"), "has the label instance"},

		{"texts", but("      description: \"Priority {{ $labels.priority }}.\"\n", ""), "no description"},
		{"texts", but("$labels.node", "$labels.nodename"), "summary says $labels.nodename"},
		{"texts", but(" {{ $labels.port }}", ""), "does not say $labels.port"},
		{"texts", but("?var-fabric={{ $labels.fabric }}", ""), "does not choose the fabric"},
		{"texts", but("#rocepfcstorm", "#rocestorm"), "no such heading"},
		{"texts", but("alert: RoCEPFCStorm", "alert: RoCEPFCStorms"), "no such heading"},
		{"texts", but("/d/roce-switch", "/switch"), "/d/roce-…"},

		{"names of recordings", "  - record: roce_pfc_storm\n    expr: roce_port_oper_up\n", "level:roce_…:operations"},
		{"names of recordings", query(`roce_port_oper_up`) + query(`roce_port_admin_up`), "recorded twice"},
		{"groups", "  - {record: node:roce_y:z, expr: node:roce_x:y}\n" + query(`roce_port_oper_up`), "which its group records later"},
	} {
		t.Run(bad.check+" "+bad.want, func(t *testing.T) {
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == bad.check })
			if i < 0 {
				t.Fatalf("no check %q", bad.check)
			}
			s, _ := alone(t, bad.rule)
			var all []string
			for _, r := range s.rules[5:] {
				all = append(all, s.complaints(r, checks[i])...)
			}
			if !slices.ContainsFunc(all, func(c string) bool { return strings.Contains(c, bad.want) }) {
				t.Errorf("not caught; complaints: %q\n%s", all, bad.rule)
			}
		})
	}
}
