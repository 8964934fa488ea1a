package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/runtime/updates"
)

// holds is how long a manifest says what is newest.
const holds = 180 * 24 * time.Hour

// announce writes update.json for the files in a folder: what a Sallyport that is asked
// for updates reads. It is signed where there is a key.
func announce(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("manifest", flag.ContinueOnError)
	version := flags.String("version", "", "the version of the release")
	date := flags.Int64("date", 0, "seconds since 1970")
	base := flags.String("url", "", "the address of the folder that the files will lie in")
	notes := flags.String("notes", "", "the address of a page about the release")
	key := flags.String("key", "", "a file with an Ed25519 private key, PKCS #8 in PEM")
	if flags.Parse(args) != nil || flags.NArg() != 1 || *base == "" {
		return errUsage
	}
	from := time.Unix(*date, 0).UTC()
	m := updates.Manifest{Schema: updates.Schema, Version: *version, Date: from, Expires: from.Add(holds), Notes: *notes}
	var err error
	if m.Files, err = filesOf(flags.Arg(0), *version, *base); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if _, err := updates.Parse(raw); err != nil {
		return err
	}
	to := filepath.Join(flags.Arg(0), "update.json")
	if err := atomicfile.Write(to, raw, 0o644); err != nil {
		return err
	}
	if *key == "" {
		_, err := fmt.Fprintln(out, to, "is not signed")
		return err
	}
	return signTo(to, raw, *key, out)
}

func signTo(to string, raw []byte, keyFile string, out io.Writer) error {
	content, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	private, err := privateKey(content)
	if err != nil {
		return err
	}
	signature, err := updates.Sign(private, raw)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(to+updates.SignatureSuffix, signature, 0o644); err != nil {
		return err
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return errors.New("the key has no other half")
	}
	_, err = fmt.Fprintln(out, to, "is signed, for", updates.FormatKey(public))
	return err
}

// privateKey reads what "openssl genpkey -algorithm ed25519" writes.
func privateKey(content []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key is not PKCS #8")
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not one of Ed25519")
	}
	return private, nil
}

// released finds what a file's name says: system, processor, and the rest.
var released = regexp.MustCompile(`^sallyport-(headless-)?(.+)-(linux|macos|windows)-(amd64|arm64|universal)[-.](.+)$`)

func filesOf(dir, version, base string) ([]updates.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []updates.File
	for _, entry := range entries {
		part := released.FindStringSubmatch(entry.Name())
		if part == nil {
			continue
		}
		if part[2] != version {
			return nil, fmt.Errorf("%s is of another version than %s", entry.Name(), version)
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		system := part[3]
		if system == "macos" {
			system = "darwin"
		}
		files = append(files, updates.File{OS: system, Arch: part[4], Kind: part[1] + part[5],
			URL: strings.TrimSuffix(base, "/") + "/" + entry.Name(), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))})
	}
	return files, nil
}
