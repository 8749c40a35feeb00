// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"cmp"
	"math"
)

// The PFC watchdog's fields in a queue's hash (sonic-swss orchagent
// pfcactionhandler.cpp, pfcwdorch.cpp). Times are microseconds here.
const (
	fieldStatus     = "PFC_WD_STATUS"
	fieldAction     = "PFC_WD_ACTION"
	fieldDetection  = "PFC_WD_DETECTION_TIME"
	fieldRestore    = "PFC_WD_RESTORATION_TIME"
	fieldDetected   = "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"
	fieldRestored   = "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED"
	fieldBigRed     = "BIG_RED_SWITCH_MODE"
	statusStormed   = "stormed"
	statusOperating = "operational"
)

// milliseconds reads a time of CONFIG_DB into seconds.
func milliseconds(row Hash, field string, skipped *Skipped) *float64 {
	return divided(row, field, 1e3, skipped)
}

// microseconds reads a time of COUNTERS_DB into seconds.
func microseconds(row Hash, field string, skipped *Skipped) *float64 {
	return divided(row, field, 1e6, skipped)
}

func divided(row Hash, field string, by float64, skipped *Skipped) *float64 {
	text, ok := row[field]
	if !ok {
		return nil
	}
	v, ok := parseNumber(text)
	if !ok {
		skipped.Unparsable++
		return nil
	}
	v /= by
	return &v
}

// readWatchdog takes the PFC watchdog's fields out of a queue's hash.
func (r *read) readWatchdog(q *Queue, hash Hash) {
	if hash[fieldBigRed] == "enable" {
		on := true
		r.out.BigRedSwitch = &on
	}
	status, ok := hash[fieldStatus]
	if !ok {
		return
	}
	if status != statusStormed && status != statusOperating {
		r.out.Skipped.Unparsable++
		return
	}
	stormed := status == statusStormed
	q.Stormed = &stormed
	// A watched queue without the counters has not met a storm yet: here
	// absent is 0, so that the first storm is an increase.
	for i, field := range r.options.Wanted.Queue {
		if _, ok := hash[field]; !ok && (field == fieldDetected || field == fieldRestored) {
			q.Counters[i] = 0
		}
	}
	w := &q.watchdog
	if v := microseconds(hash, fieldDetection, &r.out.Skipped); v != nil {
		w.Detection = v
	}
	if text, ok := hash[fieldRestore]; ok && text == "" {
		forever := math.Inf(1)
		w.Restore = &forever
	} else if v := microseconds(hash, fieldRestore, &r.out.Skipped); v != nil {
		w.Restore = v
	}
	if action := hash[fieldAction]; action != "" {
		w.Action = action
	}
}

// setWatchdogs takes over what the queues say that are still their ports': it
// is in force for the whole port, so any of them tells.
func (r *read) setWatchdogs() {
	for i := range r.out.Queues {
		q := &r.out.Queues[i]
		port := r.ports[q.Port]
		if port == nil {
			continue
		}
		port.Watchdog.Detection = cmp.Or(q.watchdog.Detection, port.Watchdog.Detection)
		port.Watchdog.Restore = cmp.Or(q.watchdog.Restore, port.Watchdog.Restore)
		port.Watchdog.Action = cmp.Or(q.watchdog.Action, port.Watchdog.Action)
	}
}

// setBigRedSwitch says whether the big red switch is on, where the
// configuration or a queue has a word on it.
func (r *read) setBigRedSwitch(config *configuration) {
	if r.out.BigRedSwitch == nil && config != nil {
		r.out.BigRedSwitch = isText(config.watchdogGlobal, "BIG_RED_SWITCH", "enable")
	}
}
