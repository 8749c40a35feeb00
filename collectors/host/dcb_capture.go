// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A dcbFile is dcb/<interface>.json of a capture. What is unknown is left
// out: no list is not an empty list.
type dcbFile struct {
	PFC         []int           `json:"pfc,omitzero"`  // The lossless priorities.
	DSCP        map[uint8]uint8 `json:"dscp,omitzero"` // DSCP to priority.
	Trust       string          `json:"trust,omitzero"`
	Mode        string          `json:"mode,omitzero"`
	Requests    []uint64        `json:"requests,omitzero"`    // PFC frames sent, of priorities 0 to 7.
	Indications []uint64        `json:"indications,omitzero"` // PFC frames received, of priorities 0 to 7.
}

// ReadDCB reads the devices of a capture, dcb/<interface>.json, each when it
// is asked for. A device without a file has no DCB: fs.ErrNotExist.
func ReadDCB(capture fs.FS) DCB { return dcbCapture{capture} }

type dcbCapture struct{ files fs.FS }

func (c dcbCapture) Get(name string) (*DCBState, error) {
	b, err := fs.ReadFile(c.files, dcbPath(name))
	if err != nil {
		return nil, fmt.Errorf("DCB of %s: %w", name, err)
	}
	s, err := parseDCB(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dcbPath(name), err)
	}
	return s, nil
}

// WriteDCB writes the state of a device into the directory of a capture, as
// dcb/<interface>.json. A device that has no DCB gets no file.
func WriteDCB(capture, name string, s *DCBState) error {
	file, err := filepath.Localize(dcbPath(name))
	if err != nil {
		return fmt.Errorf("DCB of %s: %w", name, err)
	}
	b, err := formatDCB(s)
	if err != nil {
		return fmt.Errorf("DCB of %s: %w", name, err)
	}
	file = filepath.Join(capture, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

func dcbPath(name string) string { return "dcb/" + name + ".json" }

func formatDCB(s *DCBState) ([]byte, error) {
	f := dcbFile{DSCP: s.DSCP, Trust: s.Trust, Mode: s.Mode}
	if s.PFC != nil {
		f.PFC = []int{}
		for i := range 8 {
			if *s.PFC>>i&1 == 1 {
				f.PFC = append(f.PFC, i)
			}
		}
	}
	if s.Requests != nil {
		f.Requests = s.Requests[:]
	}
	if s.Indications != nil {
		f.Indications = s.Indications[:]
	}
	b, err := json.MarshalIndent(f, "", "  ")
	return append(b, '\n'), err
}

func parseDCB(b []byte) (*DCBState, error) {
	var f dcbFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	s := &DCBState{DSCP: f.DSCP, Trust: f.Trust, Mode: f.Mode}
	if f.PFC != nil {
		s.PFC = new(uint8)
		for _, p := range f.PFC {
			if p < 0 || p > 7 {
				return nil, fmt.Errorf("pfc: no priority %d", p)
			}
			*s.PFC |= 1 << p
		}
	}
	for dscp, priority := range f.DSCP {
		if dscp > 63 || priority > 7 {
			return nil, fmt.Errorf("dscp: no DSCP %d of priority %d", dscp, priority)
		}
	}
	if f.Trust != "" && f.Trust != "dscp" && f.Trust != "pcp" {
		return nil, fmt.Errorf("trust: neither dscp nor pcp: %q", f.Trust)
	}
	var err, err2 error
	s.Requests, err = eightCounters("requests", f.Requests)
	s.Indications, err2 = eightCounters("indications", f.Indications)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return s, nil
}

// eightCounters is exact about their number, as the JSON decoder is not of
// arrays.
func eightCounters(key string, values []uint64) (*[8]uint64, error) {
	if values == nil {
		return nil, nil
	}
	if len(values) != 8 {
		return nil, fmt.Errorf("%s: %d numbers, not 8", key, len(values))
	}
	return (*[8]uint64)(slices.Clone(values)), nil
}
