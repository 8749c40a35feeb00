// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package host

import (
	"errors"
	"time"
)

// liveEthtool can ask nobody: ethtool is of Linux only.
type liveEthtool struct{}

func newEthtool(time.Duration) Ethtool { return liveEthtool{} }

func (liveEthtool) Driver(string) (Driver, error) { return Driver{}, errors.ErrUnsupported }

func (liveEthtool) Statistics(string) (map[string]uint64, error) { return nil, errors.ErrUnsupported }
