// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

// thorough says that a test may be long: the race detector would make minutes of
// its seconds.
const thorough = true
