package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/feedwater-io/feedwater/deploy/tools/chart"
)

const (
	dir       = "../../helm/feedwater"
	namespace = "prod"
)

// kinds are those that the chart makes, but KEDA's, each with a new object of its type.
var kinds = map[string]func() any{
	"v1 ConfigMap":                             func() any { return new(corev1.ConfigMap) },
	"v1 Service":                               func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                        func() any { return new(corev1.ServiceAccount) },
	"apps/v1 Deployment":                       func() any { return new(appsv1.Deployment) },
	"batch/v1 Job":                             func() any { return new(batchv1.Job) },
	"networking.k8s.io/v1 NetworkPolicy":       func() any { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":            func() any { return new(policyv1.PodDisruptionBudget) },
	"rbac.authorization.k8s.io/v1 Role":        func() any { return new(rbacv1.Role) },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() any { return new(rbacv1.RoleBinding) },
	"monitoring.coreos.com/v1 PodMonitor":      func() any { return new(monitoringv1.PodMonitor) },
	"keda.sh/v1alpha1 ScaledObject":            func() any { return new(kedaObject) },
	"keda.sh/v1alpha1 TriggerAuthentication":   func() any { return new(kedaObject) },
}

// decode reads an object into its type; a member that the type has not is an error.
func decode(object []byte) (any, error) {
	var of metav1.TypeMeta
	if err := json.Unmarshal(object, &of); err != nil {
		return nil, err
	}
	make := kinds[of.APIVersion+" "+of.Kind]
	if make == nil {
		return nil, fmt.Errorf("no type for %s %s", of.APIVersion, of.Kind)
	}
	into := make()
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, fmt.Errorf("%s: %w", of.Kind, err)
	}
	return into, nil
}

// valueFiles are those of the chart's folder ci.
func valueFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ci", "*.yaml"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%q, %v", files, err)
	}
	return files
}

// objects are what a file of values comes to.
func objects(t *testing.T, file string) []any {
	t.Helper()
	values, err := chart.ReadValues(file)
	if err != nil {
		t.Fatal(err)
	}
	return rendered(t, chart.Release{Name: "feedwater", Namespace: namespace, Values: values})
}

// rendered are the objects of a release.
func rendered(t *testing.T, r chart.Release) []any {
	t.Helper()
	texts, err := chart.Render(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	return decodeAll(t, texts)
}

// decodeAll are the objects of rendered templates; one that does not fit its type fails the test.
func decodeAll(t *testing.T, texts map[string]string) (all []any) {
	t.Helper()
	documents, err := chart.Documents(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		o, err := decode(d)
		if err != nil {
			t.Errorf("%v\n%s", err, d)
			continue
		}
		all = append(all, o)
	}
	return all
}

// of are the objects of one type.
func of[T any](all []any) (some []*T) {
	for _, o := range all {
		if o, ok := o.(*T); ok {
			some = append(some, o)
		}
	}
	return some
}

func TestLint(t *testing.T) {
	for _, file := range valueFiles(t) {
		values, err := chart.ReadValues(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion(dir, values, namespace, nil).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", file, m)
			}
		}
	}
}

// Each object has members of its type alone, and lies in the release's namespace.
func TestObjects(t *testing.T) {
	for _, file := range valueFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			seen := map[string]bool{}
			for _, o := range objects(t, file) {
				m, ok := o.(metav1.Object)
				if !ok {
					t.Fatalf("%T has no name", o)
				}
				key := fmt.Sprintf("%T %s", o, m.GetName())
				if k, ok := o.(*kedaObject); ok {
					key = k.Kind + " " + k.Name
				}
				if seen[key] {
					t.Errorf("%s comes twice", key)
				}
				seen[key] = true
				if m.GetNamespace() != namespace || len(m.GetName()) > 63 || m.GetLabels()["app.kubernetes.io/instance"] != "feedwater" {
					t.Errorf("%T %s/%s %v", o, m.GetNamespace(), m.GetName(), m.GetLabels())
				}
			}
			if len(seen) < 8 {
				t.Errorf("%d objects", len(seen))
			}
		})
	}
}

