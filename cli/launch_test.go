package cli

import "testing"

func TestProgramOfABundleIsKnownByItsPlace(t *testing.T) {
	for executable, want := range map[string]bool{
		"/Applications/Sallyport.app/Contents/MacOS/sallyport":        true,
		"/Users/ada/My Apps/Sallyport.app/Contents/MacOS/sallyport":   true,
		"/usr/local/bin/sallyport":                                    false,
		"/Applications/Sallyport.app/Contents/Resources/sallyport":    false,
		"/srv/Contents/MacOS/sallyport":                               false,
		"/Applications/Sallyport.app/Contents/MacOS/helper/sallyport": false,
	} {
		if got := inBundle(executable); got != want {
			t.Errorf("%s: %v, want %v", executable, got, want)
		}
	}
}
