// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var (
	keep     = flag.String("keep", "", "keep the data of the past in this directory")
	keepArgs = flag.String("keep-args", "", "arguments of demo history")
	keepFor  = flag.Duration("keep-for", time.Hour, "how long")
)

func TestKeep(t *testing.T) {
	if *keep == "" {
		t.Skip()
	}
	newPast(t, *keepFor, strings.Fields(*keepArgs)...)
}
