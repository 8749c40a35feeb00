// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"strconv"
	"strings"
)

// A configuration is what CONFIG_DB asks for.
type configuration struct {
	walked bool // All keys were seen; else only those that port names lead to.

	device         Hash
	ports          map[string]Hash // PORT
	qos            map[string]Hash // PORT_QOS_MAP, by port.
	globalQoS      Hash
	watchdog       map[string]Hash            // PFC_WD, by port.
	watchdogGlobal Hash                       //
	queues         map[portIndex]Hash         // QUEUE
	groups         map[portIndex]string       // BUFFER_PG: the profile, "" for one that the switch computes.
	groupKeys      []string                   // Keys of BUFFER_PG without the table, as configured.
	profiles       map[string]map[string]Hash // WRED_PROFILE, BUFFER_PROFILE, BUFFER_POOL and the QoS maps: table, name.
	pollGroups     map[string]Hash            // FLEX_COUNTER_TABLE
	neighborTypes  map[string]string          // DEVICE_NEIGHBOR_METADATA type, by neighbour.
	switched       map[string]bool            // Ports and LAGs in a VLAN.
	routed         map[string]bool            // Ports and LAGs with an interface.
	lags           map[string]string          // Port: the LAG that it is a member of.
	hostname, asic string                     // Whose keys are own on a chassis.

	made map[string]*madePort // By port, as they are asked for.

	// Rows that are there but could not be read: what they say is unknown.
	refused      map[[2]string]bool // By table and port.
	refusedQueue map[portIndex]bool
}

// A madePort is what the configuration says of a port, and what it left out.
type madePort struct {
	Port
	skipped Skipped
}

// portIndex names a queue or priority group of a port.
type portIndex struct {
	port  string
	index int
}

// tables are those of CONFIG_DB that are read, and whether their fields
// matter or their keys say it all.
func configTables() map[string]bool {
	return map[string]bool{
		"DEVICE_METADATA": true, "PORT": true, "PORT_QOS_MAP": true, "PFC_WD": true, "QUEUE": true, "BUFFER_PG": true,
		"WRED_PROFILE": true, "BUFFER_PROFILE": true, "BUFFER_POOL": true, "FLEX_COUNTER_TABLE": true,
		"DEVICE_NEIGHBOR_METADATA": true,
		"DSCP_TO_TC_MAP":           true, "TC_TO_QUEUE_MAP": true, "TC_TO_PRIORITY_GROUP_MAP": true,
		"MAP_PFC_PRIORITY_TO_QUEUE": true, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": true,
		"VLAN_MEMBER": false, "INTERFACE": false, "VLAN_SUB_INTERFACE": false, "PORTCHANNEL_INTERFACE": false,
		"PORTCHANNEL_MEMBER": false,
	}
}

func newConfiguration() *configuration {
	return &configuration{
		ports: map[string]Hash{}, qos: map[string]Hash{}, watchdog: map[string]Hash{}, queues: map[portIndex]Hash{},
		groups: map[portIndex]string{}, profiles: map[string]map[string]Hash{}, pollGroups: map[string]Hash{},
		neighborTypes: map[string]string{}, switched: map[string]bool{}, routed: map[string]bool{}, lags: map[string]string{},
		made: map[string]*madePort{}, refused: map[[2]string]bool{}, refusedQueue: map[portIndex]bool{},
	}
}

