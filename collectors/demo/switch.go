// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strconv"

	"roce_exporter/collectors/host"
	"roce_exporter/collectors/sonic"
)

// Tables are the databases of one ASIC of a switch: hashes by database and key.
type Tables map[string]map[string]sonic.Hash

// put adds fields to a hash, given as name and value in turn.
func (t Tables) put(database, key string, fields ...string) {
	if t[database] == nil {
		t[database] = map[string]sonic.Hash{}
	}
	hash := t[database][key]
	if hash == nil {
		hash = sonic.Hash{}
		t[database][key] = hash
	}
	for i := 0; i < len(fields); i += 2 {
		hash[fields[i]] = fields[i+1]
	}
}

// A Field is a number in COUNTERS_DB.
type Field struct {
	Key, Name string
	Number
}

// Types of objects in an OID (SAI's sai_object_type_t).
const (
	oidPort  = 0x01
	oidPool  = 0x18
	oidQueue = 0x15
	oidGroup = 0x1a
)

// oid names an object. Those of different ASICs may be the same.
func oid(kind, number int) string { return fmt.Sprintf("oid:0x%x%012x", kind, number) }

func (p *Port) oid() string { return oid(oidPort, p.place+2) }

func (p *Port) oidOf(kind, index int) string { return oid(kind, 0x100+p.place*8+index) }

// onASIC are the ports of one ASIC.
func (n *Node) onASIC(asic int) []*Port {
	var all []*Port
	for _, p := range n.Ports {
		if p.ASIC == asic {
			all = append(all, p)
		}
	}
	return all
}

// Fields are the numbers of one ASIC of a switch that change all the time.
func (n *Node) Fields(asic int) []Field {
	var all []Field
	for _, p := range n.onASIC(asic) {
		key := "COUNTERS:" + p.oid()
		port := func(name string, sum ...Quantity) {
			all = append(all, Field{key, "SAI_PORT_STAT_" + name, p.number(sum...)})
		}
		port("IF_IN_OCTETS", each(ReceivedBytes)...)
		port("IF_OUT_OCTETS", each(SentBytes)...)
		port("IF_IN_UCAST_PKTS", each(ReceivedPackets)...)
		port("IF_OUT_UCAST_PKTS", each(SentPackets)...)
		port("IF_IN_DISCARDS", GroupDropped, OversizeReceived, StormDroppedReceived)
		port("IF_OUT_DISCARDS", QueueDropped, StormDroppedSent)
		port("IN_DROPPED_PKTS", GroupDropped)
		port("OUT_DROPPED_PKTS", QueueDropped)
		port("IF_IN_ERRORS", CRCErrors)
		port("DOT3_STATS_FCS_ERRORS", CRCErrors)
		port("ETHER_RX_OVERSIZE_PKTS", OversizeReceived)
		port("IF_IN_FEC_CORRECTABLE_FRAMES", FECCorrected)
		port("IF_IN_FEC_NOT_CORRECTABLE_FRAMES", FECUncorrectable)
		port("IF_IN_FEC_SYMBOL_ERRORS", FECCorrected)
		port("PAUSE_RX_PKTS", GlobalPauseReceived)
		port("PAUSE_TX_PKTS", GlobalPauseSent)
		port("PFC_3_RX_PKTS", PFCReceived)
		port("PFC_3_TX_PKTS", PFCSent)
		switch n.Chip {
		case NVIDIA:
			port("PFC_3_RX_PAUSE_DURATION_US", PausedMicroseconds)
		case Marvell:
			port("PFC_3_RX_PAUSE_DURATION", PausedMicroseconds)
		case Broadcom:
			port("PFC_3_ON2OFF_RX_PKTS", PausedEnds)
		}
		for class, priority := range priorities {
			key := "COUNTERS:" + p.oidOf(oidQueue, priority)
			all = append(all, Field{key, "SAI_QUEUE_STAT_PACKETS", p.number(SentPackets + Class(class))},
				Field{key, "SAI_QUEUE_STAT_BYTES", p.number(SentBytes + Class(class))})
		}
		queue, group := p.oidOf(oidQueue, priorities[Data]), p.oidOf(oidGroup, priorities[Data])
		add := func(key, name string, q Quantity, times uint64) {
			all = append(all, Field{key, name, Number{Port: p, Sum: []Quantity{q}, Times: times}})
		}
		add("COUNTERS:"+queue, "SAI_QUEUE_STAT_DROPPED_PACKETS", QueueDropped, 1)
		add("COUNTERS:"+queue, "SAI_QUEUE_STAT_DROPPED_BYTES", QueueDropped, packet)
		add("COUNTERS:"+queue, "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", MarkedPackets, 1)
		add("COUNTERS:"+queue, "SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES", MarkedPackets, packet)
		add("COUNTERS:"+queue, "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", QueueOccupancy, 1)
		add("COUNTERS:"+queue, "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", StormsDetected, 1)
		add("COUNTERS:"+queue, "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED", StormsRestored, 1)
		add("COUNTERS:"+queue, "PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS", StormDroppedReceived, 1)
		add("COUNTERS:"+queue, "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS", StormDroppedSent, 1)
		add("COUNTERS:"+group, "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS", GroupDropped, 1)
		for _, window := range []string{"PERIODIC", "USER", "PERSISTENT"} {
			add(window+"_WATERMARKS:"+queue, "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", QueueWatermark, 1)
			add(window+"_WATERMARKS:"+group, "SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES", GroupWatermark, 1)
			add(window+"_WATERMARKS:"+group, "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES", HeadroomWatermark, 1)
		}
	}
	return all
}

