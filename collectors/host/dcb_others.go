// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package host

import (
	"errors"
	"fmt"
	"time"
)

// A LiveDCB can ask nobody: DCB is read from Linux only.
type LiveDCB struct{}

// NewLiveDCB returns a reader that reads nothing.
func NewLiveDCB(time.Duration) *LiveDCB { return &LiveDCB{} }

// Get returns an error that is errors.ErrUnsupported.
func (*LiveDCB) Get(name string) (*DCBState, error) {
	return nil, fmt.Errorf("DCB of %s: %w", name, errors.ErrUnsupported)
}
