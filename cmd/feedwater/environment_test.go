package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A name that differs from a variable in a letter or two sets nothing, and is told with what is meant; other programs' are not.
func TestEnvironmentNames(t *testing.T) {
	for name, want := range map[string]string{
		"FEEDWATER_MAX_MEMROY":        "FEEDWATER_MAX_MEMORY?",
		"FEEDWATER_MAXMEMORY":         "FEEDWATER_MAX_MEMORY?",
		"FEEDWATER_MAX_MEM":           "FEEDWATER_MAX_MEMORY?",
		"FEEDWATER_CACHE":             "FEEDWATER_CACHE_DIR?",
		"FEEDWATER_DAT":               "FEEDWATER_DATA?",
		"FEEDWATER_LISEN":             "FEEDWATER_LISTEN?",
		"FEEDWATER_SERVE_WORKER":      "FEEDWATER_SERVE_WORKERS?",
		"FEEDWATER_TLSCA":             "FEEDWATER_TLS_CA?",
		"FEEDWATER_TOKENFILE":         "FEEDWATER_TOKEN_FILE?",
		"FEEDWATER_SCALAR":            "FEEDWATER_SCALER?",
		"FEEDWATER_KEPE":              "FEEDWATER_KEEP?",
		"FEEDWATER_INEDX":             "FEEDWATER_INDEX?",
		"FEEDWATER_INDEX_COPY":        "FEEDWATER_INDEX_COPIES?",
		"FEEDWATER_INDEX_LIMITATION":  "FEEDWATER_INDEX_LIMIT?",
		"FEEDWATER_CACHE_DIRECTORY":   "FEEDWATER_CACHE_DIR?",
		"FEEDWATER_KEYS":              "",
		"FEEDWATER_INDEX_COLOUR":      "",
		"FEEDWATER_IMAGE_COPY":        "",
		"FEEDWATER_INDEX_MY_COPY":     "",
		"FEEDWATER_CACHING_DIRECTIVE": "",
		"FEEDWATER_INDEX_PORT":        "",
		"FEEDWATER_BINARIES":          "",
		"FEEDWATER_INTERVAL":          "write FEEDWATER_INDEX_INTERVAL or FEEDWATER_TOP_INTERVAL",
		"FEEDWATER_PHOTOS":            "",
		"FEEDWATER_SERVICE_HOST":      "",
		"FEEDWATER_PORT":              "",
		"FEEDWATER_PORT_7070_TCP":     "",
		"FEEDWATER_DAT_SERVICE_PORT":  "",
		"FEEDWATER_MAX_MEMORY":        "",
		"FEEDWATER_AGENT_HTTP":        "",
		"FEEDWATER_DATA":              "",
		"FEEDWATERX_DATA":             "",
		"feedwater_max_memroy":        "",
		"FOODWATER_MAX_MEMORY":        "",
	} {
		got := environmentWarnings("serve", []string{name + "=1"})
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasSuffix(got[0], want) || !strings.HasPrefix(got[0], name)) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Names of our own tests, benchmarks and clusters, and those of Kubernetes for a Service, are no slips of the pen.
func TestForeignNames(t *testing.T) {
	for _, name := range []string{
		"BINARIES", "CLASSES", "CLUSTER_CACHE", "CLUSTER_FAMILY", "CLUSTER_GROUP", "CLUSTER_LONG", "EXIF_CORPUS", "JPEG_CORPUS", "JPEG_PHOTOS", "PARITY_DRAWS",
		"PARITY_EPOCHS", "PARITY_IMAGES", "PARITY_PHOTOS", "PARITY_SHAPES", "PHOTOS", "PNG_CUT", "RAY_TEST", "SAMPLES", "TEST_AS_PROGRAM", "TEST_CACHE",
		"TEST_HUGE", "TEST_PARENT", "TEST_RANK_ROOT", "TEST_ROOT", "TEST_RUNTIME", "TEST_SLOW", "WHEEL_BINARY", "WHEEL_PLATFORM", "YES",
		"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_FEED", "PORT", "PORT_7070_TCP", "PORT_7070_TCP_ADDR", "INDEX_SERVICE_HOST", "INDEX_COPY_PORT", "NODES_SERVICE_PORT_HTTP",
	} {
		if got := environmentWarnings("serve", []string{envPrefix + name + "=tcp://10.0.0.1:7070"}); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A wrong value is refused by the command that it is for, and told by all others, in words.
func TestEnvironmentValues(t *testing.T) {
	for _, c := range []struct{ name, value, command, says string }{
		{"FEEDWATER_INDEX_INTERVAL", "abc", "index", `FEEDWATER_INDEX_INTERVAL: --interval "abc" is no whole number`},
		{"FEEDWATER_TOP_INTERVAL", "5", "top", `FEEDWATER_TOP_INTERVAL: --interval "5" is no duration; write it like 30s`},
		{"FEEDWATER_SERVE_INSECURE", "maybe", "serve", `FEEDWATER_SERVE_INSECURE: --insecure "maybe" is neither true nor false`},
		{"FEEDWATER_SERVE_MAX_MEMORY", "much", "serve", `FEEDWATER_SERVE_MAX_MEMORY: --max-memory "much": "much" is no size; write it like 4GiB or 500MB`},
		{"FEEDWATER_SERVE_ADDRESS_SHARE", "x", "serve", `FEEDWATER_SERVE_ADDRESS_SHARE: --address-share "x" is no number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			args := map[string][]string{"serve": {"--data", "a=" + t.TempDir()}, "index": {t.TempDir()}, "top": nil}[c.command]
			if code, _, errs := call(append([]string{c.command}, args...)...); code != exitUsage || !strings.Contains(errs, c.says+"\n") {
				t.Errorf("the command itself: %d %s", code, errs)
			}
			if got := environmentWarnings("scaler", os.Environ()); !slices.Contains(got, c.says+"; `feedwater "+c.command+"` will refuse it") {
				t.Errorf("another command: %q", got)
			}
		})
	}
}

// A node says what its environment does not do.
func TestServeWarnsOfEnvironment(t *testing.T) {
	t.Setenv("FEEDWATER_MAX_MEMROY", "8GiB")
	t.Setenv("FEEDWATER_INDEX_INTERVAL", "abc")
	log := start(t, "--data", "photos="+anyFolder(t)).log.String()
	for _, says := range []string{"did you mean FEEDWATER_MAX_MEMORY?", "is no whole number; `feedwater index` will refuse it"} {
		if !strings.Contains(log, says) {
			t.Errorf("no %q in %s", says, log)
		}
	}
}

// Whatever variable the Python package or this program reads is known.
func TestVariablesAreKnown(t *testing.T) {
	known, _ := variablesOf(commandFlags())
	name := regexp.MustCompile(`"(FEEDWATER_[A-Z_]+)"`)
	seen := 0
	for _, pattern := range []string{"../../python/feedwater/*.py", "../../python/feedwater/*/*.py", "../../python/feedwater/*/*/*.py", "*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range name.FindAllStringSubmatch(string(text), -1) {
				if seen++; !known[m[1]] {
					t.Errorf("%s reads %s, which is not known", file, m[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d variables were found", seen)
	}
}
