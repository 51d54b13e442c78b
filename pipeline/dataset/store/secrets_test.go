package store

import (
	"errors"
	"strings"
	"testing"
)

// No error of an URL has a name, a password, a signature or the value of an option that there is not, and each says what to do.
func TestSecretsOfURLs(t *testing.T) {
	for place, want := range map[string]string{
		"s3://data/k?endpoint=http://u:TOPSECRET@h":                                     "the endpoint has to be a host",
		"s3://data/k?endpoint=http%3A%2F%2Fu%3ATOPSECRET%40h":                           "the endpoint has to be a host",
		"s3://data/k?endpoint=http://u:TOP/SECRET@h":                                    "the endpoint has to be a host",
		"s3://data/k?endpoint=u:TOPSECRET@h":                                            "the endpoint has to be a host",
		"s3://u:TOPSECRET@data/k":                                                       "must not hold a name or a password",
		"s3://u:TOP/SECRET@data/k":                                                      "must not hold a name or a password",
		"https://h/x.tar?sig=TOPSECRET":                                                 "a signed URL is not read",
		"https://h/x.tar?X-Amz-Algorithm=A&X-Amz-Credential=TOP%2FSECRET&X-Amz-Sig=TOP": `no option "X-Amz-Algorithm"`,
		"https://h/x-{0..3}.tar?sv=2024-01-01&sig=TOP+SECRET%3D":                        "a signed URL is not read",
		"https://h/s-?.tar?a[b].c-d=TOPSECRET":                                          "a signed URL is not read",
		"https://u:TOPSECRET@h/x.tar":                                                   "must not hold a name or a password",
		"s3://data/k?endpoint_url=http://h":                                             "did you mean endpoint?",
		"s3://data/k?AWS_REGION=eu-central-1":                                           "did you mean region?",
		"s3://data/k?regoin=eu":                                                         "did you mean region?",
		"s3://data/k?secret_key=TOPSECRET":                                              "by the environment",
		"s3://data/k?region=eu&aws-access-key-id=TOPSECRET":                             "by the environment",
		"s3://data/k?2fa=TOPSECRET":                                                     `no option "2fa"; there are endpoint`,
		"s3://data/k?style=TOPSECRET":                                                   "style is path or host",
		"s3://data/k?secret=a;TOPSECRET":                                                "its options are not",
		"s3://data/k?secret=%zzTOPSECRET":                                               "its options are not",
	} {
		_, err := OpenURL(place, RemoteOptions{})
		if err == nil || !errors.As(err, new(*unreadableError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", place, err, want)
			continue
		}
		text := strings.ReplaceAll(err.Error(), "AWS_SECRET_ACCESS_KEY", "")
		if !strings.Contains(place, "style=") && (strings.Contains(text, "SECRET") || strings.Contains(text, "TOP")) {
			t.Errorf("%s: the error tells %s", place, text)
		}
	}
}

// What is no secret stays as it is.
func TestWithoutSecrets(t *testing.T) {
	for place, want := range map[string]string{
		"/data/a?b=c@d":                             "/data/a?b=c@d",
		"s3://data/a@b.tar":                         "s3://data/a@b.tar",
		"http://h:80/a@b.tar":                       "http://h:80/a@b.tar",
		"http://[::1]:80/a@b.tar":                   "http://[::1]:80/a@b.tar",
		"s3://data/x-?.tar":                         "s3://data/x-?.tar",
		"s3://data?endpoint=http://h:1&region=r":    "s3://data?endpoint=http://h:1&region=r",
		"s3://data?endpoint=http://u:p@h:1&a=b&c":   "s3://data?endpoint=http://…@h:1&a=…&…",
		"https://u:p@h/x.tar?sig=s":                 "https://…@h/x.tar?sig=…",
		"s3://data?endpoint=http://h/?token=secret": "s3://data?endpoint=http://h/?…",
	} {
		if got := WithoutSecrets(place); got != want {
			t.Errorf("%s: %s, want %s", place, got, want)
		}
	}
}
