// Command clientgo-samples prints objects of each built-in kind with random content: one line per object, with its JSON and its
// protobuf in base64, separated by a tab. The serializers of an API server encode both. The arguments are the number of
// objects of each kind, and a seed.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"log"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"
)

func main() {
	count, seed := number(1), number(2)
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme} {
		check(add(scheme.Scheme))
	}
	depth := 0
	own := func(runtimeserializer.CodecFactory) []interface{} {
		return []interface{}{
			func(raw *runtime.RawExtension, c randfill.Continue) { raw.Raw = document(c) },
			func(raw *apiextensions.JSON, c randfill.Continue) { raw.Raw = document(c) },
			func(fields *metav1.FieldsV1, c randfill.Continue) { fields.Raw = document(c) },
			func(props *apiextensions.JSONSchemaProps, c randfill.Continue) {
				if depth++; depth <= 2 {
					c.FillNoCustom(props)
				} else {
					props.Title = c.String(0)
				}
				depth--
			},
			// The next three types contain one of two values, and their JSON form is only that value.
			func(choice *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) {
				if choice.Allows = true; c.Bool() {
					choice.Schema = &apiextensions.JSONSchemaProps{}
					c.Fill(choice.Schema)
				}
			},
			func(choice *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
				if choice.Schema = (&apiextensions.JSONSchemaProps{Title: c.String(0)}); c.Bool() {
					choice.Schema, choice.JSONSchemas = nil, []apiextensions.JSONSchemaProps{{Title: c.String(0)}, {ID: "b"}}
				}
			},
			func(choice *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) {
				if choice.Schema = (&apiextensions.JSONSchemaProps{Title: c.String(0)}); c.Bool() {
					choice.Schema, choice.Property = nil, []string{c.String(0), "b"}
				}
			},
		}
	}
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own)
	filler := fuzzer.FuzzerFor(funcs, rand.NewSource(int64(seed)), scheme.Codecs)
	jsonType := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	protobufType := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	out := bufio.NewWriter(os.Stdout)
	for _, kind := range kinds() {
		for range count {
			object, err := scheme.Scheme.New(kind)
			check(err)
			filler.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(kind)
			var stored bytes.Buffer
			check(protobufType.Encode(object, &stored))
			// A server reads its objects from etcd, which stores them in protobuf.
			object, _, err = protobufType.Decode(stored.Bytes(), nil, nil)
			check(err)
			var asJSON, asProtobuf strings.Builder
			check(jsonType.Encode(object, &asJSON))
			check(protobufType.Encode(object, &asProtobuf))
			encoded := base64.StdEncoding.EncodeToString([]byte(asProtobuf.String()))
			fmt.Fprintf(out, "%s\t%s\n", strings.TrimSpace(asJSON.String()), encoded)
		}
	}
	check(out.Flush())
}

// kinds returns the kinds of objects.
func kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		_, isObject := goType.FieldByName("ObjectMeta")
		if isObject && kind.Version != runtime.APIVersionInternal {
			kinds = append(kinds, kind)
		}
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	return kinds
}

// document returns a small JSON document.
func document(c randfill.Continue) []byte {
	documents := []string{`{"a":[1,-2.5,"b",null,true],"c":{}}`, `"text"`, `7`, `[]`, `{"f:metadata":{"f:labels":{".":{}}}}`}
	return []byte(documents[c.Intn(len(documents))])
}

func number(argument int) int {
	value, err := strconv.Atoi(os.Args[argument])
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