// add takes one row. Keys may name several ports ("Ethernet0,Ethernet4") and
// ranges ("3-4"); those of a chassis name the host and the ASIC first.
func (c *configuration) add(table string, key []string, row Hash) {
	name := key[0]
	if name == "" {
		return
	}
	switch table {
	case "DEVICE_METADATA":
		if name == "localhost" {
			c.device, c.hostname, c.asic = row, row["hostname"], row["asic_name"]
		}
	case "PORT":
		c.ports[name] = row
	case "PORT_QOS_MAP":
		if name == "global" {
			c.globalQoS = row
			return
		}
		for port := range strings.SplitSeq(name, ",") {
			c.qos[port] = row
		}
	case "PFC_WD":
		if name == "GLOBAL" {
			c.watchdogGlobal = row
			return
		}
		c.watchdog[name] = row
	case "QUEUE":
		c.eachIndex(key, func(at portIndex) { c.queues[at] = row })
	case "BUFFER_PG":
		c.groupKeys = append(c.groupKeys, strings.Join(key, ":"))
		c.eachIndex(key, func(at portIndex) { c.groups[at] = reference(row["profile"]) })
	case "FLEX_COUNTER_TABLE":
		c.pollGroups[name] = row
	case "DEVICE_NEIGHBOR_METADATA":
		c.neighborTypes[name] = row["type"]
	case "VLAN_MEMBER":
		if len(key) > 1 {
			c.switched[key[1]] = true
		}
	case "INTERFACE", "PORTCHANNEL_INTERFACE":
		c.routed[name] = true
	case "VLAN_SUB_INTERFACE":
		port, _, _ := strings.Cut(name, ".")
		c.routed[port] = true
	case "PORTCHANNEL_MEMBER":
		if len(key) > 1 {
			c.lags[key[1]] = name
		}
	default:
		if c.profiles[table] == nil {
			c.profiles[table] = map[string]Hash{}
		}
		c.profiles[table][name] = row
	}
}

// refuse notes a row that is there but could not be read.
func (c *configuration) refuse(table string, key []string) {
	switch table {
	case "PORT":
		c.ports[key[0]] = nil // It is a port all the same.
	case "QUEUE":
		c.eachIndex(key, func(at portIndex) { c.refusedQueue[at] = true })
	}
	for port := range strings.SplitSeq(key[0], ",") {
		c.refused[[2]string{table, port}] = true
	}
}

// eachIndex expands the key of a queue or priority group.
func (c *configuration) eachIndex(key []string, use func(portIndex)) {
	if len(key) == 4 { // host|asic|port|index: other cards' are listed too.
		if key[0] != c.hostname || c.asic != "" && !strings.EqualFold(key[1], c.asic) {
			return
		}
		key = key[2:]
	}
	if len(key) != 2 {
		return
	}
	from, to, isRange := strings.Cut(key[1], "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 8)
	last, err2 := strconv.ParseUint(to, 10, 8)
	if err1 != nil || err2 != nil {
		return
	}
	for port := range strings.SplitSeq(key[0], ",") {
		for i := first; i <= last; i++ {
			use(portIndex{port, int(i)})
		}
	}
}

// reference takes the name out of "[TABLE|name]", as releases up to 202106
// write it, or out of a bare name. "NULL" is none.
func reference(text string) string {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
		text = text[strings.LastIndexAny(text, "|:")+1:]
	}
	if text == "NULL" {
		return ""
	}
	return text
}

// isPort says whether a name is one of an Ethernet port. ports are those of
// CONFIG_DB, empty where it is not known.
func isPort(name string, ports map[string]Hash) bool {
	if len(ports) > 0 {
		_, ok := ports[name]
		return ok
	}
	// A gearbox has two more names a port, for its sides.
	return strings.HasPrefix(name, "Ethernet") && !strings.HasSuffix(name, "_system") && !strings.HasSuffix(name, "_line")
}

// portKind says what a port is for, by its role or, where there is none, by
// the way SONiC names it.
func portKind(name, role string) string {
	switch role {
	case "Ext":
		return "front"
	case "Int":
		return "backplane"
	case "Inb":
		return "inband"
	case "Rec":
		return "recirculation"
	case "Dpc":
		return "dpu"
	}
	for prefix, kind := range map[string]string{"Ethernet-BP": "backplane", "Ethernet-IB": "inband", "Ethernet-Rec": "recirculation"} {
		if strings.HasPrefix(name, prefix) {
			return kind
		}
	}
	return "front"
}
