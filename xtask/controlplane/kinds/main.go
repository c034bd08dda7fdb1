// Prints the facts about Kubernetes' built-in kinds that discovery does not contain, as JSON: the columns of tables,
// and the fields of field selectors. `cargo xtask codegen --refresh` reads them.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"reflect"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiservices "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	printers "k8s.io/kubernetes/pkg/printers/internalversion"
)

type kind struct {
	Group   string   `json:"group"`
	Version string   `json:"version"`
	Kind    string   `json:"kind"`
	Columns []column `json:"columns"`
	Fields  []string `json:"fields"`
}

type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Priority int32  `json:"priority"`
}

// recorder records the columns of each internal type.
type recorder map[reflect.Type][]column

func (r recorder) TableHandler(definitions []metav1.TableColumnDefinition, print interface{}) error {
	r[reflect.TypeOf(print).In(0)] = described(definitions)
	return nil
}

func described(definitions []metav1.TableColumnDefinition) []column {
	var columns []column
	for _, d := range definitions {
		columns = append(columns, column{d.Name, d.Type, d.Priority})
	}
	return columns
}

// apiService returns the facts about a kind that the aggregator serves.
func apiService() kind {
	table, err := (&apiservices.REST{}).ConvertToTable(context.Background(), &apiregistration.APIServiceList{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return kind{"apiregistration.k8s.io", "v1", "APIService", described(table.ColumnDefinitions), []string{}}
}

func main() {
	columns := recorder{}
	printers.AddHandlers(columns)
	scheme := legacyscheme.Scheme
	kinds := []kind{apiService()}
	for gvk, external := range scheme.AllKnownTypes() {
		internal := gvk.GroupKind().WithVersion(runtime.APIVersionInternal)
		if _, isObject := external.FieldByName("ObjectMeta"); !isObject || gvk == internal || !scheme.Recognizes(internal) {
			continue
		}
		object, err := scheme.New(internal)
		if err != nil {
			log.Fatal(err)
		}
		fields := []string{}
		for _, path := range append(paths(external, "", 3), "status.successful") {
			_, _, err := scheme.ConvertFieldLabel(gvk, path, "")
			if err == nil && !strings.HasPrefix(path, "metadata.") {
				fields = append(fields, path)
			}
		}
		sort.Strings(fields)
		shown := columns[reflect.TypeOf(object)]
		// The storage of this kind does not use its printer.
		if gvk.Kind == "CSIStorageCapacity" {
			shown = nil
		}
		kinds = append(kinds, kind{gvk.Group, gvk.Version, gvk.Kind, shown, fields})
	}
	sort.Slice(kinds, func(i, j int) bool {
		a, b := kinds[i], kinds[j]
		return strings.Join([]string{a.Group, a.Version, a.Kind}, " ") < strings.Join([]string{b.Group, b.Version, b.Kind}, " ")
	})
	if err := json.NewEncoder(os.Stdout).Encode(kinds); err != nil {
		log.Fatal(err)
	}
}

// paths returns the JSON paths of all fields of a type, down to a depth.
func paths(t reflect.Type, prefix string, depth int) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth == 0 {
		return nil
	}
	var all []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		all = append(all, prefix+name)
		all = append(all, paths(t.Field(i).Type, prefix+name+".", depth-1)...)
	}
	return all
}
