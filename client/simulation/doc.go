// Package simulation runs nodes and trainers together in virtual time and disturbs them: the client and the server are
// the product's, joined by gRPC over connections in memory; only pixels and training loops are made up. A seed decides
// everything that is drawn: how many nodes and ranks, the data, delays, faults and when they happen. It has nothing but
// tests.
//
// What is checked is what Feedwater promises and nothing else: the ordered stream is that of a calm run, every sample
// comes once, a batch stays as it is until its release, nodes hold no more wants than the trainers may have there and
// give all memory back, honest nodes are not accused of damage, and no trainer waits long for a batch while a node is
// able to make it.
//
// A failing seed prints the command that runs it again. With -seed the whole run is printed, in virtual time:
//
//	1.204511873s  fault: node-2 hangs for 2.1s     what is done to the run; all faults of a seed are listed first
//	1.206804112s  node-1 makes 0/96+8              a want reached a node: epoch/position+count
//	1.219006790s  rank 0 has 0/96+8 from node-1    a batch was delivered
//
// Read it from the end: which want is missing, which node had it last, what happened to that node. The client's own log
// follows.
//
// A seed replays because no two things happen at one instant: each delay has nanoseconds of its own, and time stands
// still until everything that follows from an event has been done. In which order goroutines run within an instant is
// not decided, so a trace is the events of each instant as a set; see TestSameSeedSameTrace.
//
// That the checker can fail is shown by package mutants: deliberate bugs, each of which some seed catches.
package simulation
