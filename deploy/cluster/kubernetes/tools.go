//go:build tools

// Package kubernetes holds the versions of Kubernetes' programs that the tests of deploy/cluster run. Its go.mod repeats what Kubernetes' own
// replaces, with the modules that were published of the same release, for replacements of other modules do not count.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
