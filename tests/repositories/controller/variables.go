package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// name is the name of a ConfigMap or Secret.
type name struct{ cluster, kind, namespace, name string }

// source is the data of a ConfigMap or Secret.
type source struct {
	entry *Entry
	data  map[string]string
	// encrypted is whether SOPS encrypted it.
	encrypted bool
}

// variables are the ConfigMaps and Secrets of all clusters.
type variables map[name]source

// add adds the data of a ConfigMap or Secret.
func (found variables) add(entry *Entry, object *unstructured.Unstructured) {
	kind := object.GetKind()
	if object.GetAPIVersion() != "v1" || kind != "ConfigMap" && kind != "Secret" {
		return
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	if data == nil {
		data = map[string]string{}
	}
	if kind == "Secret" {
		for key, value := range data {
			text, _ := base64.StdEncoding.DecodeString(value)
			data[key] = string(text)
		}
		plain, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
		for key, value := range plain {
			data[key] = value
		}
	}
	_, encrypted := object.Object["sops"]
	found[name{entry.Cluster, kind, object.GetNamespace(), object.GetName()}] = source{entry, data, encrypted}
}

// copy adds what an entry rendered before.
func (found variables) copy(known variables, entry *Entry) {
	for name, source := range known {
		if source.entry == entry {
			found[name] = source
		}
	}
}

func (found variables) equal(known variables) bool {
	return reflect.DeepEqual(found, known)
}

// reader reads ConfigMaps and Secrets like a client of the API server.
type reader struct {
	client.Client
	known   variables
	cluster string
	// missing are the names of those whose values are unknown.
	missing []string
	// assumed are variables that the unknown ones are assumed to have.
	assumed map[string]string
}

func (reader *reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		object.Data = reader.data("ConfigMap", key)
	case *corev1.Secret:
		object.Data = map[string][]byte{}
		for key, value := range reader.data("Secret", key) {
			object.Data[key] = []byte(value)
		}
	default:
		return fmt.Errorf("%T is not read", object)
	}
	return nil
}

func (reader *reader) data(kind string, key client.ObjectKey) map[string]string {
	source, ok := reader.known[name{reader.cluster, kind, key.Namespace, key.Name}]
	if ok && !source.encrypted {
		return source.data
	}
	if text := kind + " " + key.String(); !slices.Contains(reader.missing, text) {
		reader.missing = append(reader.missing, text)
	}
	return reader.assumed
}

// assume adds a variable to the unknown ConfigMaps and Secrets.
func (reader *reader) assume(variable string) {
	if reader.assumed == nil {
		reader.assumed = map[string]string{}
	}
	reader.assumed[variable] = "assumed"
}
