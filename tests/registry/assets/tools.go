//go:build tools

// Package assets pins the OCI registry that tests push component descriptors to.
package assets

import _ "github.com/distribution/distribution/v3/cmd/registry"
