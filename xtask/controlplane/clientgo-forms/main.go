// Command clientgo-forms lists all resources of the API server at the given URL in JSON, protobuf and CBOR, decodes the lists with
// the types of client-go, and prints their differences. Go's own protobuf encoding must equal the server's, byte by byte.
//
// The end-to-end tests of kube-simulator run this program against the simulator.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const metadataAlone = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

var (
	jsonType     = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	protobufType = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	cborType     = cbor.NewSerializer(scheme.Scheme, scheme.Scheme)
)

type server struct {
	client  rest.Interface
	objects int
	differ  int
}

func main() {
	must(metav1.AddMetaToScheme(scheme.Scheme))
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: os.Args[1]})
	must(err)
	lists, err := client.ServerPreferredResources()
	must(err)
	server := server{client: client.RESTClient()}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if strings.Contains(strings.Join(resource.Verbs, " "), "list") {
				server.compare(list.GroupVersion, resource)
			}
		}
	}
	fmt.Println(server.objects, "objects")
	if server.differ > 0 {
		os.Exit(1)
	}
}

// answer is a response body with its decoded list.
type answer struct {
	body   []byte
	object runtime.Object
}

func (s *server) compare(version string, resource metav1.APIResource) {
	path := "/apis/" + version + "/" + resource.Name
	if version == "v1" {
		path = "/api/v1/" + resource.Name
	}
	if gvk := schema.FromAPIVersionAndKind(version, resource.Kind); scheme.Scheme.Recognizes(gvk) {
		s.compareIn(path, "")
		s.compareIn(path, metadataAlone)
	}
}

func (s *server) compareIn(path, form string) {
	asJSON := s.get(path, runtime.ContentTypeJSON, form, jsonType)
	inProtobuf := s.get(path, runtime.ContentTypeProtobuf, form, protobufType)
	inCBOR := s.get(path, runtime.ContentTypeCBOR, form, cborType)
	s.objects += meta.LenList(asJSON.object)
	s.check(path+form+" in protobuf", equality.Semantic.DeepEqual(asJSON.object, inProtobuf.object))
	s.check(path+form+" in CBOR", equality.Semantic.DeepEqual(asJSON.object, inCBOR.object))
	var encoded bytes.Buffer
	must(protobufType.Encode(asJSON.object, &encoded))
	s.check(path+form+" in bytes of protobuf", bytes.Equal(encoded.Bytes(), inProtobuf.body))
}

func (s *server) get(path, mediaType, form string, decoder runtime.Decoder) answer {
	result := s.client.Get().AbsPath(path).SetHeader("Accept", mediaType+form).Do(context.Background())
	var received string
	body, err := result.ContentType(&received).Raw()
	must(err)
	if received != mediaType {
		panic(fmt.Sprintf("%s: requested %s, received %s", path, mediaType, received))
	}
	object, _, err := decoder.Decode(body, nil, nil)
	must(err)
	if list, is := object.(*metav1.PartialObjectMetadataList); is {
		// Protobuf items have no type metadata.
		for i := range list.Items {
			list.Items[i].TypeMeta = metav1.TypeMeta{}
		}
	}
	return answer{body, object}
}

func (s *server) check(what string, same bool) {
	if !same {
		fmt.Println("differs:", what)
		s.differ++
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
