// Package feedwaterv1 is the contract of trainers with nodes, made of feedwater.proto, and its revisions.
package feedwaterv1

// Revisions of the contract. Whatever speaks Protocol also serves what speaks OldestProtocol, so that nodes and
// trainers may be updated one after the other.
//
// 2 brought Revisions; what speaks 1 would mix builds.
const (
	Protocol       = 2
	OldestProtocol = 2
)

// DataField is the number of FetchResponse.data, the last field of the message: who sends and who receives a batch
// without a copy find it in the bytes.
const DataField = 15
