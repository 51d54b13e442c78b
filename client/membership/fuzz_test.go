package membership

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// told is what users of a source get of an answer: addresses of nodes alone, each once, or an error.
func told(t *testing.T, a Answer) {
	t.Helper()
	(&changeNotifier{tell: func(a Answer) {
		if a.Nodes == nil && a.Err == nil {
			t.Error("neither nodes nor an error")
		}
		for i, addr := range a.Nodes {
			if err := CheckAddress(addr); err != nil || i > 0 && a.Nodes[i-1] >= addr {
				t.Errorf("%q of %q: %v", addr, a.Nodes, err)
			}
		}
	}}).notifyChange(a)
}

// FuzzEndpointSlices: whatever an API server lists, and whatever events it sends then, gives addresses of nodes or an
// error.
func FuzzEndpointSlices(f *testing.F) {
	list := listOf("7", sliceOf("a", "1", pod("10.0.0.1", "R"), pod("10.0.0.2", "Rt"), pod("fd00::1", "r")))
	event := `{"type": "ADDED", "object": ` + sliceOf("b", "8", pod("10.0.0.3", "")) + `}` + "\n"
	f.Add(list, event, "grpc")
	f.Add(list, `{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}`, "7070")
	f.Add(`{"items": [null, {"ports": [{"port": 0}], "endpoints": [{"addresses": ["a b"]}, {"addresses": []}, null]}]}`, `{"type": "DELETED"}`, "")
	f.Add(`{"items": [{"metadata": {"name": "x"}, "ports": [null, {"name": "p", "port": 99999}], "endpoints": null}]}`, `{"type": "ERROR", "object": {"code": 410}}`, "p")
	f.Fuzz(func(t *testing.T, list, events, port string) {
		s, version, err := readSlices(strings.NewReader(list))
		if err != nil {
			return
		}
		k := &kubernetes{service: "preproc", port: port}
		answer := func() { told(t, s.toAnswer(k, "prod")) }
		answer()
		_, _ = s.followEvents(strings.NewReader(events), version, answer)
		answer()
	})
}

// FuzzFileList: whatever a file holds gives addresses of nodes, and errors that name its lines.
func FuzzFileList(f *testing.F) {
	f.Add("# ours\ncpu-2:7070 cpu-1:7070\r\n\nunix:/run/node.sock, cpu-1:7070 # twice\n")
	f.Add("cpu-3\n[::1]:70\n:7070\n\x00:1,a b:2\n")
	path := filepath.Join(f.TempDir(), "nodes")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a := (&file{"file:" + path, path}).readAddresses()
		told(t, a)
		if a.Err != nil && !strings.Contains(a.Err.Error(), path) && !strings.Contains(a.Err.Error(), "too long") {
			t.Error(a.Err)
		}
	})
}

// FuzzTargets: whatever users name is nodes and sources, or an error that names it.
func FuzzTargets(f *testing.F) {
	for _, target := range []string{"cpu-1:7070", "unix:/x", "dns:a:1", "dns+srv:_a._tcp.b", "file:/x", "k8s:a/b:c", "k8s::", "dns::1", ":"} {
		f.Add(target)
	}
	f.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	f.Fuzz(func(t *testing.T, target string) {
		addrs, sources, err := Parse([]string{target})
		if err != nil && !strings.Contains(err.Error(), " ") || err == nil && len(addrs)+len(sources) != 1 {
			t.Errorf("%q: %v, %v, %v", target, addrs, sources, err)
		}
		if len(sources) == 1 && sources[0].String() != target {
			t.Errorf("%q is spelled %q", target, sources[0])
		}
	})
}
