package chart_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/feedwater-io/feedwater/deploy/tools/chart"
)

// eachFile runs a test for each file of values, and gives it the objects by the names of their kinds.
func eachFile(t *testing.T, test func(t *testing.T, all []any)) {
	for _, file := range valueFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { test(t, objects(t, file)) })
	}
}

// config is what a node is told.
func config(t *testing.T, all []any) map[string]any {
	t.Helper()
	var c map[string]any
	if err := yaml.UnmarshalStrict([]byte(of[corev1.ConfigMap](all)[0].Data["config.yaml"]), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// What selects pods selects those of one Deployment, of whatever else there is.
func TestSelectors(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		selectors := map[string]*metav1.LabelSelector{}
		for _, s := range of[corev1.Service](all) {
			selectors["Service "+s.Name] = &metav1.LabelSelector{MatchLabels: s.Spec.Selector}
		}
		for _, p := range of[policyv1.PodDisruptionBudget](all) {
			selectors["PodDisruptionBudget "+p.Name] = p.Spec.Selector
		}
		for _, p := range of[networkingv1.NetworkPolicy](all) {
			selectors["NetworkPolicy "+p.Name] = &p.Spec.PodSelector
		}
		for name, selector := range selectors {
			s, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			var selected []string
			for _, d := range of[appsv1.Deployment](all) {
				if s.Matches(labels.Set(d.Spec.Template.Labels)) {
					selected = append(selected, d.Name)
				}
			}
			if _, want, _ := strings.Cut(name, " "); !slices.Equal(selected, []string{want}) {
				t.Errorf("%s selects %q", name, selected)
			}
		}
		for _, d := range of[appsv1.Deployment](all) {
			if s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err != nil || !s.Matches(labels.Set(d.Spec.Template.Labels)) {
				t.Errorf("%s does not select its own pods", d.Name)
			}
		}
	})
}

// Ports are named as the containers name them, by Services, probes and policies.
func TestPorts(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		for _, d := range of[appsv1.Deployment](all) {
			ports := map[string]bool{}
			c := d.Spec.Template.Spec.Containers[0]
			for _, p := range c.Ports {
				ports[p.Name] = true
			}
			used := []string{c.ReadinessProbe.HTTPGet.Port.StrVal, c.LivenessProbe.HTTPGet.Port.StrVal}
			for _, s := range of[corev1.Service](all) {
				if s.Name == d.Name {
					for _, p := range s.Spec.Ports {
						used = append(used, p.TargetPort.StrVal)
					}
				}
			}
			for _, n := range of[networkingv1.NetworkPolicy](all) {
				if n.Name == d.Name {
					for _, rule := range n.Spec.Ingress {
						used = append(used, rule.Ports[0].Port.StrVal)
					}
				}
			}
			for _, name := range used {
				if !ports[name] {
					t.Errorf("%s has no port %q", d.Name, name)
				}
			}
			if len(used) < 4 {
				t.Errorf("%s: ports %q", d.Name, used)
			}
		}
	})
}

// A node is killed only after its drain; all that it keeps fits its volume; secrets are mounted, whole folders at a time, so that they are
// read again; nothing may be written but the cache.
func TestNodePods(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		d := of[appsv1.Deployment](all)[0]
		if d.Labels["app.kubernetes.io/component"] != "node" {
			t.Fatal(d.Name)
		}
		c, pod := config(t, all), d.Spec.Template.Spec
		if !strings.HasSuffix(c["drain-timeout"].(string), "s") || *pod.TerminationGracePeriodSeconds < seconds(t, c["drain-timeout"])+10 {
			t.Errorf("killed after %d s, drain for %s", *pod.TerminationGracePeriodSeconds, c["drain-timeout"])
		}
		identities, _ := c["identities"].(map[string]any)
		takes := bytesOf(t, c["table-limit"]) * int64(max(1, len(identities)))
		for _, limit := range []string{"cache-limit", "index-limit", "index-copies", "read-cache-limit"} {
			if c[limit] != nil {
				takes += bytesOf(t, c[limit])
			}
		}
		if place, kept := c["read-cache"].(string); kept != (c["read-cache-limit"] != nil) || kept && !strings.HasPrefix(place, c["cache-dir"].(string)+"/") {
			t.Errorf("read cache %q of %v, which is not on the volume", place, c["read-cache-limit"])
		}
		for _, v := range pod.Volumes {
			if e := v.EmptyDir; e != nil && (e.SizeLimit == nil || e.SizeLimit.Value() < takes+1<<29) {
				t.Errorf("%s holds %v, what is kept there takes %d", v.Name, e.SizeLimit, takes)
			}
			if p := v.PersistentVolumeClaim; p != nil && !p.ReadOnly {
				t.Errorf("%s is not read-only", v.Name)
			}
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if writable := m.Name == "cache"; m.ReadOnly == writable || m.SubPath != "" && !strings.HasPrefix(m.Name, "data-") {
				t.Errorf("%+v", m)
			}
		}
	})
}

