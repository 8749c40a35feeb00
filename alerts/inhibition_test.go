// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// In a story several alerts fire in a fabric; only those marked with ! are told
// to somebody. An alert is written as severity, layer, name and other labels.
type story struct{ name, alerts string }

var stories = []story{
	{"a host takes its data too slowly: the page names it, its victims are silent", `
		! critical pfc RoCEPFCStormOrigin node=h2 port=eth0 priority=3 peer=leaf1 peer_port=Ethernet0
		  critical pfc RoCEPFCStorm node=leaf1 port=Ethernet0 priority=3
		  critical pfc RoCEPFCStorm node=spine1 port=Ethernet8 priority=3
		  warning pfc RoCEPFCStormApprox node=leaf3 port=Ethernet8 priority=3
		  warning pfc RoCEPFCPausedByHost node=leaf1 port=Ethernet0 priority=3 peer=h2 peer_port=eth0
		  warning pfc RoCEPFCSpinePersistent node=leaf2 port=Ethernet8 priority=3
		  warning pfc RoCEPFCElevated node=leaf2 port=Ethernet8 priority=3
		  warning cnp RoCECNPSurge node=h4 device=mlx5_0 rdma_port=1
		  warning ecn RoCEECNTooLate node=leaf1
		  warning loss RoCERetransmissions node=h4 device=mlx5_0 rdma_port=1
		! warning link RoCEPCIeDowngraded node=h2 port=eth0`},
	{"a storm of another priority is not the victim of this one", `
		! critical pfc RoCEPFCStormOrigin node=h2 priority=3
		! critical pfc RoCEPFCStorm node=leaf1 port=Ethernet0 priority=4`},
	{"a host is dead and its NIC storms: it pages", `
		! critical pfc RoCEPFCStormOrigin node=h3 priority=3
		  critical pfc RoCEPFCStorm node=leaf2 port=Ethernet4 priority=3
		  warning pfc RoCEPFCPausedByHost node=leaf2 port=Ethernet4 priority=3 peer=h3
		! warning meta RoCEExporterDown node=h3 role=host`},
	{"a dead host on a leaf that only counts frames: the estimate pages", `
		! critical pfc RoCEPFCStormApprox node=leaf1 port=Ethernet4 priority=3 peer=h3
		! critical pfc RoCEPFCStorm node=spine1 port=Ethernet0 priority=3
		  warning pfc RoCEPFCStormApprox node=leaf2 port=Ethernet8 priority=3
		! warning meta RoCEExporterDown node=h3 role=host`},
	{"a host storms where it is measured, another one where frames are counted: both page", `
		! critical pfc RoCEPFCStormOrigin node=h2 port=eth0 priority=3 peer=leaf1 peer_port=Ethernet0
		! critical pfc RoCEPFCStormApprox node=leaf2 port=Ethernet4 priority=3 peer=h3
		  warning pfc RoCEPFCStormApprox node=leaf2 port=Ethernet48 priority=3 peer=spine1
		  warning pfc RoCEPFCElevated node=leaf3 port=Ethernet0 priority=3`},
	{"two switches wait for each other, and a host storms where frames are counted", `
		! critical pfc RoCEPFCDeadlockSuspected node=leaf1 port=Ethernet48 priority=3
		! critical pfc RoCEPFCStormApprox node=leaf2 port=Ethernet4 priority=3 peer=h3
		  warning pfc RoCEPFCStormApprox node=leaf2 port=Ethernet48 priority=3 peer=spine1`},
	{"two switches wait for each other: both are named, who waits behind them is silent", `
		! critical pfc RoCEPFCDeadlockSuspected node=leaf1 port=Ethernet48 priority=3
		! critical pfc RoCEPFCDeadlockSuspected node=spine1 port=Ethernet0 priority=3
		  critical pfc RoCEPFCStorm node=leaf1 port=Ethernet48 priority=3
		  critical pfc RoCEPFCStorm node=leaf2 port=Ethernet48 priority=3
		  warning pfc RoCEPFCSpinePersistent node=leaf1 port=Ethernet48 priority=3
		  critical pfc RoCEPFCDeadlockCycle priority=3
		! warning pfc RoCEPFCPausedByHost node=leaf3 port=Ethernet0 priority=3
		  warning loss RoCERetransmissions node=h1 device=mlx5_0 rdma_port=1`},
	{"the watchdog drops what a storm holds up; drops elsewhere page", `
		! critical pfc RoCEPFCWatchdogTriggered node=leaf1 port=Ethernet0 queue=3
		  critical loss RoCELosslessDrops node=leaf1 port=Ethernet0 queue=3
		! critical loss RoCELosslessDrops node=leaf1 port=Ethernet4 pg=3
		! critical loss RoCELosslessDrops node=leaf2 port=Ethernet0 queue=3
		  warning loss RoCERetransmissions node=h1 device=mlx5_0 rdma_port=1`},
	{"a NIC stopped its own storm: no warning of it beside", `
		! critical pfc RoCENICPauseStormError node=h3 port=eth0
		  warning pfc RoCENICPauseStormWarning node=h3 port=eth0
		  warning loss RoCENICDrops node=h3 port=eth0 priority=3
		! warning pfc RoCENICPauseStormWarning node=h4 port=eth0`},
	{"a mask is lost: one page for the port, whatever else sees it", `
		! critical config RoCEPFCMaskLost node=leaf1 port=Ethernet0 priority=3
		  critical config RoCEPFCMaskDrift node=leaf1 port=Ethernet0 priority=3
		  critical config RoCEPFCNotAsIntended node=leaf1 port=Ethernet0 priority=3
		  warning config RoCEPFCMaskLinkMismatch node=leaf1 port=Ethernet0 priority=3 peer=h1
		! critical config RoCEPFCMaskDrift node=leaf1 port=Ethernet4 priority=3
		  critical config RoCEPFCNotAsIntended node=leaf1 port=Ethernet4 priority=3
		! critical config RoCEPFCNotAsIntended node=leaf1 port=Ethernet4 priority=4`},
	{"a NIC lost its mask: what the switch sees of it is a ticket beside", `
		! critical config RoCEPFCMaskLost node=h9 port=eth0 priority=3
		! warning config RoCEPFCMaskLinkMismatch node=leaf2 port=Ethernet8 priority=3 peer=h9 peer_port=eth0`},
	{"an MTU fell: its link and its ASIC are the same news", `
		! critical config RoCEMTURegression node=leaf1 port=Ethernet0
		  critical config RoCEMTULinkMismatch node=leaf1 port=Ethernet0 peer=h1
		  warning config RoCEMTUConfigDrift node=leaf1 port=Ethernet0
		! warning config RoCEMTUConfigDrift node=leaf2 port=Ethernet0`},
	{"the exporter of a switch is down: what it last said is old; what its neighbours measure is not", `
		! critical meta RoCEExporterDown node=leaf1 role=switch
		  critical config RoCEPFCMaskDrift node=leaf1 port=Ethernet0 priority=3
		  warning config RoCEPFCWatchdogDisabled node=leaf1 port=Ethernet0 queue=3
		! critical pfc RoCEPFCStorm node=leaf1 port=Ethernet0 priority=3
		! critical config RoCEPFCMaskDrift node=leaf2 port=Ethernet0 priority=3`},
	{"the exporter of a host is down: a ticket mutes tickets, never a page", `
		! warning meta RoCEExporterDown node=h1 role=host
		  warning link RoCEPCIeDowngraded node=h1 port=eth0
		! critical inventory RoCERDMADeviceMissing node=h1 pci_address=0000:17:00.0`},
	{"a target that never was seen has no node and mutes nothing", `
		! warning meta RoCEExporterDown instance=10.0.0.1:14791
		! warning inventory RoCEFirmwareSkew board_id=MT_0000000838
		! critical meta RoCEThresholdsMissing`},
	{"syncd is dead: the counters stand still because of it", `
		! critical meta RoCEControlPlaneDown node=leaf1 name=syncd
		  critical meta RoCECountersFrozen node=leaf1
		  warning meta RoCECollectorFailing node=leaf1 collector=switch
		  warning link RoCELinkErrors node=leaf1 port=Ethernet0
		! critical meta RoCECountersFrozen node=leaf2`},
	{"the group of the marks is off: rules about marks are silent, others not", `
		! warning meta RoCEFlexCounterDisabled node=leaf1 group=WRED_ECN_QUEUE
		  warning ecn RoCEECNMarkRatioHigh node=leaf1 port=Ethernet0 queue=3
		! warning ecn RoCEECNNotConfigured node=leaf1 port=Ethernet0 queue=3
		! warning buffer RoCEPGHeadroomNearExhaustion node=leaf1 port=Ethernet0 pg=3`},
	{"learning is dead: the flood is no news", `
		! critical config RoCEFDBEmptyOnActivePort node=leaf1 port=Ethernet0
		  warning config RoCEFloodSuspected node=leaf1
		! warning config RoCEFloodSuspected node=leaf2`},
	{"a bad optic is one ticket", `
		! warning link RoCELinkErrors node=leaf1 port=Ethernet0
		  warning link RoCEFECDegrading node=leaf1 port=Ethernet0`},
	{"for dashboards only", `
		  info link RoCEPCIeOversubscribed node=h1 pci_device=0000:17:00
		  info meta RoCEPolicyMissing node=leaf1`},
}

