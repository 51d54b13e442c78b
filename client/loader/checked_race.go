//go:build race

package loader

// checked turns on checks that cost time.
const Checked = true
