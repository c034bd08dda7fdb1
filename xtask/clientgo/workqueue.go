package main

import (
	"fmt"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// The number of keys that pass from one goroutine to the other in one measurement.
const round = 100_000

func benchWorkqueue() {
	keys := workKeys(1001)
	for _, depth := range []int{0, 1000} {
		name := "workqueue, add, get and done at depth 1"
		if depth > 0 {
			name = "workqueue, add, get and done at depth 1,000"
		}
		if wanted(name) {
			queue := workqueue.NewTyped[string]()
			for _, key := range keys[:depth] {
				queue.Add(key)
			}
			// Begin with the first key that is not queued, because adding a queued key has no effect.
			next := depth
			report(name, perCall(timed(func(count int) {
				for range count {
					queue.Add(keys[next])
					next = (next + 1) % len(keys)
					key, _ := queue.Get()
					queue.Done(key)
				}
			})), "ns")
		}
	}
	if name := "workqueue, add, get, forget and done"; wanted(name) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		next := 0
		report(name, perCall(timed(func(count int) {
			for range count {
				next = (next + 1) % len(keys)
				queue.Add(keys[next])
				key, _ := queue.Get()
				queue.Forget(key)
				queue.Done(key)
			}
		})), "ns")
		queue.ShutDown()
	}
	if name := "workqueue, add on one goroutine, get and done on another"; wanted(name) {
		keys := workKeys(round)
		report(name, perCall(timed(betweenTwo(workqueue.NewTyped[string](), keys))), "ns")
	}
}

func betweenTwo(queue workqueue.TypedInterface[string], keys []string) func(int) {
	return func(count int) {
		for left := count; left > 0; {
			some := min(left, len(keys))
			left -= some
			var worker sync.WaitGroup
			worker.Add(1)
			go func() {
				defer worker.Done()
				for range some {
					key, _ := queue.Get()
					queue.Done(key)
				}
			}()
			for _, key := range keys[:some] {
				queue.Add(key)
			}
			worker.Wait()
		}
	}
}

func workKeys(count int) []string {
	keys := make([]string, count)
	for n := range keys {
		keys[n] = fmt.Sprintf("namespace-%d/deployment-7d9f8b6c5d-%06d", n%50, n)
	}
	return keys
}