// each is a quantity of traffic in all its classes.
func each(of Quantity) []Quantity {
	all := make([]Quantity, classes)
	for class := range classes {
		all[class] = of + class
	}
	return all
}

// Facts are the databases of one ASIC of a switch, less its Fields: what
// changes with a scene only.
func (n *Node) Facts(m Moment, asic int) Tables {
	t := Tables{}
	state := m.Node(n)
	n.putDevice(t, state, asic)
	n.putMaps(t, state)
	n.putPools(t, state)
	for _, p := range n.onASIC(asic) {
		port := m.Port(p)
		p.putConfig(t, port, state)
		p.putState(t, port)
		p.putObjects(t, port, state)
	}
	return t
}

// HostFacts are the databases of the host's namespace of a switch with several
// ASICs.
func (n *Node) HostFacts(m Moment) Tables {
	t := Tables{}
	n.putMetadata(t)
	n.putServices(t, m.Node(n))
	return t
}

// skus are models of switches, by chip.
var skus = map[string][2]string{
	NVIDIA:   {"x86_64-nvidia_sn5600-r0", "ACS-SN5600"},
	Broadcom: {"x86_64-example_th5_64x800-r0", "Example-TH5-64x800"},
	Marvell:  {"arm64-marvell_ac5x_48y6c-r0", "Marvell-AC5X-48x25-6x100"},
}

func (n *Node) putMetadata(t Tables, more ...string) {
	kind := "LeafRouter"
	if n.Tier == Spine {
		kind = "SpineRouter"
	}
	t.put(sonic.ConfigDB, "DEVICE_METADATA|localhost", append([]string{
		"hostname", n.Name, "platform", skus[n.Chip][0], "hwsku", skus[n.Chip][1],
		"type", kind, "buffer_model", "traditional", "mac", fmt.Sprintf("02:00:5e:%02x:%02x:ff", n.index>>8, n.index&0xff),
	}, more...)...)
}

func (n *Node) putServices(t Tables, state *NodeState) {
	status := func(up bool, yes, no string) string {
		if up {
			return yes
		}
		return no
	}
	for _, service := range []string{"swss", "syncd", "bgp", "lldp", "database"} {
		names := []string{service}
		if n.ASICs > 1 {
			names = nil
			for asic := range n.ASICs {
				names = append(names, fmt.Sprintf("%s@%d", service, asic))
			}
		}
		for _, name := range names {
			up := state.Down != service
			t.put(sonic.StateDB, "ALL_SERVICE_STATUS|"+name, "service_status", status(up, "OK", "Down"), "app_ready_status", status(up, "OK", "Down"),
				"fail_reason", status(up, "-", "Inactive"), "update_time", "-")
		}
	}
	t.put(sonic.StateDB, "SYSTEM_READY|SYSTEM_STATE", "Status", status(state.Down == "", "UP", "DOWN"))
}

