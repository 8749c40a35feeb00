// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"roce_exporter/collectors/host/hosttest"
)

// nicDumps is the folder of real statistics and of name lists, which are not
// part of the repository.
func nicDumps(t testing.TB) string {
	t.Helper()
	return shared(t, "nic-dumps")
}

// driverOf are the drivers whose names the files of the folder hold.
var driverOf = map[string]string{
	"mlx5": mlx5, "ice": ice, "irdma": ice, "i40e": i40e, "bnxt": bnxt, "ionic": ionic, "hns3": hns3, "hns": hns3, "qede": qede, "mana": mana,
	"cxgb4": cxgb4, "rxe": rxe, "erdma": erdma,
}

var dumpOfNIC = regexp.MustCompile(`^(ethtool|hw_counters)-(?:device-)?([a-z0-9]+)`)

// aboutRoCE are the words of names that nobody may overlook.
var aboutRoCE = regexp.MustCompile(`prio|pfc|ppp|pause|discard|cnp|ecn`)

// overlooked lists the names of a driver that are about RoCE, and neither
// mapped nor ignored.
func overlooked(source, driver string, names []string) []string {
	mapped := map[string]bool{}
	for _, f := range AllFamilies() {
		for _, o := range f.From {
			if strings.HasPrefix(o.Source, source) && o.Driver == driver {
				for _, raw := range o.Raw {
					for _, priority := range "01234567" {
						mapped[strings.ReplaceAll(raw, placeholder, string(priority))] = true
					}
				}
			}
		}
	}
	var found []string
	for _, name := range names {
		ignored := slices.ContainsFunc(IgnoredNames(), func(i Ignored) bool {
			ok, _ := path.Match(i.Pattern, name)
			return ok && i.Source == source
		})
		if aboutRoCE.MatchString(strings.ToLower(name)) && !mapped[name] && !ignored {
			found = append(found, name)
		}
	}
	return found
}

// namesOf are the names of a list, or of what ethtool -S printed.
func namesOf(data []byte) []string {
	var names []string
	for line := range strings.Lines(string(data)) {
		name := strings.TrimSpace(line)
		if at := strings.LastIndex(name, ": "); at >= 0 {
			name = strings.TrimSpace(name[:at])
		}
		if name != "" && !strings.HasSuffix(name, ":") && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	return names
}

// Of the names that drivers have, none that is about RoCE is overlooked.
func TestNoNameAboutRoCEIsOverlooked(t *testing.T) {
	for _, dir := range []string{nicDumps(t), filepath.Join(nicDumps(t), "names")} {
		files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", dir, err)
		}
		for _, file := range files {
			m := dumpOfNIC.FindStringSubmatch(filepath.Base(file))
			if m == nil || strings.Contains(file, "-driver") {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			driver := cmp.Or(driverOf[m[2]], m[2]) // Of the latter the table has nothing.
			if strings.Contains(file, "gen3") {
				driver = idpf
			}
			for _, name := range overlooked(m[1], driver, namesOf(data)) {
				t.Errorf("%s: %s is neither mapped nor ignored", filepath.Base(file), name)
			}
		}
	}
}

// The same of the composed hosts, which are there always.
func TestNoNameOfAComposedHostIsOverlooked(t *testing.T) {
	for _, file := range hosts(t) {
		capture := hosttest.Read(t, file)
		for name, f := range capture {
			port, ok := strings.CutPrefix(name, "ethtool/")
			port, isStatistics := strings.CutSuffix(port, "/statistics")
			if !ok || !isStatistics {
				continue
			}
			driver := namesOf(bytes.ReplaceAll(capture["ethtool/"+port+"/driver"].Data, []byte("driver: "), nil))[0]
			for _, raw := range overlooked("ethtool", driver, namesOf(f.Data)) {
				t.Errorf("%s: %s of %s is neither mapped nor ignored", file, raw, driver)
			}
		}
	}
}

// Every dump is read without a fault, as if it were a device of this host.
func TestNICDumpsAreRead(t *testing.T) {
	root := nicDumps(t)
	files, err := filepath.Glob(filepath.Join(root, "ethtool-*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		m := dumpOfNIC.FindStringSubmatch(filepath.Base(file))
		if strings.Contains(file, "-driver") {
			continue // What ethtool -i printed.
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		driver := cmp.Or(driverOf[m[2]], m[2])
		capture := hostOf(t, card{netdev: "eth9", rdma: "rdma9", driver: driver, ib: []string{"ports/1/gid_attrs/ndevs/0 = eth9"}})
		maps.Copy(capture, fstest.MapFS{"ethtool/eth9/statistics": {Data: data}})
		got, _ := readHost(t, capture)
		t.Logf("%s: %d series of eth9", filepath.Base(file), len(got.with(`port="eth9"`)))
		if counted := len(got.with("_total{", `port="eth9"`)); (counted > 0) != (driverOf[m[2]] != "") {
			t.Errorf("%s: %d counters", filepath.Base(file), counted)
		}
	}
	trees, err := filepath.Glob(filepath.Join(root, "sysfs/*"))
	if err != nil || len(trees) == 0 {
		t.Fatalf("no trees: %v", err)
	}
	for _, tree := range trees {
		capture := fstest.MapFS{}
		err := fs.WalkDir(os.DirFS(tree), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(tree, name))
			capture["sys/"+name] = &fstest.MapFile{Data: data}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		// The dumps have no links, by which the driver is known.
		for name := range maps.Clone(capture) {
			device, _, ok := strings.Cut(strings.TrimPrefix(name, "sys/class/infiniband/"), "/")
			if ok && strings.HasPrefix(device, "mlx5") {
				capture["sys/class/infiniband/"+device+"/device/uevent"] = &fstest.MapFile{Data: []byte("DRIVER=mlx5_core\n")}
			}
		}
		got, reading := readHost(t, capture)
		if reading.Skipped != (Skipped{}) || len(reading.Sources) == 0 {
			t.Errorf("%s: %+v", tree, reading)
		}
		t.Logf("%s: %d series of RDMA", filepath.Base(tree), len(got.with("device=")))
		if strings.HasSuffix(tree, "telegraf") {
			got.has(t, `roce_rdma_cnp_sent_packets_total{device="mlx5_0",rdma_port="1"}`, 10284520)
			got.has(t, `roce_rdma_ecn_marked_packets_total{device="mlx5_0",rdma_port="1"}`, 286733949)
		}
	}
}
