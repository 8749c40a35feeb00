// SPDX-License-Identifier: Apache-2.0

package sonictest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// What a synthetic switch has of everything: the queues are those of a
// Broadcom chip, the pause times those of an NVIDIA one, so that both are read.
const (
	unicastQueues   = 10
	multicastQueues = 10
	priorityGroups  = 8
	routes          = 5000
	speed           = "800000"
)

// hash is one Redis hash.
type hash = map[string]string

// A synthetic is a switch in the making.
type synthetic struct {
	databases Databases
	random    *rand.Rand
	ports     []syntheticPort
	lags      []string
	macs      []learned
}

type syntheticPort struct {
	name, oid, lag string
	index          int
}

// learned is an address of the FDB.
type learned struct{ mac, port string }

// Synthetic makes up a leaf switch with ports of 800G, and an FDB with as many
// addresses. It is the same at every call. The last four ports are two LAGs to
// spines, the others go to hosts; priorities 3 and 4 are lossless.
func Synthetic(ports, fdb int) Databases {
	s := &synthetic{databases: Databases{}, random: rand.New(rand.NewPCG(1, 2))}
	for name := range ids() {
		s.databases[name] = map[string]map[string]string{}
	}
	uplinks := min(4, ports/2)
	for i := range ports {
		p := syntheticPort{name: "Ethernet" + strconv.Itoa(8*i), oid: oid("1", i+2), index: i}
		if k := i - (ports - uplinks); k >= 0 {
			p.lag = "PortChannel" + strconv.Itoa(k/2+1)
		}
		s.ports = append(s.ports, p)
	}
	for k := range (uplinks + 1) / 2 {
		s.lags = append(s.lags, "PortChannel"+strconv.Itoa(k+1))
	}
	s.learn(fdb)
	s.addSwitch()
	s.addBuffers()
	for i := range s.ports {
		s.addPort(&s.ports[i])
	}
	s.addLAGs()
	s.addFDB()
	s.addBallast()
	return s.databases
}

// set makes a hash of names and values in turn, or adds to it.
func (s *synthetic) set(database, key string, fields ...any) {
	h := s.databases[database][key]
	if h == nil {
		h = hash{}
		s.databases[database][key] = h
	}
	for i := 0; i < len(fields); i += 2 {
		h[fmt.Sprint(fields[i])] = fmt.Sprint(fields[i+1])
	}
}

// copyTo writes a row of CONFIG_DB to APPL_DB as well, where what is in force stands.
func (s *synthetic) copyTo(table, key string, row hash) {
	s.databases["CONFIG_DB"][table+"|"+key] = row
	s.databases["APPL_DB"][table+"_TABLE:"+strings.ReplaceAll(key, "|", ":")] = row
}

// oid is the number-th object of a type.
func oid(kind string, number int) string { return fmt.Sprintf("oid:0x%s%012x", kind, number) }

// asic is the key of an object of ASIC_DB.
func asic(kind, object string) string { return "ASIC_STATE:SAI_OBJECT_TYPE_" + kind + ":" + object }

// upTo is a number below n.
func (s *synthetic) upTo(n int64) int64 { return s.random.Int64N(n) }

const (
	switchOID = "oid:0x21000000000000"
	vlanOID   = "oid:0x26000000000001"
	wredOID   = "oid:0x13000000000001"
	dscpOID   = "oid:0x14000000000001"
)

