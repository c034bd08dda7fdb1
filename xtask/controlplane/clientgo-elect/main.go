// Command clientgo-elect takes part in a leader election with client-go: on the server of a kubeconfig, for the lease
// NAMESPACE/NAME, as IDENTITY. It prints "leading" when it becomes the leader, and runs until it is killed.
//
// In the end-to-end tests of informer-factory, the electors of this workspace compete with this program.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	kubeconfig, namespace, name, identity := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(err)
	client, err := kubernetes.NewForConfig(config)
	must(err)
	leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: 8 * time.Second,
		RenewDeadline: 6 * time.Second,
		RetryPeriod:   time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				fmt.Println("leading")
				<-ctx.Done()
			},
			OnStoppedLeading: func() {},
		},
	})
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
