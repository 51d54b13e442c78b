package dataset

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// deadlines is a store that keeps by when its questions have to be answered.
type deadlines struct {
	store.Store

	of []time.Time
}

func (d *deadlines) Stat(ctx context.Context, _ string) (store.Attributes, error) {
	by, _ := ctx.Deadline()
	d.of = append(d.of, by)
	return store.Attributes{}, nil
}

// TestCheckServerWithin: all questions together have the time, not each.
func TestCheckServerWithin(t *testing.T) {
	d := &deadlines{}
	begun := time.Now()
	if err := checkPlace(t.Context(), d, "s3://bucket/p", "{0..7}.tar", time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(d.of) != 2 || d.of[0].Before(begun.Add(time.Hour)) || d.of[1] != d.of[0] {
		t.Errorf("questions of %v have to be answered by %v", begun, d.of)
	}
}

// TestCheckServer: what is wrong with a place for good is told; trouble that may pass is not.
func TestCheckServer(t *testing.T) {
	server := buckettest.OfFolder(t, shippable(t))
	url := "?endpoint=" + server.URL
	for place, says := range map[string]string{
		server.Place("p"):                                 "",
		server.Place("p/classes"):                         "",
		server.Place("p/s-{0..1}.tar"):                    "",
		server.Place("p/s-*.tar"):                         "",
		server.Place("p/l.csv"):                           "",
		server.Plain("p/s-{0..1}.tar"):                    "",
		server.Plain("p"):                                 "",
		"s3://other/p" + url:                              "there is no bucket other",
		server.Place("nothing"):                           "nothing lies below s3://data/nothing",
		server.Place("p/s-{0..7}.tar"):                    "s-{0..7}.tar: of its 8 files 6 are not there: s-2.tar to s-7.tar",
		server.Place("p/t-*.tar"):                         "nothing is called t-*.tar",
		server.Place("p/s-{0..1.tar"):                     "a brace is not closed",
		server.Place("p/x.csv"):                           "x.csv: ",
		server.Plain("p/s-{1..2}.tar"):                    "s-{1..2}.tar: of its 2 files 1 is not there: s-2.tar",
		"s3://" + buckettest.Bucket + "/p" + url + "&x=1": `no option "x"`,
		"gs://bucket/p":                                   "endpoint=https://storage.googleapis.com",
		"az://container/p":                                "copy it to a bucket that speaks S3",
		"hf://datasets/x":                                 "download it first",
	} {
		err := CheckServer(t.Context(), place, time.Minute)
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", place, err, says)
		}
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if err := CheckServer(t.Context(), server.Place("p/classes")+"&region=us-east-1", time.Minute); err == nil || !strings.Contains(err.Error(), "the secret key is not that of the access key") {
		t.Errorf("%v, want one about the key", err)
	}
	if err := CheckServer(t.Context(), server.Place("p/classes")+"&anonymous=true", time.Minute); err == nil || !strings.Contains(err.Error(), "leave anonymous=true out") {
		t.Errorf("%v, want one about credentials", err)
	}
	server.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		buckettest.Refuse(w, http.StatusNotFound, "XAdminUserNotFound") // VersityGW's
		return true
	})
	if err := CheckServer(t.Context(), server.Place("p/classes"), time.Minute); err == nil || !strings.Contains(err.Error(), "knows no such access key") {
		t.Errorf("%v, want one about the key", err)
	}
	tls := strings.Replace(server.Place("p"), "http://", "https://", 1)
	if err := CheckServer(t.Context(), tls, time.Minute); err == nil || !strings.Contains(err.Error(), "does not speak TLS: write http://") {
		t.Errorf("%v, want one about TLS", err)
	}
	server.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		buckettest.Refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	if err := CheckServer(t.Context(), server.Place("p"), time.Nanosecond); !errors.As(err, new(*UnansweredError)) {
		t.Errorf("a server in trouble: %v", err)
	}
}
