package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	securejoin "github.com/cyphar/filepath-securejoin"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generator "github.com/fluxcd/pkg/kustomize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
)

// unset matches the error for an unset variable.
var unset = regexp.MustCompile(`variable not set \(strict mode\): "([^"]*)"`)

func (entry *Entry) usesVariables() bool {
	postBuild := entry.kustomization.Spec.PostBuild
	return postBuild != nil && len(postBuild.SubstituteFrom) > 0
}

func (entry *Entry) build(artifacts *artifacts, known, found variables) (answer Answer) {
	defer func() {
		if problem := recover(); problem != nil {
			answer.Error = fmt.Sprintf("panic: %v", problem)
		}
	}()
	if err := json.Unmarshal(entry.Object, &entry.kustomization); err != nil {
		return Answer{Error: err.Error()}
	}
	reader := &reader{known: known, cluster: entry.Cluster}
	objects, err := entry.objects(artifacts.of(entry.Top, entry.Ignore), reader)
	answer.Missing = reader.missing
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	for _, object := range objects {
		found.add(entry, object)
		if object.GetKind() == kustomizev1.KustomizationKind && object.GroupVersionKind().Group == kustomizev1.GroupVersion.Group {
			text, err := json.Marshal(object)
			check(err)
			answer.Kustomizations = append(answer.Kustomizations, text)
		}
	}
	return answer
}

// objects returns what the controller applies.
func (entry *Entry) objects(workDir string, reader *reader) ([]*unstructured.Unstructured, error) {
	dirPath, err := securejoin.SecureJoin(workDir, entry.kustomization.Spec.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dirPath); err != nil {
		return nil, fmt.Errorf("kustomization path not found: %w", err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry.kustomization)
	if err != nil {
		return nil, err
	}
	object := unstructured.Unstructured{Object: fields}
	action, err := generator.NewGenerator(workDir, object).WriteFile(dirPath, generator.WithSaveOriginalKustomization())
	defer func() { check(generator.CleanDirectory(dirPath, action)) }()
	if err != nil {
		return nil, err
	}
	built, err := generator.SecureBuild(workDir, dirPath, true)
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	text, err := entry.substituted(built, object, reader)
	if err != nil {
		return nil, err
	}
	return ssautil.ReadObjects(bytes.NewReader(text))
}

// substituted replaces the variables in all objects.
func (entry *Entry) substituted(built resmap.ResMap, object unstructured.Unstructured, reader *reader) ([]byte, error) {
	for _, res := range built.Resources() {
		if res.GetName() == "" || res.GetKind() == "" || res.GetApiVersion() == "" {
			return nil, fmt.Errorf("failed to decode Kubernetes apiVersion, kind and name from: %v", res.String())
		}
		if entry.kustomization.Spec.PostBuild == nil {
			continue
		}
		changed, err := entry.substitute(res, object, reader)
		if err != nil {
			return nil, fmt.Errorf("post build failed for '%s/%s': %w", res.GetGvk(), res.GetName(), err)
		}
		if changed != nil {
			if _, err = built.Replace(res); err != nil {
				return nil, err
			}
		}
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	return text, nil
}

// substitute replaces the variables in an object. If a ConfigMap or Secret is unknown, each unset variable gets a value.
func (entry *Entry) substitute(res *resource.Resource, object unstructured.Unstructured, reader *reader) (*resource.Resource, error) {
	always := entry.kustomization.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways
	original := res.DeepCopy()
	for {
		changed, err := generator.SubstituteVariables(context.Background(), reader, object, res,
			generator.SubstituteWithStrict(entry.Strict || len(reader.missing) > 0), generator.SubstituteWithAlways(always))
		if err == nil || len(reader.missing) == 0 {
			return changed, err
		}
		name := unset.FindStringSubmatch(err.Error())
		if name == nil || reader.assumed[name[1]] != "" {
			return nil, err
		}
		reader.assume(name[1])
		res.ResetRNode(original)
	}
}
