package gpu

import (
	"slices"
	"time"
)

const (
	// sampleMax is the longest distance of two samples that follow each other. NVML documents sample periods of 1/6 s to 1 s, by
	// product, so beyond twice the longest there is a gap or a clock that was set, and no sample knows what the GPU did in it.
	sampleMax = 2 * time.Second
	// gapFactor times the usual distance is a gap as well: some drivers take no samples while a GPU is idle.
	gapFactor = 2
	// samplePeriod is taken where a buffer does not tell.
	samplePeriod = time.Second / 6
)

// Sample is one entry of the driver's buffer: the share of time in which a kernel ran, over the sample period that ended at Time.
type Sample struct {
	Time  time.Duration // by the driver's clock: since the epoch or since boot, by driver
	Share float64
}

// Utilisation is the time-weighted mean of the samples that came after the one of time seen, the time that they cover, and the time
// of the newest. The buffer is in order of arrival. So consecutive calls, with each newest as the next seen, count every sample once,
// however their buffers overlap. covered is 0 where nothing is new.
//
// Each sample counts with its distance to the one before it; after a gap, or where the clock was set, with the usual distance of
// this buffer. The time in a gap is not covered.
func Utilisation(buffer []Sample, seen time.Duration) (share float64, covered, newest time.Duration) {
	if len(buffer) == 0 {
		return 0, 0, seen
	}
	usual := usualDistance(buffer)
	longest := min(sampleMax, gapFactor*usual)
	first := afterSeen(buffer, seen)
	var busy float64
	for i := first; i < len(buffer); i++ {
		weight := usual
		if i > 0 {
			if d := buffer[i].Time - buffer[i-1].Time; d >= 0 && d <= longest {
				weight = d
			}
		}
		busy += buffer[i].Share * weight.Seconds()
		covered += weight
	}
	newest = buffer[len(buffer)-1].Time
	if covered == 0 {
		return 0, 0, newest
	}
	return busy / covered.Seconds(), covered, newest
}

// afterSeen is the index of the first sample that came after the one of time seen; 0 if the buffer has rolled over since.
func afterSeen(buffer []Sample, seen time.Duration) int {
	for i := len(buffer) - 1; i >= 0; i-- {
		if buffer[i].Time == seen {
			return i + 1
		}
	}
	return 0
}

// usualDistance is the median distance between neighbours, gaps and steps back left out.
func usualDistance(buffer []Sample) time.Duration {
	var distances []time.Duration
	for i := 1; i < len(buffer); i++ {
		if d := buffer[i].Time - buffer[i-1].Time; d > 0 && d <= sampleMax {
			distances = append(distances, d)
		}
	}
	if len(distances) == 0 {
		return samplePeriod
	}
	slices.Sort(distances)
	return distances[len(distances)/2]
}