// addSwitch adds what there is once.
func (s *synthetic) addSwitch() {
	s.set("CONFIG_DB", "DEVICE_METADATA|localhost", "hostname", "leaf-1", "hwsku", "Synthetic-800G", "platform", "x86_64-synthetic-r0",
		"mac", "02:00:00:00:00:01", "type", "LeafRouter", "buffer_model", "traditional", "bgp_asn", 65001)
	wred := []any{"ecn", "ecn_all"}
	for _, color := range []string{"green", "yellow", "red"} {
		wred = append(wred, "wred_"+color+"_enable", true, color+"_min_threshold", 1_000_000, color+"_max_threshold", 2_000_000,
			color+"_drop_probability", 5)
	}
	s.set("CONFIG_DB", "WRED_PROFILE|AZURE_LOSSLESS", wred...)
	classes := map[int]int{26: 3, 24: 3, 4: 4, 48: 6, 46: 5, 8: 0}
	for dscp := range 64 {
		class, ok := classes[dscp]
		if !ok {
			class = 1
		}
		s.set("CONFIG_DB", "DSCP_TO_TC_MAP|AZURE", dscp, class)
	}
	for _, table := range []string{"TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE"} {
		for i := range 8 {
			s.set("CONFIG_DB", table+"|AZURE", i, i)
		}
	}
	s.set("CONFIG_DB", "PORT_QOS_MAP|global", "dscp_to_tc_map", "AZURE")
	s.set("CONFIG_DB", "PFC_WD|GLOBAL", "POLL_INTERVAL", 200)
	s.set("CONFIG_DB", "VLAN|Vlan1000", "vlanid", 1000)
	s.addPollGroups()

	s.set("APPL_DB", "SWITCH_TABLE:switch", "ecmp_hash_seed", 0, "fdb_aging_time", 600)
	s.set("APPL_DB", "LLDP_LOC_CHASSIS", "lldp_loc_chassis_id", "02:00:00:00:00:01", "lldp_loc_sys_name", "leaf-1")
	s.set("APPL_DB", "PORT_TABLE:PortConfigDone", "count", len(s.ports))
	s.set("APPL_DB", "PORT_TABLE:PortInitDone", "lanes", 0)

	s.set("ASIC_DB", asic("SWITCH", switchOID), "SAI_SWITCH_ATTR_INIT_SWITCH", true, "SAI_SWITCH_ATTR_SRC_MAC_ADDRESS", "02:00:00:00:00:01")
	s.set("ASIC_DB", asic("VLAN", vlanOID), "SAI_VLAN_ATTR_VLAN_ID", 1000)
	s.set("ASIC_DB", asic("WRED", wredOID), "SAI_WRED_ATTR_ECN_MARK_MODE", "SAI_ECN_MARK_MODE_ALL", "SAI_WRED_ATTR_GREEN_ENABLE", true,
		"SAI_WRED_ATTR_GREEN_MIN_THRESHOLD", 1_000_000, "SAI_WRED_ATTR_GREEN_MAX_THRESHOLD", 2_000_000)
	s.set("ASIC_DB", asic("QOS_MAP", dscpOID), "SAI_QOS_MAP_ATTR_TYPE", "SAI_QOS_MAP_TYPE_DSCP_TO_TC")

	s.set("STATE_DB", "SYSTEM_READY|SYSTEM_STATE", "Status", "UP")
	for _, service := range []string{"bgp", "database", "lldp", "swss", "syncd"} {
		s.set("STATE_DB", "ALL_SERVICE_STATUS|"+service, "service_status", "OK", "app_ready_status", "OK", "fail_reason", "-")
	}
}

// addPollGroups adds what syncd polls: all but the newest group.
func (s *synthetic) addPollGroups() {
	for _, g := range []struct {
		config, flex string
		interval     int
		mode         string
	}{
		{"PORT", "PORT_STAT_COUNTER", 1000, ""},
		{"PORT_RATES", "PORT_RATE_COUNTER", 1000, ""},
		{"PORT_BUFFER_DROP", "PORT_BUFFER_DROP_STAT", 60000, ""},
		{"QUEUE", "QUEUE_STAT_COUNTER", 10000, ""},
		{"QUEUE_WATERMARK", "QUEUE_WATERMARK_STAT_COUNTER", 60000, "_AND_CLEAR"},
		{"PG_DROP", "PG_DROP_STAT_COUNTER", 10000, ""},
		{"PG_WATERMARK", "PG_WATERMARK_STAT_COUNTER", 60000, "_AND_CLEAR"},
		{"BUFFER_POOL_WATERMARK", "BUFFER_POOL_WATERMARK_STAT_COUNTER", 60000, "_AND_CLEAR"},
		{"PFCWD", "PFC_WD", 200, ""},
		{"WRED_ECN_QUEUE", "WRED_ECN_QUEUE_STAT_COUNTER", 10000, ""},
		{"WRED_ECN_PORT", "WRED_ECN_PORT_STAT_COUNTER", 1000, ""},
		{"DEBUG_COUNTER", "DEBUG_COUNTER", 1000, ""},
		{"RIF", "RIF_STAT_COUNTER", 1000, ""},
		{"SWITCH", "SWITCH_STAT_COUNTER", 60000, ""},
	} {
		status := "enable"
		if g.config == "SWITCH" {
			status = "disable"
		}
		s.set("CONFIG_DB", "FLEX_COUNTER_TABLE|"+g.config, "FLEX_COUNTER_STATUS", status, "POLL_INTERVAL", g.interval)
		s.set("FLEX_COUNTER_DB", "FLEX_COUNTER_GROUP_TABLE:"+g.flex, "FLEX_COUNTER_STATUS", status, "POLL_INTERVAL", g.interval,
			"STATS_MODE", "STATS_MODE_READ"+g.mode)
	}
}

