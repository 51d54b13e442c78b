package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// endpointSlices are those of one Service by name, in the words of discovery.k8s.io/v1.
type endpointSlices map[string]*endpointSlice

type endpointSlice struct {
	Metadata  struct{ Name, ResourceVersion string }
	Endpoints []endpoint
	Ports     []struct {
		Name string
		Port int
	}
	// Of the Status in an ERROR.
	Code    int
	Message string
}

type endpoint struct {
	Addresses  []string
	Conditions struct{ Ready, Terminating *bool }
}

type watchEvent struct {
	Type   string
	Object endpointSlice
}

// readSlices reads a list, and the version to watch from.
func readSlices(from io.Reader) (s endpointSlices, version string, err error) {
	var l struct {
		Metadata struct{ ResourceVersion string }
		Items    []endpointSlice
	}
	if err := json.NewDecoder(from).Decode(&l); err != nil {
		return nil, "", fmt.Errorf("the API server's list: %w", err)
	}
	s = endpointSlices{}
	for i := range l.Items {
		s[l.Items[i].Metadata.Name] = &l.Items[i]
	}
	return s, l.Metadata.ResourceVersion, nil
}

// followEvents applies events until they end, and returns the version to go on from. changed is called after each
// change.
func (s endpointSlices) followEvents(from io.Reader, version string, changed func()) (string, error) {
	for events := json.NewDecoder(from); ; {
		var e watchEvent
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			return version, nil
		} else if err != nil {
			return "", err
		}
		if err := s.applyEvent(&e); err != nil {
			return "", err
		}
		version = e.Object.Metadata.ResourceVersion
		if e.Type != "BOOKMARK" {
			changed()
		}
	}
}

// applyEvent takes a change in.
func (s endpointSlices) applyEvent(e *watchEvent) error {
	switch e.Type {
	case "ADDED", "MODIFIED":
		s[e.Object.Metadata.Name] = &e.Object
	case "DELETED":
		delete(s, e.Object.Metadata.Name)
	case "BOOKMARK":
	case "ERROR":
		return fmt.Errorf("the API server ends the watch: %d %s", e.Object.Code, e.Object.Message)
	default:
		return fmt.Errorf("the API server sends an event of unknown type %q", e.Type)
	}
	return nil
}

// acceptsStreams reports whether an endpoint takes new streams. Not known counts as ready. One that terminates, serving
// or not, says to those who have a stream that it drains, and takes no more; some Services call it ready all the while.
func (e *endpoint) acceptsStreams() bool {
	ready, terminating := e.Conditions.Ready, e.Conditions.Terminating
	return (ready == nil || *ready) && (terminating == nil || !*terminating)
}

// portOf is the one that was named, as the pods have it.
func (s *endpointSlice) portOf(named string) (string, error) {
	if isPort(named) {
		return named, nil
	}
	i := slices.IndexFunc(s.Ports, func(p struct {
		Name string
		Port int
	}) bool {
		return p.Name == named
	})
	switch {
	case named == "" && len(s.Ports) == 1:
		return strconv.Itoa(s.Ports[0].Port), nil
	case named == "":
		return "", fmt.Errorf("the Service has %d ports: name one; %s", len(s.Ports), kubernetesForm)
	case i < 0:
		return "", fmt.Errorf("the Service has no port %q", named)
	}
	return strconv.Itoa(s.Ports[i].Port), nil
}
