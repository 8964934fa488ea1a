package secrets

import "strings"

// Help is what a person needs to know about a keyring that cannot be used, for one
// screen: what is so, and what to type. Steps that begin with "or" are other ways to
// the same end.
type Help struct {
	What  string
	Steps []Step
}

// Step is one thing to do. Type is one command a line, or empty.
type Step struct {
	Do   string
	Type []string
	// Instead marks the encrypted file, which takes the keyring's place for secrets and
	// opens none.
	Instead bool
}

func do(what string, commands ...string) Step { return Step{Do: what, Type: commands} }

func instead(what string) Step {
	return Step{Do: what, Type: []string{"sallyport serve --secrets-passphrase-fd 3 3< FILE"}, Instead: true}
}

// Help returns what to do about the code of a State on the system that it runs on.
func (s *Store) Help(code string) Help { return helpFor(code, s.system) }

// System is what help and advice are given for.
func (s *Store) System() System { return s.system }

// helpFor is the long form of advice.
func helpFor(code string, on System) Help {
	switch {
	case !strings.HasPrefix(code, "keyring-"): // the encrypted file's say it in a sentence
		return Help{}
	case on.OS == "darwin":
		return macHelp(code, on)
	case on.OS == "windows":
		return windowsHelp(code)
	}
	return linuxHelp(code, on)
}

func inAFile() Step {
	return instead("or keep secrets in an encrypted file, whose passphrase is in FILE:")
}

func getKeyring() Step {
	return do("install one, then log out and in (Fedora: dnf install gnome-keyring):", "sudo apt install gnome-keyring")
}

func openKeyring() Step {
	return do("open it: type this, then its password (it is not shown):",
		`read -rs p; printf %s "$p" | gnome-keyring-daemon --replace --unlock`)
}

func linuxHelp(code string, on System) Help {
	switch code {
	case codeNoBus:
		return linuxNoBus(on)
	case codeNoProvider:
		if on.Desktop {
			return Help{"The session is there, and no program in it keeps passwords.",
				[]Step{getKeyring(), do("or switch it on in KeePassXC: Settings, Secret Service Integration")}}
		}
		return Help{"The session is there, and no program in it keeps passwords.", []Step{getKeyring(), openKeyring(), inAFile()}}
	case codeNoCollection:
		if on.Desktop {
			return Help{"The program that keeps passwords runs, and was never used.",
				[]Step{do("make a keyring with the name Login in Passwords and Keys:", "seahorse")}}
		}
		return Help{"The program that keeps passwords runs, and was never used.", []Step{openKeyring(), inAFile()}}
	case codeLocked:
		if on.Desktop {
			return Help{"It is locked. A login without a password leaves it so.",
				[]Step{do("answer the window that asks for its password, or unlock it here:", "seahorse")}}
		}
		return Help{"It is locked, and nobody can be asked for its password here.", []Step{openKeyring(), inAFile()}}
	case codeDenied:
		return Help{"It refused Sallyport: somebody said no, or it is another user's.",
			[]Step{do("run Sallyport as the user who logged in, and say yes when you are asked:", "sallyport serve")}}
	case codeNotAnswering:
		steps := []Step{do("start it anew:", "systemctl --user restart gnome-keyring-daemon")}
		if on.Desktop {
			steps = append([]Step{do("look for a window that asks for its password, behind the others")}, steps...)
		}
		return Help{"It took the question and gave no answer within 5 seconds.", append(steps, inAFile())}
	}
	return Help{"It could not do what it was asked.",
		[]Step{do("see what it says itself, then try again:", "journalctl --user -b -t gnome-keyring-daemon")}}
}

func linuxNoBus(on System) Help {
	switch {
	case on.Container:
		return Help{"This is a container: it has no login session, so it has no keyring.",
			[]Step{instead("keep secrets in an encrypted file, whose passphrase is in FILE:")}}
	case on.WSL:
		return Help{"This is WSL without systemd, so there is no login session with a keyring.", []Step{
			do("switch it on, then open WSL anew:", `printf '[boot]\nsystemd=true\n' | sudo tee -a /etc/wsl.conf`, "wsl.exe --shutdown"),
			getKeyring(), inAFile()}}
	case on.SSH:
		return Help{"This login came by SSH and started no session, so it has no keyring.", []Step{
			do("let the system start one, then log in again:", "sudo apt install dbus-user-session libpam-systemd"),
			getKeyring(), inAFile()}}
	case on.Desktop:
		return Help{"There is a desktop, but Sallyport was not started from its session.",
			[]Step{do("stop it and start it here, where the session is known:",
				"export DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus", "sallyport serve")}}
	}
	return Help{"Sallyport was started outside of any login session, so it has no keyring.",
		[]Step{do("start it as a service of your user:", "systemd-run --user sallyport serve"), inAFile()}}
}

func macHelp(code string, on System) Help {
	unlock := do("unlock it here:", "security unlock-keychain")
	switch code {
	case codeLocked:
		if on.SSH {
			return Help{"The login keychain is locked, as it is in every login by SSH.", []Step{unlock}}
		}
		return Help{"The login keychain is locked.", []Step{unlock}}
	case codeDenied:
		return Help{"The keychain refused Sallyport: somebody said no, or Sallyport was updated.",
			[]Step{do("ask again, and choose Always Allow:", "sallyport doctor")}}
	case codeNotAnswering:
		if on.SSH {
			return Help{"The keychain gave no answer within 5 seconds: it asks on the Mac's own screen.", []Step{unlock}}
		}
		return Help{"The keychain gave no answer within 5 seconds.",
			[]Step{do("look for a window that asks about the keychain, behind the others"), unlock}}
	case codeNoProvider, codeNoCollection, codeNoBus:
		return Help{"There is no login keychain to keep anything in.",
			[]Step{do("make one:", "security create-keychain login.keychain-db", "security default-keychain -s login.keychain-db")}}
	}
	return Help{"The keychain could not do what it was asked.",
		[]Step{do("see what it says itself:", "security find-generic-password -s Sallyport")}}
}

func windowsHelp(code string) Help {
	switch code {
	case codeNoProvider, codeNoBus, codeNoCollection:
		return Help{"This login has no Credential Manager: it is a service, or came by SSH with a key.",
			[]Step{do("log in at the screen or with a password, and start it there:", "sallyport serve")}}
	case codeDenied, codeLocked:
		return Help{"Windows refused: a policy may forbid storing credentials.",
			[]Step{do("look for \"Do not allow storage of passwords\" under Security Options:", "secpol.msc")}}
	case codeNotAnswering:
		return Help{"The Credential Manager gave no answer within 5 seconds.",
			[]Step{do("see whether its service runs, and start it:", "sc query VaultSvc", "sc start VaultSvc")}}
	}
	return Help{"The Credential Manager could not do what it was asked.",
		[]Step{do("look at its entries that begin with Sallyport:", "control /name Microsoft.CredentialManager")}}
}
