// Package externalscaler is KEDA's contract with external scalers, made of externalscaler.proto.
package externalscaler
