// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// readPCIe reads the link of the device's card. What card and slot could do is
// the lower of both: a card in a slot of an older generation is not degraded.
func (r *Reader) readPCIe(n *Netdev, d device, t tally) {
	if n.Kind != Physical || d.pci == "" {
		return
	}
	link := PCIe{
		Width: t.lanes(d.dir, "current_link_width"), MaxWidth: t.lanes(d.dir, "max_link_width"),
		Speed: t.transfers(d.dir, "current_link_speed"), MaxSpeed: t.transfers(d.dir, "max_link_speed"),
	}
	if d.slot != "" {
		link.MaxWidth = lower(link.MaxWidth, t.lanes(d.slot, "max_link_width"))
		link.MaxSpeed = lower(link.MaxSpeed, t.transfers(d.slot, "max_link_speed"))
	}
	config := path.Join(d.dir, "config")
	payload, err := keep(r, r.payload, config, keepFor, func() (*float64, error) { return readPayload(r.Sys, config) })
	if err != nil && !isNone(err) && !errors.Is(err, fs.ErrPermission) {
		t.unreadable(err)
	}
	link.Payload = payload
	if link != (PCIe{}) {
		n.Link = &link
	}
}

// lanes reads a width. A card that does not answer has 0, 63 or 255.
func (t tally) lanes(dir, name string) *float64 {
	width := t.number(path.Join(dir, name))
	if width == nil || *width == 0 || *width > 32 {
		return nil
	}
	return width
}

// transfers reads a speed: "32.0 GT/s PCIe", "8 GT/s", "Unknown".
func (t tally) transfers(dir, name string) *float64 {
	text := t.text(path.Join(dir, name))
	if text == "" || strings.HasPrefix(text, "Unknown") {
		return nil
	}
	number, unit, _ := strings.Cut(text, " ")
	speed, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.HasPrefix(unit, "GT/s") || !(speed > 0 && speed < 1e6) {
		t.unparsable(path.Join(dir, name), text)
		return nil
	}
	return new(speed * 1e9)
}

func lower(a, b *float64) *float64 {
	switch {
	case a == nil:
		return nil // The slot alone says nothing of the card.
	case b == nil:
		return a
	}
	return new(min(*a, *b))
}

// readPayload finds the Max_Payload_Size in the configuration space (PCI
// Express Base Specification, 7.5.3.4). All but root get 64 bytes of it, which
// is too few.
func readPayload(files fs.FS, name string) (*float64, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var config [256]byte // What follows is extended, and slow to read.
	n, err := io.ReadFull(f, config[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	const express = 0x10
	if n < len(config) || binary.LittleEndian.Uint16(config[:]) == 0xffff {
		return nil, nil
	}
	at := int(config[0x34] &^ 3)
	for range 48 { // No more fit; a list that ends in itself ends here.
		if at < 0x40 || at+10 > len(config) {
			return nil, nil
		}
		if config[at] == express {
			if size := binary.LittleEndian.Uint16(config[at+8:]) >> 5 & 7; size <= 5 {
				return new(float64(int(128) << size)), nil
			}
			return nil, nil
		}
		at = int(config[at+1] &^ 3)
	}
	return nil, nil
}