// groups are the groups of counters: name, name in FLEX_COUNTER_DB, interval in
// milliseconds.
var groups = [][3]string{
	{"PORT", "PORT_STAT_COUNTER", "1000"},
	{"PORT_BUFFER_DROP", "PORT_BUFFER_DROP_STAT", "60000"},
	{"QUEUE", "QUEUE_STAT_COUNTER", "10000"},
	{"QUEUE_WATERMARK", "QUEUE_WATERMARK_STAT_COUNTER", "60000"},
	{"PG_DROP", "PG_DROP_STAT_COUNTER", "10000"},
	{"PG_WATERMARK", "PG_WATERMARK_STAT_COUNTER", "60000"},
	{"BUFFER_POOL_WATERMARK", "BUFFER_POOL_WATERMARK_STAT_COUNTER", "60000"},
	{"PFCWD", "PFC_WD", "200"},
	{"WRED_ECN_QUEUE", "WRED_ECN_QUEUE_STAT_COUNTER", "10000"},
}

// putDevice adds what is of the switch or of one ASIC as a whole.
func (n *Node) putDevice(t Tables, state *NodeState, asic int) {
	if n.ASICs > 1 {
		n.putMetadata(t, "asic_name", fmt.Sprintf("asic%d", asic), "sub_role", "FrontEnd")
	} else {
		n.putMetadata(t)
		n.putServices(t, state)
	}
	t.put(sonic.ApplDB, "PORT_TABLE:PortInitDone", "lanes", "0")
	t.put(sonic.CountersDB, "CRM:STATS", "crm_stats_fdb_entry_used", strconv.Itoa(len(n.Ports)))
	for _, g := range groups {
		status := "enable"
		if g[0] == "WRED_ECN_QUEUE" && state.ECNOff {
			status = "disable"
		}
		t.put(sonic.ConfigDB, "FLEX_COUNTER_TABLE|"+g[0], "FLEX_COUNTER_STATUS", status, "POLL_INTERVAL", g[2])
		t.put(sonic.FlexDB, "FLEX_COUNTER_GROUP_TABLE:"+g[1], "FLEX_COUNTER_STATUS", status, "POLL_INTERVAL", g[2], "STATS_MODE", "STATS_MODE_READ")
	}
}

// putMaps adds the maps of QoS, named as SONiC's template names them.
func (n *Node) putMaps(t Tables, state *NodeState) {
	for dscp := range 64 {
		class := Strayed
		switch dscp {
		case state.DataDSCP, 3:
			class = Data
		case 8:
			class = Other
		}
		tc := priorities[class]
		if dscp == 48 {
			tc = state.CNPPriority
		}
		t.put(sonic.ConfigDB, "DSCP_TO_TC_MAP|AZURE", strconv.Itoa(dscp), strconv.Itoa(tc))
	}
	for i := range 8 {
		same := strconv.Itoa(i)
		t.put(sonic.ConfigDB, "TC_TO_QUEUE_MAP|AZURE", same, same)
		t.put(sonic.ConfigDB, "TC_TO_PRIORITY_GROUP_MAP|AZURE", same, same)
		t.put(sonic.ConfigDB, "MAP_PFC_PRIORITY_TO_QUEUE|AZURE", same, same)
	}
	threshold := func(bytes float64) string { return strconv.Itoa(int(bytes)) }
	t.put(sonic.ConfigDB, "WRED_PROFILE|AZURE_LOSSLESS", "ecn", "ecn_all", "wred_green_enable", "true",
		"green_min_threshold", threshold(state.ECNMin), "green_max_threshold", threshold(state.ECNMax), "green_drop_probability", "5")
}

const losslessPool = "ingress_lossless_pool"

func (n *Node) putPools(t Tables, state *NodeState) {
	size, id := strconv.Itoa(poolSize), oid(oidPool, 0x40)
	t.put(sonic.ConfigDB, "BUFFER_POOL|"+losslessPool, "type", "ingress", "mode", "dynamic", "size", size)
	t.put(sonic.ApplDB, "BUFFER_POOL_TABLE:"+losslessPool, "type", "ingress", "mode", "dynamic", "size", size)
	t.put(sonic.ApplDB, "BUFFER_PROFILE_TABLE:pg_lossless", "pool", losslessPool, "size", "18432", "xon", "18432", "xoff", strconv.Itoa(headroomSize), "dynamic_th", "0")
	t.put(sonic.ConfigDB, "BUFFER_PROFILE|pg_lossless", "pool", losslessPool, "size", "18432", "xon", "18432", "xoff", strconv.Itoa(headroomSize), "dynamic_th", "0")
	t.put(sonic.CountersDB, "COUNTERS_BUFFER_POOL_NAME_MAP", losslessPool, id)
	for _, window := range []string{"PERIODIC", "USER", "PERSISTENT"} {
		t.put(sonic.CountersDB, window+"_WATERMARKS:"+id, "SAI_BUFFER_POOL_STAT_WATERMARK_BYTES", strconv.Itoa(int(state.PoolWatermark)))
	}
}

