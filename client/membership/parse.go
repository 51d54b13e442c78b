package membership

import (
	"strings"
)

// Parse tells what users name apart: single nodes by address, which are not checked, and sources. Errors
// are *TargetError.
func Parse(targets []string) (addrs []string, sources []Source, err error) {
	for _, t := range targets {
		s, err := parseTarget(t)
		switch {
		case err != nil:
			return nil, nil, err
		case s != nil:
			sources = append(sources, s)
		default:
			addrs = append(addrs, t)
		}
	}
	return addrs, sources, nil
}

// parseTarget returns no source for what can only be the address of one node.
func parseTarget(target string) (Source, error) {
	scheme, rest, _ := strings.Cut(target, ":")
	switch scheme {
	case "dns":
		return newDNS(target, rest)
	case "dns+srv":
		return newSRV(target, rest)
	case "file":
		return newFile(target, rest)
	case "k8s":
		return newKubernetes(target, rest)
	}
	return nil, nil
}
