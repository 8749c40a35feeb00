// SPDX-License-Identifier: Apache-2.0

// Package hosttest makes hosts for tests.
package hosttest

import (
	"io/fs"
	"os"
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
		for _, o := range []string{" -> ", " = ", " + "} {
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
		case " = ":
			files[name] = &fstest.MapFile{Data: []byte(value + "\n")}
		default:
			t.Fatalf("no such line: %s", line)
		}
	}
	return files
}
