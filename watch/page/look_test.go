package page_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// files of the page, by path.
func files(t *testing.T) map[string]string {
	t.Helper()
	h := handlerOf(source("rn50"))
	all := map[string]string{}
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		_, _, all[path] = get(t, h, path)
	}
	return all
}

// The script finds each element that it looks for, and each class that it or the document gives has a style or a
// meaning to the script.
func TestPartsOfThePageFitTogether(t *testing.T) {
	all := files(t)
	script, document := all["/page.js"], all["/"]
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:getElementById|show)\("([a-z]+)"`).FindAllStringSubmatch(script, -1) {
		ids[m[1]] = true
	}
	if len(ids) < 10 {
		t.Fatalf("only %d ids in the script", len(ids))
	}
	for id := range ids {
		if !strings.Contains(document, `id="`+id+`"`) {
			t.Errorf("the document has no %q", id)
		}
	}
	for _, m := range regexp.MustCompile(`(?:make\("[a-z]+", |classList\.(?:add|toggle)\()"([a-z -]+)"`).FindAllStringSubmatch(script, -1) {
		for _, class := range strings.Fields(m[1]) {
			if !strings.Contains(all["/page.css"], "."+class) {
				t.Errorf("class %q has no style", class)
			}
		}
	}
}

// Text has a contrast of 4.5 to what it stands on, and what bars are made of 3, in both themes (WCAG 2.2, level AA).
func TestContrast(t *testing.T) {
	style := files(t)["/page.css"]
	light, dark, found := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("no dark theme")
	}
	dark, _, _ = strings.Cut(dark, "* {")
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		colour := map[string]float64{} // relative luminance
		for _, m := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6})`).FindAllStringSubmatch(text, -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		for _, ground := range []string{"card", "ground"} {
			for _, text := range []string{"text", "faint", "good", "bad", "fair"} {
				if c := contrast(colour[text], colour[ground]); c < 4.5 {
					t.Errorf("%s: %s on %s has %.2f", theme, text, ground, c)
				}
			}
		}
		for _, bar := range []string{"idle", "wait", "work"} {
			if c := contrast(colour[bar], colour["card"]); c < 3 {
				t.Errorf("%s: a bar of %s has %.2f", theme, bar, c)
			}
		}
	}
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// luminance by WCAG 2.2, of a colour in hexadecimal digits.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		v := float64(n>>shift&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}
