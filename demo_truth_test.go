// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"roce_exporter/collectors/demo"
	"roce_exporter/exporter"
)

// A simulated is a fabric at a time that a test sets.
type simulated struct {
	*demoFabric
	now time.Time
	of  map[string]demo.Moment // What a node's exporter saw last.
}

// noon is when the story begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func simulate(t *testing.T, options demo.Options) *simulated {
	t.Helper()
	options.Start = noon
	fabric, err := demo.New(options)
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{now: noon, of: map[string]demo.Moment{}}
	s.demoFabric, err = newDemo(&flags{telemetryPath: "/metrics"}, slog.New(slog.DiscardHandler), t.TempDir(), fabric, func() demo.Moment { return fabric.At(s.now) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// scrape scrapes a node, once what its exporter remembers is of this stretch
// of time.
func (s *simulated) scrape(t *testing.T, n *demo.Node) map[string]float64 {
	t.Helper()
	m, e := s.look(), s.exporters[n.Name]
	if last, ok := s.of[n.Name]; !ok || !last.Same(m, n) {
		if err := e.Reload(); err != nil {
			t.Fatal(err)
		}
		for range settled + 4 {
			scrapeText(t, e)
		}
	}
	s.of[n.Name] = m
	return samplesOf(t, scrapeText(t, e))
}

func scrapeText(t *testing.T, e *exporter.Exporter) string {
	t.Helper()
	answer := httptest.NewRecorder()
	e.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func samplesOf(t *testing.T, text string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all[line[:i]] = value
	}
	return all
}

// TestEverySampleIsTrue compares an hour of a fabric to which things happen
// with what the simulator knows, whatever way a number took: Redis, sysfs,
// ethtool, DCB.
func TestEverySampleIsTrue(t *testing.T) {
	if !thorough {
		t.Skip("make test runs it without the race detector")
	}
	s := simulate(t, demo.Options{})
	f := s.fabric
	happen(t, f, "slow-receiver@4m+8m", "nic-storm@10m+7m", "mask-lost@20m", "mtu-host@22m", "crc-errors@5m+30m", "lossless-drops@30m+5m", "nic-drops@31m+5m",
		"global-pause@33m+4m", "trust-pcp@36m+3m", "dscp-mismatch@26m+3m", "link-flaps@37m+13m", "deadlock@40m+2m", "fdb-empty@43m+3m", "device-renamed@47m",
		"cnp-firmware@50m", "ecn-counters-off@52m", "clock-skew@53m", "pause-creep@0s", "exporter-gone@55m", "orchagent-dead@56m")
	compared, wrong, seen := 0, 0, map[string]bool{}
	for ; s.now.Before(noon.Add(time.Hour)); s.now = s.now.Add(time.Minute + 7*time.Second) {
		for _, n := range f.Nodes {
			for series, got := range s.scrape(t, n) {
				family, labels := splitSeries(series)
				want, ok := truth(s.look(), n, family, labels)
				seen[family] = true
				switch {
				case !ok:
					t.Fatalf("nobody knows what %s of %s should be", series, n.Name)
				case math.IsNaN(want): // Not of the fabric.
					continue
				case math.Abs(got-want) > 1e-12*math.Abs(want):
					if wrong++; wrong < 10 {
						t.Errorf("at %s, %s: %s is %v, not %v", s.now.Sub(noon), n.Name, series, got, want)
					}
				}
				compared++
			}
		}
	}
	t.Logf("%d samples of %d families compared with the truth, %d mismatches", compared, len(seen), wrong)
	if compared < 400_000 || len(seen) < 100 {
		t.Errorf("only %d samples of %d families", compared, len(seen))
	}
}

// happen lets incidents happen, in the notation of the command line.
func happen(t *testing.T, f *demo.Fabric, incidents ...string) {
	t.Helper()
	var s scenario
	for _, text := range incidents {
		if err := s.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.begin(f); err != nil {
		t.Fatal(err)
	}
}

func splitSeries(series string) (family string, labels map[string]string) {
	family, rest, _ := strings.Cut(series, "{")
	return family, parseLabels(strings.TrimSuffix(rest, "}"))
}

// classOf are the classes of priorities, queues and groups.
var classOf = map[string]demo.Class{"0": demo.Other, "1": demo.Strayed, "3": demo.Data, "6": demo.CNP}

// counted are the families that are one quantity of a port, of the data's
// priority where they have one: any other priority has none of it.
var counted = map[string]demo.Quantity{
	"roce_port_receive_oversize_packets_total": demo.OversizeReceived, "roce_port_receive_errors_total": demo.CRCErrors,
	"roce_port_receive_crc_errors_total": demo.CRCErrors, "roce_port_fec_corrected_codewords_total": demo.FECCorrected,
	"roce_port_fec_corrected_bits_total": demo.FECCorrected, "roce_port_fec_symbol_errors_total": demo.FECCorrected,
	"roce_port_fec_uncorrectable_codewords_total": demo.FECUncorrectable, "roce_port_link_down_events_total": demo.LinkDowns,
	"roce_port_receive_buffer_dropped_packets_total": demo.GroupDropped, "roce_port_transmit_buffer_dropped_packets_total": demo.QueueDropped,
	"roce_pfc_receive_frames_total": demo.PFCReceived, "roce_pfc_transmit_frames_total": demo.PFCSent,
	"roce_pfc_receive_xon_frames_total": demo.PausedEnds, "roce_pfc_transmit_xon_frames_total": demo.PausingEnds,
	"roce_pfc_receive_transitions_total": demo.PausedEnds, "roce_pfc_transmit_transitions_total": demo.PausingEnds,
	"roce_pfc_receive_pause_raw_total":          demo.PausedMicroseconds,
	"roce_queue_ecn_marked_packets_total":       demo.MarkedPackets,
	"roce_queue_dropped_packets_total":          demo.QueueDropped,
	"roce_pg_dropped_packets_total":             demo.GroupDropped,
	"roce_pfcwd_storms_detected_total":          demo.StormsDetected,
	"roce_pfcwd_storms_restored_total":          demo.StormsRestored,
	"roce_queue_watermark_bytes":                demo.QueueWatermark,
	"roce_queue_occupancy_bytes":                demo.QueueOccupancy,
	"roce_pg_watermark_bytes":                   demo.GroupWatermark,
	"roce_pg_headroom_watermark_bytes":          demo.HeadroomWatermark,
	"roce_nic_receive_buffer_high_events_total": demo.BufferHigh,
	"roce_rdma_cnp_sent_packets_total":          demo.CNPSent, "roce_rdma_cnp_ignored_packets_total": demo.CNPIgnored,
	"roce_rdma_ecn_marked_packets_total": demo.MarkedReceived, "roce_rdma_out_of_sequence_packets_total": demo.OutOfSequence,
	"roce_rdma_sequence_naks_total": demo.SequenceNAKs, "roce_rdma_ack_timeouts_total": demo.AckTimeouts,
	"roce_rdma_retransmits_total": demo.Retransmits, "roce_rdma_retries_exceeded_total": demo.RetriesExceeded,
	"roce_rdma_receive_queue_empty_drops_total": demo.OutOfBuffer, "roce_rdma_link_down_events_total": demo.LinkDowns,
}

// never are the families that are 0 in a fabric that the demo can make.
var never = []string{
	"roce_port_transmit_errors_total", "roce_nic_receive_dropped_packets_total", "roce_queue_wred_dropped_packets_total",
	"roce_rdma_completion_errors_total", "roce_rdma_duplicate_requests_total", "roce_rdma_icrc_errors_total", "roce_rdma_rnr_naks_total", "roce_rdma_slow_restarts_total",
	"roce_scrape_skipped", "roce_scrape_series_dropped_total", "roce_scrape_source_reading_age_seconds", "roce_pause_transmit_seconds_total",
}

// always are the families that are 1.
var always = []string{
	"roce_redis_up", "roce_scrape_collector_success", "roce_scrape_source_success", "roce_exporter_config_last_reload_successful", "roce_port_admin_up",
	"roce_pg_lossless", "roce_queue_lossless", "roce_queue_ecn_enabled", "roce_policy_lossless_priority", "roce_policy_port", "roce_policy_dscp", "roce_pfcwd_enabled",
}

// truth is what a sample should be; NaN: it is not of the fabric but of the
// exporter's process. false: nobody knows.
func truth(m demo.Moment, n *demo.Node, family string, labels map[string]string) (float64, bool) {
	node := m.Node(n)
	if value, ok := nodeTruth(m, n, family, labels); ok {
		return value, true
	}
	var p *demo.Port
	for _, port := range n.Ports {
		if port.Name == labels["port"] || labels["device"] != "" && m.Port(port).Device == labels["device"] {
			p = port
		}
	}
	if p == nil {
		return 0, false
	}
	port := m.Port(p)
	number := func(q ...demo.Quantity) (sum float64) {
		for _, one := range q {
			sum += float64(m.Number(p, one))
		}
		return sum
	}
	index := labels["priority"] + labels["queue"] + labels["pg"]
	class, known := classOf[index]
	traffic := func(q demo.Quantity) float64 {
		switch {
		case index == "": // Of all priorities.
			return number(q+demo.Other, q+demo.Strayed, q+demo.Data, q+demo.CNP)
		case !known:
			return 0
		}
		return number(q + class)
	}
	rdma := func(q demo.Quantity) float64 { return number(q+demo.Strayed, q+demo.Data, q+demo.CNP) }
	if q, ok := counted[family]; ok {
		if index != "" && class != demo.Data {
			return 0, true
		}
		return number(q), true
	}
	yes := func(is bool) (float64, bool) {
		if is {
			return 1, true
		}
		return 0, true
	}
	const bytesPerMegabit = 1e6 / 8
	isData := index == "3"
	switch family {
	case "roce_port_receive_bytes_total", "roce_nic_priority_receive_bytes_total":
		return traffic(demo.ReceivedBytes), true
	case "roce_port_transmit_bytes_total", "roce_nic_priority_transmit_bytes_total", "roce_queue_bytes_total":
		return traffic(demo.SentBytes), true
	case "roce_port_receive_packets_total", "roce_nic_priority_receive_packets_total":
		return traffic(demo.ReceivedPackets), true
	case "roce_port_transmit_packets_total", "roce_nic_priority_transmit_packets_total", "roce_queue_packets_total":
		return traffic(demo.SentPackets), true
	case "roce_rdma_receive_bytes_total":
		return wholeWords(p, rdma(demo.ReceivedBytes)), true
	case "roce_rdma_transmit_bytes_total":
		return wholeWords(p, rdma(demo.SentBytes)), true
	case "roce_rdma_receive_packets_total":
		return rdma(demo.ReceivedPackets), true
	case "roce_rdma_transmit_packets_total":
		return rdma(demo.SentPackets), true
	case "roce_rdma_cnp_handled_packets_total":
		if p.Driver == "bnxt_en" { // It counts those that it received.
			return number(demo.CNPHandled, demo.CNPIgnored), true
		}
		return number(demo.CNPHandled), true
	case "roce_queue_ecn_marked_bytes_total":
		return number(demo.MarkedPackets) * 4158, true
	case "roce_queue_dropped_bytes_total":
		if !isData {
			return 0, true
		}
		return number(demo.QueueDropped) * 4158, true
	case "roce_port_receive_discarded_packets_total":
		if n.IsSwitch() {
			return number(demo.GroupDropped, demo.OversizeReceived, demo.StormDroppedReceived), true
		}
		return number(demo.GroupDropped), true
	case "roce_port_transmit_discarded_packets_total":
		return number(demo.QueueDropped, demo.StormDroppedSent), true
	case "roce_nic_priority_dropped_packets_total":
		return number(demo.GroupDropped), isData
	case "roce_port_pcs_symbol_errors_total":
		if p.Driver == "bnxt_en" {
			return 0, true
		}
		return number(demo.FECUncorrectable), true
	case "roce_pfc_receive_pause_seconds_total":
		return number(demo.PausedMicroseconds) * 1e-6 * oneOf(isData), labels["method"] == "measured"
	case "roce_pfc_transmit_pause_seconds_total":
		return number(demo.PausingMicroseconds) * 1e-6 * oneOf(isData), labels["method"] == "measured"
	case "roce_pause_receive_frames_total", "roce_pause_transmit_frames_total":
		return pauseFrames(m, p, family), true
	case "roce_pause_receive_seconds_total":
		return number(demo.GlobalPausedMicroseconds) * 1e-6, true
	case "roce_nic_pause_storm_events_total":
		if labels["severity"] == "error" {
			return number(demo.StormErrors), true
		}
		return number(demo.StormWarnings), true
	case "roce_pcie_stall_seconds_total":
		return number(demo.PCIeStalls) * oneOf(labels["operation"] == "read"), true
	case "roce_pcie_stall_ratio":
		return number(demo.PCIeStallPercent) / 100 * oneOf(labels["operation"] == "read"), true
	case "roce_pfcwd_dropped_packets_total":
		if labels["direction"] == "receive" {
			return number(demo.StormDroppedReceived), true
		}
		return number(demo.StormDroppedSent), true

	case "roce_port_oper_up":
		return yes(port.Up)
	case "roce_rdma_port_up":
		return yes(port.Up)
	case "roce_port_speed_bytes_per_second", "roce_rdma_port_speed_bytes_per_second":
		return port.Speed / 8, port.Up
	case "roce_port_configured_speed_bytes_per_second":
		return p.Speed / 8, true
	case "roce_policy_port_speed_bytes_per_second":
		return 100_000 * bytesPerMegabit, true
	case "roce_port_mtu_bytes":
		if labels["source"] == "asic" {
			return float64(port.ASICMTU), true
		}
		return float64(port.MTU), true
	case "roce_policy_port_mtu_bytes":
		return map[bool]float64{true: 9100, false: 9000}[n.IsSwitch()], true
	case "roce_rdma_mtu_bytes":
		return map[int]float64{9000: 4096, 1500: 1024}[port.MTU], true
	case "roce_pfc_enabled":
		mask := port.Mask
		if labels["source"] == "asic" {
			mask = port.ASICMask
		}
		priority, _ := strconv.Atoi(labels["priority"])
		return yes(mask>>priority&1 == 1)
	case "roce_pfcwd_storm_active":
		return yes(port.Storm)
	case "roce_pfcwd_detection_time_seconds", "roce_pfcwd_restoration_time_seconds":
		return 0.2, true
	case "roce_queue_ecn_threshold_bytes":
		return map[string]float64{"min": node.ECNMin, "max": node.ECNMax}[labels["bound"]], true
	case "roce_pg_headroom_size_bytes":
		return 94208, true
	case "roce_port_fdb_entries":
		return float64(port.FDB) * oneOf(port.Up), true

	case "roce_port_info":
		return yes(labels["driver"] == p.Driver && labels["alias"] == p.Alias && labels["firmware"] == port.Firmware && labels["pci_address"] == p.PCI && (n.IsSwitch() || labels["mac"] == p.MAC))
	case "roce_port_neighbor_info":
		return yes(port.LLDP && labels["neighbor"] == p.Peer.Node.Name && (labels["neighbor_kind"] == "switch") == p.Peer.Node.IsSwitch() &&
			slices.Contains([]string{p.Peer.Name, p.Peer.Alias}, labels["neighbor_port"]))
	case "roce_port_attached_mac_info":
		return yes(labels["mac"] == p.Peer.MAC)
	case "roce_port_mode_info":
		return yes((labels["mode"] == "l2") == !p.Peer.Node.IsSwitch())
	case "roce_pfcwd_action_info":
		return yes(labels["action"] == "drop")
	case "roce_nic_trust_info":
		return yes(labels["trust"] == port.Trust)
	case "roce_port_dscp_info":
		return yes(dscpIsTrue(n, node, labels))
	case "roce_rdma_port_info":
		firmware, _, _ := strings.Cut(port.Firmware, " ")
		return yes(labels["port"] == p.Name && labels["driver"] == p.Driver && labels["firmware"] == firmware && labels["link_layer"] == port.LinkLayer)
	case "roce_rdma_gids":
		return map[string]float64{"v1": 1, "v2": float64(port.GIDs)}[labels["type"]], true
	case "roce_pcie_link_width_lanes":
		return float64(port.Lanes), true
	case "roce_pcie_link_max_width_lanes":
		return float64(port.MaxLanes), true
	case "roce_pcie_link_speed_transfers_per_second", "roce_pcie_link_max_speed_transfers_per_second":
		return map[int]float64{3: 8e9, 4: 16e9}[port.Generation], true
	case "roce_host_sysctl":
		if node.ARPFlux || labels["name"] == "rp_filter" {
			return 0, true
		}
		return map[string]float64{"arp_ignore": 1, "arp_announce": 2}[labels["name"]], true
	}
	return 0, false
}

// nodeTruth is the truth of what no port has.
func nodeTruth(m demo.Moment, n *demo.Node, family string, labels map[string]string) (float64, bool) {
	node := m.Node(n)
	switch {
	case slices.Contains(never, family):
		return 0, true
	case slices.Contains(always, family):
		return 1, true
	}
	switch family {
	case "roce_exporter_build_info", "roce_exporter_config_last_reload_success_timestamp_seconds", "roce_scrape_collector_duration_seconds":
		return math.NaN(), true
	case "roce_node_info":
		return oneOf(labels["node"] == n.Name && labels["tier"] == n.Tier && labels["fabric"] == "demo" && (labels["role"] == "switch") == n.IsSwitch()), true
	case "roce_node_boot_time_seconds":
		return float64(node.Boot.Unix()), true
	case "roce_node_time_seconds":
		return float64(m.Time.Add(node.Skew).UnixMilli()) / 1e3, true
	case "roce_counters_last_change_timestamp_seconds":
		return math.NaN(), true // A test of its own.
	case "roce_flex_counter_enabled":
		return oneOf(!node.ECNOff || labels["group"] != "WRED_ECN_QUEUE"), true
	case "roce_flex_counter_interval_seconds":
		return map[string]float64{"PORT": 1, "PFCWD": 0.2, "QUEUE": 10, "PG_DROP": 10, "WRED_ECN_QUEUE": 10}[labels["group"]] + 60*oneOf(strings.Contains(labels["group"], "WATERMARK") || labels["group"] == "PORT_BUFFER_DROP"), true
	case "roce_service_up":
		return oneOf(node.Down != labels["name"] && (node.Down == "" || labels["name"] != "system")), true
	case "roce_buffer_pool_size_bytes":
		return 32 << 20, true
	case "roce_buffer_pool_watermark_bytes":
		return math.Floor(node.PoolWatermark), true
	case "roce_policy_rdma_mtu_bytes":
		return 4096, true
	case "roce_policy_congestion_control_info":
		return oneOf(labels["mode"] == "dcqcn"), true
	case "roce_host_module_loaded":
		loaded := []string{"ib_uverbs", "rdma_cm", "nvidia_peermem", map[string]string{"mlx5_core": "mlx5_ib", "ice": "irdma", "bnxt_en": "bnxt_re"}[n.Ports[0].Driver]}
		return oneOf(slices.Contains(loaded, labels["module"])), true
	}
	return 0, false
}

func oneOf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// wholeWords is a number of bytes that was counted in words of four.
func wholeWords(p *demo.Port, bytes float64) float64 {
	if p.Driver == "ice" {
		return bytes
	}
	return math.Floor(bytes/4) * 4
}

// pauseFrames are the frames of global pause. A ConnectX whose priorities have
// PFC counts the frames of PFC among them.
func pauseFrames(m demo.Moment, p *demo.Port, family string) float64 {
	global, pfc := demo.GlobalPauseReceived, demo.PFCReceived
	if family == "roce_pause_transmit_frames_total" {
		global, pfc = demo.GlobalPauseSent, demo.PFCSent
	}
	frames := float64(m.Number(p, global))
	if p.Driver == "mlx5_core" && m.Port(p).Mask != 0 {
		frames += float64(m.Number(p, pfc))
	}
	return frames
}

func dscpIsTrue(n *demo.Node, node *demo.NodeState, labels map[string]string) bool {
	want := map[string]string{"3": "3", "48": strconv.Itoa(node.CNPPriority), "26": "1"}
	want[strconv.Itoa(node.DataDSCP)] = "3"
	if !n.IsSwitch() {
		want = map[string]string{"26": "3", "48": "6"}
	}
	return labels["priority"] == want[labels["dscp"]]
}
