// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// A DCB gives the data center bridging state of network devices.
type DCB interface {
	// Get reads a device. fs.ErrNotExist: the device has no DCB.
	Get(name string) (*DCBState, error)
}

// A DCBState is what a device says of data center bridging.
type DCBState struct {
	PFC                   *uint8          // Bit i: priority i is lossless; nil: unknown.
	DSCP                  map[uint8]uint8 // DSCP to priority, as the application table has it; nil: unknown.
	Trust                 string          // dscp, pcp; empty: unknown.
	Mode                  string          // Who runs DCBX, and how: "host ieee", "firmware cee ieee"; empty: unknown.
	Requests, Indications *[8]uint64      // PFC frames sent and received, by priority; nil: unknown.
}

// Numbers of include/uapi/linux/dcbnl.h. The enums have no numbers there:
// these are their places in the order.
const (
	dcbCmdIEEEGet = 21 // DCB_CMD_IEEE_GET

	dcbAttrIfname = 1  // DCB_ATTR_IFNAME, string that ends in a NUL.
	dcbAttrIEEE   = 13 // DCB_ATTR_IEEE, nest.
	dcbAttrDCBX   = 14 // DCB_ATTR_DCBX, u8 of DCB_CAP_DCBX_ bits.

	ieeeAttrPFC        = 2  // DCB_ATTR_IEEE_PFC, struct ieee_pfc.
	ieeeAttrAppTable   = 3  // DCB_ATTR_IEEE_APP_TABLE, nest of struct dcb_app.
	ieeeAttrTrustTable = 11 // DCB_ATTR_DCB_APP_TRUST_TABLE, nest of u8 selectors.

	appAttrIEEE = 1 // DCB_ATTR_IEEE_APP
	appAttrDCB  = 2 // DCB_ATTR_DCB_APP, of selectors that IEEE has not, such as PCP.

	selectorDSCP = 5   // IEEE_8021QAZ_APP_SEL_DSCP
	selectorPCP  = 255 // DCB_APP_SEL_PCP

	dcbxHost       = 0x01 // DCB_CAP_DCBX_HOST
	dcbxLLDManaged = 0x02 // DCB_CAP_DCBX_LLD_MANAGED
	dcbxCEE        = 0x04 // DCB_CAP_DCBX_VER_CEE
	dcbxIEEE       = 0x08 // DCB_CAP_DCBX_VER_IEEE
	dcbxStatic     = 0x10 // DCB_CAP_DCBX_STATIC
)

// Sizes in bytes.
const (
	dcbHeaderLen    = 4 // struct dcbmsg of include/uapi/linux/rtnetlink.h: family, command, padding.
	attrHeaderLen   = 4 // struct nlattr: u16 length with the header, u16 type.
	attrTypeMask    = 0x3fff
	ieeePFCLen      = 136 // struct ieee_pfc
	ieeePFCRequests = 8   // Where its counters begin: requests[8], then indications[8].
	appLen          = 4   // struct dcb_app: selector, priority, u16 protocol.
	ifnameMax       = 15  // IFNAMSIZ without the NUL.
)

// dcbRequest composes the payload of an RTM_GETDCB message that asks for the
// IEEE 802.1Qaz state of one device (net/dcb/dcbnl.c, dcb_doit). Its reply
// holds what DCB_CMD_GDCBX would answer, too.
func dcbRequest(name string) ([]byte, error) {
	if name == "" || len(name) > ifnameMax || strings.ContainsAny(name, "/\x00") {
		return nil, errors.New("not a name of a network device")
	}
	b := []byte{0, dcbCmdIEEEGet, 0, 0}
	b = binary.NativeEndian.AppendUint16(b, uint16(attrHeaderLen+len(name)+1))
	b = binary.NativeEndian.AppendUint16(b, dcbAttrIfname)
	b = append(b, name...)
	b = append(b, 0)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b, nil
}

