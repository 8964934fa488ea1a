package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sallyport/internal/coded"
)

// CredentialName is the systemd credential that holds the passphrase
// (LoadCredential=sallyport-secrets:…, systemd.exec(5)).
const CredentialName = "sallyport-secrets"

// mostPassphrase bounds what is read as one, in bytes.
const mostPassphrase = 4096

// PassphraseFromFD reads the passphrase up to the end of file descriptor fd, at
// most as long as ctx lasts, and closes it, so that no child inherits it. One
// newline at the end does not count. Descriptors 0 to 2 are refused: they are
// used otherwise.
func PassphraseFromFD(ctx context.Context, fd int) ([]byte, error) {
	if fd < 3 {
		return nil, passphraseFault(errors.New("descriptors 0 to 2 are in use"))
	}
	file := os.NewFile(uintptr(fd), "passphrase")
	if file == nil {
		return nil, passphraseFault(os.ErrInvalid)
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		defer file.Close()
		text, err := readPassphrase(file)
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		return r.text, r.err
	case <-ctx.Done():
		file.Close()
		return nil, passphraseFault(ctx.Err())
	}
}

// PassphraseFromCredential reads the passphrase from folder, which is what
// CREDENTIALS_DIRECTORY says. When folder is "" or has no such credential, the
// error is fs.ErrNotExist.
func PassphraseFromCredential(folder string) ([]byte, error) {
	if folder == "" {
		return nil, fmt.Errorf("cannot read the credential %q: %w", CredentialName, os.ErrNotExist)
	}
	path := filepath.Join(folder, CredentialName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, passphraseFault(err)
	}
	if !info.Mode().IsRegular() {
		return nil, passphraseFault(errors.New("not a file"))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, passphraseFault(err)
	}
	defer file.Close()
	return readPassphrase(file)
}

func readPassphrase(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostPassphrase+1))
	if err != nil {
		return nil, passphraseFault(err)
	}
	if len(text) > mostPassphrase {
		return nil, passphraseFault(fmt.Errorf("longer than %d bytes", mostPassphrase))
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(text) == 0 {
		return nil, passphraseFault(errors.New("empty"))
	}
	return text, nil
}

func passphraseFault(cause error) error {
	return &coded.Error{
		Code:     "secrets-passphrase-unreadable",
		Sentence: "the passphrase for the encrypted file of secrets cannot be read",
		Next:     "hand it over as --secrets-passphrase-fd 3 3<file, or as the systemd credential sallyport-secrets",
		Err:      cause,
	}
}
