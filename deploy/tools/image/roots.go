package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootCertificates are Mozilla's roots for servers, as PEM. Those that Mozilla trusts under conditions are left out: a PEM file cannot say them.
func rootCertificates() []byte {
	var b bytes.Buffer
	b.WriteString("# Certificate authorities that Mozilla trusts for servers, without those that it trusts under conditions.\n" +
		"# Of Mozilla's CA Certificate Program, under the Mozilla Public License 2.0, by way of golang.org/x/crypto/x509roots.\n")
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if c, err := x509.ParseCertificate(root.Certificate); err == nil {
			fmt.Fprintf(&b, "\n# %s\n", c.Subject)
		}
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
	}
	return b.Bytes()
}
