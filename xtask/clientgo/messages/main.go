// Command messages prints the protobuf messages of Kubernetes' built-in kinds: the numbers, names and types of the fields,
// from the tags of the Go types. The crate kube-messages uses this table to read and write messages without generated
// code.
//
// kube-messages/src/messages.txt has the output of this command for several versions of Kubernetes; kube-messages/src/lib.rs
// explains the format.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// special contains the types whose JSON form is not an object with the fields of the Go type.
var special = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time]():          true,
	reflect.TypeFor[metav1.MicroTime]():     true,
	reflect.TypeFor[metav1.FieldsV1]():      true,
	reflect.TypeFor[apiextensions.JSON]():   true,
	reflect.TypeFor[resource.Quantity]():    true,
	reflect.TypeFor[intstr.IntOrString]():   true,
	reflect.TypeFor[runtime.RawExtension](): true,
}

// choices contains the messages that JSON represents by the value of their last field that is present.
var choices = map[reflect.Type]bool{
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        true,
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       true,
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): true,
}

var described = map[string]string{}

// describeMeta describes the messages that all API groups share.
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
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			panic(err)
		}
	}
	describeMeta()
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		// Skip shared types, options and lists, except DeleteOptions, which clients send in bodies of requests.
		isMeta := strings.HasSuffix(goType.PkgPath(), "/apis/meta/v1")
		isOptions := strings.HasSuffix(gvk.Kind, "Options") || strings.HasSuffix(gvk.Kind, "List")
		if gvk.Version == runtime.APIVersionInternal || (isMeta || isOptions) && gvk.Kind != "DeleteOptions" {
			continue
		}
		described["@"+gvk.GroupVersion().String()+" "+gvk.Kind+" "+name(goType)] = ""
		describe(goType)
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
	header := name(t)
	if choices[t] || t.Kind() == reflect.Slice {
		header += " choice"
	}
	if _, known := described[header]; known || special[t] {
		return
	}
	if t.Kind() == reflect.Slice {
		described[header] = "1 items [" + base(t.Elem()) + "\n"
		return
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) && !choices[t] {
		panic(name(t) + " has a JSON form that this program does not know")
	}
	described[header] = ""
	var lines strings.Builder
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		jsonName, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		code := ""
		inline := jsonName == "" && !choices[t]
		if inline {
			jsonName = "-"
		}
		if choices[t] {
			jsonName = strings.ToLower(field.Name)
		}
		fieldType := field.Type
		switch {
		case fieldType.Kind() == reflect.Pointer:
			code, fieldType = "*", fieldType.Elem()
		case !strings.Contains(options, "omit") && !inline:
			code = "!"
		}
		switch {
		case isList(fieldType):
			code, fieldType = "[", fieldType.Elem()
		case fieldType.Kind() == reflect.Map:
			code, fieldType = "{", fieldType.Elem()
		}
		fmt.Fprintf(&lines, "%s %s %s%s\n", tag[1], jsonName, code, base(fieldType))
	}
	described[header] = lines.String()
}

func base(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i"
	case reflect.Int64, reflect.Int:
		return "l"
	case reflect.Float64:
		return "d"
	case reflect.Slice:
		if isList(t) {
			break
		}
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		describe(t)
		return name(t)
	case reflect.Struct:
		describe(t)
		return name(t)
	case reflect.Pointer:
		return base(t.Elem())
	}
	panic(t.String())
}

// isList returns whether a type is a list of values, and not bytes or a message with a list.
func isList(t reflect.Type) bool {
	_, isMessage := reflect.PointerTo(t).MethodByName("MarshalTo")
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !isMessage
}
