// SPDX-License-Identifier: Apache-2.0

package collectors

// A Label says what the values of a label are.
type Label struct{ Name, Values string }

// LabelValues explains all labels, in the order of the document.
func LabelValues() []Label {
	return []Label{
		{"asic", "namespace of the ASIC, `asic0`; only on switches with several"},
		{"port", "Ethernet port: SONiC's name (`Ethernet48`) or the Linux interface"},
		{"alias", "the port's other name, as the front panel has it"},
		{"kind", "of a port: `front`, `backplane`, `inband`, `recirculation`, `dpu` on a switch, `physical`, `vf`, `sf`, `bond` on a host, empty if it is virtual; of a completion: `error`, `flushed`"},
		{"driver", "of the NIC; empty on a switch"},
		{"firmware", "of the NIC; empty on a switch"},
		{"pci_address", "of the NIC; empty on a switch"},
		{"mac", "MAC address in lower case with colons"},
		{"priority", "`0` to `7`: PFC priority"},
		{"queue", "index of the egress queue as SAI numbers it"},
		{"pg", "index of the ingress priority group as SAI numbers it"},
		{"type", "of a queue: `unicast`, `multicast`, `all`; of a GID: `v1`, `v2`"},
		{"pool", "name of the buffer pool"},
		{"system_port", "port of a chassis: host, ASIC and port"},
		{"source", "where a setting was read: `config` (intended), `asic` (programmed), `kernel`, `nic`; of `roce_scrape_source_*`: the Redis instance or the namespace, the network device, the RDMA device"},
		{"method", "how a pause time came about: `measured`, `configured` (converted with the unit that the configuration gives), `estimated`"},
		{"window", "of a watermark: `periodic` (reset every telemetry interval, which rules use), `user` (what the CLI prints and clears), `persistent`"},
		{"direction", "`receive`, `transmit`, as seen from the port"},
		{"bound", "of an ECN threshold: `min`, `max`"},
		{"color", "of an ECN threshold: `green`, `yellow`, `red`"},
		{"action", "of the PFC watchdog: `drop`, `forward`, `alert`"},
		{"dscp", "`0` to `63`"},
		{"mode", "of a port: `l2`, `l3`; of the policy's congestion control: `dcqcn`, `pfc_only`, `other`"},
		{"lag", "name of the link aggregation group"},
		{"neighbor", "name that the neighbour announces, cut at the first dot"},
		{"neighbor_port", "its port: the id, or the description where the id is a MAC address"},
		{"neighbor_port_id", "its port's id as announced"},
		{"neighbor_kind", "`switch`, `host`, `unknown`"},
		{"group", "poll group of SONiC's counters as `counterpoll` and CONFIG_DB name it: `PORT`, `QUEUE`, `PFCWD`, …"},
		{"database", "SONiC's name of the database: `COUNTERS_DB`, …"},
		{"name", "of a service: `swss`, `syncd`, `database`, `bgp`, `lldp`, and `system` for all of them; of a setting of the kernel: `arp_ignore`, `arp_announce`, `rp_filter`; of `roce_nic_raw_stat`: as the driver spells it"},
		{"node", "name of the node, cut at the first dot"},
		{"role", "of the node: `switch`, `host`; of ECN on a NIC: `notification` (sends CNPs), `reaction` (obeys them)"},
		{"fabric", "from the configuration"},
		{"tier", "from the configuration"},
		{"platform", "of the switch"},
		{"hwsku", "of the switch"},
		{"os_version", "version of SONiC; on a host that of the kernel"},
		{"device", "RDMA device: `mlx5_0`"},
		{"rdma_port", "port of the RDMA device, from `1`"},
		{"link_layer", "of the RDMA port: `Ethernet`, or `InfiniBand`, and then the port has no other series; empty where the driver does not tell"},
		{"board_id", "of the RDMA device, where the driver tells"},
		{"trust", "`dscp`, `pcp`"},
		{"severity", "of a NIC's own guard against sending pause: `warning`, `error`"},
		{"operation", "of the NIC on the host's memory: `read`, `write`"},
		{"side", "of an RDMA operation: `requester`, `responder`"},
		{"module", "kernel module"},
		{"class", "of a DSCP of the policy: `data`, `cnp`"},
		{"collector", "`switch`, `host`"},
		{"reason", "of `roce_scrape_skipped`: `unreadable` (refused), `unparsable` (no number), `missing` (named but not there), `duplicate` (claimed by two objects), `raced` (changed its identity while it was read); of a drop of a priority: `buffer`, `host_buffer`, `congestion`; of a drop behind the wire: `no_descriptor`, `internal_queue`, `steering`, `interface_down`, `pcie`"},
	}
}
