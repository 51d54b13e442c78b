package control

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// go test ./control -run Plots -plots ../docs/control draws the pictures of docs/control.md anew.
var plots = flag.String("plots", "", "folder for the pictures of docs/control.md")

// drawn are the scripts that docs/control.md shows, by file.
var drawn = map[string]string{
	"third":  "1 asynchronous loop at a third of what it needs",
	"pause":  "4 a pause of 60 s every 240 s",
	"lie":    "5 a meter that says half as much again",
	"blind":  "6 no meter",
	"disk":   "7 nodes whose disks give 0.6",
	"slow":   "one slow rank",
	"noise":  "noise 15 %",
	"silent": "two nodes fall silent for good",
}

func TestPlots(t *testing.T) {
	text, err := os.ReadFile("../docs/control.md")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]script{}
	for _, s := range scripts(t) {
		byName[s.Name] = s
	}
	for file, name := range drawn {
		s, ok := byName[name]
		if !ok || !strings.Contains(string(text), "control/"+file+".svg") {
			t.Errorf("%s, of %q, is not drawn or not shown", file, name)
		}
		o := s.run(0)
		if *plots != "" {
			if err := os.WriteFile(filepath.Join(*plots, file+".svg"), []byte(o.svg(simEnd)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const plotWidth, plotHeight, plotLeft, plotTop = 640.0, 150.0, 36.0, 10.0

// svg draws nodes that are up, wanted and needed, and idle, over the time of a run.
func (o *outcome) svg(end float64) string {
	top := 2.0
	for i := range o.wanted {
		top = max(top, float64(o.wanted[i]), float64(o.alive[i]))
	}
	top = math.Ceil(1.1 * top)
	x := func(t float64) float64 { return plotLeft + t/end*plotWidth }
	y := func(v float64) float64 { return plotTop + (1-v/top)*plotHeight }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">
<style>text{fill:#333}.grid{stroke:#ddd}.up{fill:none;stroke:#1769aa;stroke-width:2}.wanted{fill:none;stroke:#c0392b;stroke-width:1.3;stroke-dasharray:4 3}.need{stroke:#2e7d32;stroke-width:1}.idle{fill:#f5b041;opacity:.45}
@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#444}.up{stroke:#64b5f6}.wanted{stroke:#ef9a9a}.need{stroke:#81c784}}</style>
`, plotLeft+plotWidth+24, plotTop+plotHeight+36)
	for _, v := range []float64{0, top / 2, top} {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%g</text>`+"\n",
			plotLeft, plotLeft+plotWidth, y(v), y(v), plotLeft-4, y(v)+4, v)
	}
	for s := 0.0; s <= end; s += end / 6 {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.0f s</text>`+"\n", x(s), plotTop+plotHeight+14, s)
	}
	for i, r := range o.readings {
		idle := r.Idle
		if math.IsNaN(idle) {
			idle = r.Wait
		}
		if idle > 0.003 {
			fmt.Fprintf(&b, `<rect class="idle" x="%.1f" width="%.1f" y="%.1f" height="%.1f"/>`+"\n",
				x(o.at[i]-simPeriod), x(simPeriod)-plotLeft, y(idle*top), plotTop+plotHeight-y(idle*top))
		}
	}
	fmt.Fprintf(&b, `<line class="need" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", plotLeft, plotLeft+plotWidth, y(o.needed), y(o.needed))
	for _, l := range []struct {
		class  string
		values []int
	}{{"up", o.starts}, {"wanted", o.wanted}} {
		fmt.Fprintf(&b, `<path class="%s" d="M%.1f %.1f`, l.class, x(0), y(float64(l.values[0])))
		for i, v := range l.values {
			fmt.Fprintf(&b, "H%.1fV%.1f", x(o.at[i]), y(float64(v)))
		}
		b.WriteString(`"/>` + "\n")
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">blue: nodes up; red: nodes wanted; green: nodes needed; yellow: share of the step idle for data, or waited without a meter (top: all)</text></svg>`+"\n",
		plotLeft, plotTop+plotHeight+30)
	return b.String()
}