// putConfig adds what is meant for a port.
func (p *Port) putConfig(t Tables, port *PortState, state *NodeState) {
	role, description := "Ext", p.Peer.Node.Name+" "+p.Peer.Name
	if p.IsBackplane() {
		role = "Int"
	}
	mtu := strconv.Itoa(port.MTU)
	t.put(sonic.ConfigDB, "PORT|"+p.Name, "admin_status", "up", "alias", p.Alias, "description", description, "index", strconv.Itoa(p.place+1),
		"lanes", strconv.Itoa(4*p.place), "mtu", mtu, "speed", megabits(p.Speed), "fec", "rs", "role", role)
	qos := []string{"dscp_to_tc_map", "AZURE", "tc_to_queue_map", "AZURE", "tc_to_pg_map", "AZURE", "pfc_to_queue_map", "AZURE"}
	if port.Mask != 0 {
		data := strconv.Itoa(priorities[Data])
		qos = append(qos, "pfc_enable", data, "pfcwd_sw_enable", data)
	}
	t.put(sonic.ConfigDB, "PORT_QOS_MAP|"+p.Name, qos...)
	if !state.WatchdogOff {
		t.put(sonic.ConfigDB, "PFC_WD|"+p.Name, "action", "drop", "detection_time", "200", "restoration_time", "200")
	}
	for i := range 8 {
		queue := []string{"scheduler", "scheduler.0"}
		if i == priorities[Data] {
			queue = append(queue, "wred_profile", "AZURE_LOSSLESS")
		}
		t.put(sonic.ConfigDB, fmt.Sprintf("QUEUE|%s|%d", p.Name, i), queue...)
	}
	data := priorities[Data]
	t.put(sonic.ConfigDB, fmt.Sprintf("BUFFER_PG|%s|%d", p.Name, data), "profile", "pg_lossless")
	t.put(sonic.ApplDB, fmt.Sprintf("BUFFER_PG_TABLE:%s:%d", p.Name, data), "profile", "pg_lossless")
	if p.Peer.Node.IsSwitch() {
		t.put(sonic.ConfigDB, "INTERFACE|"+p.Name, "NULL", "NULL")
	} else {
		t.put(sonic.ConfigDB, "VLAN_MEMBER|Vlan10|"+p.Name, "tagging_mode", "untagged")
	}
}

func megabits(bits float64) string { return strconv.Itoa(int(bits / 1e6)) }

// putState adds what a port has come to, and what is at its other end.
func (p *Port) putState(t Tables, port *PortState) {
	oper := "down"
	if port.Up {
		oper = "up"
	}
	mtu := strconv.Itoa(port.MTU)
	t.put(sonic.ApplDB, "PORT_TABLE:"+p.Name, "admin_status", "up", "oper_status", oper, "alias", p.Alias, "mtu", mtu, "speed", megabits(p.Speed), "pfc_asym", "off")
	row := []string{"admin_status", "up", "netdev_oper_status", oper, "mtu", mtu}
	if port.Up {
		row = append(row, "speed", megabits(port.Speed))
	}
	t.put(sonic.StateDB, "PORT_TABLE|"+p.Name, row...)
	if port.FDB > 0 && port.Up {
		t.put(sonic.StateDB, "FDB_TABLE|Vlan10:"+p.Peer.MAC, "port", p.Name, "type", "dynamic")
	}
	if !port.LLDP || !port.Up || p.IsBackplane() {
		return
	}
	far := p.Peer
	name, id, subtype, description, system, capability := far.Node.Name+".example.net", far.MAC, "3", far.Name, "Ubuntu 24.04 LTS Linux 6.8.0", "01 00"
	switch {
	case far.Node.IsSwitch():
		name, id, subtype, description = far.Node.Name, far.Alias, "7", p.Node.Name+" "+p.Name
		system, capability = "SONiC Software Version: SONiC.202505.1 - HwSku: "+skus[far.Node.Chip][1], "28 00"
	case far.Driver != mlx5:
		id, subtype = far.Name, "5"
	}
	t.put(sonic.ApplDB, "LLDP_ENTRY_TABLE:"+p.Name, "lldp_rem_sys_name", name, "lldp_rem_port_id", id, "lldp_rem_port_id_subtype", subtype,
		"lldp_rem_port_desc", description, "lldp_rem_sys_desc", system, "lldp_rem_sys_cap_enabled", capability, "lldp_rem_sys_cap_supported", capability,
		"lldp_rem_chassis_id", far.MAC, "lldp_rem_chassis_id_subtype", "4")
}

