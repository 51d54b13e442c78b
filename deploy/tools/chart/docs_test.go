package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
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

// Files that the page shows are values of the chart, or objects of the cluster; its pods are taken where Pod Security is "restricted".
func TestFilesOfThePage(t *testing.T) {
	files := map[string]int{}
	for _, b := range blocksOf(t, "docs/kubernetes.md") {
		if b.language != "yaml" {
			continue
		}
		if strings.HasPrefix(b.text, "# values.yaml\n") {
			files["values"]++
			values, err := chartutil.ReadValues([]byte(b.text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := chart.Render(dir, chart.Release{Name: "feedwater", Namespace: "feedwater", Values: values}); err != nil {
				t.Errorf("%v\n%s", err, b.text)
			}
			continue
		}
		files["objects"]++
		checkObject(t, b.text)
	}
	if files["values"] != 2 || files["objects"] != 1 {
		t.Errorf("%v", files)
	}
}

func checkObject(t *testing.T, text string) {
	t.Helper()
	object, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := decode(object)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &o.(*batchv1.Job).Spec.Template
	r := policy.AggregateCheckResults(e.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &p.ObjectMeta, &p.Spec))
	if !r.Allowed {
		t.Errorf("%s", r.ForbiddenDetail())
	}
}
