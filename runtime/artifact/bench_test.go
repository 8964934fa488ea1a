package artifact

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/dirhash"
)

// benchRounds is how often each contender runs in turn; a ratio is the median of
// the ratios of single rounds, so that a busy machine slows both sides alike.
const benchRounds = 9

// contender is one way to do the job; run does it once.
type contender struct {
	name string
	run  func() error
}

// race runs the yardstick and its rivals round robin and reports, for each
// rival, how many times the yardstick's time (x-) and processor time (cpu-x-,
// which a busy machine disturbs less) it takes.
func race(b *testing.B, yardstick contender, rivals ...contender) {
	b.Helper()
	all := append([]contender{yardstick}, rivals...)
	for _, c := range all { // warm
		if err := c.run(); err != nil {
			b.Fatalf("%s: %v", c.name, err)
		}
	}
	for b.Loop() {
		times, cpu := make(map[string][]float64), make(map[string][]float64)
		for range benchRounds {
			for _, c := range all {
				runtime.GC()
				start, used := time.Now(), processorTime()
				if err := c.run(); err != nil {
					b.Fatalf("%s: %v", c.name, err)
				}
				times[c.name] = append(times[c.name], float64(time.Since(start)))
				cpu[c.name] = append(cpu[c.name], float64(processorTime()-used))
			}
		}
		b.ReportMetric(median(times[yardstick.name])/1e6, "ms-"+yardstick.name)
		for _, c := range rivals {
			b.ReportMetric(medianRatio(times[c.name], times[yardstick.name]), "x-"+c.name)
			if ratio := medianRatio(cpu[c.name], cpu[yardstick.name]); ratio > 0 {
				b.ReportMetric(ratio, "cpu-x-"+c.name)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

func medianRatio(values, base []float64) float64 {
	ratios := make([]float64, len(values))
	for i := range values {
		if base[i] > 0 {
			ratios[i] = values[i] / base[i]
		}
	}
	return math.Round(median(ratios)*100) / 100
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// benchTree returns a folder with about 20,000 small files, like those of npm
// packages: 6 KB on average, most far smaller, 9 a directory. It is the same
// every time and kept between runs.
func benchTree(b *testing.B) string {
	b.Helper()
	const files = 20_000
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "sallyport-bench", fmt.Sprintf("tree-%d-v1", files))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	staging := dir + ".partial"
	if err := os.RemoveAll(staging); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	folder := staging
	for i := range files {
		if i%9 == 0 {
			folder = filepath.Join(staging, "node_modules", fmt.Sprintf("package-%03d", i/180), "lib", fmt.Sprintf("part%d", i/9%20))
			if err := os.MkdirAll(folder, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		size := min(int(math.Exp(random.NormFloat64()*1.5+7.55)), len(noise))
		name := filepath.Join(folder, fmt.Sprintf("module-%05d.js", i))
		if err := os.WriteFile(name, noise[:size], 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Rename(staging, dir); err != nil {
		b.Fatal(err)
	}
	return dir
}

func fullDigest(dir string) contender {
	return contender{"digest", func() error {
		_, err := Of(context.Background(), dir, Options{})
		return err
	}}
}

// BenchmarkDigestAgainstPeers has x/mod's dirhash and the shell's way in one
// run; the goal is 4 times faster than either.
func BenchmarkDigestAgainstPeers(b *testing.B) {
	dir := benchTree(b)
	race(b, fullDigest(dir),
		contender{"dirhash", func() error {
			_, err := dirhash.HashDir(dir, "", dirhash.Hash1)
			return err
		}},
		contender{"find-xargs-sha256sum", func() error {
			return exec.Command("sh", "-c", `cd "$0" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`, dir).Run()
		}},
	)
}

// BenchmarkSHA256 gives the scale of the machine.
func BenchmarkSHA256(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		sha256.Sum256(data)
	}
}
