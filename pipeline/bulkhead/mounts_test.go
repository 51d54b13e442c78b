package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMountsOf(t *testing.T) {
	table := t.TempDir() + "/mounts"
	write(t, table, "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:40 / /mnt/a\\040b rw - nfs a:/x rw\n3 1 0:41 / /mnt rw shared:3 - tmpfs x rw\n4 2 0:42 / /mnt/a\\040b/deep rw - nfs y rw\nbad\n")
	for folder, want := range map[string]string{
		"/mnt/a b/data": "1 2 3", "/mnt/a b": "1 2 3 4", "/mnt/a": "1 3", "/data": "1",
	} {
		var got []string
		for line := range strings.Lines(mountsOf(table, []string{folder})) {
			got = append(got, strings.Fields(line)[0])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: mounts %v, want %s", folder, got, want)
		}
	}
	if got := mountsOf(table+".none", []string{"/"}); got != "" {
		t.Errorf("without a table: %q", got)
	}
	if got := mountsOf(mountTable, []string{t.TempDir()}); got == "" && present(mountTable) {
		t.Error("this machine's table has nothing that temporary files lie in")
	}
}

func present(file string) bool { _, err := os.Stat(file); return err == nil }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// However many probes are stuck, and for however long: a root is well soon after its file system was mounted anew, and
// all that was open stays stuck.
func TestMountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := t.TempDir() + "/mounts"
		write(t, table, "7 1 0:40 / / rw\n")
		roots := New(Options{Deadline: 30 * time.Second})
		roots.mountTable = table
		defer roots.Close()
		never := make(chan struct{})
		defer close(never)
		var fresh atomic.Bool
		var asked atomic.Int32
		r := roots.Add("x", t.TempDir())
		_, err := Do(context.Background(), r, "ask", func(func()) (int, error) {
			if asked.Add(1); !fresh.Load() {
				<-never
			}
			return 0, nil
		}, nil)
		if !errors.As(err, new(*HungError)) || r.Generation() != 0 {
			t.Fatalf("%v, generation %d", err, r.Generation())
		}
		for n := range 3 {
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if probes := asked.Load() - 1; !r.Sick() || probes < int32(n+4) || probes > int32(15*(n+1)) {
				t.Errorf("sick: %v, %d probes, with %d times that something was mounted", r.Sick(), probes, n)
			}
			write(t, table, fmt.Sprintf("%d 1 0:41 / / rw\n", 8+n))
		}
		fresh.Store(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r.Sick() || r.Generation() != 1 {
			t.Errorf("sick: %v, generation %d", r.Sick(), r.Generation())
		}
		if other := roots.Of("/elsewhere"); other.Generation() != 1 {
			t.Errorf("a root that is forgotten and comes again would begin in generation %d", other.Generation())
		}
	})
}
