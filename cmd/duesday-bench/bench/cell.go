package bench

import (
	"slices"
	"syscall"
	"time"
)

// A Sample is one measurement of one side.
type Sample struct {
	PerSecond float64
	CPU       time.Duration // user and system, of the whole process, per unit
	P50, P99  time.Duration // of one unit, for its caller; zero where that was not measured
}

// A Cell is one figure: ours and the bare side's, measured in turn, pair by pair.
type Cell struct {
	Name       string
	Unit       string
	Ours, Bare []Sample
}

// A Range is a smallest, a median and a largest value.
type Range struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// RangeOf returns the range of the values; zero for none.
func RangeOf(values []float64) Range {
	if len(values) == 0 {
		return Range{}
	}
	v := slices.Sorted(slices.Values(values))
	return Range{v[0], v[len(v)/2], v[len(v)-1]}
}

// Rates returns the samples' units a second.
func Rates(samples []Sample) Range {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.PerSecond
	}
	return RangeOf(values)
}

// CPUs returns the samples' CPU seconds per 100,000 units.
func CPUs(samples []Sample) Range {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.CPU.Seconds() * 100_000
	}
	return RangeOf(values)
}

// Milliseconds returns the times of one unit that of picks from the samples.
func Milliseconds(samples []Sample, of func(Sample) time.Duration) Range {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s).Seconds() * 1000
	}
	return RangeOf(values)
}

// Ratios returns ours over bare, pair by pair: the machine's
// weather, shared by both sides, is divided out.
func (c *Cell) Ratios() Range {
	var values []float64
	for i := range min(len(c.Ours), len(c.Bare)) {
		values = append(values, c.Ours[i].PerSecond/c.Bare[i].PerSecond)
	}
	return RangeOf(values)
}

// Measure takes a sample of do, which returns how many units it did.
func Measure(do func() (units int, err error)) (Sample, error) {
	cpu, start := processCPU(), time.Now()
	units, err := do()
	if err != nil || units == 0 {
		return Sample{}, err
	}
	took := time.Since(start)
	return Sample{PerSecond: float64(units) / took.Seconds(), CPU: (processCPU() - cpu) / time.Duration(units)}, nil
}

// processCPU returns the user and system time of this process so far, and of the processes
// that it ran and waited for.
func processCPU() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// PeakMemory returns the largest resident size of this process so far, in bytes.
func PeakMemory() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss << 10 // kilobytes on Linux
}
