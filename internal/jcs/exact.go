package jcs

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxIntegerDigits is how many digits the largest double has before the point.
const maxIntegerDigits = 309

// Exact reports, as an error, whether raw holds a number whose value changes
// when it is read as a double (spec/approval.md 2.3), or is refused by Canonical
// for its syntax, a repeated key or a lone surrogate. The rule:
//
//   - A number that overflows (1e400), or vanishes (1e-400), is refused.
//   - An integer in plain digits must be exactly a double: readers with wide
//     integers would see another number than readers with doubles.
//   - A number with a point or an exponent is a double to every reader. It must
//     be exactly a double or have the decimal value that the double is printed
//     with, so 0.1 and 1e23 pass, 0.10000000000000000001 does not.
//
// Numbers that pass and differ as doubles differ in canonical form.
func Exact(raw []byte) error {
	if err := eachNumber(raw, isExact); err != nil {
		return fmt.Errorf("cannot take JSON as exact: %w", err)
	}
	return nil
}

func inRange(text string) error {
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) {
		return ErrRange
	}
	return nil
}

func isExact(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return ErrRange
	}
	written := parseDecimal(text)
	if f == 0 {
		if written.digits != "" {
			return ErrInexact
		}
		return nil
	}
	if written.isInteger() && written.equalsDouble(f) {
		return nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return ErrInexact
	}
	if written != parseDecimal(strconv.FormatFloat(f, 'e', -1, 64)) {
		return ErrInexact
	}
	return nil
}

// decimal is digits × 10^exponent with no zero at either end of digits; zero is
// empty digits, exponent 0, not negative. Equal values are equal structs.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal reads a JSON number that is known to be in a double's range.
func parseDecimal(text string) decimal {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa := text
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa = text[:at]
		d.exponent, _ = strconv.Atoi(text[at+1:])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exponent -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exponent += len(digits) - len(d.digits)
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func (d decimal) isInteger() bool { return d.exponent >= 0 }

// equalsDouble reports whether the integer d is exactly f, which is not zero: so
// d.exponent is no larger than a text can be long.
func (d decimal) equalsDouble(f float64) bool {
	if len(d.digits)+d.exponent > maxIntegerDigits || f != math.Trunc(f) {
		return false
	}
	n, ok := new(big.Int).SetString(d.digits+strings.Repeat("0", d.exponent), 10)
	if !ok {
		return false
	}
	if d.negative {
		n.Neg(n)
	}
	double, _ := big.NewFloat(f).Int(nil)
	return n.Cmp(double) == 0
}
