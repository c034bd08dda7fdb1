package main

import "k8s.io/client-go/tools/cache"

func benchQueues() {
	objects := make([]interface{}, 1001)
	for n := range objects {
		objects[n] = pod(n, n+1, n%nodes)
	}
	queues := map[string]func() cache.Queue{
		"DeltaFIFO": func() cache.Queue {
			return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
		},
		"RealFIFO": func() cache.Queue { return newRealFIFO() },
	}
	for _, kind := range []string{"DeltaFIFO", "RealFIFO"} {
		if name := kind + ", add and pop at depth 1"; wanted(name) {
			report(name, perCall(timed(addAndPop(queues[kind](), objects[:1]))), "ns")
		}
		if name := kind + ", add and pop at depth 1,000"; wanted(name) {
			queue := queues[kind]()
			for _, obj := range objects[1:] {
				must(queue.Add(obj))
			}
			report(name, perCall(timed(addAndPop(queue, objects))), "ns")
		}
	}
	if name := "RealFIFO, batches of 1,000, per add"; wanted(name) {
		report(name, perCall(timed(addAndPopBatch(newRealFIFO(), objects[1:]))), "ns")
	}
}

func newRealFIFO() *cache.RealFIFO {
	return cache.NewRealFIFO(cache.MetaNamespaceKeyFunc, cache.NewStore(cache.MetaNamespaceKeyFunc), nil)
}

func addAndPop(queue cache.Queue, objects []interface{}) func(int) {
	next := 0
	ignore := func(interface{}, bool) error { return nil }
	return func(count int) {
		for range count {
			must(queue.Add(objects[next]))
			next = (next + 1) % len(objects)
			_, err := queue.Pop(ignore)
			must(err)
		}
	}
}

func addAndPopBatch(queue *cache.RealFIFO, objects []interface{}) func(int) {
	left := 0
	batch := func(deltas []cache.Delta, _ bool) error { left -= len(deltas); return nil }
	single := func(interface{}, bool) error { left--; return nil }
	return func(count int) {
		for done := 0; done < count; done += len(objects) {
			for _, obj := range objects {
				must(queue.Add(obj))
			}
			for left = len(objects); left > 0; {
				must(queue.PopBatch(batch, single))
			}
		}
	}
}