const losslessProfile = "pg_lossless_" + speed + "_5m_profile"

// addBuffers adds pools and profiles, and the pools' watermarks.
func (s *synthetic) addBuffers() {
	s.copyTo("BUFFER_PROFILE", losslessProfile, hash{
		"pool": "ingress_lossless_pool", "size": "18432", "xon": "18432", "xoff": "165888", "dynamic_th": "0",
	})
	s.copyTo("BUFFER_PROFILE", "ingress_lossy_profile", hash{"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"})
	s.copyTo("BUFFER_PROFILE", "egress_lossless_profile", hash{"pool": "egress_lossless_pool", "size": "0", "static_th": "165364160"})
	for i, name := range []string{"ingress_lossless_pool", "egress_lossless_pool", "egress_lossy_pool"} {
		kind, _, _ := strings.Cut(name, "_")
		row := hash{"mode": "dynamic", "size": "104857600", "type": kind}
		watermark := hash{"SAI_BUFFER_POOL_STAT_WATERMARK_BYTES": strconv.FormatInt(1<<20+s.upTo(1<<25), 10)}
		if i == 0 {
			row["xoff"] = "11075584"
			watermark["SAI_BUFFER_POOL_STAT_XOFF_ROOM_WATERMARK_BYTES"] = strconv.FormatInt(s.upTo(1<<20), 10)
		}
		s.copyTo("BUFFER_POOL", name, row)
		s.set("COUNTERS_DB", "COUNTERS_BUFFER_POOL_NAME_MAP", name, oid("18", i+1))
		s.addWatermarks(oid("18", i+1), watermark)
	}
}

// addWatermarks adds an object's fields to its own hash and to those of all
// windows.
func (s *synthetic) addWatermarks(object string, fields hash) {
	for _, table := range []string{"COUNTERS", "USER_WATERMARKS", "PERSISTENT_WATERMARKS", "PERIODIC_WATERMARKS"} {
		key := table + ":" + object
		if s.databases["COUNTERS_DB"][key] == nil {
			s.databases["COUNTERS_DB"][key] = hash{}
		}
		maps.Copy(s.databases["COUNTERS_DB"][key], fields)
	}
}

// addPort adds a port with its queues and priority groups.
func (s *synthetic) addPort(p *syntheticPort) {
	s.addPortConfig(p)
	s.addPortState(p)
	s.addPortCounters(p)
	for q := range unicastQueues + multicastQueues {
		s.addQueue(p, q)
	}
	for g := range priorityGroups {
		object := oid("1a", 1+p.index*priorityGroups+g)
		s.set("COUNTERS_DB", "COUNTERS_PG_NAME_MAP", p.name+":"+strconv.Itoa(g), object)
		s.set("COUNTERS_DB", "COUNTERS_PG_PORT_MAP", object, p.oid)
		s.set("COUNTERS_DB", "COUNTERS_PG_INDEX_MAP", object, g)
		const stat = "SAI_INGRESS_PRIORITY_GROUP_STAT_"
		shared, room := int64(0), int64(0)
		if isLossless(g) {
			shared, room = s.upTo(1<<19), s.upTo(1<<14)
		}
		s.set("COUNTERS_DB", "COUNTERS:"+object, stat+"DROPPED_PACKETS", 0)
		s.addWatermarks(object, hash{
			stat + "SHARED_WATERMARK_BYTES":    strconv.FormatInt(shared, 10),
			stat + "XOFF_ROOM_WATERMARK_BYTES": strconv.FormatInt(room, 10),
		})
	}
}

func isLossless(priority int) bool { return priority == 3 || priority == 4 }