// decodeDCB reads the payload of a reply to dcbRequest: a struct dcbmsg and a
// tree of attributes (net/dcb/dcbnl.c, dcbnl_ieee_fill), in host byte order.
// What the reply has not stays nil or empty. An attribute that does not fit
// into what surrounds it is an error, and nothing of such a reply is believed.
func decodeDCB(msg []byte) (*DCBState, error) {
	if len(msg) < dcbHeaderLen {
		return nil, fmt.Errorf("a DCB message of %d bytes", len(msg))
	}
	if msg[1] != dcbCmdIEEEGet {
		return nil, fmt.Errorf("a DCB message of command %d", msg[1])
	}
	s := &DCBState{}
	var trusted []uint8 // Selectors; nil: the driver does not say.
	err := eachAttribute(msg[dcbHeaderLen:], func(kind uint16, value []byte) error {
		switch kind {
		case dcbAttrIEEE:
			return eachAttribute(value, func(kind uint16, value []byte) (err error) {
				switch kind {
				case ieeeAttrPFC:
					err = s.decodePFC(value)
				case ieeeAttrAppTable:
					s.DSCP, err = decodeDSCP(value)
				case ieeeAttrTrustTable:
					trusted, err = decodeTrusted(value)
				}
				return err
			})
		case dcbAttrDCBX:
			if len(value) < 1 {
				return errors.New("an empty DCBX attribute")
			}
			s.Mode = dcbxMode(value[0])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.Trust = trust(trusted, s.DSCP)
	return s, nil
}

// decodePFC reads struct ieee_pfc. The kernel clears it before it asks the
// driver, so counters of a driver that does not count are 0, not absent.
func (s *DCBState) decodePFC(value []byte) error {
	if len(value) < ieeePFCLen {
		return fmt.Errorf("a PFC attribute of %d bytes", len(value))
	}
	enabled := value[1]
	s.PFC = &enabled
	s.Requests, s.Indications = new([8]uint64), new([8]uint64)
	for i := range 8 {
		s.Requests[i] = binary.NativeEndian.Uint64(value[ieeePFCRequests+8*i:])
		s.Indications[i] = binary.NativeEndian.Uint64(value[ieeePFCRequests+64+8*i:])
	}
	return nil
}

// decodeDSCP reads the DSCPs of an application table; empty if it has none.
// The kernel allows several priorities for one DSCP: the highest counts, as
// drivers have it that read the table (dcb_ieee_getapp_dscp_prio_mask_map and
// its callers). Values that no packet can have are left out.
func decodeDSCP(table []byte) (map[uint8]uint8, error) {
	priorities := map[uint8]uint8{}
	err := eachAttribute(table, func(kind uint16, value []byte) error {
		if kind != appAttrIEEE {
			return nil
		}
		if len(value) < appLen {
			return fmt.Errorf("an application of %d bytes", len(value))
		}
		selector, priority, protocol := value[0], value[1], binary.NativeEndian.Uint16(value[2:])
		if selector != selectorDSCP || protocol > 63 || priority > 7 {
			return nil
		}
		dscp := uint8(protocol)
		priorities[dscp] = max(priorities[dscp], priority)
		return nil
	})
	return priorities, err
}

// decodeTrusted reads a trust table: selectors, the first one first.
func decodeTrusted(table []byte) ([]uint8, error) {
	selectors := []uint8{}
	err := eachAttribute(table, func(kind uint16, value []byte) error {
		if kind != appAttrIEEE && kind != appAttrDCB {
			return nil
		}
		if len(value) < 1 {
			return errors.New("an empty selector")
		}
		selectors = append(selectors, value[0])
		return nil
	})
	return selectors, err
}

// trust says which field of a packet gives its priority: the first of the
// trust table that is dscp or pcp, and if the driver has no such table (as in
// Linux 6.12 none of the NICs has) dscp if the application table has a DSCP.
// mlx5 goes to DSCP with the first entry, and back to PCP when the last goes
// (drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c).
func trust(selectors []uint8, dscp map[uint8]uint8) string {
	for _, s := range selectors {
		switch s {
		case selectorDSCP:
			return "dscp"
		case selectorPCP:
			return "pcp"
		}
	}
	switch {
	case selectors != nil || dscp == nil:
		return ""
	case len(dscp) > 0:
		return "dscp"
	}
	return "pcp"
}

// dcbxMode says in words who runs DCBX, host, firmware or none, and then what
// it speaks: cee, ieee, static (nothing: the configuration is fixed). A driver
// that names versions only is firmware, too: mlx5 takes the host bit away when
// it gives control to the firmware.
func dcbxMode(bits uint8) string {
	var words []string
	switch {
	case bits&dcbxLLDManaged != 0:
		words = append(words, "firmware")
	case bits&dcbxHost != 0:
		words = append(words, "host")
	case bits&(dcbxCEE|dcbxIEEE|dcbxStatic) != 0:
		words = append(words, "firmware")
	default:
		return "none"
	}
	if bits&dcbxCEE != 0 {
		words = append(words, "cee")
	}
	if bits&dcbxIEEE != 0 {
		words = append(words, "ieee")
	}
	if bits&dcbxStatic != 0 {
		words = append(words, "static")
	}
	return strings.Join(words, " ")
}

// eachAttribute walks over a row of struct nlattr, without the flags of their
// types: dcbnl nests without NLA_F_NESTED, but for the tables of trust and
// rewriting. The padding of the last one may be missing.
func eachAttribute(b []byte, f func(kind uint16, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < attrHeaderLen {
			return fmt.Errorf("%d bytes behind the last attribute", len(b))
		}
		length := int(binary.NativeEndian.Uint16(b))
		kind := binary.NativeEndian.Uint16(b[2:]) & attrTypeMask
		if length < attrHeaderLen || length > len(b) {
			return fmt.Errorf("attribute %d has a length of %d bytes where %d are left", kind, length, len(b))
		}
		if err := f(kind, b[attrHeaderLen:length]); err != nil {
			return err
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return nil
}
