// Builds Flux Kustomizations as kustomize-controller does, with its own libraries: lines of JSON in until the end of the
// input, and then a line of JSON out for each.
//
// It does what `generate` and `build` in internal/controller/kustomization_controller.go do, on an artifact that is made from
// a checkout as source-controller makes it. It has no cluster: the ConfigMaps and Secrets of `postBuild.substituteFrom` are
// those that the Kustomizations of the same cluster render. Nothing is decrypted.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

// Entry is a Kustomization to build.
type Entry struct {
	// Top is the folder of the checkout that its source is.
	Top string `json:"top"`
	// Ignore is `spec.ignore` of its source.
	Ignore *string `json:"ignore"`
	// Cluster is the name of its cluster. Kustomizations of a cluster share variables.
	Cluster string `json:"cluster"`
	// Strict is whether an unset variable is an error.
	Strict bool `json:"strict"`
	// Object is the Kustomization.
	Object json.RawMessage `json:"object"`

	kustomization kustomizev1.Kustomization
	answer        Answer
}

// Answer is the result of a build.
type Answer struct {
	// Error is the error; empty if the build succeeds.
	Error string `json:"error"`
	// Missing are the ConfigMaps and Secrets whose values are unknown. The build is one with values for all their variables.
	Missing []string `json:"missing"`
	// Kustomizations are the Kustomizations of Flux among the built objects.
	Kustomizations []json.RawMessage `json:"kustomizations"`
}

// maxRounds is the maximum number of builds of a Kustomization. Each uses the variables that the previous round rendered.
const maxRounds = 8

func main() {
	entries := read()
	artifacts := newArtifacts()
	defer artifacts.remove()
	known := variables{}
	for round := 0; round < maxRounds; round++ {
		found := variables{}
		for _, entry := range entries {
			if round == 0 || entry.usesVariables() {
				entry.answer = entry.build(artifacts, known, found)
			} else {
				found.copy(known, entry)
			}
		}
		if found.equal(known) {
			break
		}
		known = found
	}
	out := json.NewEncoder(os.Stdout)
	for _, entry := range entries {
		check(out.Encode(entry.answer))
	}
}

func read() []*Entry {
	var entries []*Entry
	in := bufio.NewReader(os.Stdin)
	decoder := json.NewDecoder(in)
	for decoder.More() {
		entry := &Entry{}
		check(decoder.Decode(entry))
		entries = append(entries, entry)
	}
	return entries
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
