// Command messages prints the protobuf messages of Kubernetes' built-in kinds: the numbers, names and types of the fields,
// from the tags of the Go types. With them, messages are read and written without generated code.
//
// kube-simulator/src/http/encoding/protobuf/messages.txt is its output; `kube-simulator/src/http/encoding/protobuf/messages.rs` explains the format.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

var versions = []string{
	"v1",
	"admissionregistration.k8s.io/v1",
	"apps/v1",
	"autoscaling/v1",
	"autoscaling/v2",
	"batch/v1",
	"coordination.k8s.io/v1",
	"discovery.k8s.io/v1",
	"events.k8s.io/v1",
	"flowcontrol.apiserver.k8s.io/v1",
	"networking.k8s.io/v1",
	"node.k8s.io/v1",
	"policy/v1",
	"rbac.authorization.k8s.io/v1",
	"resource.k8s.io/v1",
	"scheduling.k8s.io/v1",
	"storage.k8s.io/v1",
}

// Decoded by hand, because their JSON differs from their fields.
var special = map[string]bool{
	"meta.v1.Time": true, "meta.v1.MicroTime": true, "meta.v1.FieldsV1": true,
	"api.resource.Quantity": true, "util.intstr.IntOrString": true, "pkg.runtime.RawExtension": true,
}

var described = map[string]string{}

// describeMeta prints the messages that all versions share, and the metadata of lists.
func describeMeta() {
	types := map[string]any{
		"@v1 Status":                                metav1.Status{},
		"@meta.k8s.io/v1 PartialObjectMetadata":     metav1.PartialObjectMetadata{},
		"@meta.k8s.io/v1 PartialObjectMetadataList": metav1.PartialObjectMetadataList{},
	}
	for line, value := range types {
		goType := reflect.TypeOf(value)
		described[line+" "+name(goType)] = ""
		describe(goType)
	}
}

func main() {
	describeMeta()
	for _, version := range versions {
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			panic(err)
		}
		for kind, goType := range scheme.Scheme.KnownTypes(gv) {
			// Skips the shared types, options and lists. Clients send only DeleteOptions of them to a server.
			isMeta := strings.HasSuffix(goType.PkgPath(), "/apis/meta/v1")
			isOptions := strings.HasSuffix(kind, "Options") || strings.HasSuffix(kind, "List")
			if (isMeta || isOptions) && kind != "DeleteOptions" {
				continue
			}
			described["@"+version+" "+kind+" "+name(goType)] = ""
			describe(goType)
		}
	}
	keys := make([]string, 0, len(described))
	for key := range described {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		fmt.Print(key, "\n", described[key])
	}
}

// name shortens the path of a type: k8s.io/api/core/v1.Pod is core.v1.Pod.
func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(append(parts[len(parts)-2:], t.Name()), ".")
}

func describe(t reflect.Type) {
	if _, known := described[name(t)]; known || special[name(t)] {
		return
	}
	described[name(t)] = ""
	var lines strings.Builder
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		json := strings.Split(field.Tag.Get("json"), ",")
		options := strings.Join(json[1:], ",")
		jsonName := json[0]
		code := ""
		inline := jsonName == ""
		if inline {
			jsonName = "-"
		}
		fieldType := field.Type
		switch {
		case fieldType.Kind() == reflect.Pointer:
			code, fieldType = "*", fieldType.Elem()
		case !strings.Contains(options, "omit") && !inline:
			code = "!"
		}
		switch {
		case fieldType.Kind() == reflect.Slice && fieldType.Elem().Kind() != reflect.Uint8:
			code, fieldType = "[", fieldType.Elem()
		case fieldType.Kind() == reflect.Map:
			code, fieldType = "{", fieldType.Elem()
		}
		fmt.Fprintf(&lines, "%s %s %s%s\n", tag[1], jsonName, code, base(fieldType))
	}
	described[name(t)] = lines.String()
}

func base(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "i"
	case reflect.Float64:
		return "d"
	case reflect.Slice:
		return "y"
	case reflect.Struct:
		describe(t)
		return name(t)
	case reflect.Pointer:
		return base(t.Elem())
	}
	panic(t.String())
}