// peer is what the port's cable leads to.
func (p *syntheticPort) peer() (name, port, mac, capabilities string) {
	if p.lag != "" {
		return "spine" + p.lag[len("PortChannel"):], "Ethernet" + strconv.Itoa(8*(p.index%2)),
			fmt.Sprintf("02:00:00:03:00:%02x", p.index), "28 00"
	}
	return "gpu" + strconv.Itoa(p.index/8), "nic" + strconv.Itoa(p.index%8), p.mac(1), "01 00"
}

// mac is the n-th address behind the port.
func (p *syntheticPort) mac(n int) string {
	return fmt.Sprintf("02:00:00:%02x:%02x:%02x", n, p.index/256, p.index%256)
}

func (s *synthetic) addPortConfig(p *syntheticPort) {
	peer, peerPort, _, _ := p.peer()
	for _, key := range [][2]string{{"CONFIG_DB", "PORT|"}, {"APPL_DB", "PORT_TABLE:"}} {
		s.set(key[0], key[1]+p.name, "admin_status", "up", "alias", "etp"+strconv.Itoa(p.index+1), "index", p.index+1, "lanes", 8*p.index,
			"mtu", 9100, "speed", speed, "fec", "rs", "description", peer+":"+peerPort)
	}
	s.set("CONFIG_DB", "PORT_QOS_MAP|"+p.name, "dscp_to_tc_map", "AZURE", "tc_to_queue_map", "AZURE", "tc_to_pg_map", "AZURE",
		"pfc_to_queue_map", "AZURE", "pfc_enable", "3,4", "pfcwd_sw_enable", "3,4")
	s.set("CONFIG_DB", "PFC_WD|"+p.name, "action", "drop", "detection_time", 200, "restoration_time", 200)
	s.set("CONFIG_DB", "DEVICE_NEIGHBOR|"+p.name, "name", peer, "port", peerPort)
	for _, q := range []string{"3", "4"} {
		s.set("CONFIG_DB", "QUEUE|"+p.name+"|"+q, "scheduler", "scheduler.1", "wred_profile", "AZURE_LOSSLESS")
	}
	s.copyTo("BUFFER_PG", p.name+"|0", hash{"profile": "ingress_lossy_profile"})
	s.copyTo("BUFFER_PG", p.name+"|3-4", hash{"profile": losslessProfile})
	if p.lag == "" {
		s.set("CONFIG_DB", "VLAN_MEMBER|Vlan1000|"+p.name, "tagging_mode", "untagged")
	}
}

func (s *synthetic) addPortState(p *syntheticPort) {
	peer, peerPort, mac, capabilities := p.peer()
	s.set("APPL_DB", "PORT_TABLE:"+p.name, "oper_status", "up", "pfc_asym", "off", "flap_count", 1)
	s.set("APPL_DB", "LLDP_ENTRY_TABLE:"+p.name, "lldp_rem_chassis_id", mac, "lldp_rem_chassis_id_subtype", 4, "lldp_rem_sys_name", peer,
		"lldp_rem_port_id", peerPort, "lldp_rem_port_id_subtype", 5, "lldp_rem_port_desc", peerPort, "lldp_rem_sys_desc", "Linux",
		"lldp_rem_man_addr", "192.0.2."+strconv.Itoa(p.index%250), "lldp_rem_index", 1, "lldp_rem_time_mark", 18543,
		"lldp_rem_sys_cap_enabled", capabilities, "lldp_rem_sys_cap_supported", capabilities)
	s.set("ASIC_DB", asic("PORT", p.oid), "NULL", "NULL", "SAI_PORT_ATTR_ADMIN_STATE", true, "SAI_PORT_ATTR_MTU", 9122,
		"SAI_PORT_ATTR_SPEED", speed, "SAI_PORT_ATTR_FEC_MODE", "SAI_PORT_FEC_MODE_RS",
		"SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL_MODE", "SAI_PORT_PRIORITY_FLOW_CONTROL_MODE_COMBINED",
		"SAI_PORT_ATTR_PRIORITY_FLOW_CONTROL", 1<<3|1<<4, "SAI_PORT_ATTR_QOS_DSCP_TO_TC_MAP", dscpOID)
	s.set("ASIC_DB", asic("HOSTIF", oid("d", p.index)), "SAI_HOSTIF_ATTR_NAME", p.name, "SAI_HOSTIF_ATTR_OBJ_ID", p.oid,
		"SAI_HOSTIF_ATTR_TYPE", "SAI_HOSTIF_TYPE_NETDEV")
	s.set("STATE_DB", "PORT_TABLE|"+p.name, "state", "ok", "netdev_oper_status", "up", "admin_status", "up", "mtu", 9100, "speed", speed,
		"host_tx_ready", true)
	s.set("STATE_DB", "TRANSCEIVER_INFO|"+p.name, "type", "OSFP 8X Pluggable Transceiver", "manufacturer", "SYN", "model", "SYN-800",
		"serial", fmt.Sprintf("T%05d", p.index), "vendor_rev", "A")
	s.set("STATE_DB", "TRANSCEIVER_DOM_SENSOR|"+p.name, "temperature", "45.0", "voltage", "3.3")
	for lane := 1; lane <= 8; lane++ {
		s.set("STATE_DB", "TRANSCEIVER_DOM_SENSOR|"+p.name, fmt.Sprintf("rx%dpower", lane), "1.5", fmt.Sprintf("tx%dpower", lane), "1.2",
			fmt.Sprintf("tx%dbias", lane), "60.0")
	}
	s.set("STATE_DB", "TRANSCEIVER_DOM_THRESHOLD|"+p.name, "temphighalarm", "80.0", "templowalarm", "-5.0", "rxpowerhighalarm", "7.0",
		"rxpowerlowalarm", "-10.0")
	s.set("STATE_DB", "TRANSCEIVER_STATUS|"+p.name, "status", 1, "error", "N/A")
}