// checkPods looks at what holds for all pods of the chart.
func checkPods(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	c := d.Spec.Template.Spec.Containers[0]
	if len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil }) || !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("%s: %+v", d.Name, c)
	}
	mounted := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if mounted[v.Name] == "" {
			t.Errorf("%s: %s is not mounted", d.Name, v.Name)
		}
		delete(mounted, v.Name)
	}
	for name := range mounted {
		t.Errorf("%s mounts %s, which is no volume", d.Name, name)
	}
}

// CPU is limited only where somebody asks for it.
func TestCPULimits(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		for _, d := range of[appsv1.Deployment](all) {
			_, limited := d.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
			if asked := d.Name == "preproc"; limited != asked {
				t.Errorf("%s: limits %v", d.Name, d.Spec.Template.Spec.Containers[0].Resources.Limits)
			}
		}
	})
}

// checkRole looks at the Role, which is to look up nodes and nothing else, and gives whom it is bound to, as NAMESPACE/NAME.
func checkRole(t *testing.T, all []any) map[string]bool {
	t.Helper()
	roles := of[rbacv1.Role](all)
	if len(roles) != 1 || len(roles[0].Rules) != 1 || !slices.Equal(roles[0].Rules[0].Resources, []string{"endpointslices"}) ||
		!slices.Equal(roles[0].Rules[0].APIGroups, []string{"discovery.k8s.io"}) || !slices.Equal(roles[0].Rules[0].Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("%+v", roles)
	}
	bound := map[string]bool{}
	for _, s := range of[rbacv1.RoleBinding](all)[0].Subjects {
		bound[s.Namespace+"/"+s.Name] = true
	}
	return bound
}

// Scalers have the Role that looking up nodes takes, nodes have none, and the Role has nothing else. Their key stays with the nodes.
func TestRights(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		if strings.HasSuffix(t.Name(), "/edit.yaml") {
			return // TestWithoutRoles
		}
		bound := checkRole(t, all)
		for _, d := range of[appsv1.Deployment](all) {
			p := d.Spec.Template.Spec
			scaler := d.Labels["app.kubernetes.io/component"] == "scaler"
			if bound[namespace+"/"+p.ServiceAccountName] != scaler || *p.AutomountServiceAccountToken != scaler {
				t.Errorf("%s: service account %s, bound are %v", d.Name, p.ServiceAccountName, bound)
			}
			for _, v := range p.Volumes {
				if scaler && v.Secret != nil && v.Secret.SecretName == "feedwater-tls" && len(v.Secret.Items) != 1 {
					t.Errorf("the scaler has the nodes' key")
				}
			}
			checkPods(t, d)
		}
	})
}

// Where rbac.create is false nobody needs a right of the API server's: there is no object of RBAC, and DNS stands for the nodes.
func TestWithoutRoles(t *testing.T) {
	all := objects(t, filepath.Join(dir, "ci", "edit.yaml"))
	if n := len(of[rbacv1.Role](all)) + len(of[rbacv1.RoleBinding](all)); n > 0 {
		t.Errorf("%d objects of RBAC", n)
	}
	nodes := map[string]string{}
	for _, d := range of[appsv1.Deployment](all) {
		p := d.Spec.Template.Spec
		if *p.AutomountServiceAccountToken {
			t.Errorf("%s has a token of the API server", d.Name)
		}
		for _, a := range p.Containers[0].Args {
			if name, ok := strings.CutPrefix(a, "--nodes="); ok {
				nodes[d.Name] = name
			}
		}
		checkPods(t, d)
	}
	if len(nodes) != 1 || nodes["feedwater-scaler"] != "dns:feedwater.prod.svc:7070" {
		t.Errorf("nodes %v", nodes)
	}
}

