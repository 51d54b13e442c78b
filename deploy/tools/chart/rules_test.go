package chart_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
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

// A node is killed only after its drain; its lists, indexes and tables fit their volume; secrets are mounted, whole folders at a time, so that they are
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
		takes := bytesOf(t, c["cache-limit"]) + bytesOf(t, c["index-limit"]) + bytesOf(t, c["table-limit"])*int64(max(1, len(identities)))
		for _, v := range pod.Volumes {
			if e := v.EmptyDir; e != nil && (e.SizeLimit == nil || e.SizeLimit.Value() < takes+1<<29) {
				t.Errorf("%s holds %v, lists, indexes and tables take %d", v.Name, e.SizeLimit, takes)
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

// Scalers have the Role that looking up nodes takes, nodes have none, and the Role has nothing else. Their key stays with the nodes.
func TestRights(t *testing.T) {
	eachFile(t, func(t *testing.T, all []any) {
		roles, bindings := of[rbacv1.Role](all), of[rbacv1.RoleBinding](all)
		if len(roles) != 1 || len(roles[0].Rules) != 1 || !slices.Equal(roles[0].Rules[0].Resources, []string{"endpointslices"}) ||
			!slices.Equal(roles[0].Rules[0].APIGroups, []string{"discovery.k8s.io"}) || !slices.Equal(roles[0].Rules[0].Verbs, []string{"get", "list", "watch"}) {
			t.Errorf("%+v", roles)
		}
		bound := map[string]bool{}
		for _, s := range bindings[0].Subjects {
			bound[s.Namespace+"/"+s.Name] = true
		}
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
