// Command wire is the client-go side of `cargo xtask bench wire`: a shared informer of pods with its
// defaults, which has an index by namespace, in protobuf or in JSON. xtask/wire/protocol.rs describes
// arguments and lines. In addition, the command collects garbage when it reads the line `collect`, and then
// prints `collected`.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// meter counts the events of all handlers, and records the times of the first handler's events.
type meter struct {
	lastPass uint64
	received atomic.Int64
	missing  atomic.Int64
	path     string
	times    []uint64
	done     sync.WaitGroup
}

func (m *meter) observe(handler int, pod *corev1.Pod) {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	must(err)
	m.received.Add(1)
	if handler == 0 && m.path != "" {
		m.times = append(m.times, version, now())
	}
	if version >= m.lastPass && m.missing.Add(-1) == 0 {
		m.done.Done()
	}
}

func (m *meter) writeTimes() {
	if m.path == "" {
		return
	}
	file, err := os.Create(m.path)
	must(err)
	buffered := bufio.NewWriter(file)
	must(binary.Write(buffered, binary.LittleEndian, m.times))
	must(buffered.Flush())
	must(file.Close())
}

func main() {
	if os.Args[3] == "list" {
		must(os.Setenv("KUBE_FEATURE_WatchListClient", "false"))
	}
	objects, handlers := number(os.Args[4]), number(os.Args[5])
	meter := &meter{lastPass: uint64(number(os.Args[6]))}
	if len(os.Args) > 7 {
		meter.path = os.Args[7]
	}
	meter.missing.Store(int64(objects * handlers))
	meter.done.Add(1)

	informer := newInformer(os.Args[1], os.Args[2])
	synced := []cache.InformerSynced{informer.HasSynced}
	for handler := range handlers {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, pod any) { meter.observe(handler, pod.(*corev1.Pod)) },
		})
		must(err)
		synced = append(synced, registration.HasSynced)
	}
	fmt.Println("ready")
	started := make(chan struct{})
	go readLines(started)
	<-started
	stop := make(chan struct{})
	go informer.Run(stop)
	if !cache.WaitForCacheSync(stop, synced...) {
		panic("not synced")
	}
	fmt.Println("synced", len(informer.GetStore().ListKeys()))
	meter.done.Wait()
	meter.writeTimes()
	fmt.Println("done", meter.received.Load())
	select {}
}

func newInformer(server, form string) cache.SharedIndexInformer {
	config := &rest.Config{Host: server}
	if form == "protobuf" {
		// As in Kubernetes' own programs.
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		config.ContentType = "application/vnd.kubernetes.protobuf"
	} else {
		config.ContentType = "application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	must(err)
	// The factory's informers have an index by namespace.
	return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
}

func readLines(started chan struct{}) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "start":
			close(started)
		case "collect":
			// Collects garbage, and returns free memory to the operating system.
			debug.FreeOSMemory()
			fmt.Println("collected")
		}
	}
	os.Exit(0)
}

// now returns the time of the machine's monotonic clock, in nanoseconds. All processes share this
// clock.
func now() uint64 {
	var time unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &time))
	return uint64(time.Nano())
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
