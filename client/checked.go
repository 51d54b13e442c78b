//go:build !race

package client

// checked turns on checks that cost time.
const checked = false
