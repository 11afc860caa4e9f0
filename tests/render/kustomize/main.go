// Builds kustomizations in one process: a line of JSON in for each of them, and a line of JSON out.
//
// It does what `kustomize build` does, without starting a process and parsing the schema for each tree.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

type request struct {
	// The folder that is built.
	Root string `json:"root"`
	// Whether files may be loaded from anywhere.
	Unrestricted bool `json:"unrestricted"`
	// Whether objects are left in the order in which they are loaded.
	Unsorted bool `json:"unsorted"`
	// Whether the tree may choose another schema, which kustomize keeps for the rest of the process.
	HasSchema bool `json:"hasSchema"`
}

type answer struct {
	Output *string `json:"output,omitempty"`
	Error  string  `json:"error,omitempty"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var one request
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			panic(err)
		}
		if err := out.Encode(build(one)); err != nil {
			panic(err)
		}
	}
}

func build(one request) (result answer) {
	defer func() {
		if problem := recover(); problem != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	if one.HasSchema {
		openapi.ResetOpenAPI()
		defer openapi.ResetOpenAPI()
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	if one.Unsorted {
		options.Reorder = krusty.ReorderOptionNone
	}
	if one.Unrestricted {
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), one.Root)
	if err != nil {
		return answer{Error: err.Error()}
	}
	text, err := objects.AsYaml()
	if err != nil {
		return answer{Error: err.Error()}
	}
	output := string(text)
	return answer{Output: &output}
}