// Namespaces with Pod Security "restricted" take all pods, but those with a folder of the machine, which are refused for that alone.
func TestPodSecurity(t *testing.T) {
	for _, version := range []api.Version{api.MajorMinorVersion(1, 36), api.LatestVersion()} {
		e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range valueFiles(t) {
			pods := 0
			for _, d := range of[appsv1.Deployment](objects(t, file)) {
				pods++
				p := &d.Spec.Template
				r := policy.AggregateCheckResults(e.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: version}, &p.ObjectMeta, &p.Spec))
				if filepath.Base(file) != "hostpath.yaml" {
					if !r.Allowed {
						t.Errorf("%s: %s: %s", file, d.Name, r.ForbiddenDetail())
					}
				} else if r.Allowed || !strings.Contains(r.ForbiddenDetail(), "hostPath") || strings.Count(r.ForbiddenDetail(), ";") > 0 {
					t.Errorf("%s: %s", file, r.ForbiddenDetail())
				}
			}
			if pods == 0 {
				t.Errorf("%s has no pods", file)
			}
		}
	}
}

// deploy/kubernetes is the chart as it is.
func TestManifests(t *testing.T) {
	want, err := chart.Manifests(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../kubernetes/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want[filepath.Base(file)] != string(text) {
			t.Errorf("%s is out of date: make manifests, and commit", file)
		}
		delete(want, filepath.Base(file))
	}
	for name := range want {
		t.Errorf("%s is missing: make manifests, and commit", name)
	}
}

// deploy/kubernetes has objects of the chart's kinds alone. A namespace is none: who deletes the folder's objects would delete claims, Secrets and Jobs.
func TestKindsOfManifests(t *testing.T) {
	texts, err := chart.Manifests(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(decodeAll(t, texts)); n != 8 {
		t.Errorf("%d objects", n)
	}
	for name, text := range texts {
		if strings.Contains(text, "kind: Namespace\n") || strings.Contains(text, "kind: PersistentVolumeClaim\n") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// Whoever installs the chart is told how trainers name the nodes, and what is not protected.
func TestNotes(t *testing.T) {
	for file, c := range map[string]struct{ says, never []string }{
		"minimal.yaml": {
			says:  []string{`nodes="k8s:prod/feedwater:grpc"`, "feedwater-nodes", `nodes="dns:feedwater.prod.svc:7070"`, "data imagenet.", "WARNING: nothing is encrypted"},
			never: []string{"Prometheus", "KEDA"},
		},
		"hostpath.yaml": {says: []string{"WARNING: imagenet is a folder of each machine"}},
		"edit.yaml":     {says: []string{`nodes="dns:feedwater.prod.svc:7070"`}, never: []string{"k8s:", "Role"}},
		"full.yaml":     {never: []string{"Prometheus"}},
		"keda.yaml": {
			says:  []string{"FEEDWATER_SCALER=feedwater-scaler.prod.svc:7072", "lets a Prometheus of the namespace prod", "lets KEDA in from the namespace keda."},
			never: []string{"WARNING"},
		},
		"tokens.yaml": {says: []string{"data faces, imagenet."}, never: []string{"WARNING"}},
	} {
		values, err := chart.ReadValues(filepath.Join(dir, "ci", file))
		if err != nil {
			t.Fatal(err)
		}
		texts, err := chart.Render(dir, chart.Release{Name: "feedwater", Namespace: namespace, Values: values})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.says {
			if !strings.Contains(texts[chart.Notes], s) {
				t.Errorf("%s: no %q in\n%s", file, s, texts[chart.Notes])
			}
		}
		for _, s := range c.never {
			if strings.Contains(texts[chart.Notes], s) {
				t.Errorf("%s: %q in\n%s", file, s, texts[chart.Notes])
			}
		}
	}
}
