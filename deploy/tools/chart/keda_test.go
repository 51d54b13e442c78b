package chart_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kedaModule has KEDA's own definitions of its objects. Only these are read of it; its types would bring hundreds of modules.
const kedaModule = "github.com/kedacore/keda/v2@v2.21.0"

// kedaObject is an object of KEDA's, whose specification kedaSchema checks.
type kedaObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage `json:"spec"`
}

// kedaDefinitions is the folder of KEDA's definitions, in the module cache.
func kedaDefinitions(t *testing.T) string {
	t.Helper()
	get := exec.Command("go", "mod", "download", "-json", kedaModule)
	get.Dir = t.TempDir()
	out, err := get.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(module.Dir, "config", "crd", "bases")
}

// kedaSchema is what KEDA says of the specification of a kind. Members that it does not name are refused.
func kedaSchema(t *testing.T, definitions, kind string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(definitions, "keda.sh_"+strings.ToLower(kind)+"s.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct{ Properties map[string]any }
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	closeObjects(spec)
	again, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(again))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec.json", document); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("spec.json")
}

// closeObjects has objects refuse members that they do not name.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, named := s["properties"].(map[string]any); named && s["additionalProperties"] == nil && s["x-kubernetes-preserve-unknown-fields"] == nil {
			s["additionalProperties"] = false
		}
		for _, below := range s {
			closeObjects(below)
		}
	case []any:
		for _, below := range s {
			closeObjects(below)
		}
	}
}

// What KEDA is given is what KEDA's own definitions allow, and a misspelt member is not.
func TestKEDA(t *testing.T) {
	definitions := kedaDefinitions(t)
	found := of[kedaObject](objects(t, filepath.Join(dir, "ci", "keda.yaml")))
	if len(found) != 2 {
		t.Fatalf("%d objects of KEDA's", len(found))
	}
	for _, o := range found {
		schema := kedaSchema(t, definitions, o.Kind)
		for text, want := range map[string]bool{string(o.Spec): true, `{"misspelt":1,` + string(o.Spec[1:]): false} {
			spec, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(spec); (err == nil) != want {
				t.Errorf("%s %s: %v", o.Kind, text, err)
			}
		}
	}
}
