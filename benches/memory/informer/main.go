// Command informer holds objects as an unstructured informer of client-go does, and prints what that takes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/clientcmd"
)

type report struct {
	Objects int    `json:"objects"`
	Heap    uint64 `json:"heap"`
	Status  string `json:"status"`
}

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run lists and watches resources, each written group/version/plural, until all are listed.
func run(kubeconfig string, resources []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stores []func() int
	for _, resource := range resources {
		parts := strings.Split(resource, "/")
		informer := factory.ForResource(schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}).Informer()
		stores = append(stores, func() int { return len(informer.GetStore().ListKeys()) })
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v is not listed", resource)
		}
	}
	debug.FreeOSMemory()
	time.Sleep(time.Second)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	result := report{Heap: memory.HeapAlloc, Status: string(status)}
	for _, count := range stores {
		result.Objects += count()
	}
	runtime.KeepAlive(factory)
	return json.NewEncoder(os.Stdout).Encode(result)
}