func (s *synthetic) addPortCounters(p *syntheticPort) {
	s.set("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP", p.name, p.oid)
	s.set("COUNTERS_DB", "RATES:"+p.oid, "RX_BPS", "10000000000", "TX_BPS", "10000000000", "RX_PPS", "2400000", "TX_PPS", "2400000")
	add := func(stat string, value int64) {
		s.databases["COUNTERS_DB"]["COUNTERS:"+p.oid]["SAI_PORT_STAT_"+stat] = strconv.FormatInt(value, 10)
	}
	s.set("COUNTERS_DB", "COUNTERS:"+p.oid)
	for _, way := range []string{"IN", "OUT"} {
		packets := 1e9 + s.upTo(1e12)
		add("IF_"+way+"_OCTETS", packets*4200)
		add("IF_"+way+"_UCAST_PKTS", packets)
		add("IF_"+way+"_NON_UCAST_PKTS", packets/1e6)
		add("IF_"+way+"_MULTICAST_PKTS", packets/1e6)
		add("IF_"+way+"_BROADCAST_PKTS", packets/1e7)
		add("IF_"+way+"_DISCARDS", s.upTo(100))
		add("IF_"+way+"_ERRORS", 0)
		add(way+"_DROPPED_PKTS", s.upTo(100))
		for _, size := range []string{
			"64", "65_TO_127", "128_TO_255", "256_TO_511", "512_TO_1023", "1024_TO_1518", "1519_TO_2047", "2048_TO_4095", "4096_TO_9216",
			"9217_TO_16383",
		} {
			add("ETHER_"+way+"_PKTS_"+size+"_OCTETS", packets/(2+s.upTo(40)))
		}
	}
	for _, stat := range []string{
		"IF_IN_UNKNOWN_PROTOS", "IF_OUT_QLEN", "ETHER_RX_OVERSIZE_PKTS", "ETHER_TX_OVERSIZE_PKTS", "ETHER_STATS_TX_NO_ERRORS",
		"ETHER_STATS_JABBERS", "ETHER_STATS_FRAGMENTS", "ETHER_STATS_UNDERSIZE_PKTS", "PAUSE_RX_PKTS", "PAUSE_TX_PKTS",
		"IF_IN_FEC_NOT_CORRECTABLE_FRAMES", "GREEN_WRED_DROPPED_PACKETS", "YELLOW_WRED_DROPPED_PACKETS", "RED_WRED_DROPPED_PACKETS",
		"WRED_DROPPED_PACKETS",
	} {
		add(stat, 0)
	}
	for _, stat := range []string{
		"IP_IN_UCAST_PKTS", "IP_IN_RECEIVES", "IF_IN_FEC_CORRECTABLE_FRAMES", "IF_IN_FEC_SYMBOL_ERRORS", "IF_IN_FEC_CORRECTED_BITS",
	} {
		add(stat, s.upTo(1e10))
	}
	for bin := range 16 {
		add("IF_IN_FEC_CODEWORD_ERRORS_S"+strconv.Itoa(bin), 1e13>>(4*bin))
	}
	for priority := range 8 {
		received, sent := int64(0), int64(0)
		name := "PFC_" + strconv.Itoa(priority)
		if isLossless(priority) {
			received, sent = s.upTo(1e6), s.upTo(1e6)
			add(name+"_RX_PAUSE_DURATION_US", 5*received) // Only the watchdog polls it.
		}
		add(name+"_RX_PKTS", received)
		add(name+"_TX_PKTS", sent)
	}
}