// KEDA decides how many nodes there are where it is asked to, and nobody else.
func TestReplicas(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		scaled := len(of[kedaObject](all)) > 0
		for _, d := range of[appsv1.Deployment](all) {
			if node := d.Labels["app.kubernetes.io/component"] == "node"; node && (d.Spec.Replicas == nil) != scaled || !node && d.Spec.Replicas == nil {
				t.Errorf("%s: replicas %v", d.Name, d.Spec.Replicas)
			}
		}
	})
}

// cluster is one with a single object, a Deployment of so many replicas; nothing else is looked up.
type cluster struct {
	dynamic.NamespaceableResourceInterface
	name     string
	replicas int64
}

func (c cluster) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if version != "apps/v1" || kind != "Deployment" {
		return nil, false, fmt.Errorf("%s %s is looked up", version, kind)
	}
	return c, true, nil
}

func (c cluster) Namespace(string) dynamic.ResourceInterface { return c }

func (c cluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if name != c.name {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, name)
	}
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": c.replicas}}}, nil
}

// An upgrade that brings KEDA, and each one after it, asks for the nodes that there are, none included. Left out, Helm would have the API server
// put its standard, one, in place of a number that was there.
func TestReplicasOfAnUpgrade(t *testing.T) {
	for _, c := range []struct {
		set   string
		there cluster
		want  any
	}{
		{"keda.enabled=true", cluster{name: "feedwater", replicas: 6}, int32(6)},
		{"keda.enabled=true", cluster{name: "feedwater", replicas: 0}, int32(0)},
		{"keda.enabled=true", cluster{name: "another", replicas: 6}, nil},
		{"replicas=4", cluster{name: "feedwater", replicas: 6}, int32(4)},
		{"replicas=0", cluster{name: "feedwater", replicas: 6}, int32(0)},
	} {
		values, err := strvals.Parse("data.imagenet.claim=a,insecure=true," + c.set)
		if err != nil {
			t.Fatal(err)
		}
		all := rendered(t, chart.Release{Name: "feedwater", Namespace: namespace, Values: values, Cluster: c.there})
		var got any
		if n := of[appsv1.Deployment](all)[0].Spec.Replicas; n != nil {
			got = *n
		}
		if got != c.want {
			t.Errorf("%s, where %s has %d: replicas %v, want %v", c.set, c.there.name, c.there.replicas, got, c.want)
		}
	}
}

// Nodes and scalers run where their own values say.
func TestPlacement(t *testing.T) {
	pools := map[string]string{"preproc": "cpu", "preproc-scaler": "control"}
	for _, d := range of[appsv1.Deployment](objects(t, filepath.Join(dir, "ci", "full.yaml"))) {
		pod, p, pool := d.Spec.Template.ObjectMeta, d.Spec.Template.Spec, pools[d.Name]
		if p.NodeSelector["pool"] != pool || len(p.Tolerations) != 1 || p.Tolerations[0].Value != pool || p.Affinity == nil || p.PriorityClassName == "" ||
			pod.Labels["team"] == "" || pod.Annotations["example.org/team"] != pod.Labels["team"] {
			t.Errorf("%s: %v %v %v %v %v %q", d.Name, pod.Labels, pod.Annotations, p.NodeSelector, p.Tolerations, p.Affinity, p.PriorityClassName)
		}
		delete(pools, d.Name)
	}
	if len(pools) > 0 {
		t.Errorf("no Deployment %v", pools)
	}
}

