// Prints the parts of kustomize's built-in schema that merging needs: src/kustomize/schema/built_in.txt.
// Run it with `make schema`; the version of kustomize's library is the one in go.mod.
package main

import (
	"fmt"
	"log"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

const refPrefix = "#/definitions/"

var definitions = openapi.Schema().Definitions

func main() {
	fmt.Print(`# Which lists strategic merge patches merge by keys, and how they are reached: the OpenAPI schema that kustomize has
# built in, without everything else. Made by ` + "`make schema`" + `; do not edit.
#
# kind APIVERSION KIND DEFINITION   a kind, and its definition, or - if no such list is reached from it
# type DEFINITION                   followed by its fields:
#   FIELD object DEFINITION
#   FIELD values DEFINITION         a mapping of these
#   FIELD list DEFINITION           a list that is replaced
#   FIELD merge KEYS DEFINITION     a list that is merged by keys, or by its values if KEYS is -
`)
	relevant := relevantDefinitions()
	for _, line := range kinds(relevant) {
		fmt.Println(line)
	}
	for _, name := range sorted(relevant) {
		fmt.Println("type", name)
		for _, field := range sorted(definitions[name].Properties) {
			if line := describe(definitions[name].Properties[field], relevant); line != "" {
				fmt.Println(" ", field, line)
			}
		}
	}
}

// Returns the definitions that contain, directly or indirectly, a list with a merge strategy.
func relevantDefinitions() map[string]bool {
	relevant := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for name, definition := range definitions {
			for _, property := range definition.Properties {
				if !relevant[name] && describe(property, relevant) != "" {
					relevant[name], changed = true, true
				}
			}
		}
	}
	return relevant
}

func describe(property spec.Schema, relevant map[string]bool) string {
	if len(property.Properties) > 0 {
		log.Fatal("a definition within a definition")
	}
	schema := openapi.ResourceSchema{Schema: &property}
	strategy, keys := schema.PatchStrategyAndKeyList()
	if property.Items != nil {
		items := target(*property.Items.Schema, relevant)
		if slices.Contains(strings.Split(strategy, ","), "merge") {
			return "merge " + orDash(strings.Join(keys, ",")) + " " + orDash(items)
		}
		return prefixed("list ", items)
	}
	if property.AdditionalProperties != nil && property.AdditionalProperties.Schema != nil {
		return prefixed("values ", target(*property.AdditionalProperties.Schema, relevant))
	}
	return prefixed("object ", target(property, relevant))
}

// Returns the definition that a schema refers to, if it contains a list with a merge strategy.
func target(schema spec.Schema, relevant map[string]bool) string {
	name := strings.TrimPrefix(schema.Ref.String(), refPrefix)
	if relevant[name] {
		return name
	}
	return ""
}

func kinds(relevant map[string]bool) []string {
	var lines []string
	for name, definition := range definitions {
		groups, _ := definition.Extensions["x-kubernetes-group-version-kind"].([]interface{})
		for _, group := range groups {
			kind := group.(map[string]interface{})
			apiVersion := kind["version"].(string)
			if kind["group"] != "" {
				apiVersion = kind["group"].(string) + "/" + apiVersion
			}
			if !relevant[name] {
				name = "-"
			}
			lines = append(lines, fmt.Sprintf("kind %s %s %s", apiVersion, kind["kind"], name))
		}
	}
	slices.Sort(lines)
	return lines
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func sorted[V any](entries map[string]V) []string {
	var names []string
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