// addQueue adds the queue at a position of the port's list.
func (s *synthetic) addQueue(p *syntheticPort, position int) {
	object := oid("15", 1+p.index*(unicastQueues+multicastQueues)+position)
	kind := "UNICAST"
	if position >= unicastQueues {
		kind = "MULTICAST"
	}
	s.set("COUNTERS_DB", "COUNTERS_QUEUE_NAME_MAP", p.name+":"+strconv.Itoa(position), object)
	s.set("COUNTERS_DB", "COUNTERS_QUEUE_PORT_MAP", object, p.oid)
	s.set("COUNTERS_DB", "COUNTERS_QUEUE_INDEX_MAP", object, position)
	s.set("COUNTERS_DB", "COUNTERS_QUEUE_TYPE_MAP", object, "SAI_QUEUE_TYPE_"+kind)
	s.set("ASIC_DB", asic("QUEUE", object), "SAI_QUEUE_ATTR_INDEX", position, "SAI_QUEUE_ATTR_PORT", p.oid)

	const stat = "SAI_QUEUE_STAT_"
	packets, marked, fill := s.upTo(1e6), int64(0), int64(0)
	if isLossless(position) {
		packets = 1e8 + s.upTo(1e11)
		marked, fill = packets/5000, s.upTo(1<<20)
		s.set("ASIC_DB", asic("QUEUE", object), "SAI_QUEUE_ATTR_WRED_PROFILE_ID", wredOID)
		s.addWatchdog(object)
		s.set("COUNTERS_DB", "COUNTERS:"+object, stat+"CURR_OCCUPANCY_BYTES", s.upTo(1<<16)) // Only the watchdog polls it.
	}
	s.set("COUNTERS_DB", "COUNTERS:"+object, stat+"PACKETS", packets, stat+"BYTES", packets*4200, stat+"DROPPED_PACKETS", 0,
		stat+"DROPPED_BYTES", 0, stat+"WRED_ECN_MARKED_PACKETS", marked, stat+"WRED_ECN_MARKED_BYTES", marked*4200,
		stat+"WRED_DROPPED_PACKETS", 0, stat+"WRED_DROPPED_BYTES", 0)
	s.addWatermarks(object, hash{stat + "SHARED_WATERMARK_BYTES": strconv.FormatInt(fill, 10)})
}

// addWatchdog adds what the PFC watchdog keeps of a queue.
func (s *synthetic) addWatchdog(object string) {
	s.set("COUNTERS_DB", "COUNTERS:"+object, "PFC_WD_STATUS", "operational", "PFC_WD_ACTION", "drop",
		"PFC_WD_DETECTION_TIME", 200000, "PFC_WD_DETECTION_TIME_LEFT", 200000,
		"PFC_WD_RESTORATION_TIME", 200000, "PFC_WD_RESTORATION_TIME_LEFT", 200000,
		"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", 0, "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED", 0)
	for _, way := range []string{"TX", "RX"} {
		for _, what := range []string{"PACKETS", "DROPPED_PACKETS", "PACKETS_LAST", "DROPPED_PACKETS_LAST"} {
			s.set("COUNTERS_DB", "COUNTERS:"+object, "PFC_WD_QUEUE_STATS_"+way+"_"+what, 0)
		}
	}
}

