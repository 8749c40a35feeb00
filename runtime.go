// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// limitRuntime keeps the exporter small on a switch, whose CPU and memory
// belong to the control plane. The environment has precedence, as everywhere
// in Go. It returns what to do after each scrape.
func limitRuntime(memory byteSize, procs int) (afterScrape func()) {
	if procs > 0 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(procs)
	}
	if memory == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	debug.SetMemoryLimit(int64(memory))
	return func() { debug.SetMemoryLimit(yielding(int64(memory), liveHeap())) }
}

// yielding is the limit that holds with a live heap: a process that comes close
// to its limit with what it really needs, on a switch that is larger than
// others, would do little else than collect garbage.
func yielding(limit, live int64) int64 { return max(limit, live*7/4) }

// liveHeap is what the last garbage collection left.
func liveHeap() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(samples[0].Value.Uint64())
}