// parse reads the alerts of a story; told are those that somebody shall hear of.
func (s story) parse() (all []map[string]string, told []string) {
	for line := range strings.Lines(strings.TrimSpace(s.alerts)) {
		line, marked := strings.CutPrefix(strings.TrimSpace(line), "! ")
		words := strings.Fields(line)
		labels := map[string]string{"fabric": s.name, "team": "network", "severity": words[0], "layer": words[1], "alertname": words[2]}
		for _, w := range words[3:] {
			name, value, _ := strings.Cut(w, "=")
			labels[name] = value
		}
		all = append(all, labels)
		if marked {
			told = append(told, describe(labels))
		}
	}
	slices.Sort(told)
	return all, told
}

// describe writes an alert as it stands in a story, its other labels sorted.
func describe(labels map[string]string) string {
	words := []string{labels["severity"], labels["layer"], labels["alertname"]}
	var others []string
	for name, value := range labels {
		if !slices.Contains([]string{"fabric", "team", "severity", "layer", "alertname"}, name) {
			others = append(others, name+"="+value)
		}
	}
	slices.Sort(others)
	return strings.Join(append(words, others...), " ")
}

// Who mutes whom, by a real Alertmanager with the shipped configuration. What is
// changed of it, and nothing else: the receivers' examples become a webhook of
// the test, and whoever is told is told after a second, not after minutes.
func TestInhibition(t *testing.T) {
	var mu sync.Mutex
	told := map[string][]string{} // By fabric, which is the story's name.
	url := startAlertmanager(t, "1s", func(_, _ string, labels map[string]string) {
		mu.Lock()
		defer mu.Unlock()
		if alert := describe(labels); !slices.Contains(told[labels["fabric"]], alert) {
			told[labels["fabric"]] = append(told[labels["fabric"]], alert)
		}
	})

	var alerts []map[string]any
	expected := 0
	for _, s := range stories {
		all, want := s.parse()
		expected += len(want)
		for _, labels := range all {
			alerts = append(alerts, map[string]any{"labels": labels})
		}
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, answer)
	}
	resp.Body.Close()

	// All that is wanted, and then two intervals more for what is not.
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		n := 0
		for _, s := range told {
			n += len(s)
		}
		mu.Unlock()
		if n >= expected {
			break
		}
	}
	time.Sleep(2 * time.Second)
	mu.Lock()
	defer mu.Unlock()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			_, want := s.parse()
			got := told[s.name]
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("who is told, wanted and got:\n%s", diff)
			}
		})
	}
}

// The stories speak of alerts as they are.
func TestStoriesAreOfRealAlerts(t *testing.T) {
	real := map[string]bool{}
	for _, a := range readAlerts(t) {
		real[a.Labels["severity"]+" "+a.Labels["layer"]+" "+a.Alert] = true
	}
	for _, s := range stories {
		all, _ := s.parse()
		for _, l := range all {
			if name := l["severity"] + " " + l["layer"] + " " + l["alertname"]; !real[name] {
				t.Errorf("%s: there is no %s", s.name, name)
			}
		}
	}
}
