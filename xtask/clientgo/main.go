// Command clientgobench measures client-go in the benchmark cases of this workspace, with the same objects in
// the same order. It prints a line per case, `bench: CASE = VALUE UNIT`, for `cargo xtask bench`, which also
// builds it.
//
// Arguments: `--quick` for a short run; each other argument selects the cases whose name contains it.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const (
	nodes  = 200
	stride = 7919
)

var (
	quick bool
	words []string
)

func main() {
	for _, arg := range os.Args[1:] {
		if arg == "--quick" {
			quick = true
		} else {
			words = append(words, arg)
		}
	}
	benchStore()
	benchQueues()
	benchWorkqueue()
	benchInformer()
	benchStalled()
}

func wanted(name string) bool {
	for _, word := range words {
		if strings.Contains(name, word) {
			return true
		}
	}
	return len(words) == 0
}

func report(name string, value float64, unit string) {
	fmt.Printf("bench: %s = %.3f %s\n", name, value, unit)
}

// perCall returns the nanoseconds per call. The function run makes n calls and returns their time without its setup.
func perCall(run func(n int) time.Duration) float64 {
	least := time.Second
	if quick {
		least = 50 * time.Millisecond
	}
	n := 1
	for {
		taken := run(n)
		if taken >= least {
			return float64(taken.Nanoseconds()) / float64(n)
		}
		if taken < least/100 {
			n *= 50
		} else {
			n = int(float64(n)*1.2*float64(least)/float64(taken)) + 1
		}
	}
}

func timed(run func(n int)) func(int) time.Duration {
	return func(n int) time.Duration {
		started := time.Now()
		run(n)
		return time.Since(started)
	}
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// pod returns a pod with few fields.
func pod(n, version, node int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       fmt.Sprintf("namespace-%d", n%50),
			Name:            fmt.Sprintf("deployment-7d9f8b6c5d-%06d", n),
			UID:             types.UID(fmt.Sprintf("0f7e3c1a-9b2d-4c5e-8f60-%012x", n)),
			ResourceVersion: fmt.Sprint(version),
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", node)},
	}
}

func indexers() cache.Indexers {
	return cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node": func(obj interface{}) ([]string, error) {
			return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
		},
	}
}
