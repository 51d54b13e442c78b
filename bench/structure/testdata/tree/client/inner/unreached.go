// Package inner is used by nobody.
package inner

func forgotten() {}