// putObjects adds the objects of a port, and those of their numbers that are
// always the same.
func (p *Port) putObjects(t Tables, port *PortState, state *NodeState) {
	id := p.oid()
	t.put(sonic.CountersDB, "COUNTERS_PORT_NAME_MAP", p.Name, id)
	asic := []string{"SAI_PORT_ATTR_MTU", strconv.Itoa(port.ASICMTU + 22), "SAI_PORT_ATTR_SPEED", megabits(p.Speed), "SAI_PORT_ATTR_ADMIN_STATE", "true"}
	if port.ASICMask != 0 || port.Mask != 0 { // One that never was set is not there.
		asic = append(asic, "SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL", strconv.Itoa(int(port.ASICMask)))
	}
	t.put(sonic.ASICDB, "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+id, asic...)
	counters := "COUNTERS:" + id
	for _, name := range []string{"IF_IN_NON_UCAST_PKTS", "IF_OUT_NON_UCAST_PKTS", "IF_OUT_ERRORS"} {
		t.put(sonic.CountersDB, counters, "SAI_PORT_STAT_"+name, "0")
	}
	for i := range 8 {
		name, queue, group := fmt.Sprintf("%s:%d", p.Name, i), p.oidOf(oidQueue, i), p.oidOf(oidGroup, i)
		index := strconv.Itoa(i)
		t.put(sonic.CountersDB, "COUNTERS_QUEUE_NAME_MAP", name, queue)
		t.put(sonic.CountersDB, "COUNTERS_QUEUE_PORT_MAP", queue, id)
		t.put(sonic.CountersDB, "COUNTERS_QUEUE_INDEX_MAP", queue, index)
		t.put(sonic.CountersDB, "COUNTERS_QUEUE_TYPE_MAP", queue, "SAI_QUEUE_TYPE_UNICAST")
		t.put(sonic.CountersDB, "COUNTERS_PG_NAME_MAP", name, group)
		t.put(sonic.CountersDB, "COUNTERS_PG_PORT_MAP", group, id)
		t.put(sonic.CountersDB, "COUNTERS_PG_INDEX_MAP", group, index)
		if i != priorities[Data] {
			t.put(sonic.CountersDB, counters, fmt.Sprintf("SAI_PORT_STAT_PFC_%d_RX_PKTS", i), "0", fmt.Sprintf("SAI_PORT_STAT_PFC_%d_TX_PKTS", i), "0")
			t.put(sonic.CountersDB, "COUNTERS:"+queue, "SAI_QUEUE_STAT_DROPPED_PACKETS", "0", "SAI_QUEUE_STAT_DROPPED_BYTES", "0",
				"SAI_QUEUE_STAT_PACKETS", "0", "SAI_QUEUE_STAT_BYTES", "0")
			t.put(sonic.CountersDB, "COUNTERS:"+group, "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS", "0")
			continue
		}
		t.put(sonic.CountersDB, "COUNTERS:"+queue, "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS", "0")
		if state.WatchdogOff || port.Mask == 0 {
			continue
		}
		status := "operational"
		if port.Storm {
			status = "stormed"
		}
		t.put(sonic.CountersDB, "COUNTERS:"+queue, "PFC_WD_STATUS", status, "PFC_WD_ACTION", "drop",
			"PFC_WD_DETECTION_TIME", "200000", "PFC_WD_RESTORATION_TIME", "200000")
	}
}

// files are those of a switch that are read beside its databases.
func (n *Node) files(m Moment) *host.Memory {
	files := host.NewMemory()
	for name, text := range map[string]string{
		"etc/sonic/sonic_version.yml": "build_version: 'SONiC.202505.1-demo'\n",
		"proc/stat":                   fmt.Sprintf("cpu  0 0 0 0\nbtime %d\n", m.Node(n).Boot.Unix()),
	} {
		if err := files.Add(name, 0o444, []byte(text)); err != nil {
			panic(err) // A name of this package is wrong.
		}
	}
	return files
}
