package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const keys = 10_000

// inMemory is a source without streaming lists, and reports that to client-go.
type inMemory struct{ *cache.ListWatch }

func (inMemory) IsWatchListSemanticsUnSupported() bool { return true }

type bench struct {
	watcher  *watch.FakeWatcher
	lefts    []atomic.Int64
	done     sync.WaitGroup
	stop     chan struct{}
	informer cache.SharedIndexInformer
	n        int
	version  int
}

// newBench runs an informer with an index by namespace and one by node, and waits until it has synced.
func newBench(handlers int, add func(cache.SharedIndexInformer)) *bench {
	b := &bench{
		// The channel of events is buffered, so that source and reflector run concurrently.
		watcher: watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1000}),
		lefts:   make([]atomic.Int64, handlers),
		stop:    make(chan struct{}),
		version: keys,
	}
	source := inMemory{&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(keys)}}
			for n := range keys {
				list.Items = append(list.Items, *pod(n, n+1, n%nodes))
			}
			return list, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return b.watcher, nil },
	}}
	b.informer = cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, indexers())
	synced := []cache.InformerSynced{b.informer.HasSynced}
	for i := range b.lefts {
		left := &b.lefts[i]
		registration, err := b.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, _ interface{}) {
				if left.Add(-1) == 0 {
					b.done.Done()
				}
			},
		})
		must(err)
		synced = append(synced, registration.HasSynced)
	}
	if add != nil {
		add(b.informer)
	}
	go b.informer.Run(b.stop)
	if !cache.WaitForCacheSync(b.stop, synced...) {
		panic("not synced")
	}
	return b
}

func (b *bench) round(count int) []*corev1.Pod {
	updates := make([]*corev1.Pod, count)
	for i := range updates {
		b.n = (b.n + stride) % keys
		b.version++
		updates[i] = pod(b.n, b.version, b.n%nodes)
	}
	return updates
}

// deliver sends updates to the informer, and returns the time until each handler has received all of them.
func (b *bench) deliver(updates []*corev1.Pod) time.Duration {
	b.done.Add(len(b.lefts))
	for i := range b.lefts {
		b.lefts[i].Store(int64(len(updates)))
	}
	started := time.Now()
	for _, update := range updates {
		b.watcher.Modify(update)
	}
	b.done.Wait()
	return time.Since(started)
}

func benchInformer() {
	for _, c := range []struct{ handlers, updates int }{{1, 200_000}, {10, 200_000}, {100, 50_000}} {
		name := fmt.Sprintf("informer to %d handlers", c.handlers)
		if !wanted(name) {
			continue
		}
		rounds, updates := 3, c.updates
		if quick {
			rounds, updates = 1, updates/5
		}
		b := newBench(c.handlers, nil)
		// The first round is not measured, because the allocator requests memory from the system in it.
		b.deliver(b.round(updates))
		var speeds []float64
		for range rounds {
			taken := b.deliver(b.round(updates))
			speeds = append(speeds, float64(updates)/taken.Seconds())
		}
		close(b.stop)
		report(name, median(speeds), "events/s")
	}
}

type outcome struct{ bytes, speed float64 }

func benchStalled() {
	if !wanted("stalled handler") {
		return
	}
	updates := 1_000_000
	if quick {
		updates /= 10
	}
	without := manyUpdates(newBench(10, nil), updates)
	release := make(chan struct{})
	with := manyUpdates(newBench(9, func(informer cache.SharedIndexInformer) {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, _ interface{}) { <-release },
		})
		must(err)
	}), updates)
	close(release)
	report("stalled handler, memory", (with.bytes-without.bytes)/1e6, "MB")
	report("stalled handler, speed of the nine others", 100*with.speed/without.speed, "% of ten that keep up")
}

// manyUpdates delivers updates in parts, and measures the live memory afterwards.
func manyUpdates(b *bench, updates int) outcome {
	const part = 50_000
	seconds := 0.0
	for range updates / part {
		seconds += b.deliver(b.round(part)).Seconds()
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	close(b.stop)
	return outcome{bytes: float64(memory.HeapAlloc), speed: float64(updates) / seconds}
}