func (s *synthetic) addLAGs() {
	for k, lag := range s.lags {
		s.set("CONFIG_DB", "PORTCHANNEL|"+lag, "admin_status", "up", "min_links", 1, "mtu", 9100)
		s.set("CONFIG_DB", "VLAN_MEMBER|Vlan1000|"+lag, "tagging_mode", "tagged")
		s.set("APPL_DB", "LAG_TABLE:"+lag, "admin_status", "up", "oper_status", "up", "mtu", 9100)
		s.set("ASIC_DB", asic("LAG", oid("2", k+1)), "NULL", "NULL")
		s.set("COUNTERS_DB", "COUNTERS_LAG_NAME_MAP", "", "", lag, oid("2", k+1))
	}
	for _, p := range s.ports {
		if p.lag != "" {
			s.set("CONFIG_DB", "PORTCHANNEL_MEMBER|"+p.lag+"|"+p.name, "NULL", "NULL")
			s.set("APPL_DB", "LAG_MEMBER_TABLE:"+p.lag+":"+p.name, "status", "enabled")
		}
	}
}

// learn makes up the FDB: one or two addresses on every second port to a host,
// the others on the LAGs.
func (s *synthetic) learn(n int) {
	for i := range s.ports {
		p := &s.ports[i]
		if p.lag != "" || p.index%2 == 1 {
			continue
		}
		for k := range 1 + p.index/2%2 {
			s.macs = append(s.macs, learned{p.mac(k + 1), p.name})
		}
	}
	for i := 0; len(s.macs) < n && len(s.lags) > 0; i++ {
		s.macs = append(s.macs, learned{fmt.Sprintf("02:00:01:%02x:%02x:%02x", i>>16, i>>8&255, i&255), s.lags[i%len(s.lags)]})
	}
	s.macs = s.macs[:min(n, len(s.macs))]
}

func (s *synthetic) addFDB() {
	for _, m := range s.macs {
		s.set("STATE_DB", "FDB_TABLE|Vlan1000:"+m.mac, "port", m.port, "type", "dynamic")
		key := fmt.Sprintf(`{"bvid":"%s","mac":"%s","switch_id":"%s"}`, vlanOID, strings.ToUpper(m.mac), switchOID)
		s.set("ASIC_DB", asic("FDB_ENTRY", key), "SAI_FDB_ENTRY_ATTR_TYPE", "SAI_FDB_ENTRY_TYPE_DYNAMIC")
	}
	for _, resource := range []string{"ipv4_route", "ipv6_route", "ipv4_nexthop", "ipv4_neighbor", "nexthop_group", "fdb_entry"} {
		used := 100
		if resource == "fdb_entry" {
			used = len(s.macs)
		}
		s.set("COUNTERS_DB", "CRM:STATS", "crm_stats_"+resource+"_used", used, "crm_stats_"+resource+"_available", 30000)
	}
}

// addBallast adds what nobody reads but a walk passes.
func (s *synthetic) addBallast() {
	for i := range routes {
		prefix := fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)
		s.set("APPL_DB", "ROUTE_TABLE:"+prefix, "nexthop", "10.0.0.1", "ifname", "Ethernet0")
		key := fmt.Sprintf(`{"dest":"%s","switch_id":"%s","vr":"oid:0x3000000000022"}`, prefix, switchOID)
		s.set("ASIC_DB", asic("ROUTE_ENTRY", key), "SAI_ROUTE_ENTRY_ATTR_NEXT_HOP_ID", "oid:0x4000000000001")
	}
	for i := range 12 {
		s.set("STATE_DB", fmt.Sprintf("FAN_INFO|fan%d", i+1), "presence", "True", "status", "True", "speed", 60)
		s.set("STATE_DB", fmt.Sprintf("TEMPERATURE_INFO|sensor%d", i+1), "temperature", "40.0", "high_threshold", "90.0")
	}
}

// Capture is the directory of a capture with these databases.
func (d Databases) Capture(t testing.TB) fs.FS {
	t.Helper()
	dir := fstest.MapFS{
		"meta.json":                         {Data: []byte(`{"format": 1, "exporter": "synthetic", "read": "2026-01-02T03:04:05Z", "clock": "2026-01-02T03:04:05Z"}`)},
		"files/etc/sonic/sonic_version.yml": {Data: []byte("build_version: 'SONiC.synthetic'\n")},
	}
	for name, hashes := range d {
		data, err := json.Marshal(hashes)
		if err != nil {
			t.Fatal(err)
		}
		dir[path.Join("redis", name+".json")] = &fstest.MapFile{Data: data}
	}
	return dir
}