// Prometheus shows nodes what they ask for: a token where they have tokens, else a certificate where they have a CA.
func TestPodMonitors(t *testing.T) {
	asked := 0
	eachFile(t, func(t *testing.T, all []any) {
		c := config(t, all)
		for _, m := range of[monitoringv1.PodMonitor](all) {
			e := m.Spec.PodMetricsEndpoints[0]
			if m.Labels["app.kubernetes.io/component"] != "node" || c["token-file"] == nil && c["client-ca"] == nil {
				continue
			}
			asked++
			byToken := c["token-file"] != nil && e.Authorization != nil && e.Authorization.Credentials.Name != ""
			byCertificate := c["client-ca"] != nil && e.TLSConfig != nil && e.TLSConfig.Cert.Secret != nil && e.TLSConfig.KeySecret != nil
			if !byToken && !byCertificate {
				t.Errorf("%s: Prometheus shows nothing: %+v", m.Name, e)
			}
		}
	})
	if asked < 2 {
		t.Errorf("%d nodes with a PodMonitor ask who calls", asked)
	}
}

// Names that YAML would read as numbers stay names, wherever they stand: each object is read into its type.
func TestNamesOfDigits(t *testing.T) {
	values, err := strvals.Parse("fullnameOverride=f,tls.clientCertificates=true,keda.enabled=true,metrics.podMonitor.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	err = strvals.ParseIntoString("data.2024.claim=1,data.2025.claim=2,data.2025.path=3,tls.secret=4,tls.cert=5,tls.key=6,tls.ca=7,"+
		"tokens.secret=8,tokens.key=9,buckets.secret=10,buckets.key=11,scaler.tls.secret=12,scaler.tls.cert=13,scaler.tls.key=14,scaler.tls.ca=15,"+
		"scaler.token.secret=16,scaler.token.key=17,scaler.priorityClassName=18,priorityClassName=19,nameOverride=20,trainers.serviceAccounts={21,22/23},"+
		"keda.namespace=24,metrics.podMonitor.token.secret=25,metrics.podMonitor.token.key=26,metrics.podMonitor.clientCertificate.secret=27,"+
		"metrics.podMonitor.clientCertificate.cert=28,metrics.podMonitor.clientCertificate.key=29,imagePullSecrets[0].name=30,image.tag=31", values)
	if err != nil {
		t.Fatal(err)
	}
	all := rendered(t, chart.Release{Name: "2026", Namespace: "2027", Values: values})
	if len(of[kedaObject](all)) != 2 || len(of[monitoringv1.PodMonitor](all)) != 2 {
		t.Errorf("%d objects", len(all))
	}
	for _, o := range all {
		if got := o.(metav1.Object).GetNamespace(); got != "2027" {
			t.Errorf("%T in %s", o, got)
		}
	}
}

// Everything that a value can be is in the schema, and has a standard that the schema allows, or none.
func TestValuesAndSchema(t *testing.T) {
	values, schema := read(t, filepath.Join(dir, "values.yaml")), read(t, filepath.Join(dir, "values.schema.json"))
	var compare func(place string, values, schema map[string]any)
	compare = func(place string, values, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		if properties == nil {
			return // of any names
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%s takes members of any name", place)
		}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			value, ok := values[name]
			if !ok && name != "global" && place != "/config" && place != "/resources" && place != "/scaler/resources" {
				t.Errorf("%s/%s has no standard", place, name)
			}
			if below, ok := value.(map[string]any); ok {
				compare(place+"/"+name, below, properties[name].(map[string]any))
			}
		}
	}
	compare("", values, schema)
}

// Buckets and web servers are named to the program, and mounted nowhere; credentials for them are mounted, and never in the environment.
func TestRemoteData(t *testing.T) {
	all := objects(t, filepath.Join(dir, "ci", "full.yaml"))
	data := config(t, all)["data"].(map[string]any)
	if data["bucket"] != "s3://pictures/2026?region=eu-central-1" || data["web"] != "https://example.org/pictures" || data["imagenet"] != "/data/imagenet" {
		t.Errorf("%v", data)
	}
	c := of[appsv1.Deployment](all)[0].Spec.Template.Spec.Containers[0]
	var mounts []string
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	if !slices.Equal(mounts, []string{"config", "cache", "buckets", "data-imagenet"}) {
		t.Errorf("mounts %q", mounts)
	}
	if len(c.Env) != 1 || c.Env[0].Name != "AWS_SHARED_CREDENTIALS_FILE" || c.Env[0].Value != "/etc/feedwater/buckets/credentials" {
		t.Errorf("environment %v", c.Env)
	}
}
