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
