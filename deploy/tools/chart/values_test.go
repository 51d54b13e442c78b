package chart_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/feedwater-io/feedwater/deploy/tools/chart"
)

// read reads a YAML or JSON file.
func read(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// seconds is a duration of whole seconds.
func seconds(t *testing.T, text any) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSuffix(text.(string), "s"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// bytesOf is a size as the program writes it.
func bytesOf(t *testing.T, text any) int64 {
	t.Helper()
	q, err := resource.ParseQuantity(strings.TrimSuffix(text.(string), "B"))
	if err != nil {
		t.Fatal(err)
	}
	return q.Value()
}

// A value that is misspelt, of the wrong type, or does not go with the others is refused, and the error names it.
func TestWrongValues(t *testing.T) {
	for _, c := range []struct{ set, names string }{
		{"", "'/data'"},
		{"insecure=true", "'/data'"},
		{"data.imagenet.claim=a", "'/tls/secret'"},
		{"data.imagenet.claim=a,tokens.secret=b", "'/tls/secret'"},
		{"data.imagenet.claim=a,insecure=true,tokens.secret=b", "'/tls/secret'"},
		{"data.imagenet.claim=a,insecure=true,tls.secret=b", "'/tls/secret'"},
		{"data.imagenet.claim=a,insecure=true,tls.clientCertificates=true", "'/tls/secret'"},
		{"data.imagenet.claim=a,tls.secret=b,keda.enabled=true", "'/scaler/tls/secret'"},
		{"data.imagenet.claim=a,tls.secret=b,tokens.secret=c,scaler.tls.secret=d,scaler.enabled=true", "'/scaler/token/secret'"},
		{"data.imagenet.claim=a,insecure=true,metrics.podMonitor.token.secret=b", "'/tls/secret'"},
		{"data.imagenet.claim=a,insecure=true,identities.x.watch=true", "'/tokens/secret'"},
		{"data.imagenet.claim=a,insecure=yes", "'/insecure'"},
		{"data.imagenet.claim=a,insecure=true,replica=3", "'replica'"},
		{"data.imagenet.claim=a,insecure=true,replicas=three", "'/replicas'"},
		{"data.imagenet.claim=a,insecure=true,replicas=-1", "'/replicas'"},
		{"data.imagenet.claim=a,insecure=true,resources.request.cpu=1", "'request'"},
		{"data.imagenet.claim=a,insecure=true,config.max-memroy=1GiB", "'max-memroy'"},
		{"data.imagenet.claim=a,insecure=true,config.listen=:7070", "'listen'"},
		{"data.imagenet.claim=a,insecure=true,config.workers=many", "'/config/workers'"},
		{"data.imagenet.claim=a,insecure=true,config.max-memory=8Gi", "'/config/max-memory'"},
		{"data.imagenet.claim=a,insecure=true,cache.index=0", "'/cache/index'"},
		{"data.imagenet.claim=a,insecure=true,image.digest=latest", "'/image/digest'"},
		{"data.imagenet.claim=a,insecure=true,podDisruptionBudget.maxUnavailable=0", "'/podDisruptionBudget/maxUnavailable'"},
		{"data.imagenet.claim=a,insecure=true,trainers.serviceAccounts={a/b/c}", "'/trainers/serviceAccounts/0'"},
		{"data.imagenet.claim=a,data.imagenet.hostPath=/b,insecure=true", "'/data/imagenet'"},
		{"data.imagenet.claim=a,data.imagenet.url=s3://b,insecure=true", "'/data/imagenet'"},
		{"data.imagenet.url=ftp://b,insecure=true", "'/data/imagenet/url'"},
		{"data.imagenet.url=s3://key:secret@b,insecure=true", "'/data/imagenet/url'"},
		{"data.imagenet.path=a,insecure=true", "'/data/imagenet'"},
		{"data.imagenet.hostPath=relative,insecure=true", "'/data/imagenet/hostPath'"},
		{"data.Image_Net.claim=a,insecure=true", "Image_Net"},
		{"data.imagenet.clam=a,insecure=true", "'clam'"},
		{"data.imagenet.claim=a,insecure=true,cache.read=-1", "'/cache/read'"},
		{"data.imagenet.claim=a,insecure=true,config.read-cache=/var/cache/feedwater/x", "'read-cache'"},
		{"data.imagenet.claim=a,insecure=true,config.read-cache-limit=9GiB", "'read-cache-limit'"},
		{"data.imagenet.claim=a,insecure=true,config.index-copies=9GiB", "'index-copies'"},
		{"data.imagenet.claim=a,insecure=true,fullnameOverride=a.b", "'/fullnameOverride'"},
		{"data.imagenet.claim=a,insecure=true,fullnameOverride=1a", "'/fullnameOverride'"},
		{"data.imagenet.claim=a,insecure=true,nameOverride=a.b", "'fullnameOverride'"},
		{"data.imagenet.claim=a,insecure=true,keda.enabled=true,keda.namespace=a.b", "'/keda/namespace'"},
		{"data.imagenet.claim=a,insecure=true,keda.enabled=true,keda.minReplicas=3,keda.maxReplicas=2", "'keda.minReplicas'"},
		{"data.imagenet.claim=a,insecure=true,rbac.create=no", "'/rbac/create'"},
		{"data.imagenet.claim=a,tls.secret=b,tls.clientCertificates=true,metrics.podMonitor.enabled=true", "'/metrics/podMonitor/clientCertificate/secret'"},
		{"data.imagenet.claim=a,tls.secret=b,tls.clientCertificates=true,metrics.podMonitor.enabled=true,metrics.podMonitor.token.secret=c", "'/tokens/secret'"},
		{"data.imagenet.claim=a,tls.secret=b,tokens.secret=c,metrics.podMonitor.enabled=true", "'/metrics/podMonitor/token/secret'"},
		{"data.imagenet.claim=a,tls.secret=b,metrics.podMonitor.enabled=true,metrics.podMonitor.clientCertificate.secret=c", "'/tls/clientCertificates'"},
		{"data.imagenet.claim=a,tls.secret=b,tokens.secret=c,identities.x.weight=2,metrics.podMonitor.enabled=true,metrics.podMonitor.token.secret=d", "'identities'"},
		{"data.imagenet.claim=a,tls.secret=b,tokens.secret=c,identities.x.weight=2,keda.enabled=true,scaler.tls.secret=d,scaler.token.secret=e", "'identities'"},
	} {
		values, err := strvals.Parse(c.set)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := chart.Render(dir, chart.Release{Name: "feedwater", Namespace: namespace, Values: values})
		if err == nil {
			t.Errorf("%s: rendered, %d templates", c.set, len(texts))
		} else if !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: no %s in %v", c.set, c.names, err)
		}
	}
}

// A release whose name cannot be that of a Service needs another one by fullnameOverride.
func TestNamesOfReleases(t *testing.T) {
	for name, override := range map[string]string{"feedwater": "", "a.feedwater": "b", "1feedwater": "b", "a.b": "c", "2026": "c", "x": ""} {
		values := map[string]any{"data": map[string]any{"imagenet": map[string]any{"claim": "a"}}, "insecure": true}
		_, err := chart.Render(dir, chart.Release{Name: name, Namespace: namespace, Values: values})
		if override == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "'fullnameOverride'") {
			t.Errorf("%s: %v", name, err)
		}
		values["fullnameOverride"] = override
		rendered(t, chart.Release{Name: name, Namespace: namespace, Values: values})
	}
}
