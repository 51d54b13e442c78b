package store

import "testing"

// Whatever a server is called in an URL, what lies in one bucket has one origin, and that of others another one.
func TestOriginOfNames(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	origins := map[string]string{}
	for want, places := range map[string][]string{
		"s3://amazonaws.com/data": {
			"s3://data", "s3://data/p?region=eu-west-1", "s3://data?endpoint=https://s3.eu-west-1.amazonaws.com", "s3://data?endpoint=s3.amazonaws.com", "s3://data?endpoint=https://S3.amazonaws.com:443",
			"s3://data?endpoint=https://s3.dualstack.us-gov-west-1.amazonaws.com&style=path", "s3://data?endpoint=http://s3-eu-west-1.amazonaws.com", "s3://data?endpoint=https://s3-accelerate.amazonaws.com",
			"s3://data?endpoint=https://s3-fips.us-east-2.amazonaws.com",
		},
		"s3://amazonaws.com.cn/data":                       {"s3://data?endpoint=https://s3.cn-north-1.amazonaws.com.cn"},
		"s3://amazonaws.com/other":                         {"s3://other"},
		"s3://h/data":                                      {"s3://data?endpoint=http://h:80", "s3://data?endpoint=https://h", "s3://data?endpoint=h:443", "s3://data?endpoint=https://H."},
		"s3://h:443/data":                                  {"s3://data?endpoint=http://h:443"},
		"s3://h:9000/data":                                 {"s3://data?endpoint=http://h:9000"},
		"s3://[::1]:9000/data":                             {"s3://data?endpoint=http://[::1]:9000"},
		"s3://s3-outposts.us-west-2.amazonaws.com/data":    {"s3://data?endpoint=https://s3-outposts.us-west-2.amazonaws.com"},
		"s3://s3.eu-west-1.amazonaws.com.example.org/data": {"s3://data?endpoint=https://s3.eu-west-1.amazonaws.com.example.org"},
		"https://h":                                        {"https://h/p", "https://H:443/p"},
		"http://h":                                         {"http://h:80/p"},
		"http://h:8080":                                    {"http://h:8080/p"},
	} {
		for _, place := range places {
			origins[place] = want
		}
	}
	for place, want := range origins {
		s, err := OpenURL(place, RemoteOptions{})
		if err != nil {
			t.Errorf("%s: %v", place, err)
			continue
		}
		named, ok := s.(interface{ Origin() string })
		if !ok || named.Origin() != want {
			t.Errorf("the origin of %s is %s, want %s", place, named.Origin(), want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
