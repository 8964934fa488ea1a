package process

import (
	"os"
	"strconv"
)

// imageOf opens what pid executes now. The link leads to the file itself, also
// when its name has been given to another one.
func imageOf(pid int) (*image, string, error) {
	link := "/proc/" + strconv.Itoa(pid) + "/exe"
	f, err := os.Open(link)
	if err != nil {
		return nil, "", err
	}
	return &image{file: f}, imagePath(pid), nil
}

// imagePath is the path of what pid executes; "" when it cannot be told.
func imagePath(pid int) string {
	path, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return path
}
