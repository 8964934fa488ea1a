package secrets

// System is what advice depends on.
type System struct {
	OS        string // as runtime.GOOS
	Desktop   bool   // somebody can be shown a window
	SSH       bool
	WSL       bool
	Container bool
}

// orFile is the way out where no keyring can be had. It is the operator's to
// choose; nothing takes it by itself.
const orFile = "or choose an encrypted file with --secrets-passphrase-fd or the systemd credential sallyport-secrets"

// advice returns what to do about code on a system, or "".
func advice(code string, on System) string {
	switch on.OS {
	case "darwin":
		return macAdvice(code, on)
	case "windows":
		return windowsAdvice(code)
	}
	return linuxAdvice(code, on)
}

func linuxAdvice(code string, on System) string {
	switch code {
	case codeNoBus:
		switch {
		case on.Container:
			return "a container has no session bus: hand the secret in another way, " + orFile
		case on.WSL:
			return "switch systemd on in /etc/wsl.conf, restart WSL and install gnome-keyring, " + orFile
		case on.SSH:
			return "log in so that systemd starts a user session (XDG_RUNTIME_DIR is set), " + orFile
		case on.Desktop:
			return "start Sallyport from the desktop session, or set DBUS_SESSION_BUS_ADDRESS to the session's bus"
		}
		return "start Sallyport as a user service, so that XDG_RUNTIME_DIR is set, " + orFile
	case codeNoProvider:
		if on.Desktop {
			return "install and start gnome-keyring, KWallet or KeePassXC with its Secret Service switched on"
		}
		return "install gnome-keyring and unlock it at login, " + orFile
	case codeNoCollection:
		if on.Desktop {
			return "make a default keyring in Passwords and Keys (seahorse), or log out and in once"
		}
		return "make the login keyring with gnome-keyring-daemon --replace --unlock, " + orFile
	case codeLocked:
		if on.Desktop {
			return "answer the window that asks for the keyring's password, then start again"
		}
		return "nobody can be asked here: unlock with gnome-keyring-daemon --replace --unlock, " + orFile
	case codeDenied:
		return "allow Sallyport in the keyring's window when it asks, and run it as the user who owns the session"
	case codeNotAnswering:
		if on.Desktop {
			return "look for a window that asks for the keyring's password; if there is none, restart the keyring"
		}
		return "restart the keyring (systemctl --user restart gnome-keyring-daemon), " + orFile
	case codeFailed:
		return "look at the keyring's own log, and try again"
	}
	return ""
}

func macAdvice(code string, on System) string {
	switch code {
	case codeLocked:
		if on.SSH {
			return "unlock it in this session with security unlock-keychain"
		}
		return "unlock the login keychain in Keychain Access, then start again"
	case codeDenied:
		return "start again and choose Always Allow; macOS asks once more after an update of Sallyport"
	case codeNotAnswering:
		if on.SSH {
			return "a window may be waiting on the Mac's own screen: answer it, or run security unlock-keychain here"
		}
		return "answer the window that asks about the keychain, then start again"
	case codeNoProvider, codeNoCollection, codeNoBus:
		return "make a login keychain in Keychain Access"
	case codeFailed:
		return "run security find-generic-password -s Sallyport in a terminal to see what the keychain says"
	}
	return ""
}

func windowsAdvice(code string) string {
	switch code {
	case codeNoProvider, codeNoBus, codeNoCollection:
		return "start Sallyport in a session where you logged in with a password: a service or an SSH login with a key has no Credential Manager"
	case codeDenied, codeLocked:
		return "check that a policy does not forbid storing credentials (Network access: Do not allow storage of passwords)"
	case codeNotAnswering:
		return "check that the service Credential Manager (VaultSvc) runs"
	case codeFailed:
		return "look at the credentials that begin with Sallyport in Credential Manager, and try again"
	}
	return ""
}
