//go:build !race

package loader

// Checked turns on checks that cost time.
const Checked = false
