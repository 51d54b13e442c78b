package chart_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"

	"github.com/feedwater-io/feedwater/deploy/tools/chart"
)

const root = "../../.."

// block is one of a page that is fenced.
type block struct{ language, text string }

func blocksOf(t *testing.T, page string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// commandsOf are the lines of a shell block, continued ones as one, each with its comment.
func commandsOf(text string) (all []string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// What docs/kubernetes.md has people type works as far as it needs no cluster: Helm's commands render, targets and paths are there.
func TestCommandsOfThePage(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := blocksOf(t, "docs/kubernetes.md")
	checked := map[string]int{}
	for i, b := range blocks {
		if b.language != "sh" {
			continue
		}
		for _, line := range commandsOf(b.text) {
			command, comment, _ := strings.Cut(line, " # ")
			words := strings.Fields(command)
			checked[words[0]]++
			switch words[0] {
			case "helm":
				if words[1] == "uninstall" {
					continue
				}
				checkHelm(t, words[1:], blocks[i+1:], comment)
			case "make":
				if !strings.Contains(string(makefile), "\n"+words[1]+":") {
					t.Errorf("%s: no such target", line)
				}
			case "kubectl":
				if n := slices.Index(words, "-f"); n > 0 {
					if _, err := os.Stat(filepath.Join(root, words[n+1])); err != nil {
						t.Errorf("%s: %v", line, err)
					}
				}
			case "skopeo": // TestImagesOfThePage
			default:
				t.Errorf("nothing checks %q", line)
			}
		}
	}
	if checked["helm"] < 3 || checked["kubectl"] < 4 || checked["make"] < 1 {
		t.Errorf("commands %v", checked)
	}
}

// checkHelm renders what a command would. Values of a file that the page shows stand in the next block; a comment tells what is refused.
func checkHelm(t *testing.T, words []string, next []block, comment string) {
	t.Helper()
	r := chart.Release{Name: words[1], Namespace: "default", Values: map[string]any{}}
	for i, w := range words {
		switch w {
		case "--namespace":
			r.Namespace = words[i+1]
		case "--set":
			if err := strvals.ParseInto(words[i+1], r.Values); err != nil {
				t.Fatal(err)
			}
		case "--values":
			if !strings.HasPrefix(next[0].text, "# "+words[i+1]+"\n") {
				t.Fatalf("%s is not shown", words[i+1])
			}
			values, err := chartutil.ReadValues([]byte(next[0].text))
			if err != nil {
				t.Fatal(err)
			}
			r.Values = values
		}
	}
	_, err := chart.Render(filepath.Join(root, words[2]), r)
	if refused, ok := strings.CutPrefix(strings.TrimSpace(comment), "refused: "); ok {
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%q: %v", words, err)
		}
	} else if err != nil {
		t.Errorf("%q: %v", words, err)
	}
}

// Each image of ours on the page has the tag that the chart takes where none is given. All platforms of one are sent, to where its first command takes
// it from.
func TestImagesOfThePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	version := read(t, filepath.Join(dir, "Chart.yaml"))["appVersion"]
	images := regexp.MustCompile(`[\w./-]*feedwater:(\d[\w.-]*)`).FindAllStringSubmatch(string(text), -1)
	for _, m := range images {
		if m[1] != version {
			t.Errorf("%s, and the chart takes %s", m[0], version)
		}
	}
	sent := regexp.MustCompile(`skopeo copy (.*?)oci:dist/image docker://(\S+):`).FindAllStringSubmatch(string(text), -1)
	for _, m := range sent {
		if m[1] != "--all " || !strings.Contains(blocksOf(t, "docs/kubernetes.md")[0].text, "--set image.repository="+m[2]+" ") {
			t.Errorf("%q", m[0])
		}
	}
	if len(images) < 4 || len(sent) != 2 {
		t.Errorf("%d images, %d of them sent", len(images), len(sent))
	}
}

// fragment begins what the page adds to its Job.
const fragment = "# in the Job, below spec.template.spec\n"

