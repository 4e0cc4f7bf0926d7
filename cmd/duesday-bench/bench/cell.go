package bench

import (
	"slices"
	"syscall"
	"time"
)

// A Sample is one measurement of one side.
type Sample struct {
	PerSecond float64
	CPU       float64 // seconds of user and system, of the whole process, per 100,000 units
	P50, P99  float64 // milliseconds of one unit, for its caller; zero where that was not measured
}

// A Cell is one figure: our side's, and the bare one's, measured in turn, pair by pair.
type Cell struct {
	Name  string
	Unit  string
	Sides [2][]Sample
}

// A Range is a smallest, a median and a largest value.
type Range struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Over returns the range of a value of each; zero of none.
func Over[T any](all []T, value func(T) float64) Range {
	if len(all) == 0 {
		return Range{}
	}
	var v []float64
	for _, one := range all {
		v = append(v, value(one))
	}
	slices.Sort(v)
	return Range{v[0], v[len(v)/2], v[len(v)-1]}
}

// Ratios returns ours over bare, pair by pair: a machine that is slow for a while slows both.
func (c *Cell) Ratios() Range {
	var values []float64
	for i, bare := range c.Sides[1] {
		values = append(values, c.Sides[0][i].PerSecond/bare.PerSecond)
	}
	return Over(values, func(v float64) float64 { return v })
}

// Work does units. It returns how many and, where that is measured, how long each took, in order.
type Work func() (units int, took []time.Duration, err error)

// Measure takes a sample of the work.
func Measure(do Work) (Sample, error) {
	cpu, start := processCPU(), time.Now()
	units, took, err := do()
	if err != nil || units == 0 {
		return Sample{}, err
	}
	rate := float64(units) / time.Since(start).Seconds()
	return Sample{rate, (processCPU() - cpu).Seconds() / float64(units) * 100_000,
		Percentile(took, 50).Seconds() * 1000, Percentile(took, 99).Seconds() * 1000}, nil
}

// processCPU returns the CPU time so far of this process and of those that it waited for.
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
