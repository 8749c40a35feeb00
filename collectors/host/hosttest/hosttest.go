// SPDX-License-Identifier: Apache-2.0

// Package hosttest makes hosts for tests.
package hosttest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// Read reads a capture of a host from a file, see Parse.
func Read(t testing.TB, file string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(t, string(text))
}

// Parse makes a capture of a host of lines: "path = text" is a file, "path +
// text" one more line of it, "path -> target" a link, "# text" a remark.
func Parse(t testing.TB, text string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at, operator := len(line), ""
		for _, o := range []string{" -> ", " = ", " + ", " ="} {
			if i := strings.Index(line, o); i >= 0 && i < at {
				at, operator = i, o
			}
		}
		name, value := line[:at], strings.TrimPrefix(line[at:], operator)
		switch operator {
		case " -> ":
			files[name] = &fstest.MapFile{Data: []byte(value), Mode: fs.ModeSymlink | 0o777}
		case " + ":
			if files[name] == nil {
				files[name] = &fstest.MapFile{}
			}
			files[name].Data = append(files[name].Data, value+"\n"...)
		case " = ", " =":
			files[name] = &fstest.MapFile{Data: []byte(value + "\n")}
		default:
			t.Fatalf("no such line: %s", line)
		}
	}
	return files
}

// Rails makes a host of n rails of the first port of testdata/hosts/connectx.txt,
// each a NIC with as many statistics as are asked for, and its RDMA device.
func Rails(t testing.TB, connectx string, n, statistics int) fstest.MapFS {
	t.Helper()
	one, all := Read(t, connectx), fstest.MapFS{}
	for i := range n {
		rename := strings.NewReplacer("ens1f0np0", fmt.Sprintf("ens%df0np0", i+1), "mlx5_0", fmt.Sprintf("mlx5_%d", i),
			":1a", fmt.Sprintf(":%02x", 0x1a+i), "00:00:01", fmt.Sprintf("00:00:%02x", i+1))
		for name, file := range one {
			switch {
			case strings.Contains(name, "ens1f0np0") || strings.Contains(name, "mlx5_0") || strings.Contains(name, ":1a"):
				data := []byte(rename.Replace(string(file.Data)))
				if name == "ethtool/ens1f0np0/statistics" {
					data = addQueues(data, statistics)
				}
				all[rename.Replace(name)] = &fstest.MapFile{Data: data, Mode: file.Mode}
			case strings.HasPrefix(name, "proc/") && !strings.Contains(name, "/conf/ens"):
				all[name] = file
			}
		}
		const gids = "sys/devices/pci0000:00/0000:00:1a.0/0000:1a:00.0/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/"
		for index := range 256 { // The whole table; the first three are taken, as in the file.
			data := ""
			if index < 3 {
				data = fmt.Sprintf("ens%df0np0\n", i+1)
			}
			all[rename.Replace(gids)+fmt.Sprint(index)] = &fstest.MapFile{Data: []byte(data)}
		}
	}
	return all
}

// addQueues adds the statistics of queues, which are most of what such a NIC
// has, to as many as there should be.
func addQueues(text []byte, statistics int) []byte {
	names := []string{"rx%d_packets", "rx%d_bytes", "rx%d_csum_complete", "rx%d_cache_reuse", "tx%d_packets", "tx%d_bytes", "tx%d_stopped", "tx%d_cqes"}
	for i := bytes.Count(text, []byte("\n")) - 1; i < statistics; i++ {
		text = fmt.Appendf(text, "     "+names[i%len(names)]+": %d\n", 100+i/len(names), 2600000+i)
	}
	return text
}

// Write writes a capture to a directory, with its links.
func Write(t testing.TB, files fstest.MapFS, dir string) {
	t.Helper()
	for name, file := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case file.Mode&fs.ModeSymlink != 0:
			err = os.Symlink(string(file.Data), at)
		default:
			err = os.WriteFile(at, file.Data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