// Files that the page shows are values of the chart, the Job, or what is added to that.
func TestFilesOfThePage(t *testing.T) {
	files := map[string]int{}
	for _, b := range blocksOf(t, "docs/kubernetes.md") {
		switch {
		case b.language != "yaml":
		case strings.HasPrefix(b.text, "# values.yaml\n"):
			files["values"]++
			renderText(t, b.text)
		case strings.HasPrefix(b.text, fragment):
			files["fragments"]++
		default:
			files["objects"]++
		}
	}
	if files["values"] != 3 || files["objects"] != 1 || files["fragments"] != 2 {
		t.Errorf("%v", files)
	}
}

// renderText renders a file of values for the namespace of the page.
func renderText(t *testing.T, text string) map[string]string {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	texts, err := chart.Render(dir, chart.Release{Name: "feedwater", Namespace: "feedwater", Values: values})
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return texts
}

// jobOfThePage is the page's Job with all that the page adds to it.
func jobOfThePage(t *testing.T) *corev1.PodTemplateSpec {
	t.Helper()
	var pod *corev1.PodTemplateSpec
	for _, b := range blocksOf(t, "docs/kubernetes.md") {
		if b.language != "yaml" || strings.HasPrefix(b.text, "# values.yaml\n") {
			continue
		}
		text, err := yaml.YAMLToJSONStrict([]byte(b.text))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(b.text, fragment) {
			o, err := decode(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, b.text)
			}
			pod = &o.(*batchv1.Job).Spec.Template
			continue
		}
		var more corev1.PodSpec
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&more); err != nil {
			t.Fatalf("%v\n%s", err, b.text)
		}
		c := &pod.Spec.Containers[0]
		if len(more.Containers) != 1 || more.Containers[0].Name != c.Name {
			t.Fatalf("not of the container %s:\n%s", c.Name, b.text)
		}
		c.Env = append(c.Env, more.Containers[0].Env...)
		c.VolumeMounts = append(c.VolumeMounts, more.Containers[0].VolumeMounts...)
		pod.Spec.Volumes = append(pod.Spec.Volumes, more.Volumes...)
	}
	return pod
}

// The page's Job is taken where Pod Security is "restricted". It has the files that the page's Loader names, and of the nodes' Secrets the CA alone.
func TestJobOfThePage(t *testing.T) {
	pod := jobOfThePage(t)
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := policy.AggregateCheckResults(e.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec))
	if !r.Allowed {
		t.Errorf("%s", r.ForbiddenDetail())
	}
	mount, files := pod.Spec.Containers[0].VolumeMounts[0], map[string]bool{}
	if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].Name != mount.Name || !mount.ReadOnly {
		t.Fatalf("%+v %+v", mount, pod.Spec.Volumes)
	}
	for _, s := range pod.Spec.Volumes[0].Projected.Sources {
		if len(s.Secret.Items) != 1 || s.Secret.Name == "feedwater-tokens" || s.Secret.Name == "feedwater-tls" && s.Secret.Items[0].Key != "ca.crt" {
			t.Errorf("the trainer has %+v", s.Secret)
		}
		files[mount.MountPath+"/"+s.Secret.Items[0].Path] = true
	}
	named := 0
	for _, b := range blocksOf(t, "docs/kubernetes.md") {
		for _, m := range regexp.MustCompile(`="(/[^"]*)"`).FindAllStringSubmatch(b.text, -1) {
			if b.language == "python" {
				named++
				if !files[m[1]] {
					t.Errorf("the pod has no %s: %v", m[1], files)
				}
			}
		}
	}
	if named != 2 {
		t.Errorf("the Loader names %d files", named)
	}
}

// The scaler that the page's Job asks for the first node is the one that the page's values for KEDA make.
func TestScalerOfThePage(t *testing.T) {
	env := jobOfThePage(t).Spec.Containers[0].Env
	if len(env) != 1 || env[0].Name != "FEEDWATER_SCALER" {
		t.Fatalf("%v", env)
	}
	for _, b := range blocksOf(t, "docs/kubernetes.md") {
		if strings.HasPrefix(b.text, "# values.yaml\n") && strings.Contains(b.text, "\nkeda: ") {
			if notes := renderText(t, b.text)[chart.Notes]; !strings.Contains(notes, " FEEDWATER_SCALER="+env[0].Value+" ") {
				t.Errorf("%s is not what is said:\n%s", env[0].Value, notes)
			}
			return
		}
	}
	t.Error("no values for KEDA")
}
