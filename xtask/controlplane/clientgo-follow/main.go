// Command clientgo-follow runs a shared informer of client-go, with its defaults, on the pods of a kubeconfig's
// server. It requests the given media types, and prints the handler's replica after each event: sorted keys with
// resource versions.
//
// The end-to-end tests of kube-simulator run this program against the simulator.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type replica map[string]string

func (r replica) set(pod *corev1.Pod) {
	r[pod.Namespace+"/"+pod.Name] = pod.ResourceVersion
	r.print()
}

func (r replica) print() {
	states := make([]string, 0, len(r))
	for key, version := range r {
		states = append(states, key+"@"+version)
	}
	sort.Strings(states)
	fmt.Println(strings.Join(states, " "))
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	config.AcceptContentTypes = os.Args[2]
	config.ContentType = strings.Split(os.Args[2], ",")[0]
	client, err := kubernetes.NewForConfig(config)
	must(err)
	factory := informers.NewSharedInformerFactory(client, 0)
	seen := replica{}
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen.set(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { seen.set(obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			must(err)
			delete(seen, key)
			seen.print()
		},
	})
	must(err)
	factory.Start(make(chan struct{}))
	select {}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
