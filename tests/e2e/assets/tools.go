//go:build tools

// Package assets pins what the end-to-end tests run: etcd, kube-apiserver, kubectl and Landscaper's CRDs.
package assets

import (
	_ "github.com/gardener/landscaper/apis/crds"
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
