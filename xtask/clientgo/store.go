package main

import (
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

const pods = 100_000

var sink interface{}

type filled struct {
	cache.Indexer
	keys    []string
	version int
}

func newFilled() *filled {
	store := &filled{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers()), version: pods}
	list := make([]interface{}, pods)
	for n := range list {
		list[n] = pod(n, n+1, n%nodes)
		store.keys = append(store.keys, cache.MetaObjectToName(list[n].(*corev1.Pod)).String())
	}
	must(store.Replace(list, fmt.Sprint(pods)))
	return store
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func benchStore() {
	cases := []struct {
		name  string
		unit  string
		scale float64
		run   func(*filled, int) time.Duration
	}{
		{"get by key, random", "ns", 1, func(f *filled, n int) time.Duration { return f.get(n, stride) }},
		{"get by key, sequential", "ns", 1, func(f *filled, n int) time.Duration { return f.get(n, 1) }},
		{"by_index with 500 results", "µs", 1e3, (*filled).byIndex},
		{"list of 100,000", "ms", 1e6, (*filled).list},
		{"update, same index value", "µs", 1e3, func(f *filled, n int) time.Duration { return f.update(n, 0) }},
		{"update, other index value", "µs", 1e3, func(f *filled, n int) time.Duration { return f.update(n, 1) }},
		{"replace of 100,000, all changed", "ms", 1e6, func(f *filled, n int) time.Duration { return f.replace(n, true) }},
		{"replace of 100,000, none changed", "ms", 1e6, func(f *filled, n int) time.Duration { return f.replace(n, false) }},
	}
	var store *filled
	for _, c := range cases {
		if wanted(c.name) {
			if store == nil {
				store = newFilled()
			}
			report(c.name, perCall(func(n int) time.Duration { return c.run(store, n) })/c.scale, c.unit)
		}
	}
	if name := "longest stall of a reader during a replace"; wanted(name) {
		if store == nil {
			store = newFilled()
		}
		report(name, float64(store.stall().Nanoseconds())/1e6, "ms")
	}
}

func (f *filled) get(count, step int) time.Duration {
	position := 0
	started := time.Now()
	for range count {
		position = (position + step) % len(f.keys)
		sink, _, _ = f.GetByKey(f.keys[position])
	}
	return time.Since(started)
}

func (f *filled) byIndex(count int) time.Duration {
	names := make([]string, nodes)
	for n := range names {
		names[n] = fmt.Sprintf("node-%d", n)
	}
	sum := 0
	started := time.Now()
	for n := range count {
		found, err := f.ByIndex("node", names[n%nodes])
		must(err)
		for _, obj := range found {
			sum += len(obj.(*corev1.Pod).Name)
		}
	}
	taken := time.Since(started)
	sink = sum
	return taken
}

func (f *filled) list(count int) time.Duration {
	started := time.Now()
	for range count {
		sink = f.List()
	}
	return time.Since(started)
}

func (f *filled) update(count, moveNode int) time.Duration {
	n, node := 0, 0
	taken := time.Duration(0)
	for done := 0; done < count; {
		// Create the objects outside the measurement, a thousand at a time.
		objects := make([]*corev1.Pod, min(1000, count-done))
		for i := range objects {
			n = (n + stride) % pods
			node = (node + moveNode) % nodes
			f.version++
			objects[i] = pod(n, f.version, (n+node)%nodes)
		}
		started := time.Now()
		for _, object := range objects {
			must(f.Update(object))
		}
		taken += time.Since(started)
		done += len(objects)
	}
	return taken
}

func (f *filled) replace(count int, changed bool) time.Duration {
	taken := time.Duration(0)
	for range count {
		list := f.next(changed)
		started := time.Now()
		must(f.Replace(list, fmt.Sprint(f.version)))
		taken += time.Since(started)
	}
	return taken
}

// next returns a list of all pods: new versions if changed, else copies of the stored ones.
func (f *filled) next(changed bool) []interface{} {
	if !changed {
		list := f.List()
		for i, obj := range list {
			list[i] = obj.(*corev1.Pod).DeepCopy()
		}
		return list
	}
	f.version++
	list := make([]interface{}, pods)
	for n := range list {
		list[n] = pod(n, f.version, n%nodes)
	}
	return list
}

// stall returns the longest wait of a reader during five replaces.
func (f *filled) stall() time.Duration {
	var stop atomic.Bool
	worst := make(chan time.Duration)
	go func() {
		longest := time.Duration(0)
		for !stop.Load() {
			started := time.Now()
			_, _, _ = f.GetByKey(f.keys[0])
			longest = max(longest, time.Since(started))
		}
		worst <- longest
	}()
	for range 5 {
		must(f.Replace(f.next(true), fmt.Sprint(f.version)))
	}
	stop.Store(true)
	return <-worst
}
