package layout

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// What the file system has not answered is asked once more, and nothing else: the directory that is opened, the files that are looked at.
func TestQuestions(t *testing.T) {
	var lines, names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("%d.jpg", i))
		lines = append(lines, "a/"+names[i])
	}
	lines = append(lines, "b/x.jpg", "c/y.jpg")
	for _, test := range []struct {
		name string
		from int32 // question that is not answered, with all behind it
		want []again
	}{
		{"the root", 1, []again{{dir: ""}}},
		{"a folder", 2, []again{{dir: "a"}}},
		{"its files", 3, []again{{dir: "a", names: names}}},
		{"none", 99, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, o := grow(t, t.TempDir(), lines...), optionsOf()
			o.Readers, o.Stats, o.Questions = 1, 1, &Questions{}
			synctest.Test(t, func(t *testing.T) {
				asked, hang := atomic.Int32{}, make(chan struct{})
				o.Slow = func() {
					if asked.Add(1) >= test.from {
						<-hang
					}
				}
				var opening sync.WaitGroup
				opening.Go(func() {
					from, err := store.OpenFiles(root, "", nil)
					must(t, err)
					o.Questions.About(func() (store.Store, error) { return store.OpenFiles(root, "", nil) })
					must(t, Folder{}.Scan(t.Context(), from, o, manifest.NewBuilder(io.Discard, 0, root, 0)))
					must(t, from.Close())
				})
				synctest.Wait()
				_, got := o.Questions.unanswered()
				for i := range got {
					slices.Sort(got[i].names)
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("unanswered: %v, want %v", got, test.want)
				}
				repeat := o.Questions.Again()
				must(t, repeat())
				close(hang)
				opening.Wait()
				must(t, os.RemoveAll(root))
				must(t, repeat()) // that nothing is there is an answer
				if _, left := o.Questions.unanswered(); len(left) != 0 {
					t.Errorf("%v is left", left)
				}
			})
		})
	}
}

// A folder that is read asks for all of its entries once more: its listing may hang in the middle.
func TestQuestionsOfAListing(t *testing.T) {
	root := grow(t, t.TempDir(), "a/1.jpg", "a/2.jpg")
	alive := 0
	r, err := store.OpenFiles(root, "", func() { alive++ })
	must(t, err)
	list, look := again{dir: "a", list: true}, again{dir: "a"}
	must(t, look.ask(r))
	if alive != 1 {
		t.Errorf("%d answers to whether a folder is there", alive)
	}
	alive = 0
	if err := trouble(list.ask(r)); err != nil || alive < 3 {
		t.Errorf("%d answers to what is in a folder, %v", alive, err)
	}
	must(t, r.Close())
}
